"""Tables with a column that numbers their rows, for looking at single records; never for what is published."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from polyseme.arrays import arrow
from polyseme.tables.io.source import Source

__all__ = ["NumberedSource"]


class NumberedSource(Source):
    """A table and one more column: 0, 1, 2 ... in the order of its rows.

    column  what that column is called
    """

    wraps = True

    def __init__(self, source: Source) -> None:
        self._source = source
        self.name, self.typed = source.name, source.typed
        names = ("row", *(f"row {number}" for number in range(len(source.schema.names))))
        self.column = next(name for name in names if name not in source.schema.names)

    @property
    def schema(self) -> pa.Schema:
        return self._source.schema.append(pa.field(self.column, pa.int64()))

    @property
    def rows(self) -> int | None:
        return self._source.rows

    def about(self) -> int | None:
        return self._source.about()

    def row_numbers(self, rows: Sequence[int]) -> tuple[str, list[int]]:
        return self._source.row_numbers(rows)

    def _read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        there = [name for name in columns if name != self.column] or self._source.schema.names[:1]
        read = 0
        for batch in self._source.batches(there):
            numbers = arrow(np.arange(read, read + batch.num_rows))
            read += batch.num_rows
            made = [numbers if name == self.column else batch.column(name) for name in columns]
            yield pa.RecordBatch.from_arrays(made, names=list(columns))
