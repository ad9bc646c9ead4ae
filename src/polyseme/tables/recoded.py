"""Tables in which some columns show something else, decided for each record of the whole table before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np
import pyarrow as pa

from polyseme.arrays import Bools, Ints
from polyseme.tables.io.parts import Part
from polyseme.tables.io.source import Source

__all__ = ["Recoded", "RecodedSource"]


@dataclass(frozen=True, eq=False)
class Recoded:
    """One column of all records that are kept.

    codes   a place in `values` for each record
    values  what is shown
    """

    codes: Ints
    values: pa.Array

    def rows(self, start: int, count: int) -> pa.Array:
        return self.values.take(pa.array(self.codes[start : start + count]))


class RecodedSource(Source):
    """A table of which some records are left out, some columns are replaced, and some may be new."""

    wraps = True

    def __init__(self, source: Source, columns: Mapping[str, Recoded], kept: Bools) -> None:
        self._source, self._columns, self._kept = source, columns, kept
        self.name, self.typed = source.name, source.typed

    @property
    def schema(self) -> pa.Schema:
        there = self._source.schema
        fields = [
            pa.field(name, self._columns[name].values.type) if name in self._columns else there.field(name)
            for name in there.names
        ]
        new = [pa.field(name, column.values.type) for name, column in self._columns.items() if name not in there.names]
        return pa.schema([*fields, *new])

    @property
    def rows(self) -> int | None:
        return int(self._kept.sum())

    def row_numbers(self, rows: Sequence[int]) -> tuple[str, list[int]]:
        return self._source.row_numbers(np.flatnonzero(self._kept)[list(rows)].tolist())

    def parts(self) -> list[Part]:
        """Those of the table, where it is known which records they begin with."""
        there = self._source.parts()
        if any(part.rows is None for part in there):
            return super().parts()
        starts = _starts(there)
        return [replace(part, rows=int(self._kept[starts[part] :][: part.rows].sum())) for part in there]

    def _read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return self._recoded(self._source.batches(self._needed(columns)), columns, 0)

    def _read_part(self, part: Part, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        starts = {(found.file, found.groups): (found, start) for found, start in _starts(self._source.parts()).items()}
        if any(found.rows is None for found, _ in starts.values()):
            yield from self._read(columns)
        else:
            there, start = starts[part.file, part.groups]
            yield from self._recoded(self._source.read_part(there, self._needed(columns)), columns, start)

    def _needed(self, columns: Sequence[str]) -> list[str]:
        """Something must be read for the rows to come in batches."""
        return [name for name in columns if name not in self._columns] or self._source.schema.names[:1]

    def _recoded(
        self, batches: Iterator[pa.RecordBatch], columns: Sequence[str], read: int
    ) -> Iterator[pa.RecordBatch]:
        """Batches that begin with a record of the table, given by its number."""
        done = int(self._kept[:read].sum())
        for batch in batches:
            kept = self._kept[read : read + batch.num_rows]
            read += batch.num_rows
            batch = batch if kept.all() else batch.filter(pa.array(kept))
            made = [
                self._columns[name].rows(done, batch.num_rows) if name in self._columns else batch.column(name)
                for name in columns
            ]
            done += batch.num_rows
            yield pa.RecordBatch.from_arrays(made, names=list(columns))


def _starts(parts: Sequence[Part]) -> dict[Part, int]:
    """The number of the first record of each part; parts of unknown length are taken as empty."""
    ends = accumulate((part.rows or 0 for part in parts), initial=0)
    return dict(zip(parts, ends))
