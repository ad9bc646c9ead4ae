"""Tables from records with labels: generalized columns, and columns as they are.

    L(x) = prod_r sum_{v in A_r} x(c_r, v),      x(c, v) <- sum_{r: c_r = c} [v in A_r] x(c, v) / sum_{u in A_r} x(c, u)

where
    x(c, v)  records of cell c with values v, one for each generalized attribute, in the question or not
    c_r      the cell of record r
    A_r      the values that the labels of record r may stand for: for several attributes, all combinations

This is the likelihood when the labels say no more than that the values are among those they stand for (coarsening at
random; Heitjan and Rubin, 1991). It is about all generalized attributes at once, because a method chooses the labels of
a record together: taken one by one, labels that overlap seem to tell values apart, and the table comes out worse than
the even spread. The step on the right is expectation maximization; it starts from the even spread, and values that no
labels tell apart keep equal parts, about which the likelihood says nothing: so does everything where classes do not
overlap.

Records in groups are rows of a cross-tabulation with further columns that are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Protocol

import numpy as np

from polyseme.inference.classes.mixture import LabelCounts, Mixed, Sharing
from polyseme.inference.classes.permuted import Permuted
from polyseme.inference.solver import fixed_point
from polyseme.kernel.arrays import Bools, Floats, Ints
from polyseme.kernel.errors import QuestionError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["Coarse", "InGroups", "Labeled", "Meanings"]


@dataclass(frozen=True, eq=False)
class Meanings:
    """What each label of an attribute may stand for.

    starts  where the values of each label begin in `codes`, and at last where they end: (labels + 1,)
    codes   of the values, label by label
    size    how many values there are
    numbers how many of them, the first ones, are numbers in ascending order
    """

    starts: Ints
    codes: Ints
    size: int
    numbers: int = 0

    @classmethod
    def of(cls, sets: Sequence[Sequence[int]], size: int, numbers: int = 0) -> Meanings:
        """From the values of each label."""
        starts = np.cumsum([0, *(len(values) for values in sets)])
        codes = np.concatenate([np.zeros(0, dtype=np.int64), *(np.asarray(values, dtype=np.int64) for values in sets)])
        return cls(starts, codes, size, numbers)

    @classmethod
    def themselves(cls, size: int) -> Meanings:
        """Of a column as it is: each label is one value."""
        return cls(np.arange(size + 1), np.arange(size), size)

    @property
    def lengths(self) -> Ints:
        """How many values each label may stand for."""
        return np.diff(self.starts)

    def merged(self, labels: Ints) -> Meanings:
        """With values as one that these labels, all that occur, do not tell apart."""
        alike = np.unique(self.matrix(labels).T, axis=0, return_inverse=True)[1].ravel()
        sets = [np.unique(alike[self.codes[a:b]]).tolist() for a, b in zip(self.starts[:-1], self.starts[1:])]
        return Meanings.of(sets, int(alike.max(initial=-1)) + 1)

    @property
    def stands_for(self) -> csr_array:
        """Whether each label may stand for each value, as 1 and 0: (labels, size)."""
        from scipy.sparse import csr_array

        ones = np.ones(len(self.codes))
        return csr_array((ones, self.codes, self.starts), shape=(len(self.starts) - 1, self.size))

    def matrix(self, labels: Ints) -> Bools:
        """Whether each of these labels may stand for each value: (labels, size)."""
        found = np.zeros((len(labels), self.size), dtype=np.bool_)
        for row, label in enumerate(labels):
            found[row, self.codes[self.starts[label] : self.starts[label + 1]]] = True
        return found


_MOST = 20_000_000
"""Combinations of values of all distinct records together that are held (some 500 MB)."""
_GROUPED = 300_000
"""Cells times values up to which `shrink` tells cells apart; a judgment, for memory and speed."""
_RANKED = 2_000
"""Values of an attribute up to which it is checked whether its labels determine them."""


class Coarse(Protocol):
    """Records of which it is not known for each what the values are."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the table: (cells, F_1, ..., F_q)."""
        ...

    @property
    def totals(self) -> Floats:
        """The records of each cell: (cells,)."""
        ...

    @property
    def open(self) -> Bools:
        """Whether records may or may not belong to each place of the table.

        The others are counted exactly.
        """
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

    def shrunk(self, strength: float | None = None) -> Mixed:
        """A table between these two, by the weight that records left out demand, or as given."""
        ...

    def remarks(self, names: Sequence[str], labels: Sequence[Sequence[object]]) -> list[str]:
        """What cannot be known, in words."""
        ...

    def remarks_on_ml(self) -> list[str]:
        """What else is to be said about the table of the largest likelihood."""
        ...

    def coarser(self, group: Ints, kept: Sequence[int]) -> Coarse:
        """The same records in fewer cells and attributes.

        `group` is the new cell of each; -1 leaves it out.
        """
        ...


