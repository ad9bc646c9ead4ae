"""Tables with derived columns: combinations as one label, row numbers, recoded columns.

Row numbers are for looking at single records; never for what is published. A column is recoded by a rule for any
record, or as decided for each record before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Protocol

import numpy as np
import pyarrow as pa

from polyseme.kernel.arrays import Bools, Ints, arrow
from polyseme.kernel.marks import MISSING
from polyseme.schema import Attribute, Domain
from polyseme.tables.codes import as_series, encode
from polyseme.tables.io.source import CountedRows, Part, Source, Wrapped

__all__ = ["JoinedSource", "NumberedSource", "Recoded", "RecodedSource", "Recoder", "RuledSource", "with_joined"]

_OTHER = "\0"
"""What stands for a combination that is not in the domain."""


def with_joined(
    source: Source, attributes: Iterable[Attribute], missing_values: Sequence[str], hidden: bool = False
) -> Source:
    """The table with a column for each joint attribute; the same table where there is none.

    hidden  whether the schema leaves them out, for those who compare it with a policy
    """
    joint = {item.name: item for item in attributes if item.members}
    return JoinedSource(source, joint, missing_values, hidden) if joint else source


class JoinedSource(Wrapped):
    """A table, and beside its columns those of its joint attributes, made when they are read."""

    def __init__(
        self, source: Source, joint: Mapping[str, Attribute], missing_values: Sequence[str], hidden: bool
    ) -> None:
        super().__init__(source)
        self._joint, self._missing_values, self._hidden = joint, missing_values, hidden

    @property
    def schema(self) -> pa.Schema:
        there = self.inner.schema
        whole = [name for name, item in self._joint.items() if {part.name for part in item.members} <= set(there.names)]
        more = [] if self._hidden else [pa.field(name, pa.string()) for name in whole]
        return pa.schema([*there, *more])

    def _needed(self, columns: Sequence[str]) -> list[str]:
        needed = [
            part
            for name in columns
            for part in ([item.name for item in self._joint[name].members] if name in self._joint else [name])
        ]
        return list(dict.fromkeys(needed))

    def _made(self, batch: pa.RecordBatch, columns: Sequence[str]) -> pa.RecordBatch:
        made = [
            self._joined(self._joint[name], batch) if name in self._joint else batch.column(name) for name in columns
        ]
        return pa.RecordBatch.from_arrays(made, names=list(columns))

    def _joined(self, item: Attribute, batch: pa.RecordBatch) -> pa.Array:
        codes = [
            encode(as_series(batch.column(part.name), self._missing_values).alias(part.name), part.domain).codes
            for part in item.members
        ]
        return combined(item, codes)


def combined(item: Attribute, codes: Sequence[Ints]) -> pa.Array:
    """The labels of the combinations that some records have; null where a value is missing."""
    sizes = [part.domain.size for part in item.members]
    place = np.full(int(np.prod(sizes)) + 1, -1, dtype=np.int64)
    place[np.ravel_multi_index([np.array(part.codes) for part in item.members], sizes)] = np.arange(_size(item.domain))
    known = np.all([column >= 0 for column in codes], axis=0)
    missing = np.any([column == MISSING for column in codes], axis=0)
    flat = np.ravel_multi_index([np.where(known, column, 0) for column in codes], sizes)
    found = np.where(known, place[flat], -1)
    labels = np.array([*(item.domain.values if item.domain is not None else ()), _OTHER], dtype=object)
    shown = labels[found]
    shown[missing] = None
    return arrow(shown.tolist(), pa.string())


def _size(domain: Domain | None) -> int:
    return domain.size if domain is not None else 0


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
    """A table with some records left out, some columns replaced, and some new."""

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

    def values(self, name: str) -> pa.Array:
        """What is shown in a column that was replaced, or is new: each value once."""
        return self._columns[name].values

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
