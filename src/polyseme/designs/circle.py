"""The balanced design on a circle of equally spaced values.

Turning the circle maps valid sets to valid sets, so drawing all of them alike gives every value the same inclusion
probability: the uniform design is balanced. Seen from a member, the others form a chain of `l - 1` places on the line
that is left when its own neighborhood is cut out, the same line for every member; so `Q` is circulant.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from math import log
from typing import Any

import numpy as np

from polyseme.arrays import Floats, Ints
from polyseme.designs.alias import CHUNK
from polyseme.designs.chain import Chain, Steps
from polyseme.designs.entropy import MaximumEntropy
from polyseme.designs.leading import around
from polyseme.designs.listing import compatible_sets
from polyseme.designs.portable import document
from polyseme.designs.ring import clockwise
from polyseme.designs.samplers import ChainSampler, sort_rows
from polyseme.designs.spectrum import Spectrum, circulant_spectrum
from polyseme.distances.structure import Circle

__all__ = ["CircleDesign"]


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
