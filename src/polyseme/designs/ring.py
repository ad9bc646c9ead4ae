"""Lines, circles and clusters seen as one thing: places on a ring.

A circle is a ring of its `F` places. A line is a ring of `F + 1` places whose last one, the anchor, stands in every set
and is compatible with everything: it is where the line was cut. Clusters are a line on which the values of a cluster
stand side by side. So one piece of arithmetic serves all three.

Places are numbered along the ring and unrolled: `k + size` is place `k` one turn later.

    ahead[k]    first place after k that may share a set with k
    behind[k]   last place before k that may share a set with k

One fact: fill the gap between two members greedily from the left, giving `L_1 < ... < L_m`, and from
the right, giving `R_1 < ... < R_m`: no more than `m` values fit. A value fits *without costing a place* exactly when it
lies in some `[L_k, R_k]` (put `L_1 ... L_{k-1}` before and `R_{k+1} ... R_m` behind it; and whatever stands k-th lies
between the two greedy ones). Any other compatible value costs exactly one place, because it pushes out at most two
neighbors and fills one. The intervals do not overlap, or `m + 1` values would fit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyseme.arrays import Bools, Ints
from polyseme.distances.structure import Circle, Clusters, Graph, Line, Structure

__all__ = ["Ring", "as_line", "clockwise", "ring_of"]


@dataclass(frozen=True, eq=False)
class Ring:
    """Places of a ring, unrolled twice.

    order     code of each place (F,)
    size      number of places, with the anchor if there is one
    anchored  whether the last place is the anchor of a line
    """

    order: Ints
    size: int
    anchored: bool
    ahead: Ints
    behind: Ints

    @property
    def extra(self) -> int:
        """How many members of a set are anchors."""
        return int(self.anchored)

    def places(self, codes: Ints) -> Ints:
        """The place of each code."""
        place = np.empty(len(self.order), dtype=np.int64)
        place[self.order] = np.arange(len(self.order))
        return place[codes]

    def anchor(self, places: Ints) -> Ints:
        """Rows of sorted places with the anchor added where there is one."""
        if not self.anchored:
            return places
        return np.concatenate([places, np.full((len(places), 1), self.size - 1, dtype=np.int64)], axis=1)

    def candidates(self, members: Ints, missing: int) -> tuple[Ints, Ints]:
        """Where the next member may stand so that `missing` members in all can still be added.

        members  sorted places with the anchor, (n, k)
        returns  closed intervals of unrolled places, (n, w) lower and upper ends; empty ones have upper < lower
        """
        n, k = members.shape
        ends = np.concatenate([members[:, 1:], members[:, :1] + self.size], axis=1)
        low, high = self.ahead[members], self.behind[ends]
        width = max(k, missing)
        lower = np.zeros((n, width), dtype=np.int64)
        upper = np.full((n, width), -1, dtype=np.int64)
        lower[:, :k], upper[:, :k] = low, high
        capacity = self._fill(low, high, missing)
        tight = np.flatnonzero(capacity == missing)
        if tight.size:
            left, right = self._slots(low[tight], high[tight], missing)
            lower[tight], upper[tight] = 0, -1
            lower[tight, :missing], upper[tight, :missing] = left, right
        upper[capacity < missing] = -1
        lower[capacity < missing] = 0
        return lower, upper

    def _fill(self, low: Ints, high: Ints, missing: int) -> Ints:
        """How many members fit into the gaps of each row, counted up to a little beyond `missing`."""
        capacity = np.zeros(len(low), dtype=np.int64)
        for gap in range(low.shape[1]):
            place, limit = low[:, gap], high[:, gap]
            for _ in range(missing + 1):
                fits = place <= limit
                if not fits.any():
                    break
                capacity += fits
                place = self.ahead[np.where(fits, place, 0)]
                place = np.where(fits, place, limit + 1)
        return capacity

    def _slots(self, low: Ints, high: Ints, missing: int) -> tuple[Ints, Ints]:
        """The intervals `[L_k, R_k]` of rows into which exactly `missing` members fit."""
        beyond = 3 * self.size
        lefts, rights = [], []
        for gap in range(low.shape[1]):
            left, right = low[:, gap], high[:, gap]
            fits = left <= right
            first, last = left, right
            for _ in range(missing):
                lefts.append(np.where(fits, left, beyond))
                rights.append(np.where(fits, right, beyond))
                left = np.where(fits, self.ahead[np.where(fits, left, 0)], beyond)
                right = np.where(fits, self.behind[np.where(fits, right, 0)], -1)
                # Both greedy fillings have the same length, so they run out together.
                fits = fits & (left <= last) & (right >= first)
        return (
            np.sort(np.stack(lefts, axis=1), axis=1)[:, :missing],
            np.sort(np.stack(rights, axis=1), axis=1)[:, :missing],
        )

    def capacities(self) -> Ints:
        """For each place, how many members a largest set that holds it has (the anchor not counted)."""
        count = len(self.order)
        low, high = self.ahead[:count], self.behind[np.arange(count) + self.size]
        if self.anchored:
            return 1 + self._hops(self.ahead[:count], self.size - 2) + self._hops_back()
        return 1 + self._greedy(low, high)

    def _hops(self, start: Ints, limit: int) -> Ints:
        """Greedy steps to the right from each start up to a common limit, by one pass over the places."""
        depth = np.zeros(2 * self.size + 1, dtype=np.int64)
        for place in range(limit, -1, -1):
            depth[place] = 1 + depth[min(int(self.ahead[place]), limit + 1)]
        return depth[np.minimum(start, limit + 1)]

    def _hops_back(self) -> Ints:
        count = len(self.order)
        depth = np.zeros(count + 1, dtype=np.int64)
        for place in range(count):
            depth[place] = 1 + depth[self.behind[place]] if self.behind[place] >= 0 else 1
        start = self.behind[:count]
        return np.where(start >= 0, depth[np.maximum(start, 0)], 0)

    def _greedy(self, low: Ints, high: Ints) -> Ints:
        filled = np.zeros(len(low), dtype=np.int64)
        place = low
        while (fits := place <= high).any():
            filled += fits
            place = np.where(fits, self.ahead[np.where(fits, place, 0)], high + 1)
        return filled


def ring_of(structure: Structure) -> Ring:
    """The ring of a line, a circle or clusters."""
    if isinstance(structure, Graph):
        raise TypeError("a graph is no ring")
    if isinstance(structure, Circle):
        return _unroll(structure.order, clockwise(structure), anchored=False)
    line = as_line(structure)
    # The line's end F is the anchor itself, and the anchor is followed by the first place one turn later.
    return _unroll(line.order, np.append(line.ahead, line.size + 1), anchored=True)


def as_line(structure: Line | Clusters) -> Line:
    """Clusters as a line on which the values of a cluster stand side by side."""
    if isinstance(structure, Line):
        return structure
    order = np.argsort(structure.labels, kind="stable").astype(np.int64)
    ends = np.cumsum(np.bincount(structure.labels, minlength=structure.count))
    return Line(order, ends[structure.labels[order]].astype(np.int64))


def clockwise(circle: Circle) -> Ints:
    """For each place of a circle, the first place further on whose arc from here is at least the threshold."""
    size = circle.size
    places = np.arange(size, dtype=np.int64)
    if circle.spacing is not None:
        return places + min(circle.spacing, size)
    unrolled = np.concatenate([circle.positions, circle.positions + circle.length])
    ahead = np.searchsorted(unrolled, circle.positions + circle.threshold).astype(np.int64)
    ahead = np.clip(ahead, places + 1, places + size)
    # Arcs are compared as distances are, so that rounding never lets in a pair that a verifier would refuse.
    for _ in range(2):
        ahead = np.where((ahead < places + size) & ~_apart(circle, places, ahead), ahead + 1, ahead)
    for _ in range(2):
        ahead = np.where((ahead - 1 > places) & _apart(circle, places, ahead - 1), ahead - 1, ahead)
    return ahead


def _apart(circle: Circle, places: Ints, later: Ints) -> Bools:
    here, there = circle.positions[places], circle.positions[later % circle.size]
    arc = np.where(later < circle.size, there - here, circle.length - (here - there))
    return arc >= circle.threshold


def _unroll(order: Ints, ahead: Ints, *, anchored: bool) -> Ring:
    size = len(ahead)
    twice = np.concatenate([ahead, ahead + size])
    behind = np.searchsorted(twice, np.arange(2 * size), side="right") - 1
    return Ring(order, size, anchored, twice, behind.astype(np.int64))
