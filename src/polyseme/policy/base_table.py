"""The base table: the columns that a grouping method looks at, as they would be published, and nothing else.

    base = read_base(policy, source, items, distinct=True)
    base.frame, base.counts     # different rows, and how many records have each

Rows that are alike are put together while the table is read, so that what is held is what differs. Where the engine
has counted already (`source.counted`), few rows come in at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl
import pyarrow as pa

from polyseme.arrays import Bools, Ints
from polyseme.errors import Problem, TableError, numbered
from polyseme.policy import Policy
from polyseme.policy.attributes import AttributePolicy
from polyseme.tables.coding.codes import as_series, cast_column
from polyseme.tables.coding.keys import KeyReader, numbered_people
from polyseme.tables.io.dialects import dialect_hint
from polyseme.tables.io.source import Source

__all__ = ["BaseTable", "ReadColumn", "Reading", "read_base"]

_COUNT, _PERSON = "\0count", "\0person"
_HELD = 1 << 19
"""Rows that are held before those that are alike are put together; then twice as many as differed."""
_WORTH = 0.8
"""Where more than this part of the rows differ, the last of them are not looked through again."""


@dataclass(frozen=True)
class ReadColumn:
    """A column by its name, and the type that the policy declares for it."""

    name: str
    type: str | None = None


@dataclass(frozen=True)
class Reading:
    """How rows of a table are read: the words for a missing value, types, and which rows are left out. Pickles.

    columns   what is read
    dropping  columns without whose value a row is left out
    """

    columns: tuple[ReadColumn, ...]
    dropping: tuple[str, ...]
    missing_values: tuple[str, ...]

    @classmethod
    def of(cls, policy: Policy, items: Sequence[AttributePolicy]) -> Reading:
        dropping = [item.name for item in policy.attributes if item.role.is_secret and item.missing.action == "drop"]
        columns = tuple(ReadColumn(item.name, item.type) for item in items)
        return cls(columns, tuple(dropping), policy.table.missing_values)

    @property
    def names(self) -> list[str]:
        """All columns that must be there."""
        return list(dict.fromkeys([*(column.name for column in self.columns), *self.dropping]))

    def kept(self, batch: pa.RecordBatch) -> Bools:
        """Which rows are records: they have a value wherever those without one are left out."""
        kept = np.ones(batch.num_rows, dtype=np.bool_)
        for name in self.dropping:
            kept &= as_series(batch.column(name), self.missing_values).is_not_null().to_numpy()
        return kept

    def series(self, batch: pa.RecordBatch, column: ReadColumn) -> tuple[pl.Series, pl.Series]:
        """A column as it would be published, and the texts that are no values of its type."""
        read = as_series(batch.column(column.name), self.missing_values).alias(column.name)
        if column.type is None:
            return read, read.clear()
        cast, failures = cast_column(read, column.type)
        return cast.alias(column.name), read.filter(cast.is_null() & read.is_not_null()) if failures else read.clear()


@dataclass(frozen=True, eq=False)
class BaseTable:
    """What was read.

    frame       one row for each record, or for all that are alike
    counts      how many records each row stands for; None where each is a record
    kept        which rows of the table are records; None where rows that are alike were put together
    dropped     rows that are left out because a value is missing
    aggregated  whether the table came as counts, so that rows have no places
    people      whose each row is, numbered from 0; None where records are counted
    """

    frame: pl.DataFrame = field(repr=False)
    counts: Ints | None = field(repr=False)
    kept: Bools | None = field(repr=False)
    dropped: int
    aggregated: bool = False
    people: Ints | None = field(default=None, repr=False)

    def columns(self, reading: Reading) -> dict[str, pl.Series]:
        """What was read, by name; without a single batch, its types are not known."""
        nothing = pl.Series([], dtype=pl.String)
        return {item.name: self.frame[item.name] if self.frame.width else nothing for item in reading.columns}

    @property
    def rows(self) -> Ints | None:
        """The row of the table in which each row stands; None where several share one."""
        return None if self.kept is None else np.flatnonzero(self.kept)

    def weighed(self, rows: Bools) -> int:
        """Records of some rows."""
        return int(np.count_nonzero(rows) if self.counts is None else self.counts[rows].sum())


def read_base(reading: Reading, source: Source, distinct: bool, person: str | None = None) -> BaseTable:
    """The columns of all records, those that are alike put together where that is wanted.

    person  the column that says whose each record is; None where that is not asked for

    A column with values that are none of its declared type is refused.
    """
    held = _Held(distinct)
    problems = _Unread()
    keys = None if person is None else KeyReader(person, reading.missing_values)
    names = list(dict.fromkeys([*reading.names, *([] if person is None else [person])]))
    for batch, counts in _counted(source, names, distinct):
        kept = reading.kept(batch)
        pieces: dict[str, pl.Series] = {}
        for column in reading.columns:
            # By name: in a list, a column whose header is empty would be given another one.
            pieces[column.name], unread = reading.series(batch, column)
            problems.see(column, unread)
        if keys is not None:
            pieces[_PERSON] = pl.Series(_PERSON, keys.read(batch.column(keys.name), kept, counts))
        held.add(pl.DataFrame(pieces), kept, counts)
    problems.refuse()
    if keys is not None:
        keys.refuse()
    return _of_people(held.whole())


def _of_people(base: BaseTable) -> BaseTable:
    """The table with people as numbers, where they were read; each record is a person's only one in most tables."""
    if _PERSON not in base.frame.columns:
        return base
    people = numbered_people(base.frame[_PERSON].to_numpy())
    return replace(base, frame=base.frame.drop(_PERSON), people=people)


