"""Unbiased estimates from the sets themselves, by generalized least squares.

    x = sum_i c_i y(R_i),      y(R) = J^-1 a_R / f_R,      J = sum_R a_R a_R' / f_R,      f = w' A

where
    R     a set, reported by c_i records; a_R its likelihoods P(R | v) for every value v
    w     a working distribution of the values: where it is near the truth, no unbiased estimate is more precise
    sum   in J over every set that the design has

Every w gives an unbiased x, since `sum_R y(R) P(R | v) = J^-1 J e_v`, and `y(R)` adds up to one for every set, so
totals are kept. With uniform w this is about `inverse`, several times less precise for a skewed distribution. For
several attributes w is the product of their distributions, so y is the product of what each attribute says.

Unlike maximum likelihood these estimates can be added over groups and strata however small they are: no constraint
makes a bias that adds up. Their variances add up too,

    var(k . x) = sum_i c_i (k . y_i)^2 - sum_v k_v^2 x_v        (for the people in the table)

which is nevertheless an estimate: with few reports it can be too small, even negative. So it is not taken smaller than
what the distribution behind w would give.

A design with too many sets to list has J where its structure gives it (see `Design.information`), and is estimated by
`inverse` elsewhere, which is unbiased too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from polyseme.designs.mechanism import Mechanism
from polyseme.inference.axes import AxisMap, along, exact_map, inverted
from polyseme.inference.intervals.limits import Sampled, Unbiased
from polyseme.kernel.arrays import Floats, Ints

__all__ = ["Half", "UnbiasedMap", "assumed_covariance", "inverse_map", "unbiased_map", "unbiased_table"]

_VALUES = 700
"""Most values for which the information is formed: half a second at most. A judgment."""
_FLOOR = 0.05
"""Uniform share of the working distribution: it bounds what a rare set can add. A judgment: the estimate is
unbiased whatever it is."""
_CHUNK = 4_000_000
"""Numbers in memory at a time (32 MB)."""


@dataclass(frozen=True, eq=False)
class UnbiasedMap:
    """What a set of one attribute adds to the estimate.

    identifiable  whether the values leave different traces at all
    working       the working distribution w; None where designs are too large to list
    inverse       J^-1; None likewise
    assumed       the distribution that w was made from; w itself where sets are too many to list
    """

    mechanism: Mechanism
    identifiable: bool
    working: Floats | None = None
    inverse: Floats | None = None
    assumed: Floats | None = None

    @cached_property
    def moments(self) -> Floats | None:
        """`E[y y']` under the assumed distribution.

        None where designs are too large to list, and have no J.
        """
        if self.assumed is None or not self.mechanism.lists():
            return self.inverse
        sets, channel = self.mechanism.channel()
        added = self.contributions(sets).T
        return np.asarray((added * (self.assumed @ channel)) @ added.T, dtype=np.float64)

    def contributions(self, sets: Ints) -> Floats:
        """`y(R)` for each set: (n, F)."""
        if self.working is None or self.inverse is None:
            return self._fallback.contributions(sets)
        inside, outside = self.mechanism.weights(sets)
        rows = np.repeat(outside[:, None], self.mechanism.size, axis=1)
        np.put_along_axis(rows, sets, inside, axis=1)
        rows /= (rows @ self.working)[:, None]
        return np.asarray(rows @ self.inverse, dtype=np.float64)

    def pulled(self, tensor: Floats, axis: int) -> Floats:
        """What numbers for each value along an axis become for `members`, with a last one for all values together.

        So `k . y(R)` is the sum over the members of R of their weights times what k became.
        """
        pulled = self._fallback.transpose(tensor, axis) if self.inverse is None else along(self.inverse, tensor, axis)
        return np.concatenate([pulled, pulled.sum(axis=axis, keepdims=True)], axis=axis)

    def members(self, sets: Ints) -> tuple[Ints, Floats]:
        """The members of each set and all values together, in codes, and their weights: (n, l + 1) each."""
        codes = np.column_stack([sets, np.full(len(sets), self.mechanism.size)])
        if self.working is None:
            return codes, np.column_stack([np.ones(sets.shape), np.zeros(len(sets))])
        inside, outside = self.mechanism.weights(sets)
        weights = np.column_stack([inside - outside[:, None], outside])
        likely = np.append(self.working, self.working.sum())
        return codes, weights / (weights * likely[codes]).sum(axis=1)[:, None]

    @cached_property
    def _fallback(self) -> AxisMap:
        return exact_map(self.mechanism)


def unbiased_map(mechanism: Mechanism, assumed: Floats) -> UnbiasedMap:
    """The map of an attribute, at its most precise for this distribution of its values (F,)."""
    assumed = assumed / assumed.sum()
    working = (1.0 - _FLOOR) * assumed + _FLOOR / mechanism.size
    information = mechanism.information(working) if mechanism.size <= _VALUES else None
    if information is None:
        return UnbiasedMap(mechanism, exact_map(mechanism).identifiable)
    inverse, identifiable = inverted(information)
    return UnbiasedMap(mechanism, identifiable, working, inverse, assumed if mechanism.lists() else working)


def inverse_map(mechanism: Mechanism, assumed: Floats) -> UnbiasedMap:
    """The map of `inverse`, with its moments if values are distributed like this."""
    return UnbiasedMap(mechanism, exact_map(mechanism).identifiable, assumed=assumed if mechanism.lists() else None)


def assumed_covariance(maps: Sequence[UnbiasedMap]) -> Floats | None:
    """The covariance that one record adds to the table of the people, if it were drawn from the assumed distribution.

    `sum_v w_v (E[y y' | v] - e_v e_v')`, which is never negative; None where designs are too large to list.
    """
    moments: Floats = np.ones((1, 1))
    people: Floats = np.ones((1, 1))
    for axis in maps:
        if axis.moments is None or axis.assumed is None:
            return None
        moments = np.asarray(np.kron(moments, axis.moments), dtype=np.float64)
        people = np.asarray(np.kron(people, np.diag(axis.assumed)), dtype=np.float64)
    return moments - people


@dataclass(frozen=True, eq=False)
class Half:
    """A half of the reports of some records, and what a set adds there.

    That is settled by other reports: from its own it would follow their noise, and the estimate would be neither
    unbiased nor as uncertain as it is.
    """

    counts: Ints
    maps: tuple[UnbiasedMap, ...]

    @cached_property
    def covariance(self) -> Floats | None:
        """What one of its records adds to the covariance of the table, for each unit of squared weight."""
        return assumed_covariance(self.maps)


def unbiased_table(
    maps: Sequence[UnbiasedMap], sets: Sequence[Ints], counts: Ints, weights: Floats | None = None
) -> Unbiased:
    """The estimate from the reports of one group; with weights, of the sum of them."""
    size = int(np.prod([axis.mechanism.size for axis in maps]))
    values, second, squares = np.zeros(size), np.zeros((size, size)), np.zeros(size)
    step = max(1, _CHUNK // size)
    for start in range(0, len(counts), step):
        rows = slice(start, start + step)
        added = np.ones((len(counts[rows]), 1))
        for axis, codes in zip(maps, sets):
            more = axis.contributions(codes[rows])
            added = (added[:, :, None] * more[:, None, :]).reshape(len(added), -1)
        weight = 1.0 if weights is None else weights[rows, None]
        weighted = added * counts[rows, None] * weight
        values += weighted.sum(axis=0)
        second += weighted.T @ (added * weight)
        squares += (weighted * weight).sum(axis=0)
    return Unbiased(values, second, sampled=None if weights is None else Sampled(squares, float(counts.sum())))
