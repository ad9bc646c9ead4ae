"""From records that show a label in the place of each value: generalized columns, and columns as they are.

    L(x) = prod_r sum_{v in A_r} x(c_r, v),      x(c, v) <- sum_{r: c_r = c} [v in A_r] x(c, v) / sum_{u in A_r} x(c, u)

where
    x(c, v)  records of cell c with values v, one for each attribute that is asked for
    c_r      the cell of record r
    A_r      the values that the labels of record r may stand for: for several attributes, all combinations

This is the likelihood when a label says no more than that the value is one it stands for (coarsening at random; Heitjan
and Rubin, 1991). The step on the right is expectation maximisation; it starts from the even spread, and values that no
label tells apart keep equal parts, about which the likelihood says nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Protocol

import numpy as np

from polyseme.arrays import Bools, Floats, Ints
from polyseme.errors import QuestionError
from polyseme.estimators.fixed_point import fixed_point
from polyseme.estimators.permuted import Permuted

__all__ = ["Coarse", "InGroups", "Labelled", "Meanings"]

_MOST = 20_000_000
"""Combinations of values of all distinct records together that are held (some 500 MB)."""
_RANKED = 2_000
"""Values of an attribute up to which it is checked whether its labels determine them."""


class Coarse(Protocol):
    """Records of which it is not known for each what the values are."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the table: (cells, F_1, .., F_q)."""
        ...

    @property
    def totals(self) -> Floats:
        """The records of each cell: (cells,)."""
        ...

    @property
    def open(self) -> Bools:
        """Whether records may or may not belong to each place of the table; the others are counted exactly."""
        ...

    @property
    def without_intervals(self) -> str:
        """Why open places have no interval."""
        ...

    def spread_evenly(self) -> Floats:
        """Each record shared out equally among the values that it may have."""
        ...

    def most_likely(self) -> tuple[Floats, bool]:
        """The table of the largest likelihood, and whether the steps to it converged."""
        ...

    def remarks(self, names: Sequence[str], labels: Sequence[Sequence[object]]) -> list[str]:
        """What cannot be known, in words."""
        ...

    def coarser(self, group: Ints, kept: Sequence[int]) -> Coarse:
        """The same records in fewer cells (`group`: the new one of each; left out where -1) and attributes."""
        ...


@dataclass(frozen=True, eq=False)
class Meanings:
    """What each label of an attribute may stand for.

    starts  where the values of each label begin in `codes`, and at last where they end: (labels + 1,)
    codes   of the values, label by label
    size    how many values there are
    """

    starts: Ints
    codes: Ints
    size: int

    @classmethod
    def of(cls, sets: Sequence[Sequence[int]], size: int) -> Meanings:
        """From the values of each label."""
        starts = np.cumsum([0, *(len(values) for values in sets)])
        codes = np.concatenate([np.zeros(0, dtype=np.int64), *(np.asarray(values, dtype=np.int64) for values in sets)])
        return cls(starts, codes, size)

    @classmethod
    def themselves(cls, size: int) -> Meanings:
        """Of a column as it is: each label is one value."""
        return cls(np.arange(size + 1), np.arange(size), size)

    @property
    def lengths(self) -> Ints:
        """How many values each label may stand for."""
        return np.diff(self.starts)

    def matrix(self, labels: Ints) -> Bools:
        """Whether each of these labels may stand for each value: (labels, size)."""
        found = np.zeros((len(labels), self.size), dtype=np.bool_)
        for row, label in enumerate(labels):
            found[row, self.codes[self.starts[label] : self.starts[label + 1]]] = True
        return found


