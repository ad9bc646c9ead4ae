"""The weights of a smooth table, and what they do.

    log x_cv = sum_w  g_cw F_v,k(w)  w,    up to what all v of one c have in common

where
    c  a group of records whose number is known: a cell of the untouched attributes, or a part of one
    v  a combination of true values
    F  functions of the values: main effects and interactions, see `splines`
    g  how far a weight counts in a group: everywhere alike, or as a difference between groups

No column of length (groups x values) is ever written down.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from polyseme.distances.base import Distance
from polyseme.distances.structure import Floats, Ints
from polyseme.estimators.splines import functions, terms

__all__ = ["Contrast", "Effects", "contrast", "make_effects"]


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
class Effects:
    """Weights over groups and values.

    functions  F: (values, functions)
    column     the function of each weight
    gain       g: (groups, weights)
    term       weights of one term have one size
    """

    functions: Floats
    column: Ints
    gain: Floats
    term: Ints

    def logs(self, weights: Floats) -> Floats:
        """What the weights add up to: (groups, values)."""
        return np.asarray((self.gain * weights) @ self._chosen @ self.functions.T, dtype=np.float64)

    def slope(self, values: Floats) -> Floats:
        """The transpose: what derivatives by the logarithms (groups, values) are by the weights."""
        return np.asarray(np.sum(self.gain * (values @ self.functions)[:, self.column], axis=0), dtype=np.float64)

    def moved(self, group: int, square: Floats) -> Floats:
        """A matrix of second derivatives by the logarithms of one group, by the weights."""
        gain = self.gain[group]
        inner = self.functions.T @ square @ self.functions
        return np.asarray(inner[self._pairs] * gain[:, None] * gain, dtype=np.float64)

    def moving(self, group: int) -> Floats:
        """The derivatives of the logarithms of one group by the weights: (values, weights)."""
        return np.asarray(self.functions[:, self.column] * self.gain[group], dtype=np.float64)

    @cached_property
    def _chosen(self) -> Floats:
        return np.eye(self.functions.shape[1])[self.column]

    @cached_property
    def _pairs(self) -> tuple[Ints, ...]:
        return np.ix_(self.column, self.column)


def make_effects(
    shape: Sequence[int], distances: Sequence[Distance | None], groups: int, contrasts: Sequence[Contrast]
) -> Effects | None:
    """Effects that all groups share, and those in which they differ; None where nothing can vary.

    shape, distances  of the attributes of the table
    """
    parts = terms(shape, distances)
    if not parts:
        return None
    widths = [columns.shape[1] for _, columns in parts]
    starts = np.cumsum([0, *widths])
    column: list[Ints] = []
    gain: list[Floats] = []
    term: list[Ints] = []
    for shared in (Contrast(np.ones((groups, 1)), len(shape)), *contrasts):
        for (order, _), start, width in zip(parts, starts, widths):
            if order <= shared.order:
                column.append(np.tile(np.arange(start, start + width), shared.gains.shape[1]))
                gain.append(np.repeat(shared.gains, width, axis=1))
                term.append(np.full(len(column[-1]), len(term)))
    return Effects(
        functions=np.hstack([columns for _, columns in parts]),
        column=np.concatenate(column),
        gain=np.hstack(gain),
        term=np.concatenate(term),
    )
