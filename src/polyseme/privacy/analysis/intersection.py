"""What several releases about the same people tell together.

Sets that were drawn afresh for each release are independent given the true value, so their channel is a product:

    V = sum over R_1 ... R_k of max_v pi_v P_1(R_1 | v) ... P_k(R_k | v)          success of the best guess

At p = 1 the true value is in every set, so only what all of them share is left. For designs `P_i(R)` let

    a_v  = pi_v / (rho_1(v) ... rho_k(v))         J(S) = product over i of P_i(S is part of R_i)

By inclusion and exclusion, and by the identity that a maximum is an alternating sum of minima,

    P(only the true value is left) = sum over S of (-1)^(|S|+1) J(S) (sum over v in S of a_v)
    V                              = sum over S of (-1)^(|S|+1) J(S) (min over v in S of a_v)

where S goes through all parts of valid sets that are not empty. That takes no list of combinations of sets, however
many releases there are. Otherwise combinations are gone through while they are few; beyond that,

    V <= V_1 L_2 ... L_k,    L_i = sum over R of max_v P_i(R | v)

which is F times the success of an attacker to whom all F values are equally likely.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod

import numpy as np

from polyseme.designs.base import Design
from polyseme.designs.distribution import SetDistribution
from polyseme.designs.mechanism import Mechanism
from polyseme.kernel.arrays import Floats, Ints
from polyseme.privacy.analysis.learner import success

__all__ = ["Between", "left_alone", "success_over"]

_PARTS = 4_000_000
"""Most parts of valid sets that are gone through: about two seconds. Chosen by judgment."""

_TERMS = 20_000_000
"""Most combinations of sets and values that are gone through: 160 MB. Chosen by judgment."""

_PAIRS = 2_000
"""Most values of a domain whose pairs are gone through for a bound: 32 MB a release. Chosen by judgment."""


_ROUNDING = 1e-12
"""What an alternating sum that should be nothing comes to."""


@dataclass(frozen=True)
class Between:
    """A probability that is known exactly, or lies between two bounds.

    >>> Between.exactly(0.5).exact, Between(0.25, 1.0).exact
    (True, False)
    """

    low: float
    high: float

    @classmethod
    def exactly(cls, value: float) -> Between:
        value = min(value, 1.0) if value > _ROUNDING else 0.0
        return cls(value, value)

    @property
    def exact(self) -> bool:
        return self.low == self.high


def left_alone(mechanisms: Sequence[Mechanism], shares: Floats) -> Between:
    """How often the sets of all releases have only the true value in common.

    mechanisms  one for each release with sets of its own; those that may lie (p < 1) leave nothing certain
    shares      the distribution of the true values
    """
    truthful = [mechanism for mechanism in mechanisms if mechanism.p == 1.0]
    if not truthful:
        return Between.exactly(0.0)
    if _listable(truthful):
        return Between.exactly(_over_parts(truthful, shares)[0])
    if _combinations(truthful) <= _TERMS:
        together = _together(truthful)
        return Between.exactly(float((shares @ together)[np.count_nonzero(together, axis=0) == 1].sum()))
    return Between(_seldom_shared(truthful, shares), 1.0)


def success_over(mechanisms: Sequence[Mechanism], shares: Floats) -> Between:
    """How often the likeliest value given the sets of all releases is true, knowing `shares`."""
    if not mechanisms:
        return Between.exactly(float(shares.max()))
    if all(mechanism.p == 1.0 for mechanism in mechanisms) and _listable(mechanisms):
        return Between.exactly(_over_parts(mechanisms, shares)[1])
    if len(mechanisms) > 1 and _combinations(mechanisms) <= _TERMS:
        return Between.exactly(float((shares[:, None] * _together(mechanisms)).max(axis=0).sum()))
    return _bounded(mechanisms, shares)


def _listable(mechanisms: Sequence[Mechanism]) -> bool:
    """Whether the parts of all sets are few enough, and can be numbered."""
    size, most = mechanisms[0].size, max(mechanism.l for mechanism in mechanisms)
    return (size + 1) ** most < 2**62 and all(
        isinstance(item.design, SetDistribution) and item.design.has_at_most(_PARTS >> item.l) for item in mechanisms
    )


def _over_parts(mechanisms: Sequence[Mechanism], shares: Floats) -> tuple[float, float]:
    """Both alternating sums: that only the true value is left, and that the best guess is right."""
    score = shares.copy()
    for mechanism in mechanisms:
        score = score / mechanism.design.blind_inclusion()
    tables = {id(item.design): _parts(item.design) for item in mechanisms}
    alone = best = 0.0
    for size in range(1, min(mechanism.l for mechanism in mechanisms) + 1):
        members, joint = _joint([tables[id(item.design)][size - 1] for item in mechanisms])
        sign = 1.0 if size % 2 else -1.0
        alone += sign * float(joint @ score[members].sum(axis=1))
        best += sign * float(joint @ score[members].min(axis=1))
    return alone, best


Part = tuple[Ints, Ints, Floats]
"""Numbers of parts of one size, their members (n, size), and the probability that a set holds each."""


def _parts(design: Design) -> list[Part]:
    """For each size, the parts of valid sets and how likely a set is to hold each."""
    sets = design.sets()
    probability = design.blind_likelihood(sets)
    return [_parts_of_size(sets, probability, size, design.size) for size in range(1, design.l + 1)]


def _parts_of_size(sets: Ints, probability: Floats, size: int, values: int) -> Part:
    chosen = [sets[:, list(columns)] for columns in combinations(range(sets.shape[1]), size)]
    members = np.concatenate(chosen)
    numbers = np.zeros(len(members), dtype=np.int64)
    for column in members.T:
        numbers = numbers * (values + 1) + column + 1
    found, first, inverse = np.unique(numbers, return_index=True, return_inverse=True)
    held = np.bincount(inverse, weights=np.tile(probability, len(chosen)))
    return found, members[first], np.asarray(held, dtype=np.float64)


def _joint(parts: Sequence[Part]) -> tuple[Ints, Floats]:
    """The parts that sets of all releases can hold, and the probability that all of them do."""
    numbers, members, joint = parts[0]
    for others, _, held in parts[1:]:
        numbers, here, there = np.intersect1d(numbers, others, assume_unique=True, return_indices=True)
        members, joint = members[here], joint[here] * held[there]
    return members, joint


def _combinations(mechanisms: Sequence[Mechanism]) -> float:
    """How many combinations of sets and values exist; infinite where sets are too many to list."""
    if not all(item.design.has_at_most(_TERMS // item.size) for item in mechanisms):
        return float("inf")
    return float(mechanisms[0].size * prod(item.design.count() for item in mechanisms))


def _together(mechanisms: Sequence[Mechanism]) -> Floats:
    """The channel of all sets together: (F, combinations)."""
    together = np.ones((mechanisms[0].size, 1))
    for mechanism in mechanisms:
        _, channel = mechanism.channel()
        together = (together[:, :, None] * channel[:, None, :]).reshape(len(together), -1)
        together = together[:, together.any(axis=0)]
    return together


def _seldom_shared(mechanisms: Sequence[Mechanism], shares: Floats) -> float:
    """Lower bound on how often only the true value is shared: one less the sum over decoys."""
    size = len(shares)
    if size > _PAIRS:
        return 0.0
    shared = np.ones((size, size))
    for mechanism in mechanisms:
        shared *= mechanism.design.conditional_inclusion(np.arange(size))
    np.fill_diagonal(shared, 0.0)
    return float(shares @ np.maximum(1.0 - shared.sum(axis=1), 0.0))


def _bounded(mechanisms: Sequence[Mechanism], shares: Floats) -> Between:
    """Between what the best single release tells and the product of what all of them can tell."""
    even = np.full(len(shares), 1.0 / len(shares))
    single = [success(mechanism, shares) for mechanism in mechanisms]
    leaked = [success(mechanism, even) for mechanism in mechanisms]
    known = [value for value in single if value is not None]
    low = max([float(shares.max()), *known])
    if len(mechanisms) == 1:
        return Between.exactly(known[0]) if known else Between(low, 1.0)
    low = max(low, left_alone(mechanisms, shares).low)
    factors = [len(shares) * value for value in leaked if value is not None]
    if len(factors) < len(mechanisms) or len(known) < len(mechanisms):
        return Between(low, 1.0)
    bounds = [known[place] * prod(factors) / factors[place] for place in range(len(mechanisms))]
    return Between(low, min(1.0, max(low, min(bounds))))
