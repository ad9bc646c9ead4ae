"""Designs on a circle: balanced ones for even spacing, and of maximum entropy for any.

*Equally spaced values.* Turning the circle maps valid sets to valid sets, so drawing all of them alike gives every
value the same inclusion probability: the uniform design is balanced. Seen from a member, the others form a chain of `l
- 1` places on the line that is left when its own neighborhood is cut out, the same line for every member; so `Q` is
circulant.

*Uneven spacing or an uneven prior, and too many sets to list.* Seen from a member v, the other members form a chain on
the line that begins behind v and ends before it comes round again. With one such line for each v, `O(F^2 l)` in all,

    rho_v = w_v G_v / Z,   Z = sum_v w_v G_v / l,   Pi[v, u] = w_v w_u (weight of the chains from v that hold u) / Z

where `G_v` is the total weight of the chains from v; every set is counted once from each of its l members.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from math import log
from typing import Any

import numpy as np

from polyseme.designs.chain import Chain, Steps
from polyseme.designs.distribution import MaximumEntropy, compatible_sets
from polyseme.designs.leaders import around
from polyseme.designs.maximum_entropy import fit
from polyseme.designs.ring import Spectrum, circulant_spectrum, clockwise, document, portable_circle, ring_of
from polyseme.designs.samplers import CHUNK, ChainSampler, sort_rows
from polyseme.kernel.arrays import Bools, Floats, Ints
from polyseme.kernel.errors import ImpossibleError
from polyseme.semantics.distances.base import Circle

__all__ = ["ROOTED_LIMIT", "CircleDesign", "RootedDesign", "fit_rooted"]


class CircleDesign(MaximumEntropy):
    """All valid sets of equally spaced values on a circle, equally likely."""

    structure: Circle

    def __init__(self, circle: Circle, l: int, name: str = "balanced") -> None:
        super().__init__(circle, l, name)
        self.spacing = circle.spacing or 1
        self._place = np.empty(circle.size, dtype=np.int64)
        self._place[circle.order] = np.arange(circle.size)
        self._straight = bool(np.array_equal(circle.order, np.arange(circle.size)))
        room = circle.size - 2 * self.spacing + 1
        ahead = np.minimum(np.arange(max(room, 1)) + self.spacing, max(room, 1)).astype(np.int64)
        others = Steps(ahead, np.empty(0, dtype=np.int64))
        self.others = Chain(others, l - 1, np.zeros(len(ahead))) if l > 1 else None
        self.draws = l

    @cached_property
    def _sampler(self) -> ChainSampler | None:
        return ChainSampler(self.others) if self.others else None

    def sample(self, codes: Ints, uniforms: Floats) -> Ints:
        out = np.empty((len(codes), self.l), dtype=np.int64)
        for start in range(0, len(codes), CHUNK):
            chunk = slice(start, start + CHUNK)
            places = self._place[codes[chunk]]
            rows = out[chunk]
            rows[:, 0] = places
            if self._sampler:
                rows[:, 1:] = places[:, None] + self.spacing + self._sampler.blind(uniforms[:, chunk])
                rows[:, 1:] -= self.size * (rows[:, 1:] >= self.size)
            if not self._straight:
                rows[:] = self.structure.order[rows]
            sort_rows(rows)
        return out

    def log_probability(self, sets: Ints) -> Floats:
        return np.where(compatible_sets(self.structure, sets), -log(self.count()), -np.inf)

    def inclusion(self) -> Floats:
        return np.full(self.size, self.l / self.size)

    @cached_property
    def offsets(self) -> Floats:
        """`P(the place k further on is in R | v)`: the first row of the circulant `Q`, by place."""
        given = np.zeros(self.size)
        given[0] = 1.0
        if self.others:
            given[self.spacing : self.spacing + self.others.size] = self.others.inclusion
        return given

    def joint(self, codes: Ints) -> Floats:
        apart = (self._place[None, :] - self._place[codes][:, None]) % self.size
        joint: Floats = self.offsets[apart] * (self.l / self.size)
        return joint

    def lightest(self, cost: Floats) -> Floats:
        if self.others is None or np.ptp(cost) == 0:
            return np.full(self.size, 0.0) + self.l * cost
        by_place = cost[self.structure.order]
        window = self.spacing + np.arange(self.others.size)
        least = [self.others.lightest(by_place[(place + window) % self.size]).min() for place in range(self.size)]
        total: Floats = cost + np.array(least)[self._place]
        return total

    def spectrum(self, p: float) -> Spectrum:
        return circulant_spectrum(self.offsets, self.structure.order, self.l, p)

    def matched_trace(self) -> float | None:
        return self.l / self.size * float(np.sum(1.0 / np.fft.fft(self.offsets).real))

    def leading(self, score: Floats, least: float = -np.inf) -> Floats | None:
        found = super().leading(score, least)
        return around(self.structure, np.zeros(self.size), self.l, score, least) if found is None else found

    def portable(self, p: float = 1.0) -> dict[str, Any]:
        circle = self.structure
        return document("circle", self.l, p, order=circle.order.tolist(), ahead=clockwise(circle).tolist())

    def parameters(self) -> Mapping[str, Any]:
        return {}


ROOTED_LIMIT = 1_000
"""Largest circle for which a line is kept for each of its values: matrices of 8 MB, chosen by judgment."""

_CELLS = 50_000_000
"""Largest number of pairs of values times members for which tables are filled: 400 MB, chosen by judgment."""


class Lines:
    """For each place v of a circle, the line of offsets 0 ... F-1 from it.

    place       the place at each offset (F, F)
    low, high   the first offset compatible with the one given, and one past the last one before it (F, F)
    open        whether an offset is compatible with v itself (F, F)
    """

    def __init__(self, circle: Circle) -> None:
        ring = ring_of(circle)
        size = self.size = circle.size
        roots, offsets = np.arange(size)[:, None], np.arange(size)[None, :]
        self.place: Ints = (roots + offsets) % size
        self.low: Ints = np.minimum(ring.ahead[roots + offsets] - roots, size)
        self.high: Ints = np.maximum(ring.behind[roots + offsets] - roots + 1, 0)
        first, last = ring.ahead[roots] - roots, ring.behind[roots + size] - roots
        self.open: Bools = (offsets >= first) & (offsets <= last)


class Rooted:
    """The distribution with these log weights (by place) over the valid sets of a circle."""

    def __init__(self, lines: Lines, l: int, log_weights: Floats) -> None:
        self.lines, self.l, self.size = lines, l, lines.size
        if l * self.size**2 > _CELLS:
            raise ImpossibleError(
                f"sets of {l:,} of {self.size:,} values around a circle are too large", "use smaller sets"
            )
        top = log_weights.max()
        shift = top + np.log(np.exp(log_weights - top).sum() / l)
        self.log_weights = log_weights - shift
        self.weights = np.exp(self.log_weights)
        self.along: Floats = self.weights[lines.place] * lines.open
        # suffix[r, v, x]: weight of r + 1 members at offset x or later
        self.suffix = np.zeros((l - 1, self.size, self.size + 1))
        for r in range(l - 1):
            step = self.along * self._after(r)
            self.suffix[r, :, -2::-1] = np.cumsum(step[:, ::-1], axis=1)
        self.total = float(self.weights @ self.suffix[l - 2, :, 0]) / l
        self.log_partition = float(np.log(self.total)) + l * float(shift) if self.total > 0 else -np.inf

    def _after(self, r: int) -> Floats:
        """Weight of r members after each offset."""
        if r == 0:
            return np.ones((self.size, self.size))
        return np.take_along_axis(self.suffix[r - 1], self.lines.low, axis=1)

    @cached_property
    def inclusion(self) -> Floats:
        share: Floats = self.weights * self.suffix[self.l - 2, :, 0] / self.total
        return share

    @cached_property
    def joint(self) -> Floats:
        before, sums = np.ones((self.size, self.size)), np.zeros((self.size, self.size + 1))
        through = np.zeros((self.size, self.size))
        for r in range(self.l - 1):
            through += before * self._after(self.l - 2 - r)
            np.cumsum(self.along * before, axis=1, out=sums[:, 1:])
            before = np.take_along_axis(sums, self.lines.high, axis=1)
        by_offset = self.weights[:, None] * self.along * through / self.total
        both: Floats = np.empty_like(by_offset)
        np.put_along_axis(both, self.lines.place, by_offset, axis=1)
        np.fill_diagonal(both, self.inclusion)
        return both

    def covariance(self) -> Floats:
        covariance: Floats = self.joint - np.outer(self.inclusion, self.inclusion)
        return covariance

    def covariance_times(self, vector: Floats) -> Floats:
        image: Floats = self.joint @ vector - self.inclusion * (self.inclusion @ vector)
        return image

    def lightest(self, cost: Floats) -> Floats:
        """For each place, the least total cost of a valid set that holds it."""
        along = np.where(self.lines.open, cost[self.lines.place], np.inf)
        least = np.full((self.size, self.size + 1), np.inf)
        after = np.zeros((self.size, self.size))
        for _ in range(self.l - 1):
            least[:, -2::-1] = np.minimum.accumulate((along + after)[:, ::-1], axis=1)
            after = np.take_along_axis(least, self.lines.low, axis=1)
        total: Floats = cost + least[:, 0]
        return total

    def walk(self, places: Ints, uniforms: Floats) -> Ints:
        """Sets that hold the given places, going round once: rows of places.

        One draw for each other member.
        """
        rows = np.empty((len(places), self.l), dtype=np.int64)
        rows[:, 0] = places
        start = np.zeros(len(places), dtype=np.int64)
        for step in range(self.l - 1):
            sums = self.suffix[self.l - 2 - step]
            target = uniforms[step] * sums[places, start]
            offset = self._find(sums, places, start, target)
            rows[:, step + 1] = (places + offset) % self.size
            start = self.lines.low[places, offset]
        return rows

    def _find(self, sums: Floats, places: Ints, start: Ints, target: Floats) -> Ints:
        """The offset x from `start` with `sums[x] > target >= sums[x + 1]`, by bisection per row."""
        low, high = start.copy(), np.full(len(places), self.size, dtype=np.int64)
        while np.any(high - low > 1):
            middle = (low + high) // 2
            above = sums[places, middle] > target
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        return low


def fit_rooted(circle: Circle, l: int, target: Floats, name: str = "balanced") -> RootedDesign:
    """The design with inclusion probabilities `target` (by code)."""
    lines = Lines(circle)
    log_weights = np.empty(circle.size)
    log_weights[circle.order] = fit(lambda weights: Rooted(lines, l, weights), target[circle.order])
    return RootedDesign(circle, l, log_weights, name)


class RootedDesign(MaximumEntropy):
    """`P(R)` proportional to the product of `exp(log_weights)`, on a circle, for l >= 2."""

    structure: Circle

    def __init__(self, circle: Circle, l: int, log_weights: Floats, name: str = "balanced") -> None:
        super().__init__(circle, l, name)
        self.draws = l - 1
        self._log_weights = log_weights
        self._rooted = Rooted(Lines(circle), l, log_weights[circle.order])
        self._place = np.empty(circle.size, dtype=np.int64)
        self._place[circle.order] = np.arange(circle.size)

    def sample(self, codes: Ints, uniforms: Floats) -> Ints:
        out = np.empty((len(codes), self.l), dtype=np.int64)
        for start in range(0, len(codes), CHUNK):
            chunk = slice(start, start + CHUNK)
            out[chunk] = self.structure.order[self._rooted.walk(self._place[codes[chunk]], uniforms[:, chunk])]
        out.sort(axis=1)
        return out

    def log_probability(self, sets: Ints) -> Floats:
        value = self._rooted.log_weights[self._place[sets]].sum(axis=1) - np.log(self._rooted.total)
        return np.where(compatible_sets(self.structure, sets), value, -np.inf)

    def inclusion(self) -> Floats:
        return self._rooted.inclusion[self._place]

    def joint(self, codes: Ints) -> Floats:
        return self._rooted.joint[np.ix_(self._place[codes], self._place)]

    def lightest(self, cost: Floats) -> Floats:
        return self._rooted.lightest(cost[self.structure.order])[self._place]

    def has_at_most(self, sets: int) -> bool:
        # Made for circles with more sets than are ever listed; to count them takes longer than to use the design.
        return False

    def leading(self, score: Floats, least: float = -np.inf) -> Floats | None:
        return around(self.structure, self._log_weights, self.l, score, least)

    def portable(self, p: float = 1.0) -> dict[str, Any]:
        return portable_circle(self.structure, self.l, self._log_weights, p)

    def parameters(self) -> Mapping[str, Any]:
        return {"log_weights": self._log_weights.tolist()}
