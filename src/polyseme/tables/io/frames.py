"""Tables in memory, each row for itself or with how often it occurs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from polyseme.arrays import Ints, arrow
from polyseme.tables.io.source import BATCH_ROWS, CountedRows, Source
from polyseme.tables.io.views import without_views

__all__ = ["CountedFrame", "FrameSource"]


class FrameSource(Source):
    """A table in memory."""

    def __init__(self, table: pa.Table, name: str = "table") -> None:
        self.table = table.cast(without_views(table.schema))
        self.name = name
        self.check()

    @property
    def schema(self) -> pa.Schema:
        return self.table.schema

    @property
    def rows(self) -> int | None:
        return int(self.table.num_rows)

    def _read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        yield from self.table.select(columns).to_batches(max_chunksize=BATCH_ROWS)


class CountedFrame(FrameSource):
    """Rows in memory with how often each occurs: a table that another engine has counted.

    counts  None where each row stands for itself
    """

    def __init__(self, table: pa.Table, counts: Ints | None, name: str = "table") -> None:
        super().__init__(table, name)
        self.counts = counts

    @property
    def rows(self) -> int | None:
        return int(self.table.num_rows if self.counts is None else np.sum(self.counts, dtype=np.int64))

    def _read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        if self.counts is None:
            yield from super()._read(columns)
            return
        ends, rows = np.cumsum(self.counts), self.table.select(columns)
        for start in range(0, self.rows or 0, BATCH_ROWS):
            records = np.arange(start, min(start + BATCH_ROWS, int(ends[-1])))
            some = rows.take(arrow(np.searchsorted(ends, records, side="right")))
            yield from some.combine_chunks().to_batches()

    def counted(self, columns: Sequence[str] | None = None) -> Iterator[CountedRows]:
        if self.counts is None:
            yield from super().counted(columns)
            return
        done = 0
        for batch in super()._read(self.schema.names if columns is None else columns):
            yield batch, self.counts[done : done + batch.num_rows]
            done += batch.num_rows
