"""The reports of records that were published through the same mechanisms, as a part of a larger table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from polyseme.arrays import Bools, Floats, Ints
from polyseme.estimators.base import Reports
from polyseme.estimators.counts import coarser
from polyseme.mechanism import Mechanism

__all__ = ["Part"]


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
