"""What an owner says of a release: from the policy into the manifest, checked on both ways."""

from __future__ import annotations

import json
import re
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import polyseme as ps
from polyseme.release.data import checksum
from polyseme.release.facts import About, flaw_of

ATTRIBUTES = "attributes: {ill: {role: sensitive, domain: [a, b, c], protect: {diversity: {l: 2}}}}\n"
TABLE = pl.DataFrame({"ill": ["a", "b", "c"] * 20})


def made(about: str, folder: Path) -> ps.Release:
    return ps.anonymize(TABLE, ps.Policy.loads(f"about: {about}\n{ATTRIBUTES}"), folder / "release")


def test_what_the_policy_says_is_in_the_manifest(tmp_path: Path) -> None:
    release = made("{title: Illnesses, publisher: 'Registry, Ward 3', version: 2.1, date: 2026-01-31}", tmp_path)
    about = About("Illnesses", "Registry, Ward 3", "2.1", "2026-01-31")
    assert release.manifest.about == ps.Release.open(tmp_path / "release").manifest.about == about
    document = json.loads((tmp_path / "release" / "manifest.json").read_text())
    assert document["about"] == about.to_dict()
    assert document["format"] == 2
    assert release.manifest.checksum == document["checksum"]
    assert release.manifest.program == document["polyseme"]


def test_the_day_of_the_run_is_stated_unless_the_policy_has_another(tmp_path: Path) -> None:
    before = date.today()
    about = made("{title: Illnesses}", tmp_path).manifest.about
    assert about.date in {before.isoformat(), date.today().isoformat()}
    assert about.to_dict().keys() == {"title", "date"}


def test_a_policy_that_says_nothing_leaves_the_manifest_as_it_was(tmp_path: Path) -> None:
    ps.anonymize(TABLE, ps.Policy.loads(ATTRIBUTES), tmp_path / "release")
    document = json.loads((tmp_path / "release" / "manifest.json").read_text())
    assert "about" not in document
    assert document["format"] == 1
    assert not ps.Release.open(tmp_path / "release").manifest.about


def test_a_release_in_memory_has_no_checksum_until_it_is_saved(tmp_path: Path) -> None:
    release = ps.anonymize(TABLE, ps.Policy.loads(ATTRIBUTES))
    assert release.manifest.checksum == ""
    assert re.fullmatch("[0-9a-f]{64}", ps.save(release, tmp_path / "saved").manifest.checksum)


@pytest.mark.parametrize(
    ("about", "expected"),
    [
        ("[]", "$.about: expected a mapping"),
        ("{titel: Illnesses}", "$.about.titel: unknown key"),
        ("{title: 3}", "$.about.title: expected text, found a whole number"),
        ("{title: ''}", "$.about.title: expected some text"),
        (f"{{publisher: {'x' * 201}}}", "$.about.publisher: longer than 200 letters"),
        ('{title: "a\\nb"}', "$.about.title: expected one line of printable text"),
        ("{date: 31.1.2026}", "$.about.date: expected a date such as 2026-11-17"),
        ("{date: 2026-02-30}", "$.about.date: expected a date such as 2026-11-17"),
        ("{version: true}", "$.about.version: expected text, found true or false"),
    ],
)
def test_what_cannot_be_said_is_refused_with_its_place(about: str, expected: str) -> None:
    with pytest.raises(ps.PolicyError) as caught:
        ps.Policy.loads(f"about: {about}\n{ATTRIBUTES}")
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    "about",
    [{}, {"title": ""}, {"title": "a\x1b[2J"}, {"date": "2026-13-01"}, {"owner": "x"}, {"title": "x" * 201}, "text"],
)
def test_a_manifest_that_says_what_cannot_be_said_is_refused(about: Any, tmp_path: Path) -> None:
    made("{title: Illnesses}", tmp_path)
    path = tmp_path / "release" / "manifest.json"
    document = {**json.loads(path.read_text()), "about": about}
    document["checksum"] = checksum({key: value for key, value in document.items() if key != "checksum"})
    path.write_text(json.dumps(document))
    with pytest.raises(ps.ReleaseError, match="about"):
        ps.Release.open(tmp_path / "release")


def test_format_1_has_no_such_key(tmp_path: Path) -> None:
    made("{title: Illnesses}", tmp_path)
    path = tmp_path / "release" / "manifest.json"
    document = {**json.loads(path.read_text()), "format": 1}
    document["checksum"] = checksum({key: value for key, value in document.items() if key != "checksum"})
    path.write_text(json.dumps(document))
    with pytest.raises(ps.ReleaseError, match="format 1"):
        ps.Release.open(tmp_path / "release")


def test_a_date_is_written_in_one_way() -> None:
    assert not flaw_of("date", "2026-01-31")
    for other in ("20260131", "2026-W05-6", "2026-1-31", "2026-01-31T00:00"):
        assert flaw_of("date", other)
