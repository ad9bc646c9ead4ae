"""Releases that an earlier program wrote are read, checked and estimated from as they were then."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import polyseme as ps

FOLDER = Path(__file__).parent / "releases"
RELEASES = sorted(path for path in FOLDER.glob("format-*/*") if path.is_dir())


@pytest.fixture(params=RELEASES, ids=lambda path: f"{path.parent.name}-{path.name}")
def old(request: pytest.FixtureRequest) -> Path:
    return request.param


def expected(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "expected.json").read_text(encoding="utf-8"))


def test_there_are_releases_of_format_1() -> None:
    assert {path.name for path in RELEASES if path.parent.name == "format-1"} >= {
        "sets",
        "long",
        "csv",
        "sticky",
        "paper",
    }


def test_verifies_as_before(old: Path) -> None:
    found = ps.verify(ps.Release.open(old)).to_dict()
    verdicts = [[item["model"], item["attribute"], item["holds"]] for item in found["verdicts"]]
    assert (found["holds"], verdicts) == (expected(old)["holds"], expected(old)["verdicts"])


def test_estimates_as_before(old: Path) -> None:
    release = ps.Release.open(old)
    for question in expected(old)["estimates"]:
        # The unbiased estimate is a closed formula of the sets: only reading can change it.
        found = ps.estimate(release, of=question["of"], by=question["by"], estimator="inverse").to_dict()["cells"]
        assert len(found) == len(question["cells"])
        for cell, before in zip(found, question["cells"], strict=True):
            assert cell["estimate"] == pytest.approx(before["estimate"], abs=1e-6)
            assert [cell[name] for name in (*question["of"], *question["by"])] == [
                before[name] for name in (*question["of"], *question["by"])
            ]


def test_survives_a_round_trip(old: Path) -> None:
    manifest = ps.Release.open(old).manifest
    again = type(manifest).from_dict(json.loads(manifest.to_json()))
    assert again.to_dict() == manifest.to_dict()
