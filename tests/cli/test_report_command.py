"""`report` states what it is told, and `estimate --chart` draws each kind of picture or refuses before the work."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from command_line import polyseme

POLICY = "attributes: {ill: {role: sensitive, domain: [a, b, c], protect: {diversity: {l: 2}}}}\n"
BEGINS = {".png": b"\x89PNG", ".svg": b"<svg", ".pdf": b"%PDF"}


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("work")
    pl.DataFrame({"ill": ["a", "b", "c"] * 20}).write_csv(folder / "people.csv")
    (folder / "policy.yaml").write_text(POLICY)
    assert polyseme("anonymize", "policy.yaml", "people.csv", "--out", "release", cwd=folder).returncode == 0
    return folder


def test_title_and_publisher_are_options(work: Path) -> None:
    options = ("--title", "Illnesses of 60", "--publisher", "The Registry")
    assert polyseme("report", "release", *options, "--out", "report.html", cwd=work).returncode == 0
    text = (work / "report.html").read_text(encoding="utf-8")
    assert "<h1>Illnesses of 60</h1>" in text
    assert "The Registry" in text


def test_an_empty_title_is_refused_and_nothing_is_written(work: Path) -> None:
    result = polyseme("report", "release", "--title", "", "--out", "none.html", cwd=work)
    assert result.returncode == 2
    assert "--title: expected some text" in result.stderr
    assert not (work / "none.html").exists()


@pytest.mark.parametrize("kind", BEGINS)
def test_each_kind_of_picture_is_drawn(work: Path, kind: str) -> None:
    assert polyseme("estimate", "release", "--of", "ill", "--chart", f"ill{kind}", cwd=work).returncode == 0
    assert (work / f"ill{kind}").read_bytes().startswith(BEGINS[kind])


@pytest.mark.parametrize("name", ["ill.html", "ill.jpg", "ill"])
def test_other_kinds_are_refused_before_the_work(work: Path, name: str) -> None:
    result = polyseme("estimate", "no-such-release", "--of", "ill", "--chart", name, cwd=work)
    assert result.returncode == 2
    assert f"{name}: a chart is saved as .png, .svg or .pdf" in result.stderr
    assert "no-such-release" not in result.stderr
