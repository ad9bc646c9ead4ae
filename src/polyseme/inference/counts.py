"""Containment counts: how many reports contain each value or combination of values.

The reports of records that were published through the same mechanisms are a part of a larger table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from polyseme.designs.mechanism import Mechanism
from polyseme.inference.base import Finer, Reports
from polyseme.kernel.arrays import Bools, Floats, Ints

__all__ = [
    "Part",
    "coarser",
    "containment",
    "distinct",
    "members",
    "merged",
    "numbered",
    "ranked",
    "shape_of",
    "tallied",
]

_CHUNK = 4_000_000
"""Numbers in memory at a time (32 MB)."""
_SPAN = 1 << 18
"""Possible sets up to which they are counted in an array (2 MB) instead of being sorted."""
_DENSE = 4
"""Up to so many times as many possible codes as records are numbered in an array instead of by sorting."""


def shape_of(mechanisms: Sequence[Mechanism]) -> tuple[int, ...]:
    """The shape of the table of the target attributes."""
    return tuple(mechanism.size for mechanism in mechanisms)


def members(sets: Sequence[Ints], shape: Sequence[int]) -> Ints:
    """Flat indices of all combinations of members of each row's sets: (n, l_1 * ... * l_q)."""
    flat = sets[0].astype(np.int64)
    for codes, size in zip(sets[1:], shape[1:]):
        width = flat.shape[1] * codes.shape[1]
        flat = (flat[:, :, None] * size + codes[:, None, :]).reshape(len(flat), width)
    return flat


def distinct(sets: Ints, size: int) -> tuple[Ints, Ints]:
    """The distinct rows of sets of codes below `size`, ascending, and which of them each row is."""
    if sets.shape[1] * np.log2(max(size, 2)) >= 62:
        rows, inverse = np.unique(sets, axis=0, return_inverse=True)
        return rows, inverse.ravel()
    key = np.zeros(len(sets), dtype=np.int64)
    for column in sets.T:
        key *= size
        key += column
    if np.all(key[1:] > key[:-1]):
        return sets, np.arange(len(sets))
    if size ** sets.shape[1] <= max(_SPAN, len(sets)):
        # Few enough sets are possible to look each of them up.
        seen = np.zeros(size ** sets.shape[1], dtype=bool)
        seen[key] = True
        first = np.empty(len(seen), dtype=np.int64)
        first[key] = np.arange(len(key))
        return sets[first[seen]], (np.cumsum(seen) - 1)[key]
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    return sets[first], inverse.ravel()


def ranked(codes: Ints) -> tuple[Ints, Ints]:
    """The different codes, ascending, and the number of each code among them.

    Sorted only where they are sparse.

    >>> ranked(np.array([7, 3, 7]))[1].tolist()
    [1, 0, 1]
    """
    if _dense(codes):
        there = np.zeros(int(codes.max()) + 1, dtype=np.int64)
        there[codes] = 1
        return np.flatnonzero(there), (np.cumsum(there) - 1)[codes]
    found, number = np.unique(codes, return_inverse=True)
    return found, np.asarray(number, dtype=np.int64)


def tallied(codes: Ints) -> tuple[Ints, Ints]:
    """The different codes, ascending, and how often each occurs.

    >>> [found.tolist() for found in tallied(np.array([7, 3, 7]))]
    [[3, 7], [1, 2]]
    """
    if _dense(codes):
        counts = np.bincount(codes)
        found = np.flatnonzero(counts)
        return found, counts[found]
    return np.unique(codes, return_counts=True)


def _dense(codes: Ints) -> bool:
    """Whether codes are few enough for an array that has a place for each of them."""
    return bool(len(codes) and codes.min() >= 0 and codes.max() < _DENSE * len(codes))


