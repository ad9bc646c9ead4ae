"""Parquet files, row group by row group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from polyseme.errors import TableError
from polyseme.tables.io.parts import Part
from polyseme.tables.io.places import Place, open_file
from polyseme.tables.io.source import BATCH_ROWS, Source

__all__ = ["ParquetSource"]

_BUFFER_BYTES = 1 << 20
"""How much of a column is read at a time."""


class ParquetSource(Source):
    """A Parquet file; `labels` are text columns, or lists of text, with few different values, read as dictionaries."""

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


def _parquet_file(place: Place, dictionaries: Sequence[str] = ()) -> pa.parquet.ParquetFile:
    if isinstance(place, Path):
        # Not mapped into memory: all that was read would count as ours, and column by column in one piece.
        return pa.parquet.ParquetFile(
            place, read_dictionary=list(dictionaries), buffer_size=_BUFFER_BYTES, pre_buffer=False
        )
    # Over a network, what is needed of a row group is asked for at once.
    return pa.parquet.ParquetFile(open_file(place), read_dictionary=list(dictionaries), pre_buffer=True)
