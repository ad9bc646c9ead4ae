"""Counting tables of any size: identical rows are grouped while they stream by.

Memory follows the distinct rows. The values of a column can be put into few kinds, which distinguish groups without
single values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import comb, prod

import numpy as np
import polars as pl
import pyarrow as pa

from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.errors import Problem, QuestionError, ReleaseError
from polyseme.schema import Domain
from polyseme.tables.codes import as_series
from polyseme.tables.distinct import distinct_rows, merged_rows
from polyseme.tables.io.source import CountedRows
from polyseme.tables.published import RowOrder, SetColumn, SetNumbers, code_sets

__all__ = [
    "CandidateKinds",
    "CodeCounting",
    "Grouped",
    "Kinds",
    "SetCounting",
    "Target",
    "group_codes",
    "group_sets",
    "kinds_of",
]

_REGROUP_ROWS = 2_000_000
"""Rows that wait before equal ones are counted together: a judgment between memory and the number of passes."""
_KEY_LIMIT = 1 << 62
"""What fits a signed 64-bit number with a bit to spare."""
_DENSE = 1 << 22
"""Counters in one array (32 MB): counting by index needs no grouping."""
_COUNT = "__count__"


@dataclass(frozen=True)
class Target:
    """A protected column of a release: its name, domain and candidates a set."""

    name: str
    domain: Domain
    width: int

    def sets(self, column: pa.Array) -> Ints:
        """The codes of the candidates of each row: (n, width), rows ascending."""
        return self.regular(self.published(column))

    def published(self, column: pa.Array) -> SetColumn:
        """The candidates of each row in the order in which they stand there."""
        return code_sets(column, self.domain)

    def regular(self, published: SetColumn) -> Ints:
        """The same as rows of equal length, ascending."""
        sets = published.regular(self.width)
        if sets is None:
            raise ReleaseError(
                Problem(
                    f"column '{self.name}'", f"not every cell holds {self.width} different candidates of the domain"
                ),
                "run polyseme verify to see what is wrong",
            )
        return sets


@dataclass(frozen=True, eq=False)
class Grouped:
    """Distinct combinations with their counts.

    cells   the distinct values of the untouched columns, sorted: one row a cell
    cell    the row of `cells` each combination belongs to: (n,)
    sets    one (n, width) array of codes for each target
    counts  how many rows had this combination: (n,)
    """

    cells: pl.DataFrame
    cell: Ints
    sets: tuple[Ints, ...]
    counts: Ints


def group_sets(rows: Iterable[CountedRows], targets: Sequence[Target], by: Sequence[str]) -> Grouped:
    """Distinct published sets within cells of the untouched columns."""
    counting = SetCounting(targets, by)
    for batch, counts in rows:
        counting.add(batch, counts)
    return counting.grouped()


class SetCounting:
    """Counts of distinct published sets within cells of untouched columns, batch by batch.

    shared_by  how many are counting at the same time, and share the memory
    order      what is to know of the order of the sets, where there is one target
    """

    def __init__(
        self, targets: Sequence[Target], by: Sequence[str], shared_by: int = 1, order: RowOrder | None = None
    ) -> None:
        self.targets, self.by, self._order = tuple(targets), tuple(by), order
        self._packing = _Packing([(target.domain.size, target.width) for target in targets])
        dense = not by and self._packing.combinations <= _DENSE // shared_by
        self._counter = _Dense(self._packing) if dense else _Sparse(self._packing, _REGROUP_ROWS // shared_by)

    def add(self, batch: pa.RecordBatch, counts: Ints | None = None) -> None:
        """Count the rows of a batch, each as often as it occurs."""
        published = [target.published(batch.column(target.name)) for target in self.targets]
        keys = self._packing.pack([target.regular(part) for target, part in zip(self.targets, published)])
        if self._order is not None:
            self._order.add(published[0].members.reshape(-1, self.targets[0].width), counts)
        self._counter.add([as_series(batch.column(name)) for name in self.by], keys, counts)

    def grouped(self) -> Grouped:
        """What was counted."""
        return _finish(self._counter.frame(), self._packing, self.by)


def group_codes(frames: Iterable[pl.DataFrame], columns: Mapping[str, int], by: Sequence[str]) -> Grouped:
    """Distinct combinations of coded columns (true values) within cells of the untouched ones.

    columns  the coded columns, with the size of each one's domain
    """
    counting = CodeCounting(columns, by)
    for frame in frames:
        counting.add(frame)
    return counting.grouped()


class CodeCounting:
    """The counting of `group_codes`, frame by frame; `shared_by` as for sets."""

    def __init__(self, columns: Mapping[str, int], by: Sequence[str], shared_by: int = 1) -> None:
        self.columns, self.by = tuple(columns), tuple(by)
        self._packing = _Packing([(size, 1) for size in columns.values()])
        self._counter = _Sparse(self._packing, _REGROUP_ROWS // shared_by)

    def add(self, frame: pl.DataFrame, counts: Ints | None = None) -> None:
        """Count the rows of a frame, each as often as it occurs."""
        keys = self._packing.pack([frame[name].to_numpy()[:, None] for name in self.columns])
        self._counter.add([frame[name] for name in self.by], keys, counts)

    def grouped(self) -> Grouped:
        """What was counted."""
        return _finish(self._counter.frame(), self._packing, self.by)


def _by(index: int) -> str:
    return f"by {index}"


class _Digits:
    """Sets that are too many to number: a digit for each member."""

    def __init__(self, size: int, width: int) -> None:
        self.radices = [size] * width

    def split(self, sets: Ints) -> list[Ints]:
        return list(sets.T)

    def join(self, digits: Sequence[Ints]) -> Ints:
        return np.column_stack(digits)


class _Number:
    """Sets as one digit each: their number among all sets of their size."""

    def __init__(self, numbers: SetNumbers) -> None:
        self.numbers = numbers
        self.radices = [numbers.count]

    def split(self, sets: Ints) -> list[Ints]:
        return [self.numbers.number(sets)]

    def join(self, digits: Sequence[Ints]) -> Ints:
        return self.numbers.members(digits[0])


def _spelling(size: int, width: int) -> _Digits | _Number:
    return _Number(SetNumbers(size, width)) if 0 < comb(size, width) < _KEY_LIMIT else _Digits(size, width)


class _Packing:
    """The sets of several targets as digits of few 64-bit keys, which are quicker to group by.

    shapes  for each target how many values it has and how many candidates a set
    """

    def __init__(self, shapes: Sequence[tuple[int, int]]) -> None:
        self.spellings = [_spelling(size, width) for size, width in shapes]
        self.radices = [radix for spelling in self.spellings for radix in spelling.radices]
        self.keys: list[list[int]] = []
        room = 0
        for place, radix in enumerate(self.radices):
            if radix > room:
                self.keys.append([])
                room = _KEY_LIMIT
            self.keys[-1].append(place)
            room //= max(radix, 1)

    @property
    def names(self) -> list[str]:
        return [f"of {index}" for index in range(len(self.keys))]

    @property
    def combinations(self) -> int:
        """How many keys there can be."""
        return prod(self.radices)

    def pack(self, sets: Sequence[Ints]) -> list[Ints]:
        digits = [digit for spelling, part in zip(self.spellings, sets) for digit in spelling.split(part)]
        packed = []
        for places in self.keys:
            key = digits[places[0]].astype(np.int64)
            for place in places[1:]:
                key *= self.radices[place]
                key += digits[place]
            packed.append(key)
        return packed

    def unpack(self, frame: pl.DataFrame) -> tuple[Ints, ...]:
        digits: list[Ints] = [np.zeros(0, dtype=np.int64)] * len(self.radices)
        for name, places in zip(self.names, self.keys):
            key = frame[name].to_numpy().astype(np.int64)
            for place in reversed(places[1:]):
                key, digits[place] = np.divmod(key, self.radices[place])
            digits[places[0]] = key
        ends = np.cumsum([len(spelling.radices) for spelling in self.spellings])
        return tuple(
            spelling.join(digits[end - len(spelling.radices) : end]) for spelling, end in zip(self.spellings, ends)
        )


class _Dense:
    """With few possible keys, one counter for each of them."""

    def __init__(self, packing: _Packing) -> None:
        (self._name,) = packing.names
        self._counts = np.zeros(packing.combinations, dtype=np.int64)

    def add(self, by: Sequence[pl.Series], keys: Sequence[Ints], counts: Ints | None) -> None:
        (key,) = keys
        if counts is not None:
            np.add.at(self._counts, key, counts)
        elif len(key) < len(self._counts) // 8:
            np.add.at(self._counts, key, 1)
        else:
            self._counts += np.bincount(key, minlength=len(self._counts))

    def frame(self) -> pl.DataFrame:
        keys = np.flatnonzero(self._counts)
        return pl.DataFrame({self._name: keys, _COUNT: self._counts[keys]})


class _Sparse:
    """Equal rows are counted together while they come; `most` of them wait for that."""

    def __init__(self, packing: _Packing, most: int) -> None:
        self._packing, self._most, self._limit = packing, most, most
        self._waiting: list[pl.DataFrame] = []
        self._rows = 0

    def add(self, by: Sequence[pl.Series], keys: Sequence[Ints], counts: Ints | None) -> None:
        columns = [series.alias(_by(index)) for index, series in enumerate(by)]
        columns += [pl.Series(name, key) for name, key in zip(self._packing.names, keys)]
        self._waiting.append(distinct_rows(pl.DataFrame(columns), counts, _COUNT))
        self._rows += self._waiting[-1].height
        if self._rows > self._limit:
            self._waiting = [merged_rows(self._waiting, _COUNT)]
            self._rows = self._waiting[0].height
            # When most rows are distinct, merging more often would only repeat work.
            self._limit = max(self._most, 2 * self._rows)

    def frame(self) -> pl.DataFrame:
        return merged_rows(self._waiting, _COUNT) if self._waiting else pl.DataFrame()


def _finish(frame: pl.DataFrame, packing: _Packing, by: Sequence[str]) -> Grouped:
    names = [_by(index) for index in range(len(by))]
    if frame.is_empty():
        frame = pl.DataFrame(
            schema={**dict.fromkeys(names, pl.String), **dict.fromkeys([*packing.names, _COUNT], pl.Int64)}
        )
    if by:
        cells = frame.select(names).unique().sort(names, nulls_last=True)
        frame = frame.join(cells.with_row_index("cell"), on=names, how="left", nulls_equal=True)
    else:
        cells = pl.DataFrame({"cell": [0]}).select([])
        frame = frame.with_columns(cell=pl.lit(0))
    frame = frame.sort("cell", *packing.names)
    return Grouped(
        cells.rename(dict(zip(names, by))) if by else cells,
        frame["cell"].to_numpy().astype(np.int64),
        packing.unpack(frame),
        frame[_COUNT].to_numpy().astype(np.int64),
    )


MOST_VALUES = 1_000_000
"""A column with more values names persons; nothing about groups can be learned from it."""
_NEARLY = 0.95
"""A judgment: a column of texts that are nearly all numbers is a column of numbers with a few words for 'missing'."""
_VALUE, _COUNT, _KIND = "value", "count", "kind"


@dataclass(frozen=True, eq=False)
class Kinds:
    """The kind of every value of a column.

    table  one row for each value, with its kind
    """

    name: str
    table: pl.DataFrame

    @property
    def columns(self) -> tuple[str, ...]:
        """What decides the kind of a record."""
        return (self.name,)

    def places(self, columns: Mapping[str, pa.Array], rows: int) -> Ints:
        """The kind of each record: (rows,)."""
        column = as_series(columns[self.name]).cast(self.table.schema[_VALUE]).to_frame(_VALUE)
        joined = column.join(self.table, on=_VALUE, how="left", nulls_equal=True, maintain_order="left")
        return joined[_KIND].to_numpy().astype(np.int64)


@dataclass(frozen=True, eq=False)
class CandidateKinds:
    """The kind of a record by its set: the candidate that is published most often.

    rank  of each value of the domain, the most often published first
    most  kinds there may be
    """

    target: Target
    rank: Ints
    most: int

    @classmethod
    def of(cls, target: Target, published: Floats, most: int) -> CandidateKinds:
        """From how often each value of the domain is published."""
        rank = np.empty(len(published), dtype=np.int64)
        rank[np.argsort(-published, kind="stable")] = np.arange(len(published))
        return cls(target, rank, most)

    @property
    def name(self) -> str:
        return self.target.name

    @property
    def columns(self) -> tuple[str, ...]:
        """What decides the kind of a record."""
        return (self.name,)

    def places(self, columns: Mapping[str, pa.Array], rows: int) -> Ints:
        """The kind of each record: (rows,)."""
        first = self.rank[self.target.sets(columns[self.name])].min(axis=1)
        return np.asarray(np.minimum(first, self.most - 1), dtype=np.int64)


def kinds_of(rows: Iterable[CountedRows], columns: Sequence[str], most: int) -> Mapping[str, Kinds]:
    """Kinds of the values of each column, at most so many.

    Numbers and times are cut into stretches of about equally many records; of other values the most frequent are kinds
    of their own.
    """
    nothing = pl.DataFrame(schema={_VALUE: pl.Null, _COUNT: pl.Int64})
    counts = dict.fromkeys(columns, nothing)
    for batch, number in rows:
        for name in columns:
            here = distinct_rows(as_series(batch.column(name)).to_frame(_VALUE), number, _COUNT)
            counts[name] = merged_rows([counts[name], here], _COUNT)
        concentrated = [name for name in columns if counts[name].height > MOST_VALUES]
        if concentrated:
            raise QuestionError(
                Problem(
                    "using",
                    f"'{name}' has more than {MOST_VALUES:,} values: it identifies people",
                    "publish it in intervals, or leave it out",
                )
                for name in concentrated
            )
    return {name: _kinds(name, found, most) for name, found in counts.items()}


def _kinds(name: str, counts: pl.DataFrame, most: int) -> Kinds:
    # Whatever comes next may not depend on the order in which values were met.
    counts = counts.sort(_COUNT, _VALUE, descending=[True, False], nulls_last=True)
    along = _along(counts)
    kind = np.minimum(np.arange(counts.height), most - 1) if along is None else _stretches(along, counts, most)
    return Kinds(name, counts.select(_VALUE).with_columns(pl.Series(_KIND, kind)))


def _along(counts: pl.DataFrame) -> pl.Series | None:
    """Where the values stand on a line, null where they do not; None where they have no order.

    Numbers and days may be written as text, if nearly all records have one.
    """
    values, records = counts[_VALUE], counts[_COUNT].to_numpy()
    if values.dtype.is_float():
        return values.fill_nan(None)
    if values.dtype.is_numeric() or values.dtype.is_temporal():
        return values
    if values.dtype == pl.String:
        words = records[values.is_not_null().to_numpy()].sum()
        for along in (
            values.cast(pl.Float64, strict=False).fill_nan(None),
            values.str.to_date("%Y-%m-%d", strict=False),
        ):
            if 0 < _NEARLY * words <= records[along.is_not_null().to_numpy()].sum():
                return along
    return None


def _stretches(along: pl.Series, counts: pl.DataFrame, most: int) -> Ints:
    """The quantile bin of each value; values without a number are one more bin."""
    known = along.is_not_null().to_numpy()
    rank = along.rank("dense").fill_null(1).to_numpy().astype(np.int64) - 1
    records = np.bincount(rank[known], counts[_COUNT].to_numpy()[known], minlength=1)
    most -= int(not known.all())
    stretch = np.arange(len(records))
    if len(records) > most:
        middle = np.cumsum(records) - records / 2.0
        stretch = np.unique(np.floor(middle / records.sum() * most), return_inverse=True)[1]
    return np.where(known, stretch[rank], stretch.max() + 1 if known.any() else 0).astype(np.int64)