@dataclass(frozen=True, eq=False)
class Labeled:
    """Records by their labels, identical ones together.

    cell      of each row: (n,), 0 ... cells-1
    labels    one (n,) array for each attribute
    counts    how many records each row stands for: (n,)
    meanings  of the labels of each attribute
    hidden    how many of the attributes, the last ones, are not in the question
    apart     whether each row is of records that are not like the others, because they are suppressed: (n,), or none is
    """

    cell: Ints
    labels: tuple[Ints, ...]
    counts: Ints
    cells: int
    meanings: tuple[Meanings, ...]
    hidden: int = 0
    apart: Bools | None = None

    without_intervals = "no intervals: how records are spread over the values of a label is assumed, not observed"

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.cells, *(meaning.size for meaning in self.meanings[: self.targets]))

    @property
    def targets(self) -> int:
        """How many attributes are in the question."""
        return len(self.meanings) - self.hidden

    @property
    def totals(self) -> Floats:
        return np.bincount(self.cell, self.counts, minlength=self.cells).astype(np.float64)

    @property
    def _alone(self) -> Labeled:
        """Without the attributes that are not in the question."""
        targets = self.targets
        return replace(self, labels=self.labels[:targets], meanings=self.meanings[:targets], hidden=0)

    @cached_property
    def _combinations(self) -> float:
        """How many combinations of values the rows may have, all together."""
        sizes = np.ones(len(self.cell))
        for labels, meaning in zip(self.labels, self.meanings, strict=True):
            sizes = sizes * meaning.lengths[labels]
        return float(sizes.sum())

    @cached_property
    def _entries(self) -> tuple[Ints, Ints, Ints]:
        """All combinations of values that the rows may have.

        Each one's row, its number among the distinct ones, and the place in the table that each distinct one is of.
        """
        if self._combinations > _MOST:
            raise QuestionError(
                f"the labels of these attributes stand for {self._combinations:,.0f} combinations of values, too many "
                f"to hold (limit {_MOST:,})",
                "ask for fewer attributes at a time, or use generalized ones in --by",
            )
        row, place, shown = np.arange(len(self.cell)), self.cell, self.cell
        for axis, (labels, meaning) in enumerate(zip(self.labels, self.meanings)):
            lengths = meaning.lengths[labels[row]]
            first = np.repeat(meaning.starts[labels[row]], lengths)
            within = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
            row, code = np.repeat(row, lengths), meaning.codes[first + within]
            place = np.unique(np.repeat(place, lengths) * meaning.size + code, return_inverse=True)[1].ravel()
            shown = (
                np.repeat(shown, lengths) * meaning.size + code if axis < self.targets else np.repeat(shown, lengths)
            )
        number = np.zeros(int(place.max(initial=-1)) + 1, dtype=np.int64)
        number[place] = shown
        return row, place, number

    @cached_property
    def open(self) -> Bools:
        alone = self._alone
        row, place, number = alone._entries
        several = (np.bincount(row, minlength=len(self.cell))[row] > 1) & (self.counts[row] > 0)
        return (np.bincount(number[place[several]], minlength=prod(self.shape)) > 0).reshape(self.shape)

    def spread_evenly(self) -> Floats:
        alone = self._alone
        return alone._shown(alone._evenly())

    def most_likely(self) -> tuple[Floats, bool]:
        if not self.open.any() or self._combinations > _MOST:
            return self.spread_evenly(), True
        parts, converged = fixed_point(self._step, self._evenly())
        return self._shown(parts), converged

    def shrunk(self, strength: float | None = None) -> Mixed:
        alone, coarse = self._alone, [axis for axis in range(self.targets) if self._coarse(axis)]
        if not self.open.any():
            return Mixed(self.spread_evenly(), {})
        row, place, number = alone._entries
        values = np.unravel_index(number[place], self.shape)
        group = self._known_groups(coarse)
        sharings = {axis: self._counts(axis, group).shared(strength) for axis in coarse}
        parts = self.counts[row].astype(np.float64)
        for axis, sharing in sharings.items():
            parts *= self._share(axis, sharing, group, row, values[axis + 1])
        table = np.bincount(number[place], parts, minlength=prod(self.shape)).astype(np.float64)
        weights = {axis: sharing.weight for axis, sharing in sharings.items()}
        return Mixed(table.reshape(self.shape), weights, all(sharing.converged for sharing in sharings.values()))

    def _known_groups(self, coarse: Sequence[int]) -> Ints:
        """Rows by cell and by the attributes shown unchanged; one group where these are too many."""
        known = [self.cell, *(self.labels[axis] for axis in range(self.targets) if axis not in coarse)]
        group = np.unique(np.column_stack(known), axis=0, return_inverse=True)[1].ravel()
        widest = max(max(self.meanings[axis].size, len(self.meanings[axis].lengths)) for axis in coarse)
        return group if (group.max(initial=0) + 1) * widest <= _GROUPED else np.zeros_like(group)

    def _counts(self, axis: int, group: Ints) -> LabelCounts:
        """The labels of one attribute in each group, of records that are like one another."""
        meaning, alike = self.meanings[axis], self.counts * ~self._apart
        shape = (int(group.max(initial=0)) + 1, len(meaning.lengths))
        counted = np.bincount(group * shape[1] + self.labels[axis], alike, minlength=prod(shape))
        return LabelCounts(counted.astype(np.int64).reshape(shape), meaning.stands_for, meaning.numbers)

    def _share(self, axis: int, sharing: Sharing, group: Ints, row: Ints, value: Ints) -> Floats:
        """The part of a row that goes to a value."""
        meaning, label = self.meanings[axis], self.labels[axis]
        even = 1.0 / meaning.lengths[label[row]]
        behind = np.asarray(sharing.expected @ meaning.stands_for.T)[group, label][row]
        by_likelihood = np.divide(sharing.expected[group[row], value], behind, out=even.copy(), where=behind > 0)
        mixed = sharing.weight * by_likelihood + (1.0 - sharing.weight) * even
        return np.asarray(np.where(self._apart[row], even, mixed), dtype=np.float64)

    @property
    def _apart(self) -> Bools:
        return np.zeros(len(self.cell), dtype=np.bool_) if self.apart is None else self.apart

    def _shown(self, parts: Floats) -> Floats:
        """The table that parts of all combinations add up to."""
        table = np.bincount(self._entries[2], parts, minlength=prod(self.shape))
        return np.asarray(table.reshape(self.shape), dtype=np.float64)

    def _evenly(self) -> Floats:
        return self._step(np.ones(len(self._entries[2])))

    def _step(self, parts: Floats) -> Floats:
        """Each row shared out among its combinations in proportion to the parts that these have."""
        row, place, _ = self._entries
        weights = parts[place]
        sums = np.bincount(row, weights, minlength=len(self.cell))
        shares = np.divide(self.counts, sums, out=np.zeros(len(sums)), where=sums > 0)
        return np.bincount(place, weights * shares[row], minlength=len(parts)).astype(np.float64)

    def remarks(self, names: Sequence[str], labels: Sequence[Sequence[object]]) -> list[str]:
        found = []
        for name, texts, used, meaning in zip(names, labels, self.labels, self.meanings):
            found += _ambiguous(name, texts, meaning.matrix(np.unique(used)))
        return found

    def remarks_on_ml(self) -> list[str]:
        if self._combinations > _MOST:
            return [
                f"the classes stand for {self._combinations:,.0f} combinations of values, too many for ml "
                f"(limit {_MOST:,}): this is the even spread"
            ]
        if np.allclose(self._step(even := self._evenly()), even, atol=1e-6):
            return ["classes do not overlap, so nothing tells the values in a class apart: ml is the even spread"]
        return []

    def coarser(self, group: Ints, kept: Sequence[int]) -> Labeled:
        cell = group[self.cell]
        rows = cell >= 0
        # Attributes no longer in the question still help the fit: they are hidden, and exact columns are dropped.
        dropped = [axis for axis in range(self.targets) if axis not in kept and self._coarse(axis)]
        axes = [*kept, *range(self.targets, len(self.meanings)), *dropped]
        return replace(
            self,
            cell=cell[rows],
            labels=tuple(self.labels[axis][rows] for axis in axes),
            counts=self.counts[rows],
            apart=self._apart[rows],
            cells=max(int(group.max(initial=-1)) + 1, 1),
            meanings=tuple(self.meanings[axis] for axis in axes),
            hidden=len(axes) - len(kept),
        )

    def _coarse(self, axis: int) -> bool:
        return bool((self.meanings[axis].lengths > 1).any())


