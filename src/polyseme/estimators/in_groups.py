"""Records in groups, as rows of a cross-tabulation with further columns that are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from polyseme.arrays import Bools, Floats, Ints
from polyseme.estimators.coarsened import Coarse, Labelled
from polyseme.estimators.meanings import Meanings
from polyseme.estimators.mixing import Mixed
from polyseme.estimators.permuted import Permuted

__all__ = ["InGroups"]


@dataclass(frozen=True, eq=False)
class InGroups:
    """Records in groups whose values of one attribute are known, but not who has which.

    cell    of each record: (n,), 0 ... cells-1, or `cells` for a record elsewhere, which only completes its group
    codes   for each further attribute, the value of each record: (n,)
    sizes   how many values each further attribute has
    axis    the place of the attribute in question among all of them
    group, values, width  as in `Permuted`
    """

    cell: Ints
    cells: int
    codes: tuple[Ints, ...]
    sizes: tuple[int, ...]
    axis: int
    group: Ints
    values: Ints
    width: int

    without_intervals = "no intervals: those that can be computed for groups hold the truth less often than they should"

    @property
    def shape(self) -> tuple[int, ...]:
        sizes = list(self.sizes)
        sizes.insert(self.axis, self.width)
        return (self.cells, *sizes)

    @property
    def totals(self) -> Floats:
        return np.bincount(self.cell, minlength=self.cells + 1)[: self.cells].astype(np.float64)

    @cached_property
    def _permuted(self) -> Permuted:
        cell = self.cell
        for codes, size in zip(self.codes, self.sizes, strict=True):
            cell = cell * size + codes
        return Permuted(cell, self.group, self.values, (self.cells + 1) * prod(self.sizes), self.width)

    def _shown(self, table: Floats) -> Floats:
        """A table of the permuted records as one of the attributes in their order, without records elsewhere."""
        whole = table.reshape(self.cells + 1, *self.sizes, self.width)[: self.cells]
        return np.moveaxis(whole, -1, self.axis + 1)

    @cached_property
    def open(self) -> Bools:
        return np.asarray(self._shown(self._permuted.open.astype(np.float64)) > 0)

    def spread_evenly(self) -> Floats:
        return self._shown(self._permuted.spread_evenly())

    def most_likely(self) -> tuple[Floats, bool]:
        table, converged = self._permuted.most_likely()
        return self._shown(table), converged

    def shrunk(self, strength: float | None = None) -> Mixed:
        table, weight, converged = self._permuted.shrunk(strength)
        return Mixed(self._shown(table), {self.axis: weight}, converged)

    def remarks(self, names: Sequence[str], labels: Sequence[Sequence[object]]) -> list[str]:
        return self._permuted.remarks()

    def remarks_on_ml(self) -> list[str]:
        return []

    def coarser(self, group: Ints, kept: Sequence[int]) -> Coarse:
        cells = max(int(group.max(initial=-1)) + 1, 1)
        cell = np.where(group >= 0, group, cells)[np.minimum(self.cell, self.cells - 1)]
        cell = np.where(self.cell < self.cells, cell, cells)
        others = [axis - (axis > self.axis) for axis in kept if axis != self.axis]
        codes, sizes = tuple(self.codes[axis] for axis in others), tuple(self.sizes[axis] for axis in others)
        if self.axis in kept:
            axis = list(kept).index(self.axis)
            return InGroups(cell, cells, codes, sizes, axis, self.group, self.values, self.width)
        rows = cell < cells
        meanings = tuple(Meanings.themselves(size) for size in sizes)
        counts = np.ones(int(rows.sum()), dtype=np.int64)
        return Labelled(cell[rows], tuple(column[rows] for column in codes), counts, cells, meanings)
