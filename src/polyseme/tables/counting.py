"""Counting tables of any size: identical rows are grouped while they stream by, so memory follows the distinct ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import comb, prod

import numpy as np
import polars as pl
import pyarrow as pa

from polyseme.distances.structure import Ints
from polyseme.errors import Problem, ReleaseError
from polyseme.schema import Domain
from polyseme.tables.codes import as_series
from polyseme.tables.numbering import SetNumbers
from polyseme.tables.sets import code_sets

__all__ = ["Grouped", "Target", "group_codes", "group_sets"]

_REGROUP_ROWS = 2_000_000
_KEY_LIMIT = 1 << 62
_DENSE = 1 << 22
_COUNT = "__count__"


@dataclass(frozen=True)
class Target:
    """A protected column of a release: its name, its domain and how many candidates each set has."""

    name: str
    domain: Domain
    width: int

    def sets(self, column: pa.Array) -> Ints:
        """The codes of the candidates of each row: (n, width), rows ascending."""
        sets = code_sets(column, self.domain).regular(self.width)
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


def group_sets(batches: Iterable[pa.RecordBatch], targets: Sequence[Target], by: Sequence[str]) -> Grouped:
    """Distinct published sets within cells of the untouched columns."""
    shapes = [(target.domain.size, target.width) for target in targets]
    packing = _Packing(shapes)
    frames = (_frame(batch, targets, by, packing) for batch in batches)
    dense = not by and packing.combinations <= _DENSE
    return _finish(_counted(frames, packing) if dense else _grouped(frames), packing, by)


def group_codes(frames: Iterable[pl.DataFrame], columns: Mapping[str, int], by: Sequence[str]) -> Grouped:
    """Distinct combinations of coded columns (true values) within cells of the untouched ones.

    columns  the coded columns, with the size of each one's domain
    """
    packing = _Packing([(size, 1) for size in columns.values()])
    renamed = (
        pl.DataFrame(
            [frame[name].alias(_by(index)) for index, name in enumerate(by)]
            + packing.pack([frame[name].to_numpy()[:, None] for name in columns])
        )
        for frame in frames
    )
    return _finish(_grouped(renamed), packing, by)


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

    def pack(self, sets: Sequence[Ints]) -> list[pl.Series]:
        digits = [digit for spelling, part in zip(self.spellings, sets) for digit in spelling.split(part)]
        packed = []
        for name, places in zip(self.names, self.keys):
            key = digits[places[0]].astype(np.int64)
            for place in places[1:]:
                key *= self.radices[place]
                key += digits[place]
            packed.append(pl.Series(name, key))
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


def _frame(batch: pa.RecordBatch, targets: Sequence[Target], by: Sequence[str], packing: _Packing) -> pl.DataFrame:
    columns = [as_series(batch.column(name)).alias(_by(index)) for index, name in enumerate(by)]
    return pl.DataFrame(columns + packing.pack([target.sets(batch.column(target.name)) for target in targets]))


def _counted(frames: Iterator[pl.DataFrame], packing: _Packing) -> pl.DataFrame:
    """With few possible keys, one counter for each of them."""
    (name,) = packing.names
    counts = np.zeros(packing.combinations, dtype=np.int64)
    for frame in frames:
        key = frame[name].to_numpy()
        if len(key) < len(counts) // 8:
            np.add.at(counts, key, 1)
        else:
            counts += np.bincount(key, minlength=len(counts))
    keys = np.flatnonzero(counts)
    return pl.DataFrame({name: keys, _COUNT: counts[keys]})


def _grouped(frames: Iterator[pl.DataFrame]) -> pl.DataFrame:
    waiting: list[pl.DataFrame] = []
    rows = 0
    limit = _REGROUP_ROWS
    for frame in frames:
        waiting.append(frame.group_by(pl.all()).len(_COUNT))
        rows += waiting[-1].height
        if rows > limit:
            waiting = [_merge(waiting)]
            rows = waiting[0].height
            # When most rows are distinct, merging more often would only repeat work.
            limit = max(_REGROUP_ROWS, 2 * rows)
    return _merge(waiting) if waiting else pl.DataFrame()


def _merge(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    whole = pl.concat(frames, how="vertical_relaxed")
    return whole.group_by(pl.exclude(_COUNT)).agg(pl.col(_COUNT).sum())


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
