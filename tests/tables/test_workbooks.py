from __future__ import annotations

import datetime as dt
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import polyseme as ps
from polyseme.cli import main
from polyseme.kernel.errors import QuestionError, TableError
from polyseme.tables.io.readers import open_table
from polyseme.tables.io.source import Source

fastexcel = pytest.importorskip("fastexcel")
xlsxwriter = pytest.importorskip("xlsxwriter")


def rows(source: Source) -> list[dict]:
    return [row for batch in source.batches() for row in batch.to_pylist()]


def workbook(path: Path, below: int = 0, **sheets: list[list[object]]) -> Path:
    """A workbook with these sheets; None is an empty cell, and rows of the table begin so far below."""
    with xlsxwriter.Workbook(path) as book:
        for name, table in sheets.items():
            _fill(book, book.add_worksheet(name), table, below)
    return path


def _fill(book, sheet, table: list[list[object]], below: int) -> None:
    formats = {
        dt.datetime: book.add_format({"num_format": "yyyy-mm-dd hh:mm"}),
        dt.date: book.add_format({"num_format": "dd.mm.yyyy"}),
        dt.time: book.add_format({"num_format": "hh:mm"}),
    }
    for row, cells in enumerate(table, below):
        for column, cell in enumerate(cells):
            if type(cell) in formats:
                sheet.write_datetime(row, column, cell, formats[type(cell)])
            elif isinstance(cell, str):
                sheet.write_string(row, column, cell)
            elif cell is not None:
                sheet.write(row, column, cell)


PEOPLE = [
    ["zip", "age", "bmi", "born", "seen", "at", "well", "code"],
    ["007", 31, 21.5, dt.date(1990, 1, 31), dt.datetime(2024, 2, 1, 12, 30), dt.time(8, 15), True, 7],
    ["12", None, 22, dt.date(1991, 12, 1), dt.datetime(2024, 2, 2), dt.time(9, 0), False, "7a"],
    [None, 33, None, None, None, None, None, None],
]


def test_cells_keep_their_kind(tmp_path: Path) -> None:
    source = open_table(workbook(tmp_path / "t.xlsx", people=PEOPLE))
    kinds = {field.name: field.type for field in source.schema}
    assert kinds["age"] == pa.int64()
    assert kinds["bmi"] == pa.float64()
    assert kinds["born"] == pa.date32()
    assert pa.types.is_timestamp(kinds["seen"])
    assert pa.types.is_time(kinds["at"])
    assert kinds["well"] == pa.bool_()
    found = [list(row.values()) for row in rows(source)]
    # A column of several kinds is text; whole numbers in it are written as such.
    second = [*PEOPLE[2][:4], dt.datetime(2024, 2, 2), *PEOPLE[2][5:]]
    assert found == [[*PEOPLE[1][:-1], "7"], second, PEOPLE[3]]
    assert source.rows == 3


def test_a_column_is_judged_by_all_its_cells(tmp_path: Path) -> None:
    late = [["a", "b"], *([number, number] for number in range(3000)), [0.5, "x"]]
    found = rows(open_table(workbook(tmp_path / "t.xlsx", t=late)))
    assert found[2] == {"a": 2.0, "b": "2"}
    assert found[-1] == {"a": 0.5, "b": "x"}


def test_numbers_beyond_what_a_workbook_holds_exactly_are_not_called_whole(tmp_path: Path) -> None:
    source = open_table(workbook(tmp_path / "t.xlsx", t=[["a"], [12345678901234567890]]))
    assert source.schema.field("a").type == pa.float64()


def test_empty_rows_around_the_table_are_left_out(tmp_path: Path) -> None:
    table = [["a", "b"], [1, "x"], [None, None], [2, None], [None, None], [None, "  "], [None, ""]]
    found = rows(open_table(workbook(tmp_path / "t.xlsx", below=3, t=table)))
    assert found == [{"a": 1, "b": "x"}, {"a": None, "b": None}, {"a": 2, "b": None}]


def test_only_column_names(tmp_path: Path) -> None:
    source = open_table(workbook(tmp_path / "t.xlsx", t=[["a", 2020]]))
    assert source.schema.names == ["a", "2020"]
    assert rows(source) == []


def test_sheets_are_chosen_by_name(tmp_path: Path) -> None:
    path = workbook(tmp_path / "t.xlsx", first=[["a"], [1]], second=[["b"], [2]])
    assert rows(open_table(path)) == [{"a": 1}]
    assert rows(open_table(path, sheet="second")) == [{"b": 2}]
    with pytest.raises(TableError, match="no sheet 'secnd'; it has 'first', 'second'") as caught:
        open_table(path, sheet="secnd")
    assert "second" in caught.value.problems[0].hint


