from __future__ import annotations

from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from polyseme.kernel.errors import TableError
from polyseme.tables.io.readers import open_table
from polyseme.tables.io.source import BATCH_ROWS, Source

TABLE = pa.table({"zip": ["007", "12"], "age": [31, None], "note": ["a,b", ""]})


def rows(source: Source) -> list[dict]:
    return [row for batch in source.batches() for row in batch.to_pylist()]


@pytest.mark.parametrize(
    "data",
    [
        TABLE,
        TABLE.to_batches()[0],
        pl.from_arrow(TABLE),
        pl.from_arrow(TABLE).lazy(),
        TABLE.to_pandas().astype({"age": "Int64"}),
    ],
    ids=["pyarrow", "batch", "polars", "lazy", "pandas"],
)
def test_objects_in_memory(data) -> None:
    source = open_table(data)
    assert source.schema.names == ["zip", "age", "note"]
    assert [row["zip"] for row in rows(source)] == ["007", "12"]
    assert source.rows == 2


def test_a_pandas_index_does_not_get_in() -> None:
    frame = pd.DataFrame({"a": [1, 2]}, index=["row label 1", "row label 2"])
    assert open_table(frame).schema.names == ["a"]
    assert open_table(frame).schema.metadata is None


def test_files_keep_types(tmp_path: Path) -> None:
    pa.parquet.write_table(TABLE, tmp_path / "t.parquet")
    pa.feather.write_feather(TABLE, tmp_path / "t.arrow")
    for name in ("t.parquet", "t.arrow"):
        source = open_table(tmp_path / name)
        assert source.schema.field("age").type == pa.int64()
        assert rows(source) == TABLE.to_pylist()


def test_the_content_says_what_a_file_is(tmp_path: Path) -> None:
    pa.parquet.write_table(TABLE, tmp_path / "t.csv")
    pa.feather.write_feather(TABLE, tmp_path / "u")
    assert rows(open_table(tmp_path / "t.csv")) == rows(open_table(tmp_path / "u")) == TABLE.to_pylist()


def write(tmp_path: Path, text: str | bytes, name: str = "t.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    ("name", "content", "word"),
    [
        ("empty.csv", "", "empty"),
        ("blank.csv", "\n\n", "empty"),
        ("double.csv", "a,b,a\n1,2,3\n", "more than once: columns 1 and 3"),
        ("bad.parquet", "not parquet", "not a readable Parquet"),
        ("bad.arrow", "not arrow", "not a readable Arrow"),
    ],
)
def test_unusable_files(tmp_path: Path, name: str, content: str, word: str) -> None:
    with pytest.raises(TableError, match=word):
        open_table(write(tmp_path, content, name))


def test_missing_files_and_folders(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="no such file"):
        open_table(tmp_path / "none.csv")
    with pytest.raises(TableError, match="no files in this folder"):
        open_table(tmp_path)


def test_batches_are_bounded() -> None:
    source = open_table(pa.table({"a": range(3 * BATCH_ROWS + 5)}))
    sizes = [batch.num_rows for batch in source.batches()]
    assert max(sizes) <= BATCH_ROWS
    assert sum(sizes) == 3 * BATCH_ROWS + 5
