"""Tables in which some columns show something else: by a rule for any record, or decided for each record before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Protocol

import numpy as np
import pyarrow as pa

from polyseme.arrays import Bools, Ints, arrow
from polyseme.tables.io.parts import Part
from polyseme.tables.io.source import CountedRows, Source, Wrapped

__all__ = ["Recoded", "RecodedSource", "Recoder", "RuledSource"]


class Recoder(Protocol):
    """A rule that recodes any batch of a table, whichever rows it has."""

    @property
    def needs(self) -> Sequence[str]:
        """The columns that it looks at."""

    @property
    def types(self) -> Mapping[str, pa.DataType]:
        """The columns that show something else, and their types."""

    @property
    def leaves_out(self) -> bool:
        """Whether some records are left out."""

    def recode(self, batch: pa.RecordBatch) -> tuple[Bools, pa.RecordBatch]:
        """Which rows of a batch are kept, and what these show; columns that it does not know stay."""


class RuledSource(Wrapped):
    """A table of which every record is recoded, or left out, by a rule.

    rows  how many are kept
    """

    def __init__(self, source: Source, recoder: Recoder, rows: int) -> None:
        super().__init__(source)
        self._recoder, self._rows = recoder, rows

    @property
    def schema(self) -> pa.Schema:
        types = self._recoder.types
        return pa.schema([item.with_type(types.get(item.name, item.type)) for item in self.inner.schema])

    @property
    def rows(self) -> int | None:
        return self._rows

    def row_numbers(self, rows: Sequence[int]) -> tuple[str, list[int]]:
        kept = [self._recoder.recode(batch)[0] for batch in self.inner.batches(self._recoder.needs)]
        return self.inner.row_numbers(np.flatnonzero(np.concatenate(kept))[list(rows)].tolist())

    def parts(self) -> list[Part]:
        """Those of the table; how many rows of each are kept shows when it is read."""
        return [replace(part, rows=None) for part in super().parts()] if self._recoder.leaves_out else super().parts()

    def _untouched(self, columns: Sequence[str]) -> bool:
        return not self._recoder.leaves_out and not self._recoder.types.keys() & set(columns)

    def _needed(self, columns: Sequence[str]) -> Sequence[str]:
        return columns if self._untouched(columns) else list(dict.fromkeys([*columns, *self._recoder.needs]))

    def _made(self, batch: pa.RecordBatch, columns: Sequence[str]) -> pa.RecordBatch:
        return batch if self._untouched(columns) else self._recoder.recode(batch)[1].select(list(columns))

    def counted(self, columns: Sequence[str] | None = None) -> Iterator[CountedRows]:
        names = list(self.schema.names if columns is None else columns)
        for batch, counts in self.inner.counted(self._needed(names)):
            if self._untouched(names):
                yield batch, counts
            else:
                kept, made = self._recoder.recode(batch)
                yield made.select(names), counts if counts is None else counts[kept]


@dataclass(frozen=True, eq=False)
class Recoded:
    """One column of all records that are kept.

    codes   a place in `values` for each record
    values  what is shown
    """

    codes: Ints
    values: pa.Array

    def rows(self, start: int, count: int) -> pa.Array:
        return self.values.take(arrow(self.codes[start : start + count]))


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

    @property
    def lightest(self) -> list[str]:
        return next(([name] for name in self._columns), self._source.lightest)

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
        return [name for name in columns if name not in self._columns] or self._source.lightest

    def _recoded(
        self, batches: Iterator[pa.RecordBatch], columns: Sequence[str], read: int
    ) -> Iterator[pa.RecordBatch]:
        """Batches that begin with a record of the table, given by its number."""
        done = int(self._kept[:read].sum())
        for batch in batches:
            kept = self._kept[read : read + batch.num_rows]
            read += batch.num_rows
            batch = batch if kept.all() else batch.filter(arrow(kept))
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
