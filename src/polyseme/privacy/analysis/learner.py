"""How often an attacker who has learned the distribution of the values guesses right.

A release is published so that analysts learn distributions from it. An attacker who knows the distribution in each
group of people (the untouched columns distinguish groups) guesses, from a published set R, the likeliest value:

    V = sum_q P(q) sum_R max_v pi(v | q) P(R | v)          without a release: sum_q P(q) max_v pi(v | q)

where
    q            a group, `P(q)` its share of the people
    pi(v | q)    the distribution of the true values in it
    P(R | v)     the channel of the mechanism that serves the group

For a design `P(R)` the sum over R is the expectation of `max(c, max over v in R of a_v)` with

    a_v = pi_v (p / rho_v + 1 - p)         c = (1 - p) max_v pi_v

because a value outside the set has `(1 - p) pi_v`, which is at most what it has inside. So all it takes is which member
has the highest score (`polyseme.designs.leaders`), and no list of sets.

*Thin groups* borrow from all people: numbers by group and value are drawn toward the margin.

A number is known with an error, and the people of a group are a sample of all who are like them. Where a group differs
from the margin by no more than these two explain, the margin is the better guess. With

    n_qv    the number of people of group q with value v, known with variance s_qv
    m_v     the margin: the shares of everybody
    D_q     sum_v (n_qv - n_q m_v)^2,   how far the group is from the margin
    S_q     sum_v (s_qv + n_q m_v (1 - m_v)),   how far it would be by chance

the shares of a group are `m + (1 - S_q / D_q) (n_q. / n_q - m)`, and `m` where chance explains it all, as James and
Stein have it.

*Ranges*: how often an attacker guesses the right range shows the benefit of distance.

A range is a set of neighboring values: on a line or a circle a window narrower than d, in a tree a branch. An attacker
who guesses a range W from a set R is right with `sum over v in W of pi_v P(R | v)`, so the success is

    sum_q P(q) sum_R max_W sum over v in W of pi(v | q) P(R | v)        without a release: sum_q P(q) max_W pi(W | q)

Where candidates are at least as far apart as a range is wide, a set holds at most one value of a range; then only the
best range around each member counts, and no list of sets is needed. Otherwise the sets are gone through one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from polyseme.designs.base import SET_LIMIT
from polyseme.designs.distribution import compatibility
from polyseme.designs.mechanism import Mechanism
from polyseme.designs.ring import ring_of
from polyseme.kernel.arrays import Bools, Floats, Ints
from polyseme.kernel.errors import ImpossibleError, PolicyError
from polyseme.semantics.distances.base import MATRIX_LIMIT, Clusters, Graph, Line, Structure

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = [
    "Population",
    "Ranges",
    "Success",
    "misjudged_posterior",
    "misjudged_success",
    "pooled",
    "range_success",
    "range_success_in_groups",
    "ranges_of",
    "success",
    "success_in_groups",
]

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
    >>> from polyseme.semantics.distances import LineDistance
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
    """Success of an attacker who knows every group's distribution, or has one `belief`.

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
    """The posterior limit of a balanced design if `|ln(true / assumed)| <= delta` for the prior.

        e^(2 delta) / (e^(2 delta) + l - 1)

    It holds for every p: a set that may lie gives a mixture of such a posterior and the prior, and where a balanced
    design exists no share of the assumed prior exceeds 1/l, so none of the true one exceeds the bound either.

    >>> round(misjudged_posterior(2, 0.0), 3), round(misjudged_posterior(2, 0.05), 3)
    (0.5, 0.525)
    """
    ratio = float(np.exp(min(2.0 * delta, 700.0)))
    return ratio / (ratio + l - 1.0)


def misjudged_success(value: float, delta: float) -> float:
    """The largest true success if the distribution assumed for `value` is off by that much.

    Every term `pi_v P(R | v)` grows by at most `e^delta`, and no success exceeds one.
    """
    return min(value * float(np.exp(min(delta, 700.0))), 1.0)


_KEPT = 0.01
"""The least part of the margin in every group: no value is out of the question anywhere. A judgment."""
_HALF = 0.5
"""People with a value that no record was found to have."""


