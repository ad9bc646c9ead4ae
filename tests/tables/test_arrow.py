from __future__ import annotations

from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.ipc
import pytest

from polyseme.kernel.errors import TableError
from polyseme.tables.io.readers import open_table

TABLE = pa.table({"zip": ["007", "12"], "age": [31, None]})


def test_a_truncated_arrow_stream_is_the_tables_fault(tmp_path: Path) -> None:
    path = tmp_path / "t.arrow"
    with pa.ipc.new_stream(path, TABLE.schema) as writer:
        for _ in range(100):
            writer.write_table(TABLE)
    path.write_bytes(path.read_bytes()[:-600])
    with pytest.raises(TableError, match="damaged Arrow file"):
        list(open_table(path).batches())


def test_arrow_files_with_views_are_read_as_plain_columns(tmp_path: Path) -> None:
    pl.DataFrame({"word": ["a", None, "b"], "words": [["a"], [], None]}).write_ipc(tmp_path / "t.arrow")
    source = open_table(tmp_path / "t.arrow")
    assert pa.types.is_large_string(source.schema.field("word").type)
    (batch,) = source.batches(["words", "word"])
    assert batch.take(pa.array([2, 0])).column("word").to_pylist() == ["b", "a"]
