"""How often an attacker who has learned the distribution of the values guesses right.

A release is published so that analysts learn distributions from it. An attacker who knows the distribution in each
group of people (the untouched columns tell groups apart) guesses, from a published set R, the likeliest value:

    V = sum_q P(q) sum_R max_v pi(v | q) P(R | v)          without a release: sum_q P(q) max_v pi(v | q)

where
    q            a group, `P(q)` its share of the people
    pi(v | q)    the distribution of the true values in it
    P(R | v)     the channel of the mechanism that serves the group

For a design `P(R)` the sum over R is the expectation of `max(c, max over v in R of a_v)` with

    a_v = pi_v (p / rho_v + 1 - p)         c = (1 - p) max_v pi_v

because a value outside the set has `(1 - p) pi_v`, which is at most what it has inside. So all it takes is which member
has the highest score (`designs/leading.py`), and no list of sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from polyseme.arrays import Floats, Ints
from polyseme.errors import PolicyError
from polyseme.mechanism import Mechanism

__all__ = ["Population", "Success", "misjudged_posterior", "misjudged_success", "success", "success_in_groups"]

_ROUNDING = 1e-9
"""How far shares may be from adding up to one."""


@dataclass(frozen=True, eq=False)
class Population:
    """Groups of people whose true values are distributed differently.

    weights  the share of each group: (G,)
    shares   the distribution of the values in each group: (G, F)
    """

    weights: Floats
    shares: Floats

    def __post_init__(self) -> None:
        sizes = self.shares.shape[:1] == self.weights.shape and self.weights.size > 0
        if not sizes or not _distributions(self.weights[None, :]) or not _distributions(self.shares):
            raise PolicyError("a population needs a share for each group, and in each group a share for each value")

    @classmethod
    def of(cls, shares: Floats) -> Population:
        """One group."""
        shares = np.asarray(shares, dtype=np.float64)
        return cls(np.ones(1), (shares / shares.sum())[None, :])

    @classmethod
    def counted(cls, counts: Floats) -> Population:
        """Groups from how many people have each value: (G, F). Groups without people are left out.

        >>> Population.counted(np.array([[1.0, 3.0], [4.0, 0.0]])).weights
        array([0.5, 0.5])
        """
        people = np.asarray(counts.sum(axis=1), dtype=np.float64)
        some = people > 0
        return cls(people[some] / people.sum(), counts[some] / people[some, None])

    @property
    def margin(self) -> Floats:
        """The distribution of the values over everybody."""
        margin: Floats = self.weights @ self.shares
        return margin

    def gathered(self, labels: Ints) -> Population:
        """The groups with the same label put together."""
        counts = np.zeros((int(labels.max()) + 1, self.shares.shape[1]))
        np.add.at(counts, labels, self.weights[:, None] * self.shares)
        return Population.counted(counts)

    def part(self, chosen: Ints) -> Population:
        """Some of the groups, as a population of their own."""
        weights = self.weights[chosen]
        return Population(weights / weights.sum(), self.shares[chosen])


def _distributions(rows: Floats) -> bool:
    sums = np.abs(rows.sum(axis=1) - 1.0) <= _ROUNDING
    return bool(np.all(np.isfinite(rows)) and np.all(rows >= 0.0) and np.all(sums))


def success(mechanism: Mechanism, shares: Floats, belief: Floats | None = None) -> float | None:
    """How often the likeliest value given the published set is the true one. Exact.

    shares  the distribution of the true values
    belief  what the guesser takes it to be; the same by default

    In a domain of very many values it is an upper bound (see `Design.leading`); None for a sequential design whose sets
    are too many to list.

    >>> from polyseme.designs import make_design
    >>> from polyseme.distances import LineDistance
    >>> mechanism = Mechanism(make_design("balanced", LineDistance.ranks(14).structure(2), 2))
    >>> round(success(mechanism, np.full(14, 1 / 14)), 6)
    0.5
    """
    belief = shares if belief is None else belief
    return mechanism.design.success(shares, belief, mechanism.p)


@dataclass(frozen=True, eq=False)
class Success:
    """How often a guesser is right in each group, before and after the release.

    weights, before, after  by group: (G,)
    """

    weights: Floats
    before: Floats
    after: Floats

    @property
    def average_before(self) -> float:
        return float(self.weights @ self.before)

    @property
    def average(self) -> float:
        return float(self.weights @ self.after)

    @property
    def worst_group(self) -> int:
        """The group in which the guesser is right most often after the release."""
        return int(self.after.argmax())

    @property
    def worst(self) -> float:
        return float(self.after[self.worst_group])


def success_in_groups(
    mechanisms: Mechanism | Sequence[Mechanism], population: Population, belief: Floats | None = None
) -> Success | None:
    """Success of an attacker who knows the distribution in every group, or has one `belief` for all.

    mechanisms  one for everybody, or one for each group
    """
    groups = len(population.weights)
    served = [mechanisms] * groups if isinstance(mechanisms, Mechanism) else list(mechanisms)
    after = [success(served[q], shares, belief) for q, shares in enumerate(population.shares)]
    known = [value for value in after if value is not None]
    if len(known) < groups:
        return None
    before = population.shares.max(axis=1) if belief is None else population.shares[:, int(belief.argmax())]
    return Success(population.weights, np.asarray(before), np.array(known))


def misjudged_posterior(l: int, delta: float) -> float:
    """What no posterior of a balanced design exceeds when the true prior is off by `|ln(true / assumed)| <= delta`.

        e^(2 delta) / (e^(2 delta) + l - 1)

    It holds for every p: a set that may lie gives a mixture of such a posterior and the prior, and where a balanced
    design exists no share of the assumed prior exceeds 1/l, so none of the true one exceeds the bound either.

    >>> round(misjudged_posterior(2, 0.0), 3), round(misjudged_posterior(2, 0.05), 3)
    (0.5, 0.525)
    """
    ratio = float(np.exp(min(2.0 * delta, 700.0)))
    return ratio / (ratio + l - 1.0)


def misjudged_success(value: float, delta: float) -> float:
    """What the success `value`, computed for an assumed distribution, is at most when it is off by that much.

    Every term `pi_v P(R | v)` grows by at most `e^delta`, and no success exceeds one.
    """
    return min(value * float(np.exp(min(delta, 700.0))), 1.0)
