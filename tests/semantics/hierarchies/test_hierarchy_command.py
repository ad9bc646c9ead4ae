"""`polyseme hierarchy`, as a user calls it."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner, Result

from polyseme.cli import cli
from polyseme.kernel.errors import InvalidInput

MARK = "QQMARKQQ"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    pl.DataFrame(
        {
            "age": [31, 34, -2, 50, None],
            "day": ["2024-03-31"] * 5,
            "zip": ["01234", "01299", '1,2;"3', "a,b,c,d,e,f", None],
            "mixed": ["31", MARK, MARK, None, None],
        }
    ).write_csv("people.csv")
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["hierarchy", *arguments])


def test_show_prints_what_is_applied(folder: Path) -> None:
    spec = ("show", "intervals: [5, 20]", "--values", "people.csv", "--column", "age")
    assert run(*spec, "--csv").output.splitlines() == [
        "-2;[-5, 0);[-20, 0);*",
        "31;[30, 35);[20, 40);*",
        "34;[30, 35);[20, 40);*",
        "50;[50, 55);[40, 60);*",
    ]
    found = json.loads(run(*spec, "--level", "1", "--json").output)
    assert found["height"] == 3
    assert found["levels"] == [{"level": 0, "groups": 5}, {"level": 1, "groups": 4}]
    assert found["values"][-1] == {"0": "(missing)", "1": "(missing)"}
    shown = run(*spec).output
    assert "level 1 (4)" in shown
    assert "[30, 35)" in shown
    assert run(*spec, "--level", "9").exit_code == 2


@pytest.mark.parametrize(
    ("kind", "levels", "column", "spec"),
    [
        ("intervals", "5,10,20", "age", "intervals: [5, 10, 20]"),
        ("dates", "month,year", "day", "dates: [month, year]"),
        ("prefix", "5", "zip", "prefix: 5"),
        ("prefix", "3,1", "zip", "prefix: [3, 1]"),
    ],
)
def test_what_is_built_is_what_is_shown(kind: str, levels: str, column: str, spec: str, folder: Path) -> None:
    table = ("people.csv", "--column", column)
    assert run("build", kind, levels, *table, "--out", "h.csv").exit_code == 0
    direct = run("show", spec, "--values", *table, "--json")
    assert run("show", "h.csv", "--values", *table, "--json").output == direct.output
    assert run("check", "h.csv", *table).exit_code == 0
    assert run("build", kind, levels, *table, "--out", "h.csv").exception is not None, "never overwritten unasked"


def test_check_counts_and_never_names(folder: Path) -> None:
    result = run("check", "intervals: [5]", "people.csv", "--column", "mixed", "--json")
    assert result.exit_code == 1
    assert json.loads(result.output) == {
        "values": 2,
        "records": 5,
        "unknown_values": 1,
        "unknown_records": 2,
        "missing_records": 2,
        "unused": 0,
        "complete": False,
    }
    for arguments in (
        ("check", "intervals: [5]", "people.csv", "--column", "mixed"),
        ("show", "intervals: [5]", "--values", "people.csv", "--column", "mixed"),
        ("build", "intervals", "5", "people.csv", "--column", "mixed"),
    ):
        result = run(*arguments)
        assert result.exit_code != 0
        assert MARK not in result.output + str(result.exception)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("show", "intervals: [5, 12]"), "multiple"),
        (("show", "prefix: 3"), "--values"),
        (("show", "nothing.csv"), "no file"),
        (("check", "suppress", "people.csv", "--column", "sex"), "none of the 4 columns"),
        (("build", "dates", "week", "people.csv", "--column", "day"), "unknown period"),
    ],
)
def test_what_cannot_be_used(arguments: tuple[str, ...], words: str, folder: Path) -> None:
    result = run(*arguments)
    assert isinstance(result.exception, InvalidInput)
    assert words in str(result.exception)
