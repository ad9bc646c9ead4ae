"""CSV that no spreadsheet runs, and that comes back exactly."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import polyseme as ps
from polyseme.kernel.errors import TableError
from polyseme.tables.io.output import TableWriter
from polyseme.tables.io.text import ReleasedCsvSource
from polyseme.tables.io.workbooks import csv_text, guarded, unguarded

FORMULAS = ["=1+1", "+1+1", "-1+cmd|' /C calc'!A0", "@SUM(A1)", "\t=1", "\r=1", " =1", "＝1+1", "=", "+", "-", "@"]
QUIET = ["'", "''", "'=1", "'s Gravenhage", "a=1", "1-2", "", " ", "-5", "+3.5e4", "-.5", "plain"]

texts = st.one_of(
    st.sampled_from(FORMULAS + QUIET),
    st.text(st.sampled_from("=+-@'\t\r\n ,;\"a1.e[＝－"), max_size=6),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6),
)


def runs(cell: str) -> bool:
    """Whether a spreadsheet might take a cell for a formula."""
    number = re.fullmatch(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?", cell)
    return cell.lstrip()[:1] in tuple("=+-@＝＋－＠") and number is None


@given(st.lists(st.one_of(texts, st.none())))
def test_guarded_texts_run_nowhere_and_come_back(cells: list[str | None]) -> None:
    for kind in (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())):
        written = guarded(pa.chunked_array([pa.array(cells, kind)]))
        assert written.type == kind
        plain = written.cast(pa.string()).combine_chunks()
        assert not any(runs(cell) for cell in plain.to_pylist() if cell)
        assert unguarded(plain).to_pylist() == cells


@given(st.lists(st.tuples(texts, texts, st.integers(-9, 9)), min_size=1), st.lists(texts, min_size=3, max_size=3))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_files_come_back_exactly(tmp_path: Path, rows: list[tuple[str, str, int]], names: list[str]) -> None:
    names = [f"{name}{place}" for place, name in enumerate(names)]
    one, other, numbers = (list(column) for column in zip(*rows))
    sets = [[text, "b"] for text in other]
    table = pa.table([pa.array(one), pa.array(sets), pa.array(numbers)], names=names)
    path = tmp_path / "t.csv"
    writer = TableWriter(path, table.schema, "csv")
    writer.write(table)
    writer.close()
    with path.open(encoding="utf-8", newline="") as file:
        header, *body = csv.reader(file)
    assert not any(runs(cell) for cell in header)
    assert not any(runs(cell) for row in body for cell in row)
    assert [row[2] for row in body] == [str(number) for number in numbers]
    source = ReleasedCsvSource(path)
    assert source.schema.names == names
    back = pa.Table.from_batches(source.batches([names[2], names[0]]))
    assert back.column_names == [names[2], names[0]]
    assert back[names[0]].to_pylist() == one


@pytest.mark.parametrize("form", ["set", "long"])
def test_a_release_of_formulas_is_the_same_release(tmp_path: Path, form: str) -> None:
    values = [*FORMULAS, "'=1", "'", "''", "-5", "plain"]
    frame = pl.DataFrame({"=name": values * 20, "@secret": values * 20, "degrees": [-5, 3, -7, 8] * (len(values) * 5)})
    rules = ps.Policy.from_dict(
        {
            "attributes": {
                "=name": {"role": "quasi-identifier"},
                "@secret": {"role": "sensitive", "domain": values, "protect": {"diversity": {"l": 2}}},
                "degrees": {"role": "insensitive"},
            }
        }
    )
    release = ps.anonymize(frame, rules, tmp_path / "release", form=form, file_format="csv", warn=lambda text: None)
    with (tmp_path / "release" / "data.csv").open(encoding="utf-8", newline="") as file:
        header, *body = csv.reader(file)
    assert header == ["'=name", "'@secret", "degrees"]
    assert not any(runs(cell) for row in body for cell in row)
    assert {row[2] for row in body} == {"-5", "3", "-7", "8"}
    back = pa.Table.from_batches(release.batches(["=name", "@secret", "degrees"]))
    assert set(back["=name"].to_pylist()) == set(values)
    shown = back["@secret"].to_pylist()
    assert {label for item in shown for label in (item if form == "set" else [item])} == set(values)
    assert ps.verify(release).holds
    table = ps.estimate(release, of="@secret").to_polars()
    assert set(table["@secret"]) == set(values)
    assert table["estimate"].sum() == pytest.approx(len(frame))


def test_a_release_without_the_guard_is_read_as_it_is(tmp_path: Path) -> None:
    """Releases of others, and of versions before the guard, may hold apostrophes that belong to the text."""
    from dataclasses import replace

    from polyseme.release import MANIFEST, Release, file_digest

    frame = pl.DataFrame({"a": ["'s", "x"] * 30, "b": ["p", "q", "r"] * 20})
    rules = ps.Policy.loads(
        "attributes: {a: {role: insensitive}, b: {role: sensitive, domain: [p, q, r], protect: {diversity: {l: 2}}}}"
    )
    release = ps.anonymize(frame, rules, tmp_path / "release", file_format="csv")
    path = tmp_path / "release" / "data.csv"
    path.write_text(path.read_text().replace("''s", "'s"))
    data = {"file": "data.csv", "format": "csv", "sha256": file_digest(path)}
    (tmp_path / "release" / MANIFEST).write_text(replace(release.manifest, data=data).to_json())
    (batch,) = Release.open(tmp_path / "release").batches(["a"])
    assert set(batch.column("a").to_pylist()) == {"'s", "x"}


@given(st.lists(texts, min_size=1, unique=True), texts)
@settings(deadline=None)
def test_estimates_as_csv_run_nowhere(labels: list[str], name: str) -> None:
    frame = pl.DataFrame({f"{name}x": labels, "estimate": [-1.5] * len(labels)})
    header, *body = csv.reader(io.StringIO(csv_text(frame), newline=""))
    assert not any(runs(cell) for cell in (*header, *(row[0] for row in body)))
    assert [row[0].removeprefix("'") for row in body] == labels
    assert {row[1] for row in body} == {"-1.5"}


def test_bytes_are_refused_in_a_text_table(tmp_path: Path) -> None:
    for kind in (pa.binary(), pa.large_binary(), pa.binary(4)):
        with pytest.raises(TableError, match="column 'b': a text table cannot hold bytes"):
            TableWriter(tmp_path / "t.csv", pa.schema([("b", kind)]), "csv")
    assert not list(tmp_path.iterdir())


def test_the_command_prints_csv_that_runs_nowhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from polyseme.cli import main

    frame = pl.DataFrame({"=by": ["@a", "-5"] * 60, "x": ["=1+1", "+b", "c", "d"] * 30})
    rules = ps.Policy.loads("""
attributes:
  "=by": {role: quasi-identifier}
  x: {role: sensitive, domain: ["=1+1", "+b", c, d], protect: {diversity: {l: 2}}}
""")
    ps.anonymize(frame, rules, tmp_path / "release")
    with pytest.raises(SystemExit) as left:
        main(["estimate", str(tmp_path / "release"), "--of", "x", "--by", "=by", "--csv"])
    assert left.value.code == 0
    rows = list(csv.reader(io.StringIO(capsys.readouterr().out)))
    assert "'=by" in rows[0]
    cells = {cell for row in rows for cell in row}
    assert {"'=1+1", "'+b", "c", "d", "'@a", "-5"} <= cells
    assert not any(runs(cell) for cell in cells)
