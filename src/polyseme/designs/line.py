"""Designs of maximum entropy on a line."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from polyseme.designs.chain import Chain, Steps
from polyseme.designs.distribution import MaximumEntropy
from polyseme.designs.information import INFORMATION_LIMIT, chain_sums, error_from, information_from
from polyseme.designs.leaders import on_chain, peeled
from polyseme.designs.maximum_entropy import fit
from polyseme.designs.ring import document, whole
from polyseme.designs.samplers import TABLE_LIMIT, ChainSampler, Sampler, TableSampler, sort_rows
from polyseme.kernel.arrays import Floats, Ints
from polyseme.semantics.distances.base import Line

__all__ = ["LineDesign", "fit_line"]


def fit_line(
    line: Line, l: int, target: Floats, tight: Ints, name: str = "balanced", start: Floats | None = None
) -> LineDesign:
    """The design with inclusion probabilities `target` (by code).

    `tight` are the first places of full windows.
    """
    begin = None if start is None else start[line.order]
    steps = Steps(line.ahead, tight)
    log_weights = np.empty(line.size)
    log_weights[line.order] = fit(lambda weights: Chain(steps, l, weights), target[line.order], start=begin)
    return LineDesign(line, l, log_weights, tight, name)


class LineDesign(MaximumEntropy):
    """`P(R)` proportional to the product of `exp(log_weights)`, over the valid sets of a line.

    log_weights  by code
    tight        first places of windows of which every set holds exactly one member
    """

    structure: Line

    def __init__(self, line: Line, l: int, log_weights: Floats, tight: Ints, name: str = "balanced") -> None:
        super().__init__(line, l, name)
        self.chain = Chain(Steps(line.ahead, tight), l, log_weights[line.order])
        self._given = log_weights
        self._place = np.empty(line.size, dtype=np.int64)
        self._place[line.order] = np.arange(line.size)
        self._straight = bool(np.array_equal(line.order, np.arange(line.size)))
        self._listed = self.l * self.count() <= TABLE_LIMIT
        self.draws = 1 if self._listed else l

    @cached_property
    def _sampler(self) -> Sampler:
        if not self._listed:
            return ChainSampler(self.chain)
        # Listed by place, so that the table serves every order of codes.
        places = np.sort(self._place[self.sets()], axis=1)
        probability = np.exp(self.chain.log_probability(places))
        possible = probability > 0
        return TableSampler(places[possible], probability[possible], self.size)

    def sample(self, codes: Ints, uniforms: Floats) -> Ints:
        if self._straight:
            return self._sampler.sample(codes, uniforms)
        return sort_rows(self.structure.order[self._sampler.sample(self._place[codes], uniforms)])

    def log_probability(self, sets: Ints) -> Floats:
        return self.chain.log_probability(np.sort(self._place[sets], axis=1))

    @cached_property
    def _inclusion(self) -> Floats:
        return self.chain.inclusion[self._place]

    def inclusion(self) -> Floats:
        return self._inclusion

    def joint(self, codes: Ints) -> Floats:
        pieces = [self.chain.joint(self._place[codes[s : s + 64]]) for s in range(0, len(codes), 64)]
        return np.concatenate(pieces)[:, self._place] if pieces else np.empty((0, self.size))

    def lightest(self, cost: Floats) -> Floats:
        return self.chain.lightest(cost[self.structure.order])[self._place]

    def least_error(self, prior: Floats, p: float = 1.0) -> float | None:
        if p == 0.0 or self.size > INFORMATION_LIMIT:
            return super().least_error(prior, p)
        pi = prior[self.structure.order]
        return error_from(chain_sums(self.chain, pi, p), self.chain.inclusion, pi, np.ones(self.size), p)

    def information(self, prior: Floats, p: float) -> Floats | None:
        if p == 0.0 or self.size > INFORMATION_LIMIT:
            return super().information(prior, p)
        sums = chain_sums(self.chain, prior[self.structure.order], p)
        found: Floats = information_from(sums, self.chain.inclusion, p)[np.ix_(self._place, self._place)]
        return found

    def leading(self, score: Floats, least: float = -np.inf) -> Floats | None:
        return peeled(score, least, self._place, np.ones(self.size), on_chain(self.chain), self.l * self.size)

    def portable(self, p: float = 1.0) -> dict[str, Any]:
        line = self.structure
        weights, tight = whole(self._given[line.order]), self.chain.steps.tight.tolist()
        return document(
            "line", self.l, p, order=line.order.tolist(), ahead=line.ahead.tolist(), weights=weights, tight=tight
        )

    def parameters(self) -> Mapping[str, Any]:
        return {"log_weights": self._given.tolist(), "tight": self.chain.steps.tight.tolist()}
