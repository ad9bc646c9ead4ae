"""How often an attacker guesses the right range: the benefit of distance.

A range is a set of neighboring values: on a line or a circle a window narrower than d, in a tree a branch. An attacker
who guesses a range W from a set R is right with `sum over v in W of pi_v P(R | v)`, so the success is

    sum_q P(q) sum_R max_W sum over v in W of pi(v | q) P(R | v)        without a release: sum_q P(q) max_W pi(W | q)

Where candidates are at least as far apart as a range is wide, a set holds at most one value of a range; then only the
best range around each member counts, and no list of sets is needed. Otherwise the sets are gone through one by one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from polyseme.analysis.learner import Population, Success
from polyseme.arrays import Bools, Floats, Ints
from polyseme.designs.base import SET_LIMIT
from polyseme.designs.listing import compatibility
from polyseme.designs.ring import ring_of
from polyseme.distances.base import MATRIX_LIMIT
from polyseme.distances.structure import Clusters, Graph, Line, Structure
from polyseme.errors import ImpossibleError
from polyseme.mechanism import Mechanism

__all__ = ["Ranges", "range_success", "range_success_in_groups", "ranges_of"]

_CROWDS = 20_000
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

    >>> from polyseme.distances import LineDistance
    >>> found = ranges_of(LineDistance.ranks(5).structure(3))
    >>> [codes.tolist() for codes in np.split(found.codes, found.first[1:-1])]
    [[0, 1, 2], [1, 2, 3], [2, 3, 4]]
    """
    if isinstance(structure, Clusters):
        codes = np.argsort(structure.labels, kind="stable").astype(np.int64)
        return _ranges(np.bincount(structure.labels, minlength=structure.count), codes, structure.size)
    if isinstance(structure, Graph):
        crowds = _crowds(~structure.compatible)
        codes = np.concatenate([np.array(sorted(crowd), dtype=np.int64) for crowd in crowds])
        return _ranges(np.array([len(crowd) for crowd in crowds]), codes, structure.size)
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


def _crowds(close: Bools) -> list[set[int]]:
    """All maximal sets of mutually close values (Bron and Kerbosch, with a pivot)."""
    near = [set(np.flatnonzero(row).tolist()) - {value} for value, row in enumerate(close)]
    found: list[set[int]] = []
    waiting: list[tuple[set[int], set[int], set[int]]] = [(set(), set(range(len(near))), set())]
    while waiting:
        crowd, open_, done = waiting.pop()
        if not open_ and not done:
            found.append(crowd)
            if len(found) > _CROWDS:
                raise ImpossibleError(f"more than {_CROWDS:,} groups of close values: too many to list")
            continue
        pivot = max(open_ | done, key=lambda value: len(near[value] & open_))
        for value in sorted(open_ - near[pivot]):
            waiting.append((crowd | {value}, open_ & near[value], done & near[value]))
            open_, done = open_ - {value}, done | {value}
    return found


def range_success(mechanism: Mechanism, ranges: Ranges, shares: Floats) -> float | None:
    """How often the likeliest range given the published set holds the true value. Exact; None where sets are too many.

    >>> from polyseme.designs import make_design
    >>> from polyseme.distances import LineDistance
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
