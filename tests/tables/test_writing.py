from __future__ import annotations

from datetime import date
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

from polyseme.errors import TableError
from polyseme.tables.writing import TableWriter


def written(table: pa.Table, path: Path) -> str:
    writer = TableWriter(path, table.schema, "csv")
    writer.write(table)
    writer.close()
    return path.read_text()


@pytest.mark.parametrize("kind", [pa.list_, pa.large_list])
def test_lists_in_a_text_table_are_json(tmp_path: Path, kind) -> None:
    lists = pa.array([["a", 'b"'], [], None, [None, "c"]], kind(pa.string()))
    text = written(pa.table({"v": lists}), tmp_path / "t.csv")
    assert pl.read_csv(text.encode())["v"].to_list() == ['["a", "b\\""]', "[]", None, '[null, "c"]']


def test_lists_of_any_single_values(tmp_path: Path) -> None:
    table = pa.table({"day": [[date(2024, 2, 29)]], "none": [[None]], "yes": [[True]], "much": [[0.5]]})
    text = written(table, tmp_path / "t.csv")
    assert pl.read_csv(text.encode()).row(0) == ('["2024-02-29"]', "[null]", "[true]", "[0.5]")


@pytest.mark.parametrize("value", [[["a"]], {"a": 1}, [{"a": 1}]])
def test_what_a_text_table_cannot_hold_is_refused_before_anything_is_written(tmp_path: Path, value) -> None:
    with pytest.raises(TableError, match="column 'deep': a text table cannot hold nested values"):
        written(pa.table({"deep": [value]}), tmp_path / "t.csv")
    assert not list(tmp_path.iterdir())
