"""Columnar tables: Arrow IPC and Parquet files, frames in memory, and their types.

Parquet is read row group by row group. Columns of view types, which many Arrow functions do not know yet, become plain
ones. Whole numbers are recovered from files that know only floating-point ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet

from polyseme.kernel.arrays import Ints, arrow
from polyseme.kernel.errors import TableError
from polyseme.tables.io.locations import Place, open_file
from polyseme.tables.io.source import BATCH_ROWS, CountedRows, Part, Source

__all__ = ["ArrowSource", "CountedFrame", "FrameSource", "ParquetSource", "whole_where_possible", "without_views"]


def without_views(schema: pa.Schema) -> pa.Schema:
    """A schema with the plain counterparts of its view types."""
    return pa.schema([field.with_type(_without_view(field.type)) for field in schema])


def _without_view(kind: pa.DataType) -> pa.DataType:
    if kind == pa.string_view():
        return pa.large_string()
    if kind == pa.binary_view():
        return pa.large_binary()
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, _without_view(kind.value_type), kind.ordered)
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_without_view(field.type)) for field in kind])
    if pa.types.is_large_list(kind):
        return pa.large_list(_without_view(kind.value_type))
    return pa.list_(_without_view(kind.value_type)) if pa.types.is_list(kind) else kind


class ArrowSource(Source):
    """An Arrow IPC (Feather) file or stream."""

    def __init__(self, path: Place) -> None:
        self.path = path
        self.name = path.name
        with self._open() as reader:
            self._schema = without_views(reader.schema)
        self.check()

    def _open(self) -> Any:
        try:
            return pa.ipc.open_file(open_file(self.path))
        except (pa.ArrowException, OSError):
            try:
                return pa.ipc.open_stream(open_file(self.path))
            except (pa.ArrowException, OSError):
                raise TableError(f"{self.path}: not a readable Arrow file") from None

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    def parts(self) -> list[Part]:
        return [Part(str(self.path))]

    def _read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        try:
            with self._open() as reader:
                batches = (
                    (reader.get_batch(index) for index in range(reader.num_record_batches))
                    if hasattr(reader, "get_batch")
                    else iter(reader)
                )
                for batch in batches:
                    chosen = batch.select(list(columns))
                    yield chosen.cast(without_views(chosen.schema))
        except (pa.ArrowException, OSError):
            raise TableError(f"{self.path}: damaged Arrow file") from None


_BUFFER_BYTES = 1 << 20
"""How much of a column is read at a time."""


class ParquetSource(Source):
    """A Parquet file; `labels` are text columns with few values, read as dictionaries.

    They may be lists of text.
    """

    def __init__(self, path: Place, labels: Sequence[str] = ()) -> None:
        self.path = path
        self.name = path.name
        try:
            with _parquet_file(path) as file:
                self._schema = file.schema_arrow
                self._groups = [file.metadata.row_group(index).num_rows for index in range(file.num_row_groups)]
                leaves = [file.schema.column(index) for index in range(len(file.schema.names))]
        except (pa.ArrowException, OSError):
            hint = "it was cut off, or is of another kind than its name says: write it again, or rename it"
            raise TableError(f"{path}: not a readable Parquet file", hint) from None
        text = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
        self._dictionaries = [leaf for leaf in text for name in labels if leaf == name or leaf.startswith(f"{name}.")]
        self.check()

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    @property
    def rows(self) -> int | None:
        return int(sum(self._groups))

    def parts(self) -> list[Part]:
        """Each row group; of a file without any, the file."""
        groups = [Part(str(self.path), (index, index + 1), rows) for index, rows in enumerate(self._groups)]
        return groups or [Part(str(self.path), (0, 0), 0)]

    def coded(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        made = copy(self)
        texts = {field.name for field in self._schema if _is_text(field.type)}
        made._dictionaries = [*self._dictionaries, *(name for name in columns if name in texts)]
        return made.batches(columns)

    def _read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return self._read_groups(range(len(self._groups)), columns)

    def _read_part(self, part: Part, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return self._read_groups(range(*(part.groups or (0, len(self._groups)))), columns)

    def _read_groups(self, groups: Iterable[int], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        try:
            with _parquet_file(self.path, self._dictionaries) as file:
                # One row group at a time: each has dictionaries of its own, and lists of them cannot be joined.
                for group in groups:
                    for batch in file.iter_batches(BATCH_ROWS, [group], list(columns), use_threads=False):
                        yield batch.select(list(columns))
        except (pa.ArrowException, OSError):
            raise TableError(f"{self.path}: damaged Parquet file") from None


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _parquet_file(place: Place, dictionaries: Sequence[str] = ()) -> pa.parquet.ParquetFile:
    if isinstance(place, Path):
        # Not mapped into memory: all that was read would count as ours, and column by column in one piece.
        return pa.parquet.ParquetFile(
            place, read_dictionary=list(dictionaries), buffer_size=_BUFFER_BYTES, pre_buffer=False
        )
    # Over a network, what is needed of a row group is requested at once.
    return pa.parquet.ParquetFile(open_file(place), read_dictionary=list(dictionaries), pre_buffer=True)


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


_EXACT = float(1 << 53)
"""Beyond this, a floating-point number does not tell all whole ones apart."""


def whole_where_possible(column: pl.Series) -> pl.Series:
    """A column of numbers as whole ones, if each of them is.

    >>> whole_where_possible(pl.Series([1.0, None])).dtype, whole_where_possible(pl.Series([1.0, 0.5])).dtype
    (Int64, Float64)
    """
    if not column.dtype.is_float() or not column.count():
        return column
    whole = bool(((column == column.round()) & (column.abs() < _EXACT)).all())
    return column.cast(pl.Int64) if whole else column