def pooled(numbers: Floats, variance: Floats) -> Floats:
    """The numbers of people by group and value, (G, F), above 0; an empty group is zeros.

    >>> exact = np.array([[90.0, 10.0], [10.0, 90.0]])
    >>> pooled(exact, np.zeros((2, 2))).round(1).tolist()
    [[89.4, 10.6], [10.6, 89.4]]
    >>> pooled(exact, np.full((2, 2), 2_000.0)).round(1).tolist()
    [[50.0, 50.0], [50.0, 50.0]]
    """
    people = np.maximum(numbers.sum(axis=1), 0.0)
    margin = np.maximum(numbers.sum(axis=0), _HALF)
    margin /= margin.sum()
    expected = people[:, None] * margin
    apart = np.sum((numbers - expected) ** 2, axis=1)
    chance = np.sum(variance + expected * (1.0 - margin), axis=1)
    # A group that is not apart at all is the margin, whatever its weight.
    explained = np.minimum(chance, apart) / np.where(apart > 0.0, apart, 1.0)
    own = np.clip(1.0 - explained, 0.0, 1.0 - _KEPT)
    drawn = np.maximum(numbers, 0.0)
    drawn *= (people / np.maximum(drawn.sum(axis=1), np.finfo(np.float64).tiny))[:, None]
    found: Floats = own[:, None] * drawn + (1.0 - own)[:, None] * expected
    return found


_CLIQUES = 20_000
"""Most crowds of a graph that are listed."""
_CELLS = 1 << 22
"""Sets times members times ranges that are looked at together: 32 MB."""


@dataclass(frozen=True, eq=False)
class Ranges:
    """Sets of values that count as one answer.

    first  where each range begins in `codes`; one more at the end
    codes  the values of the ranges, one range after the other
    size   F, the number of values
    """

    first: Ints
    codes: Ints
    size: int

    def __len__(self) -> int:
        return len(self.first) - 1

    def masses(self, shares: Floats) -> Floats:
        """The share of each range."""
        return np.asarray(np.add.reduceat(shares[self.codes], self.first[:-1]))

    def heaviest(self, masses: Floats) -> Floats:
        """For each value the largest of `masses` over the ranges that hold it; 0 where none does."""
        best = np.zeros(self.size)
        np.maximum.at(best, self.codes, np.repeat(masses, np.diff(self.first)))
        return best

    def members(self) -> csr_array:
        """Which value is in which range, as ones: (F, ranges)."""
        from scipy.sparse import csr_array

        entries = (np.ones(len(self.codes)), self.codes, self.first)
        return csr_array(csr_array(entries, shape=(len(self), self.size)).T)

    def within(self, structure: Structure) -> bool:
        """Whether no two values of a range may share a set of this structure."""
        if isinstance(structure, Clusters):
            return bool(np.array_equal(*self._ends(structure.labels)))
        if isinstance(structure, Line):
            low, high = self._ends(np.argsort(structure.order))
            return bool(np.all(high < structure.ahead[low]))
        if self.size > MATRIX_LIMIT:
            return False
        together = compatibility(structure)
        return not any(together[np.ix_(codes, codes)].any() for codes in np.split(self.codes, self.first[1:-1]))

    def _ends(self, numbers: Ints) -> tuple[Ints, Ints]:
        """The least and the largest of `numbers` (by value) in each range."""
        mine, first = numbers[self.codes], self.first[:-1]
        return np.minimum.reduceat(mine, first), np.maximum.reduceat(mine, first)


