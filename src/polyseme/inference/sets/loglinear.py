"""Smooth log-linear tables: functions that vary slowly along attributes, and their weights.

    log x_cv = sum_w  g_cw F_v,k(w)  w,    up to what all v of one c have in common

where
    c  a group of records whose number is known: a cell of the untouched attributes, or a part of one
    v  a combination of true values
    F  functions of the values: main effects and interactions, see below
    g  how far a weight counts in a group: everywhere alike, or as a difference between groups

No column of length (groups x values) is ever written down.

Each function F has the size that is expected when nothing is known. For values that stand on a line these are the
straight slope, and bends: the principal functions of a cubic smoothing spline, that is of a line whose slope drifts at
random. Around a circle they are the waves of the periodic spline. Bends and waves get small fast, the k-th like 1/k^4,
so that a few of them are all. Values without an order differ each in its own way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from polyseme.kernel.arrays import Floats, Ints
from polyseme.semantics.distances.base import Distance
from polyseme.semantics.distances.circle import CircleDistance
from polyseme.semantics.distances.line import LineDistance

__all__ = ["Contrast", "Effects", "contrast", "functions", "make_effects", "terms"]

_LEAST = 1e-4
"""Functions whose variance is a smaller share than this of the first one's are left out: they bend a hundred times less
than the first. A judgment, for speed."""


def functions(size: int, distance: Distance | None) -> list[Floats]:
    """The groups of functions of one attribute: (size, functions) each, mean square 1 together.

    size  how many values it has, at least two
    """
    constant = np.ones((size, 1))
    if isinstance(distance, LineDistance):
        along = distance.positions - distance.positions.min()
        along = along / along.max()
        slope = along - along.mean()
        groups = [(slope / np.sqrt(np.mean(slope**2)))[:, None]]
        near, far = np.minimum.outer(along, along), np.maximum.outer(along, along)
        # The covariance of Brownian motion, summed up once.
        bends = _principal(near**2 * (3.0 * far - near) / 6.0, np.column_stack([constant, along]))
        return [*groups, bends] if bends.size else groups
    if isinstance(distance, CircleDistance):
        apart = np.abs(np.subtract.outer(distance.positions, distance.positions)) / distance.length
        # The fourth Bernoulli polynomial: the sum of cos(2 pi k x) / k^4, up to a factor.
        return [_principal(1.0 / 30.0 - apart**2 * (1.0 - apart) ** 2, constant)]
    # As many as there are differences: what all values have in common is no effect of theirs.
    return [_principal(np.eye(size), constant)]


def _principal(covariance: Floats, without: Floats) -> Floats:
    """The principal functions of a covariance, beyond those that `without` already describes."""
    size = len(covariance)
    known, _ = np.linalg.qr(without)
    rest = np.eye(size) - known @ known.T
    variances, shapes = np.linalg.eigh(rest @ covariance @ rest)
    kept = variances > _LEAST * variances[-1]
    # What rounding leaves of the known directions is no function.
    kept[: without.shape[1]] = False
    variances, shapes = variances[kept], shapes[:, kept]
    scale = np.sqrt(variances * size / max(float(variances.sum()), np.finfo(float).tiny))
    return np.asarray(shapes * scale, dtype=np.float64)


def terms(shape: Sequence[int], distances: Sequence[Distance | None]) -> list[tuple[int, Floats]]:
    """Every main effect and every interaction of the attributes of a table.

    Each with the number of attributes that take part, and its functions: (cells of the table, functions).
    """
    found: list[tuple[int, Floats]] = [(0, np.ones((1, 1)))]
    for size, distance in zip(shape, distances):
        varying = [(1, group) for group in functions(size, distance)] if size > 1 else []
        found = [
            (order + more, np.asarray(np.kron(columns, group), dtype=np.float64))
            for order, columns in found
            for more, group in ((0, np.ones((size, 1))), *varying)
        ]
    return [(order, columns) for order, columns in found if order]


_AT_ONCE = 8_000_000
"""So many numbers of the matrices of groups are held at once."""


@dataclass(frozen=True, eq=False)
class Contrast:
    """How groups of records may differ.

    gains  (groups, contrasts)
    order  in effects and interactions of up to so many attributes
    """

    gains: Floats
    order: int


def contrast(kinds: Ints, order: int) -> Contrast | None:
    """Differences between kinds of groups; None when there is one kind only.

    kinds  of each group, from 0 up
    """
    size = int(kinds.max(initial=0)) + 1
    return Contrast(functions(size, None)[0][kinds], order) if size > 1 else None


@dataclass(frozen=True, eq=False)
class _Block:
    """The weights of one contrast: one for each of its gains and each of its functions.

    gains    (groups, gains)
    columns  which functions
    first    where its weights begin
    """

    gains: Floats
    columns: Ints
    first: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.gains.shape[1], len(self.columns)

    @property
    def place(self) -> slice:
        return slice(self.first, self.first + self.gains.shape[1] * len(self.columns))


@dataclass(frozen=True, eq=False)
class Effects:
    """Weights over groups and values.

    functions  F: (values, functions)
    blocks     the weights, one block after the other
    term       weights of one term have one size
    """

    functions: Floats
    blocks: tuple[_Block, ...]
    term: Ints

    def logs(self, weights: Floats) -> Floats:
        """What the weights add up to: (groups, values)."""
        sums = np.zeros((len(self.blocks[0].gains), self.functions.shape[1]))
        for block in self.blocks:
            sums[:, block.columns] += block.gains @ weights[block.place].reshape(block.shape)
        return np.asarray(sums @ self.functions.T, dtype=np.float64)

    def slope(self, values: Floats) -> Floats:
        """The transpose: what derivatives by the logarithms (groups, values) are by the weights."""
        inner = values @ self.functions
        return np.concatenate([(block.gains.T @ inner[:, block.columns]).ravel() for block in self.blocks])

    def curvature(self, squares: Iterable[tuple[int, Floats]]) -> Floats:
        """Second derivatives by the logarithms of some groups, added up by the weights."""
        total = np.zeros((len(self.term), len(self.term)))
        width = self.functions.shape[1]
        waiting: dict[int, Floats] = {}
        for group, square in squares:
            waiting[group] = self.functions.T @ square @ self.functions
            if len(waiting) * width**2 >= _AT_ONCE:
                self._add(total, waiting)
                waiting = {}
        if waiting:
            self._add(total, waiting)
        return total

    def _add(self, total: Floats, inner: Mapping[int, Floats]) -> None:
        groups, stacked = list(inner), np.array(list(inner.values()))
        for left in self.blocks:
            rows = stacked[:, left.columns]
            for right in self.blocks:
                if right.first < left.first:
                    continue
                gains = left.gains[groups][:, :, None] * right.gains[groups][:, None, :]
                flat = rows[:, :, right.columns].reshape(len(groups), -1)
                joined = (gains.reshape(len(groups), -1).T @ flat).reshape(*gains.shape[1:], len(left.columns), -1)
                part = joined.transpose(0, 2, 1, 3).reshape(int(np.prod(left.shape)), -1)
                total[left.place, right.place] += part
                if right is not left:
                    total[right.place, left.place] += part.T

    def moving(self, group: int) -> Floats:
        """The derivatives of the logarithms of one group by the weights: (values, weights)."""
        return np.hstack([np.kron(block.gains[group], self.functions[:, block.columns]) for block in self.blocks])


def make_effects(
    shape: Sequence[int], distances: Sequence[Distance | None], groups: int, contrasts: Sequence[Contrast]
) -> Effects | None:
    """Effects that all groups share, and those in which they differ.

    None where nothing can vary.

    shape, distances  of the attributes of the table
    """
    parts = terms(shape, distances)
    if not parts:
        return None
    orders = np.repeat([order for order, _ in parts], [columns.shape[1] for _, columns in parts])
    kinds = np.repeat(np.arange(len(parts)), [columns.shape[1] for _, columns in parts])
    blocks: list[_Block] = []
    term: list[Ints] = []
    for item in (Contrast(np.ones((groups, 1)), len(shape)), *contrasts):
        columns = np.flatnonzero(orders <= item.order)
        blocks.append(_Block(item.gains, columns, sum(len(part) for part in term)))
        term.append(np.tile(kinds[columns] + len(term) * len(parts), item.gains.shape[1]))
    # Terms are numbered without gaps.
    numbers = np.unique(np.concatenate(term), return_inverse=True)[1]
    return Effects(np.hstack([columns for _, columns in parts]), tuple(blocks), numbers)
