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

from polyseme.designs.mechanism import Mechanism
from polyseme.inference.base import Finer, Reports
from polyseme.inference.counts import merged, numbered
from polyseme.inference.sets.smooth import Room
from polyseme.kernel.arrays import Floats, Ints

__all__ = ["MOST_KINDS", "Help", "with_help"]

MOST_KINDS = 24
"""Into how many kinds one column tells the records apart at first: a judgment. Kinds that do not differ are joined
later, so this only limits how long the search for them takes."""
_SAMPLE = 20_000
"""Rows from which it is judged how many parts several columns make together; a judgment, for speed."""
_ODD = np.uint64(0x9E3779B97F4A7C15)
"""2^64 divided by the golden ratio: the usual odd multiplier for mixing numbers into one key."""
_LEAST_RECORDS = 1e-9
"""Stands for no records where something is divided by them."""


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
    """The reports, split by helping columns as finely as it is worth it and there is room.

    reports  rows that differ only in a helping column stand apart
    """
    whole = merged(reports, reports.cell, reports.cells)
    if not helping:
        return whole
    room, names = Room(reports, mechanisms), tuple(column.name for column in helping)
    if not room.holds(reports.cells, []):
        # The parts are not used.
        nothing = np.zeros((reports.cells, len(helping)), dtype=np.int64)
        return replace(whole, finer=Finer(names, whole, np.arange(reports.cells), nothing))
    columns = [_Column.of(column, reports, mechanisms) for column in helping]
    for column in columns:
        while column.alike:
            column.merge()
    idle = {name for name, column in zip(names, columns) if column.kinds == 1}
    _make_room(columns, helping, reports.cell, room)
    telling = [number for number, column in enumerate(columns) if column.kinds > 1]
    parts, part = numbered(reports.cell, *(columns[number].place[helping[number].kinds] for number in telling))
    finer = Finer(
        names=tuple(names[number] for number in telling),
        reports=merged(reports, part, len(parts)),
        whole=parts[:, 0],
        groups=parts[:, 1:],
        idle=tuple(name for name in names if name in idle),
        concentrated=tuple(name for number, name in enumerate(names) if number not in telling and name not in idle),
    )
    return replace(whole, finer=finer)


def _make_room(columns: Sequence[_Column], helping: Sequence[Help], cell: Ints, room: Room) -> None:
    """Merge kinds until there is room for all parts."""
    # A part of the rows has at most as many parts: with many rows it is usually seen there that there are too many.
    some = slice(None, None, max(len(cell) // _SAMPLE, 1))

    def parts(rows: slice) -> int:
        key = cell[rows].astype(np.uint64)
        for column, first in zip(columns, helping):
            key = (key + np.uint64(1)) * _ODD + column.place[first.kinds[rows]].astype(np.uint64)
        return len(np.unique(key))

    def concentrated() -> bool:
        kinds = [column.kinds for column in columns]
        return any(not room.holds(parts(rows), kinds) for rows in (some, slice(None)))

    while any(column.kinds > 1 for column in columns) and concentrated():
        min(columns, key=lambda column: column.loss).merge()


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
        everyone = holding.sum(axis=0) / max(float(records.sum()), 1.0)
        off = _differences(holding[some] / records[some, None], everyone, everyone, 1.0 / records[some])
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
        """What merging the two nearest kinds loses, against the saving in the log of all parts."""
        return float(self.least / np.log(self.kinds / (self.kinds - 1))) if self.kinds > 1 else np.inf

    def merge(self) -> None:
        """Make one kind of the two nearest."""
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

    def _compare(self) -> None:
        """Find the two nearest kinds."""
        left, right = np.triu_indices(self.kinds, 1)
        self.pair, self.least = (0, 0), np.inf
        if not len(left):
            return
        # A part without records differs from no other.
        records = np.maximum(self.records, _LEAST_RECORDS)
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