def ranges_of(structure: Structure) -> Ranges:
    """The crowds of a structure that no other crowd contains.

    >>> from polyseme.semantics.distances import LineDistance
    >>> found = ranges_of(LineDistance.ranks(5).structure(3))
    >>> [codes.tolist() for codes in np.split(found.codes, found.first[1:-1])]
    [[0, 1, 2], [1, 2, 3], [2, 3, 4]]
    """
    if isinstance(structure, Clusters):
        codes = np.argsort(structure.labels, kind="stable").astype(np.int64)
        return _ranges(np.bincount(structure.labels, minlength=structure.count), codes, structure.size)
    if isinstance(structure, Graph):
        cliques = _cliques(~structure.compatible)
        codes = np.concatenate([np.array(sorted(crowd), dtype=np.int64) for crowd in cliques])
        return _ranges(np.array([len(crowd) for crowd in cliques]), codes, structure.size)
    ring = ring_of(structure)
    count = len(ring.order)
    ends = np.minimum(ring.ahead[:count], np.arange(count) + count)
    if ring.anchored:
        ends = np.minimum(ends, count)
    # A window that ends where the one before it ends is part of it; on a circle the last one stands before the first.
    before = ends[-1] - count if not ring.anchored else -1
    starts = np.flatnonzero(np.diff(ends, prepend=before) > 0)
    starts = starts if len(starts) else np.zeros(1, dtype=np.int64)
    widths = ends[starts] - starts
    places = np.repeat(starts - (np.cumsum(widths) - widths), widths) + np.arange(int(widths.sum()))
    return _ranges(widths, ring.order[places % count], structure.size)


def _ranges(widths: Ints, codes: Ints, size: int) -> Ranges:
    return Ranges(np.append(0, np.cumsum(widths)).astype(np.int64), codes, size)


def _cliques(close: Bools) -> list[set[int]]:
    """All maximal sets of mutually close values (Bron and Kerbosch, with a pivot)."""
    near = [set(np.flatnonzero(row).tolist()) - {value} for value, row in enumerate(close)]
    found: list[set[int]] = []
    waiting: list[tuple[set[int], set[int], set[int]]] = [(set(), set(range(len(near))), set())]
    while waiting:
        crowd, open_, done = waiting.pop()
        if not open_ and not done:
            found.append(crowd)
            if len(found) > _CLIQUES:
                raise ImpossibleError(f"more than {_CLIQUES:,} groups of close values: too many to list")
            continue
        pivot = max(open_ | done, key=lambda value: len(near[value] & open_))
        for value in sorted(open_ - near[pivot]):
            waiting.append((crowd | {value}, open_ & near[value], done & near[value]))
            open_, done = open_ - {value}, done | {value}
    return found


def range_success(mechanism: Mechanism, ranges: Ranges, shares: Floats) -> float | None:
    """How often the likeliest range given the published set holds the true value. Exact.

    None where sets are too many.

    >>> from polyseme.designs import make_design
    >>> from polyseme.semantics.distances import LineDistance
    >>> structure = LineDistance.ranks(14).structure(4)
    >>> mechanism = Mechanism(make_design("balanced", structure, 3))
    >>> round(range_success(mechanism, ranges_of(structure), np.full(14, 1 / 14)), 6)
    0.333333
    """
    design, p, masses = mechanism.design, mechanism.p, ranges.masses(shares)
    if design.least_inclusion() is not None and ranges.within(design.structure):
        score = p * shares / design.blind_inclusion() + (1.0 - p) * ranges.heaviest(masses)
        least = (1.0 - p) * float(masses.max())
        leads = design.leading(score, least)
        if leads is not None:
            return float(leads @ score) + max(1.0 - float(leads.sum()), 0.0) * least
    if not design.has_at_most(SET_LIMIT):
        return None
    return _range_success_listed(mechanism, ranges, shares, masses)


def _range_success_listed(mechanism: Mechanism, ranges: Ranges, shares: Floats, masses: Floats) -> float:
    design, p = mechanism.design, mechanism.p
    sets, members, total = design.sets(), ranges.members().toarray(), 0.0
    chunk = max(_CELLS // (len(ranges) * mechanism.l), 1)
    for start in range(0, len(sets), chunk):
        rows = sets[start : start + chunk]
        outside = (1.0 - p) * design.blind_likelihood(rows)
        inside = p * shares[rows] * design.likelihood(rows)
        score = np.einsum("nl,nlw->nw", inside, members[rows]) + outside[:, None] * masses
        total += float(score.max(axis=1).sum())
    return total


def range_success_in_groups(mechanism: Mechanism, ranges: Ranges, population: Population) -> Success | None:
    """The success of guessing ranges in every group of a population."""
    after = [range_success(mechanism, ranges, shares) for shares in population.shares]
    known = [value for value in after if value is not None]
    if len(known) < len(after):
        return None
    before = np.array([ranges.masses(shares).max() for shares in population.shares])
    return Success(population.weights, before, np.array(known))