@dataclass(frozen=True, eq=False)
class Labelled:
    """Records by their labels, identical ones together.

    cell      of each row: (n,), 0 .. cells-1
    labels    one (n,) array for each attribute
    counts    how many records each row stands for: (n,)
    meanings  of the labels of each attribute
    """

    cell: Ints
    labels: tuple[Ints, ...]
    counts: Ints
    cells: int
    meanings: tuple[Meanings, ...]

    without_intervals = "no intervals: how records are spread over the values of a label is assumed, not observed"

    def __post_init__(self) -> None:
        sizes = np.ones(len(self.cell))
        for labels, meaning in zip(self.labels, self.meanings, strict=True):
            sizes = sizes * meaning.lengths[labels]
        if sizes.sum() > _MOST:
            raise QuestionError(
                f"the labels of these attributes stand for {sizes.sum():,.0f} combinations of values, too many to hold "
                f"(limit {_MOST:,})",
                "ask for fewer attributes at a time, or use generalized ones in --by",
            )

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.cells, *(meaning.size for meaning in self.meanings))

    @property
    def totals(self) -> Floats:
        return np.bincount(self.cell, self.counts, minlength=self.cells).astype(np.float64)

    @cached_property
    def _entries(self) -> tuple[Ints, Ints]:
        """All combinations of values that the rows may have: the row of each, and its place in the flattened table."""
        row, place = np.arange(len(self.cell)), self.cell
        for labels, meaning in zip(self.labels, self.meanings):
            lengths = meaning.lengths[labels[row]]
            first = np.repeat(meaning.starts[labels[row]], lengths)
            within = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
            row, place = np.repeat(row, lengths), np.repeat(place, lengths) * meaning.size
            place = place + meaning.codes[first + within]
        return row, place

    @cached_property
    def open(self) -> Bools:
        row, place = self._entries
        several = np.bincount(row, minlength=len(self.cell))[row] > 1
        return (np.bincount(place[several], minlength=prod(self.shape)) > 0).reshape(self.shape)

    def spread_evenly(self) -> Floats:
        return self._step(np.ones(self.shape))

    def most_likely(self) -> tuple[Floats, bool]:
        even = self.spread_evenly()
        return fixed_point(self._step, even) if self.open.any() else (even, True)

    def _step(self, table: Floats) -> Floats:
        """Each row shared out among its values in proportion to a table."""
        row, place = self._entries
        parts = table.ravel()[place]
        sums = np.bincount(row, parts, minlength=len(self.cell))
        shares = np.divide(self.counts, sums, out=np.zeros(len(sums)), where=sums > 0)
        return np.bincount(place, parts * shares[row], minlength=table.size).reshape(table.shape)

    def remarks(self, names: Sequence[str], labels: Sequence[Sequence[object]]) -> list[str]:
        found = []
        for name, texts, used, meaning in zip(names, labels, self.labels, self.meanings, strict=True):
            found += _untold(name, texts, meaning.matrix(np.unique(used)))
        return found

    def coarser(self, group: Ints, kept: Sequence[int]) -> Labelled:
        cell = group[self.cell]
        rows = cell >= 0
        return replace(
            self,
            cell=cell[rows],
            labels=tuple(self.labels[axis][rows] for axis in kept),
            counts=self.counts[rows],
            cells=max(int(group.max(initial=-1)) + 1, 1),
            meanings=tuple(self.meanings[axis] for axis in kept),
        )


def _untold(name: str, texts: Sequence[object], stands_for: Bools) -> list[str]:
    """Which values of an attribute its labels do not tell apart: (labels that occur, values)."""
    if stands_for.shape[1] <= 1 or (stands_for.sum(axis=1) == 1).all():
        return []
    columns, alike = np.unique(stands_for.T, axis=0, return_inverse=True)
    sizes = np.bincount(alike.ravel())
    found = []
    if (sizes > 1).any():
        largest = [str(texts[code]) for code in np.flatnonzero(alike.ravel() == np.argmax(sizes))]
        shown = ", ".join(largest[:4]) + (", .." if len(largest) > 4 else "")
        found.append(
            f"{name}: {int(sizes[sizes > 1].sum()):,} of {len(texts):,} values share every label with others and cannot "
            f"be told apart from these ({shown}): they are given equal parts"
        )
    if len(columns) <= _RANKED and np.linalg.matrix_rank(columns.astype(np.float64)) < len(columns):
        found.append(f"{name}: the labels do not determine all numbers; what they leave open is near the even spread")
    return found


@dataclass(frozen=True, eq=False)
class InGroups:
    """Records in groups whose values of one attribute are known, but not who has which.

    cell    of each record: (n,), 0 .. cells-1, or `cells` for a record elsewhere, which only completes its group
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
        return np.asarray(self._shown(self._permuted.open) > 0)

    def spread_evenly(self) -> Floats:
        return self._shown(self._permuted.spread_evenly())

    def most_likely(self) -> tuple[Floats, bool]:
        table, converged = self._permuted.most_likely()
        return self._shown(table), converged

    def remarks(self, names: Sequence[str], labels: Sequence[Sequence[object]]) -> list[str]:
        return self._permuted.remarks()

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