def _ambiguous(name: str, texts: Sequence[object], stands_for: Bools) -> list[str]:
    """Which values of an attribute its labels do not tell apart: (labels that occur, values)."""
    if stands_for.shape[1] <= 1 or (stands_for.sum(axis=1) == 1).all():
        return []
    columns, alike = np.unique(stands_for.T, axis=0, return_inverse=True)
    sizes = np.bincount(alike.ravel())
    found = []
    if (sizes > 1).any():
        largest = [str(texts[code]) for code in np.flatnonzero(alike.ravel() == np.argmax(sizes)).tolist()]
        shown = ", ".join(largest[:4]) + (", ..." if len(largest) > 4 else "")
        found.append(
            f"{name}: {int(sizes[sizes > 1].sum()):,} of {len(texts):,} values cannot be told apart from others, "
            f"because they are behind the same labels ({shown}): they are given equal parts"
        )
    if len(columns) <= _RANKED and np.linalg.matrix_rank(columns.astype(np.float64)) < len(columns):
        found.append(f"{name}: the labels do not determine all numbers; what they leave open is near the even spread")
    return found


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
        """A table of the permuted records over the attributes in order, without records elsewhere."""
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
        return Labeled(cell[rows], tuple(column[rows] for column in codes), counts, cells, meanings)
