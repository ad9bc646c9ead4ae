"""What new users hand in by mistake, one thing after the other: each is named for what it is."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import polyseme as ps
from command_line import polyseme

ROWS = 400
POLICY = """
attributes:
  name: {role: identifier}
  age: {role: quasi-identifier}
  level:
    role: sensitive
    domain: [a, b, c, d, e, f, g, h]
    distance: {line: rank}
    protect: {semantic-diversity: {l: 2, d: 2}}
"""


def people(rows: int = ROWS) -> pl.DataFrame:
    drawn = np.random.default_rng(3)
    return pl.DataFrame(
        {
            "name": [f"QQMARKQQ{number}" for number in range(rows)],
            "age": drawn.permutation(rows) + 20,
            "level": drawn.choice(list("abcdefgh"), rows),
        }
    )


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table, a policy and a release of it."""
    folder = tmp_path_factory.mktemp("work")
    people().write_csv(folder / "people.csv")
    (folder / "policy.yaml").write_text(POLICY)
    assert polyseme("anonymize", "policy.yaml", "people.csv", "--out", "release", cwd=folder).returncode == 0
    return folder


# -- attack ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["attack", "report", "evaluate"])
def test_an_original_with_fewer_rows_is_refused(work: Path, verb: str, tmp_path: Path) -> None:
    people().head(300).write_csv(tmp_path / "fewer.csv")
    out = ("--out", tmp_path / "page.html") if verb == "report" else ()
    result = polyseme(verb, work / "release", "--original", tmp_path / "fewer.csv", *out)
    assert result.returncode == 2
    assert "300 records fit the release, which has 400" in result.stderr
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize("verb", ["attack", "report"])
def test_an_original_with_other_rows_is_refused(work: Path, verb: str, tmp_path: Path) -> None:
    others = people().with_columns(age=pl.when(pl.col("age") < 30).then(pl.col("age") + 1000).otherwise(pl.col("age")))
    others.write_csv(tmp_path / "others.csv")
    out = ("--out", tmp_path / "page.html") if verb == "report" else ()
    result = polyseme(verb, work / "release", "--original", tmp_path / "others.csv", *out)
    assert result.returncode == 2
    assert "10 of 400 records of the release are not in it, going by 'age'" in result.stderr


def test_the_other_release_is_another_one(work: Path, tmp_path: Path) -> None:
    shutil.copytree(work / "release", tmp_path / "copy")
    for same in (work / "release", tmp_path / "copy"):
        result = polyseme("attack", work / "release", "--other", same)
        assert result.returncode == 2
        assert "other: this is the same release" in result.stderr
    release = ps.anonymize(people(), ps.Policy.loads(POLICY))
    with pytest.raises(ps.QuestionError, match="this is the same release"):
        ps.attack(release, other=release)
    again = ps.anonymize(people(), ps.Policy.loads(POLICY))
    assert any(found.attack == "repetition" for found in ps.attack(release, other=again))


# -- files that are in the way, and names that nobody gave -------------------------------------------------------------


def test_a_report_replaces_reports_only(work: Path, tmp_path: Path) -> None:
    for name, text in (("mine.html", "<!doctype html><p>mine"), ("policy.yaml", POLICY), ("data.bin", "\0")):
        (tmp_path / name).write_text(text)
        result = polyseme("report", work / "release", "--out", tmp_path / name, "--force")
        assert result.returncode == 2
        assert f"{name}: not made by this command" in result.stderr
        assert (tmp_path / name).read_text() == text
    page = tmp_path / "page.html"
    assert polyseme("report", work / "release", "--out", page).returncode == 0
    assert polyseme("report", work / "release", "--out", page).returncode == 2
    assert polyseme("report", work / "release", "--out", page, "--force").returncode == 0


def test_a_folder_is_no_place_for_a_file(work: Path, tmp_path: Path) -> None:
    for arguments in (
        ("report", work / "release", "--out"),
        ("init", work / "people.csv", "--out"),
        ("prior", "from-release", work / "release", "--of", "level", "--out"),
        ("hierarchy", "build", "intervals", "5", work / "people.csv", "--column", "age", "--out"),
    ):
        result = polyseme(*arguments, tmp_path, "--force")
        assert result.returncode == 2
        assert f"{tmp_path}: a folder, not a file" in result.stderr


@pytest.mark.parametrize("command", ["report", "estimate", "anonymize", "init", "ledger"])
def test_temporary_names_are_nobodys_business(
    work: Path, tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system refuses to make anything under a temporary name."""

    def full(made: Callable[..., Any]) -> Callable[..., Any]:
        def refuse(path: Any, *rest: Any, **options: Any) -> Any:
            if Path(path).name.startswith(".place"):
                raise OSError(28, "No space left on device", str(path))
            return made(path, *rest, **options)

        return refuse

    arguments = {
        "report": ("report", work / "release", "--out", tmp_path / "place.html"),
        "estimate": ("estimate", work / "release", "--of", "level", "--chart", tmp_path / "place.svg"),
        "anonymize": ("anonymize", work / "policy.yaml", work / "people.csv", "--out", tmp_path / "place"),
        "init": ("init", work / "people.csv", "--out", tmp_path / "place.yaml"),
        "ledger": ("ledger", "add", tmp_path / "place.json", work / "release", "--people", "us"),
    }[command]
    monkeypatch.setattr(Path, "touch", full(Path.touch))
    monkeypatch.setattr(Path, "mkdir", full(Path.mkdir))
    monkeypatch.setattr(os, "open", full(os.open))
    result = polyseme(*arguments)
    assert result.returncode == 2
    assert f"{tmp_path / 'place'}" in result.stderr
    assert "No space left on device" in result.stderr
    assert not [word for word in ("partial", ".mode", ".lock", ".old") if word in result.stderr]
    assert not list(tmp_path.iterdir())


def test_a_name_may_be_as_long_as_the_system_allows(work: Path, tmp_path: Path) -> None:
    out = tmp_path / ("n" * 250 + ".yaml")
    result = polyseme("init", work / "people.csv", "--out", out)
    assert result.returncode == 0, result.stderr
    assert [path.name for path in tmp_path.iterdir()] == [out.name]


@pytest.mark.parametrize("command", ["estimate", "plan"])
def test_a_chart_is_drawn_or_refused_before_the_work(work: Path, tmp_path: Path, command: str) -> None:
    pytest.importorskip("altair")
    asked = ("estimate", work / "release", "--of", "level") if command == "estimate" else ("plan", work / "policy.yaml")
    (tmp_path / "there.png").write_text("")
    (tmp_path / "folder.png").mkdir()
    for name, words in {
        "chart.doc": "saved as .png, .svg or .pdf, not as '.doc'",
        "chart": "not as a file without a suffix",
        "there.png": "exists already",
        "folder.png": "exists already",
    }.items():
        result = polyseme(*asked, "--chart", tmp_path / name)
        assert result.returncode == 2
        assert name in result.stderr
        assert words in result.stderr
        assert not result.stdout, "it was refused after the work"
    assert polyseme(*asked, "--chart", tmp_path / "chart.pdf").returncode == 0
    assert (tmp_path / "chart.pdf").read_bytes().startswith(b"%PDF")
