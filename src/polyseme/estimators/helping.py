"""Columns that help: what is known of every record beside its sets makes the sets say more.

Who knows that a record is a woman's knows more about her occupation than her set alone says. So the records are told
apart by such columns, each part gets a table of its own, and the parts are added up. The parts share what they have in
common (see `effects`), or there would be too few records in each.

Kinds of records whose sets hold the same values equally often are not worth telling apart. Between two kinds of a and b
records

    T = sum_v (p_av - p_bv)^2 / (p_v (1 - p_v) (1/a + 1/b))

where
    p_av  the share of the records of kind a whose set holds the value v, p_v that of both kinds together

is about as large as the number V of values when they do not differ. Kinds that differ no more than chance explains are
merged, and then as many as there is no room for: those first whose merging costs least, T, for what it saves. To merge
two of K kinds of a column saves log(K / (K - 1)) of the logarithm of the number of parts.
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
    whole = _merged(reports, reports.cell, reports.cells)
    columns = [_Column.of(column, reports, mechanisms) for column in helping]
    parts, part = _numbered(reports.cell, *(column.kinds for column in helping))
    room = Room(reports, mechanisms)
    while True:
        told = np.column_stack([parts[:, 0], *(column.place[kinds] for column, kinds in zip(columns, parts.T[1:]))])
        merging = [column for column in columns if column.alike]
        if not merging:
            if room.holds(len(_numbered(*told.T)[0]), [len(column.records) for column in columns]):
                break
            merging = [column for column in columns if len(column.records) > 1]
        if not merging:
            break
        min(merging, key=lambda column: column.loss).merge()
    finer, place = _numbered(*told.T)
    kept = [number for number, column in enumerate(columns) if len(column.records) > 1] or range(len(columns))
    names = tuple(helping[number].name for number in kept)
    groups = finer[:, [number + 1 for number in kept]]
    return replace(whole, finer=Finer(names, _merged(reports, place[part], len(finer)), finer[:, 0], groups))


class _Column:
    """The kinds of a column while they are merged.

    place    where each of the first kinds is now
    records  of each kind
    holding  how many of them have a set that holds each value, all attributes after each other: (kinds, values)
    """

    def __init__(self, place: Ints, records: Floats, holding: Floats) -> None:
        self.place = place
        self.records = records
        self.holding = holding
        self._compare()

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
        return cls(np.arange(size), records, np.hstack(holding))

    @property
    def alike(self) -> bool:
        """Whether the two nearest kinds differ no more than chance explains."""
        values = self.holding.shape[1]
        return bool(self.least < values + 2.0 * np.sqrt(2.0 * values))

    @property
    def loss(self) -> float:
        """What is lost by merging the two nearest kinds, for the share of all parts that this saves."""
        kinds = len(self.records)
        return float(self.least / np.log(kinds / (kinds - 1)))

    def merge(self) -> None:
        """Make one kind of the two nearest."""
        first, second = self.pair
        self.records[first] += self.records[second]
        self.holding[first] += self.holding[second]
        self.records = np.delete(self.records, second)
        self.holding = np.delete(self.holding, second, axis=0)
        here = np.where(self.place == second, first, self.place)
        self.place = here - (here > second)
        self._compare()

    def _compare(self) -> None:
        """Find the two nearest kinds."""
        left, right = np.triu_indices(len(self.records), 1)
        self.pair, self.least = (0, 0), np.inf
        if not len(left):
            return
        records = np.maximum(self.records, 0.5)
        rates = self.holding / records[:, None]
        both = (self.holding[left] + self.holding[right]) / (records[left] + records[right])[:, None]
        spread = both * (1.0 - both) * (1.0 / records[left] + 1.0 / records[right])[:, None]
        squares = (rates[left] - rates[right]) ** 2
        apart = np.divide(squares, spread, out=np.zeros_like(spread), where=spread > 0).sum(axis=1)
        nearest = int(np.argmin(apart))
        self.pair, self.least = (int(left[nearest]), int(right[nearest])), float(apart[nearest])


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
