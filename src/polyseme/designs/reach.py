"""Which inclusion probabilities are possible, as linear conditions, and the lightest sets.

    rho = expand @ y        where y satisfies every condition

On a line `y` holds the sums of `rho` along the line, and no window of mutually incompatible values holds more than
one (`feasibility.py` proves that this is all). Where sets are listed, `y` holds their probabilities.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array, hstack, vstack

from polyseme.designs.feasibility import few_sets, membership, programme
from polyseme.designs.ring import as_line
from polyseme.kernel.arrays import Floats, Ints
from polyseme.semantics.distances.base import Clusters, Line, Structure

__all__ = ["Reach", "floor_inclusion", "floor_posterior", "reach_of"]

_SMALL = 40_000
"""Entries up to which a matrix is written with its zeros: to put sparse ones together takes longer than to solve."""


class Reach(ABC):
    """The inclusion probabilities of all distributions over valid sets.

    expand  from the unknowns `y` to `rho`, by code: (F, unknowns)
    """

    l: int
    expand: csr_array

    @cached_property
    def full(self) -> Floats | None:
        """The same with its zeros, where it is small."""
        return self.expand.toarray() if self.expand.shape[0] * self.expand.shape[1] <= _SMALL else None

    @abstractmethod
    def conditions(self, extra: int) -> dict[str, Any]:
        """Conditions on `y` and `extra` free unknowns, in the form of `scipy.optimize.linprog`."""

    @abstractmethod
    def lightest_sets(self, cost: Floats) -> Ints:
        """For each value the valid set of least total cost that holds it: (F, l)."""

    def solve(self, cost: Floats, rows: csr_array | Floats, limits: Floats) -> Floats:
        """The unknowns that minimize `cost` under the conditions and `rows @ (y, extra) <= limits`."""
        given = dict(self._given(len(cost) - self.expand.shape[1]))
        above, most = given.pop("A_ub"), np.concatenate([given.pop("b_ub"), limits])
        if isinstance(rows, np.ndarray):
            return programme(cost, A_ub=np.vstack([_written(above), rows]), b_ub=most, **given)
        return programme(cost, A_ub=vstack([csr_array(above), rows], format="csr"), b_ub=most, **given)

    def _given(self, extra: int) -> dict[str, Any]:
        """The conditions, written down once."""
        if extra not in self._conditions:
            found = self.conditions(extra)
            self._conditions[extra] = found if self.full is None else {**found, "A_ub": _written(found["A_ub"])}
        return self._conditions[extra]

    @cached_property
    def _conditions(self) -> dict[int, dict[str, Any]]:
        return {}

    def worst_posterior(self, prior: Floats, rho: Floats) -> float:
        """The largest posterior at p = 1 where every valid set can occur."""
        cost = prior / rho
        return float((cost / cost[self.lightest_sets(cost)].sum(axis=1)).max())


def _written(matrix: Any) -> Floats:
    """A matrix with its zeros."""
    return matrix if isinstance(matrix, np.ndarray) else csr_array(matrix).toarray()


class LineReach(Reach):
    """On a line, and over clusters as a line."""

    def __init__(self, line: Line, l: int) -> None:
        self.line, self.l = line, l
        size, codes = line.size, line.order
        places, ones = np.arange(size), np.ones(size)
        entries = (np.append(ones, -ones), (np.tile(codes, 2), np.append(places + 1, places)))
        self.expand = csr_array(entries, shape=(size, size + 1))
        self._windows = csr_array(
            (np.append(ones, -ones), (np.tile(places, 2), np.append(line.ahead, places))), shape=(size, size + 1)
        )

    def conditions(self, extra: int) -> dict[str, Any]:
        size = self.line.size
        # Sums may not fall, and a window holds at most one.
        rows = vstack([self._windows, -self.expand])
        bounds = [(0.0, 0.0), *[(0.0, None)] * (size - 1), (float(self.l), float(self.l))]
        return {
            "A_ub": hstack([rows, coo_array((2 * size, extra))]),
            "b_ub": np.append(np.ones(size), np.zeros(size)),
            "bounds": bounds + [(None, None)] * extra,
        }

    def lightest_sets(self, cost: Floats) -> Ints:
        size, l, ahead = self.line.size, self.l, self.line.ahead
        places, mine = np.arange(size), cost[self.line.order]
        before, previous = _chains(mine, np.searchsorted(ahead, places, side="right"), l)
        after, following = _chains(mine[::-1], (size - ahead)[::-1], l)
        after, following = after[:, ::-1], size - 1 - following[:, ::-1]
        rank = (before + after[::-1]).argmin(axis=0)
        sets = np.empty((size, l), dtype=np.int64)
        sets[places, rank] = places
        earlier, later = places.copy(), places.copy()
        for r in range(l - 1, 0, -1):
            here = rank >= r
            earlier[here] = previous[r, earlier[here]]
            sets[here, r - 1] = earlier[here]
            here = rank <= l - 1 - r
            later[here] = following[r, later[here]]
            sets[here, l - r] = later[here]
        by_code = np.empty_like(sets)
        by_code[self.line.order] = self.line.order[sets]
        return by_code


def _chains(cost: Floats, count: Ints, l: int) -> tuple[Floats, Ints]:
    """Least cost of r members before each place, and the last of these members: (l, F) each.

    count  how many places, from the first on, may stand before each place
    """
    size = len(cost)
    least, link = np.full((l, size), np.inf), np.zeros((l, size), dtype=np.int64)
    least[0] = 0.0
    open_ = count > 0
    last = np.maximum(count - 1, 0)
    for r in range(l - 1):
        total = cost + least[r]
        running = np.minimum.accumulate(total)
        where = np.maximum.accumulate(np.where(total == running, np.arange(size), 0))
        least[r + 1] = np.where(open_, running[last], np.inf)
        link[r + 1] = where[last]
    return least, link


class ListedReach(Reach):
    """Where the valid sets are listed."""

    def __init__(self, sets: Ints, size: int) -> None:
        self.sets, self.l = sets, sets.shape[1]
        self.expand = membership(sets, size)

    def conditions(self, extra: int) -> dict[str, Any]:
        count = len(self.sets)
        return {
            "A_ub": csr_array((0, count + extra)),
            "b_ub": np.empty(0),
            "A_eq": csr_array(np.append(np.ones(count), np.zeros(extra))[None, :]),
            "b_eq": [1.0],
            "bounds": [(0.0, None)] * count + [(None, None)] * extra,
        }

    def lightest_sets(self, cost: Floats) -> Ints:
        order = np.argsort(-cost[self.sets].sum(axis=1), kind="stable")
        number = np.zeros(self.expand.shape[0], dtype=np.int64)
        # The lightest come last, and the last one counts.
        for column in self.sets[order].T:
            np.maximum.at(number, column, np.arange(len(order)))
        return self.sets[order[number]]


def reach_of(structure: Structure, l: int) -> Reach:
    """The inclusion probabilities within reach of sets of `l` values."""
    if isinstance(structure, (Line, Clusters)):
        return LineReach(as_line(structure), l)
    return ListedReach(few_sets(structure, l), structure.size)


def floor_posterior(reach: Reach, prior: Floats) -> float:
    """The least `t` for which some `rho` within reach has `rho_v >= pi_v / t` for every value.

    No mechanism whose sets hold the true value (p = 1) has an average posterior below it, and the worst posterior is at
    least the average one. At least `1/l`, and at least the mass of the heaviest crowd.
    """
    return 1.0 / float(_covering(reach, prior)[-1])


def floor_inclusion(reach: Reach, prior: Floats) -> Floats:
    """Inclusion probabilities within reach that are at least `pi / t` for that least `t`.

    Any design that has them has, at p = 1, that average posterior.
    """
    rho: Floats = np.asarray(reach.expand @ _covering(reach, prior)[:-1])
    return rho


def _covering(reach: Reach, prior: Floats) -> Floats:
    """The unknowns of the reach, and the largest `1 / t`."""
    rows = hstack([-reach.expand, coo_array(prior[:, None])], format="csr")
    cost = np.append(np.zeros(reach.expand.shape[1]), -1.0)
    return reach.solve(cost, rows, np.zeros(len(prior)))