def containment(reports: Reports, mechanisms: Sequence[Mechanism]) -> Floats:
    """`w`: for each cell, how many reports contain each combination of values: (cells, F_1, ..., F_q).

    where
        w[c, v_1, ..., v_q]  = number of reports in cell c whose j-th set contains v_j for every j
    """
    shape = shape_of(mechanisms)
    table = int(np.prod(shape))
    out = np.zeros(reports.cells * table)
    width = int(np.prod([sets.shape[1] for sets in reports.sets]))
    step = max(1, _CHUNK // width)
    for start in range(0, len(reports.counts), step):
        rows = slice(start, start + step)
        flat = members([sets[rows] for sets in reports.sets], shape) + reports.cell[rows, None] * table
        held = reports.counts[rows] if reports.weights is None else reports.counts[rows] * reports.weights[rows]
        weights = np.broadcast_to(held[:, None], flat.shape).ravel()
        out += np.bincount(flat.ravel(), weights=weights, minlength=len(out))
    return out.reshape(reports.cells, *shape)


def numbered(*columns: Ints) -> tuple[Ints, Ints]:
    """The distinct rows of columns of numbers from 0 up, ascending, and which of them each row is."""
    return distinct(np.column_stack(columns), max(int(column.max(initial=0)) for column in columns) + 1)


def merged(reports: Reports, cell: Ints, cells: int) -> Reports:
    """The reports in other cells, identical ones counted together."""
    numbers = [numbered(*sets.T)[1] for sets in reports.sets]
    if reports.weights is not None:
        numbers.append(np.unique(reports.weights, return_inverse=True)[1].ravel())
    _, place = numbered(cell, *numbers)
    first = np.empty(int(place.max(initial=-1)) + 1, dtype=np.int64)
    first[place] = np.arange(len(place))
    counts = np.zeros(len(first), dtype=np.int64)
    np.add.at(counts, place, reports.counts)
    sets = tuple(sets[first] for sets in reports.sets)
    weights = None if reports.weights is None else reports.weights[first]
    return replace(reports, sets=sets, cell=cell[first], counts=counts, cells=cells, finer=None, weights=weights)


def coarser(reports: Reports, group: Ints, cells: int, axes: Sequence[int]) -> Reports:
    """The reports of some of the target attributes, with several cells in one.

    group  the new cell of each cell, 0 ... cells-1
    axes   the target attributes to keep
    """
    kept = replace(
        reports,
        sets=tuple(reports.sets[axis] for axis in axes),
        distances=None if reports.distances is None else tuple(reports.distances[axis] for axis in axes),
    )
    out = merged(kept, group[reports.cell], cells)
    return out if reports.finer is None else replace(out, finer=_coarser_parts(reports.finer, group, axes))


def _coarser_parts(finer: Finer, group: Ints, axes: Sequence[int]) -> Finer:
    parts, part = numbered(group[finer.whole], *finer.groups.T)
    reports = coarser(finer.reports, part, len(parts), axes)
    return replace(finer, reports=reports, whole=parts[:, 0], groups=parts[:, 1:])


@dataclass(frozen=True, eq=False)
class Part:
    """Records that were published through the same mechanisms.

    reports     in codes of these mechanisms
    mechanisms  one for each target attribute
    cells       the cell of the whole table that each cell of the reports is part of, ascending
    axes        for each target, the code in the whole table of each value of its mechanism, ascending
    """

    reports: Reports
    mechanisms: tuple[Mechanism, ...]
    cells: Ints
    axes: tuple[Ints, ...]

    @classmethod
    def whole(cls, reports: Reports, mechanisms: Sequence[Mechanism]) -> Part:
        """All records of a table."""
        axes = tuple(np.arange(mechanism.size) for mechanism in mechanisms)
        return cls(reports, tuple(mechanisms), np.arange(reports.cells), axes)

    def is_whole(self, shape: tuple[int, ...]) -> bool:
        """Whether it is all of a table of this shape."""
        return (len(self.cells), *(len(axis) for axis in self.axes)) == shape

    def coarser(self, group: Ints, kept: Sequence[int]) -> Part:
        """The same records in a table of fewer cells or attributes.

        group  the new cell of each cell of the whole table
        kept   the target attributes that are kept
        """
        cells, cell = np.unique(group[self.cells], return_inverse=True)
        reports = coarser(self.reports, cell, len(cells), kept)
        return Part(reports, tuple(self.mechanisms[axis] for axis in kept), cells, tuple(self.axes[a] for a in kept))

    def among(self, wanted: Bools) -> Part:
        """Only the cells of the whole table that are wanted."""
        if wanted.all():
            return self
        kept = wanted[self.cells]
        rows, number = kept[self.reports.cell], np.cumsum(kept) - 1
        reports = replace(
            self.reports,
            sets=tuple(sets[rows] for sets in self.reports.sets),
            cell=number[self.reports.cell[rows]],
            counts=self.reports.counts[rows],
            cells=int(kept.sum()),
            finer=None,
            weights=None if self.reports.weights is None else self.reports.weights[rows],
        )
        return replace(self, reports=reports, cells=self.cells[kept])

    def totals(self) -> Floats:
        """The records of each of its cells."""
        return self.reports.totals(self.mechanisms)

    def records(self) -> float:
        """How many records it has, whatever they weigh."""
        return float(replace(self.reports, weights=None).totals(self.mechanisms).sum())

    def flat(self, shape: tuple[int, ...]) -> Ints:
        """Where its values lie in the flattened table of one cell."""
        return np.ravel_multi_index(np.ix_(*self.axes), shape[1:]).ravel()

    def added(self, whole: Floats, table: Floats) -> None:
        """Add its own table to the whole one."""
        whole[np.ix_(self.cells, *self.axes)] += table