def test_an_empty_sheet_names_the_others(tmp_path: Path) -> None:
    path = workbook(tmp_path / "t.xlsx", cover=[], people=[["a"], [1]])
    with pytest.raises(TableError, match="the sheet 'cover' is empty") as caught:
        open_table(path)
    assert "choose another one with --sheet: 'people'" in str(caught.value)
    with pytest.raises(TableError, match=r"with table: \{sheet: \.\.\.\} in the policy: 'people'"):
        open_table(path, by_policy=True)


def test_column_names_are_needed_and_different(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="columns without a name: 2") as caught:
        open_table(workbook(tmp_path / "t.xlsx", t=[["a", None, "c"], [1, "SECRET", 3]]))
    assert "SECRET" not in str(caught.value)
    with pytest.raises(TableError, match="the same column name more than once: 'a'"):
        open_table(workbook(tmp_path / "t.xlsx", t=[["a", "a"], [1, 2]]))
    assert rows(open_table(workbook(tmp_path / "t.xlsx", t=[["a", None, "c"], [1, None, 3]]))) == [{"a": 1, "c": 3}]


def test_the_content_says_that_it_is_a_workbook(tmp_path: Path) -> None:
    path = workbook(tmp_path / "t.xlsx", t=[["a"], [1]]).rename(tmp_path / "t.csv")
    assert rows(open_table(path)) == [{"a": 1}]


@pytest.mark.parametrize("content", [b"PK\x03\x04SECRET", b"a,SECRET\n1,2\n", b"\xd0\xcf\x11\xe0SECRET"])
def test_a_damaged_workbook(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "t.xlsx").write_bytes(content)
    with pytest.raises(TableError, match=r"t.xlsx: not a readable workbook") as caught:
        open_table(tmp_path / "t.xlsx")
    assert "SECRET" not in str(caught.value)
    whole = workbook(tmp_path / "u.xlsx", t=[["a"], *([number] for number in range(1000))]).read_bytes()
    (tmp_path / "u.xlsx").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(TableError, match="not a readable workbook"):
        open_table(tmp_path / "u.xlsx")


def test_a_column_without_values_is_not_worth_a_warning(tmp_path: Path, caplog, capfd) -> None:
    assert rows(open_table(workbook(tmp_path / "t.xlsx", t=[["a", "b"], [1, None]]))) == [{"a": 1, "b": None}]
    assert not caplog.records
    assert capfd.readouterr() == ("", "")


def test_without_the_extra_the_error_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = workbook(tmp_path / "t.xlsx", t=[["a"], [1]])
    monkeypatch.setitem(sys.modules, "fastexcel", None)
    with pytest.raises(QuestionError, match=r"pip install 'polyseme\[excel\]'"):
        open_table(path)


def test_every_command_finds_the_sheet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    people = [
        ["sex", "age", "ill"],
        *([["f", "m"][n % 2], 30 + n % 3, ["flu", "cold", "gout"][n % 3]] for n in range(90)),
    ]
    path = workbook(tmp_path / "t.xlsx", cover=[["about"], ["this file"]], people=people)
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "attributes:\n  sex: {role: quasi-identifier}\n  age: {role: quasi-identifier}\n"
        "  ill: {role: sensitive, domain: [flu, cold, gout], protect: {diversity: {l: 2}}}\ntable: {sheet: people}\n"
        "models:\n- k-anonymity: {k: 5}\n"
    )
    release = tmp_path / "release"
    for arguments in (
        ["init", path, "--sheet", "people"],
        ["risk", path, "--sheet", "people", "--qi", "sex,age"],
        ["plan", policy, "--data", path],
        ["anonymize", policy, path, "--out", release, "--seed", "1"],
        ["attack", release, "--original", path, "--sheet", "people"],
        ["evaluate", release, "--original", path, "--sheet", "people"],
        ["report", release, "--original", path, "--sheet", "people", "--out", tmp_path / "report.html"],
        ["verify", path, "--policy", policy],
        ["hierarchy", "show", "intervals: [5]", "--values", path, "--column", "age", "--sheet", "people"],
    ):
        with pytest.raises(SystemExit) as left:
            main(list(map(str, arguments)))
        assert not left.value.code, (arguments, capsys.readouterr().err)
    assert ps.risk(path, "sex", sheet="people").records == 90


def test_a_sheet_in_a_policy_is_text() -> None:
    with pytest.raises(ps.PolicyError, match=r"\$.table.sheet: expected text, found a whole number"):
        ps.Policy.loads("attributes: {a: {role: insensitive}}\ntable: {sheet: 2}\n")


def test_a_drafted_policy_names_the_sheet(tmp_path: Path) -> None:
    path = workbook(tmp_path / "t.xlsx", cover=[["about"], ["us"]], people=[["sex"], ["f"], ["m"]])
    assert ps.Policy.loads(ps.init(path, sheet="people")).table.sheet == "people"
    assert ps.Policy.loads(ps.init(path)).table.sheet is None