def _counted(source: Source, names: list[str], distinct: bool) -> Iterator[tuple[pa.RecordBatch, Ints | None]]:
    columns = names or source.lightest
    yield from source.counted(columns) if distinct else ((batch, None) for batch in source.batches(columns))


class _Unread:
    """Texts that are no values of the declared type, by column."""

    def __init__(self) -> None:
        self._texts: dict[ReadColumn, list[pl.Series]] = {}

    def see(self, column: ReadColumn, texts: pl.Series) -> None:
        if len(texts):
            self._texts.setdefault(column, []).append(texts.cast(pl.String))

    def refuse(self) -> None:
        problems = []
        for column, pieces in self._texts.items():
            texts = pl.concat(pieces)
            hint = dialect_hint(texts) or "change or remove its type in the policy"
            what = numbered(len(texts), f"values cannot be read as {column.type}")
            problems.append(Problem(f"column '{column.name}'", what, hint))
        if problems:
            raise TableError(problems)


class _Held:
    """Rows as they come."""

    def __init__(self, distinct: bool) -> None:
        self._distinct, self._aggregated = distinct, False
        self._frames: list[pl.DataFrame] = []
        self._kept: list[Bools] = []
        self._dropped = self._pending = 0
        self._most, self._pays = _HELD, True

    def add(self, frame: pl.DataFrame, kept: Bools, counts: Ints | None) -> None:
        self._aggregated |= counts is not None
        each = np.ones(len(kept), dtype=np.int64) if counts is None else counts
        self._dropped += int(each[~kept].sum())
        if self._distinct:
            frame = frame.with_columns(pl.Series(_COUNT, each))
        else:
            self._kept.append(kept)
        self._frames.append(frame if kept.all() else frame.filter(pl.Series(kept)))
        self._pending += self._frames[-1].height
        if self._distinct and self._pending > self._most:
            self._put_together()
            self._most = max(_HELD, 2 * self._pending)

    def _put_together(self) -> None:
        whole = pl.concat(self._frames)
        names = [name for name in whole.columns if name != _COUNT]
        if not any(_has_no_equals(kind) for kind in whole.dtypes):
            whole = whole.group_by(names).agg(pl.col(_COUNT).sum()) if names else whole.select(pl.col(_COUNT).sum())
        self._pays = whole.height < _WORTH * self._pending
        self._frames, self._pending = [whole], whole.height

    def whole(self) -> BaseTable:
        if not self._frames:
            return BaseTable(pl.DataFrame(), None, np.zeros(0, dtype=np.bool_), 0)
        if not self._distinct:
            frame = pl.concat(self._frames, rechunk=False)
            return BaseTable(frame, None, np.concatenate(self._kept), self._dropped)
        if self._pays:
            self._put_together()
        frame = pl.concat(self._frames)
        counts = frame[_COUNT].to_numpy().astype(np.int64)
        return BaseTable(frame.drop(_COUNT), counts, None, self._dropped, self._aggregated)


def _has_no_equals(kind: pl.DataType) -> bool:
    """Whether values are of a type that no domain and no hierarchy has; they are refused where they are used."""
    return kind.is_nested() or kind in (pl.Binary, pl.Object)
