"""Columns that help: what is known of every record beside its sets makes the sets say more.

Who knows that a record is a woman's knows more about her occupation than her set alone says. So the records are told
apart by such columns, each part gets a table of its own, and the parts are added up. The parts share what they have in
common (see `effects`), or there would be too few records in each.

Kinds of records whose sets hold the same values equally often are not worth telling apart. Between two kinds of a and b
records

    T = sum_v (p_av - p_bv)^2 / (p_v (1 - p_v) (1/a + 1/b))

where
    p_av  the share of the records of kind a whose set holds the value v, p_v that of both kinds together

is about as large as the number V of values when they do not differ, with a standard deviation of sqrt(2 V). Kinds are
merged, the nearest first, as long as T is within 2 standard deviations of that. This alone would always leave some,
because the kinds that are not merged are those that differ most, if only by chance. So a column helps at all only where
its kinds together differ from everybody by more than 3 standard deviations.

Then kinds are merged until there is room: those first whose merging costs least, T, for what it saves. To merge two of
K kinds of a column saves log(K / (K - 1)) of the logarithm of the number of parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from polyseme.distances.structure import Floats, Ints
from polyseme.estimators.base import Finer, Reports
from polyseme.estimators.counts import distinct
from polyseme.estimators.smooth import Room
from polyseme.mechanism import Mechanism

__all__ = ["MOST_KINDS", "Help", "with_help"]

MOST_KINDS = 24
"""Into how many kinds one column tells the records apart at first."""


@dataclass(frozen=True, eq=False)
class Help:
    """A helping column.

    kinds  the kind of each row of the reports, from 0 up
    """

    name: str
    kinds: Ints

    def among(self, rows: Ints) -> Help:
        """The same for some of the rows."""
        return replace(self, kinds=self.kinds[rows])


def with_help(reports: Reports, helping: Sequence[Help], mechanisms: Sequence[Mechanism]) -> Reports:
    """The reports, told apart by helping columns as finely as it is worth it and there is room.

    reports  rows that differ only in a helping column stand apart
    """
    room, whole = Room(reports, mechanisms), _merged(reports, reports.cell, reports.cells)
    if not room.fits:
        # Nobody will look at the parts.
        names, nothing = (
            tuple(column.name for column in helping),
            np.zeros((reports.cells, len(helping)), dtype=np.int64),
        )
        return replace(whole, finer=Finer(names, whole, np.arange(reports.cells), nothing))
    columns = [_Column.of(column, reports, mechanisms) for column in helping]
    for column in columns:
        while column.alike:
            column.merge()
    parts, part = _numbered(reports.cell, *(now.place[column.kinds] for now, column in zip(columns, helping)))
    while not room.holds(len(parts), [column.kinds for column in columns]) and any(item.kinds > 1 for item in columns):
        number = min(range(len(columns)), key=lambda number: columns[number].loss)
        parts[:, number + 1] = columns[number].merge()[parts[:, number + 1]]
        parts, step = _numbered(*parts.T)
        part = step[part]
    telling = [number for number, column in enumerate(columns) if column.kinds > 1]
    finer = Finer(
        names=tuple(helping[number].name for number in telling),
        reports=_merged(reports, part, len(parts)),
        whole=parts[:, 0],
        groups=parts[:, [number + 1 for number in telling]],
        idle=tuple(column.name for number, column in enumerate(helping) if number not in telling),
    )
    return replace(whole, finer=finer)


class _Column:
    """The kinds of a column while they are merged.

    place    where each of the first kinds is now
    records  of each kind
    holding  how many of them have a set that holds each value, all attributes after each other: (kinds, values)
    idle     whether the column tells nothing
    """

    def __init__(self, records: Floats, holding: Floats) -> None:
        self.place: Ints = np.arange(len(records))
        self.records = records
        self.holding = holding
        self._compare()
        some = records > 0
        everybody = holding.sum(axis=0) / max(float(records.sum()), 1.0)
        off = _differences(holding[some] / records[some, None], everybody, everybody, 1.0 / records[some])
        self.idle = _by_chance(float(off.sum()), holding.shape[1] * max(int(some.sum()) - 1, 0), 3.0)

    @classmethod
    def of(cls, column: Help, reports: Reports, mechanisms: Sequence[Mechanism]) -> _Column:
        size = int(column.kinds.max(initial=0)) + 1
        weights = reports.counts.astype(np.float64)
        holding = []
        for sets, mechanism in zip(reports.sets, mechanisms):
            flat = (column.kinds[:, None] * mechanism.size + sets).ravel()
            counted = np.bincount(flat, np.repeat(weights, sets.shape[1]), minlength=size * mechanism.size)
            holding.append(counted.reshape(size, -1))
        records = np.bincount(column.kinds, weights, minlength=size).astype(np.float64)
        return cls(records, np.hstack(holding))

    @property
    def kinds(self) -> int:
        """How many there are now."""
        return len(self.records)

    @property
    def alike(self) -> bool:
        """Whether the two nearest kinds differ no more than chance explains."""
        return self.kinds > 1 and (self.idle or _by_chance(self.least, self.holding.shape[1], 2.0))

    @property
    def loss(self) -> float:
        """What is lost by merging the two nearest kinds, for what this saves of the logarithm of all parts."""
        return float(self.least / np.log(self.kinds / (self.kinds - 1))) if self.kinds > 1 else np.inf

    def merge(self) -> Ints:
        """Make one kind of the two nearest: where each kind is then."""
        first, second = self.pair
        self.records[first] += self.records[second]
        self.holding[first] += self.holding[second]
        self.records = np.delete(self.records, second)
        self.holding = np.delete(self.holding, second, axis=0)
        moved = np.arange(self.kinds + 1)
        moved[second] = first
        moved[second + 1 :] -= 1
        self.place = moved[self.place]
        self._compare()
        return moved

    def _compare(self) -> None:
        """Find the two nearest kinds."""
        left, right = np.triu_indices(self.kinds, 1)
        self.pair, self.least = (0, 0), np.inf
        if not len(left):
            return
        # Whoever has no records differs from nobody.
        records = np.maximum(self.records, 1e-9)
        rates = self.holding / records[:, None]
        both = (self.holding[left] + self.holding[right]) / (records[left] + records[right])[:, None]
        apart = _differences(rates[left], rates[right], both, 1.0 / records[left] + 1.0 / records[right])
        nearest = int(np.argmin(apart))
        self.pair, self.least = (int(left[nearest]), int(right[nearest])), float(apart[nearest])


def _differences(rates: Floats, others: Floats, both: Floats, spread: Floats) -> Floats:
    """`T` of each pair of rates of the values."""
    variance = np.broadcast_to(both * (1.0 - both), rates.shape) * spread[:, None]
    squares = (rates - others) ** 2
    ratios = np.divide(squares, variance, out=np.zeros_like(variance), where=variance > 0)
    return np.asarray(ratios.sum(axis=1), dtype=np.float64)


def _by_chance(found: float, expected: float, deviations: float) -> bool:
    return bool(found <= expected + deviations * np.sqrt(2.0 * expected))


def _merged(reports: Reports, cell: Ints, cells: int) -> Reports:
    """The reports in other cells, identical ones counted together."""
    numbers = [_numbered(*sets.T)[1] for sets in reports.sets]
    _, place = _numbered(cell, *numbers)
    first = np.empty(int(place.max(initial=-1)) + 1, dtype=np.int64)
    first[place] = np.arange(len(place))
    counts = np.zeros(len(first), dtype=np.int64)
    np.add.at(counts, place, reports.counts)
    sets = tuple(sets[first] for sets in reports.sets)
    return Reports(sets, cell[first], counts, cells, reports.paired, reports.distances)


def _numbered(*columns: Ints) -> tuple[Ints, Ints]:
    """The distinct rows of columns of numbers from 0 up, ascending, and which of them each row is."""
    return distinct(np.column_stack(columns), max(int(column.max(initial=0)) for column in columns) + 1)
