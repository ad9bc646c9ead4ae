"""Tables in which some columns show something else: by a rule for any record, or decided for each record before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from polyseme.arrays import Bools, Ints
from polyseme.tables.io.source import Source

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


class RuledSource(Source):
    """A table of which every record is recoded, or left out, by a rule.

    rows  how many are kept
    """

    wraps = True

    def __init__(self, source: Source, recoder: Recoder, rows: int) -> None:
        self._source, self._recoder, self._rows = source, recoder, rows
        self.name, self.typed = source.name, source.typed

    @property
    def schema(self) -> pa.Schema:
        types = self._recoder.types
        return pa.schema([item.with_type(types.get(item.name, item.type)) for item in self._source.schema])

    @property
    def rows(self) -> int | None:
        return self._rows

    def row_numbers(self, rows: Sequence[int]) -> tuple[str, list[int]]:
        kept = [self._recoder.recode(batch)[0] for batch in self._source.batches(self._recoder.needs)]
        return self._source.row_numbers(np.flatnonzero(np.concatenate(kept))[list(rows)].tolist())

    def _read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        if not self._recoder.leaves_out and not self._recoder.types.keys() & set(columns):
            yield from self._source.batches(columns)
            return
        for batch in self._source.batches(list(dict.fromkeys([*columns, *self._recoder.needs]))):
            yield self._recoder.recode(batch)[1].select(list(columns))


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

    def _read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        there = [name for name in columns if name not in self._columns]
        # Something must be read for the rows to come in batches.
        read, done = 0, 0
        for batch in self._source.batches(there or self._source.schema.names[:1]):
            kept = self._kept[read : read + batch.num_rows]
            read += batch.num_rows
            batch = batch if kept.all() else batch.filter(pa.array(kept))
            made = [
                self._columns[name].rows(done, batch.num_rows) if name in self._columns else batch.column(name)
                for name in columns
            ]
            done += batch.num_rows
            yield pa.RecordBatch.from_arrays(made, names=list(columns))
