"""Designs of maximum entropy over listed sets: for structures that follow no simple order."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyseme.arrays import Floats, Ints
from polyseme.designs.entropy import MaximumEntropy
from polyseme.designs.fitting import fit
from polyseme.designs.information import INFORMATION_LIMIT, error_from
from polyseme.designs.listing import compatibility, list_sets
from polyseme.designs.portable import document, neighbours, portable_circle, require_few, whole
from polyseme.designs.samplers import TableSampler
from polyseme.distances.structure import Circle, Structure
from polyseme.errors import InternalError

__all__ = ["EnumeratedDesign", "ListedFamily", "fit_listed"]


class ListedFamily:
    """`P(R)` proportional to the product of `exp(log_weights)` over the listed sets."""

    def __init__(self, sets: Ints, log_weights: Floats) -> None:
        self.sets, self.size = sets, len(log_weights)
        exponent = log_weights[sets].sum(axis=1)
        top = exponent.max()
        scaled = np.exp(exponent - top)
        self.log_partition = float(top + np.log(scaled.sum()))
        self.probability: Floats = scaled / scaled.sum()

    def _spread(self, per_set: Floats) -> Floats:
        """The sum over the sets that hold each value."""
        total: Floats = np.zeros(self.size)
        for column in self.sets.T:
            total += np.bincount(column, per_set, self.size)
        return total

    @cached_property
    def inclusion(self) -> Floats:
        return self._spread(self.probability)

    @cached_property
    def joint(self) -> Floats:
        return self._spread_pairs(self.probability)

    def _spread_pairs(self, per_set: Floats) -> Floats:
        """The sum over the sets that hold each pair of values."""
        both: Floats = np.zeros(self.size**2)
        for first in self.sets.T:
            for second in self.sets.T:
                both += np.bincount(first * self.size + second, per_set, self.size**2)
        return both.reshape(self.size, self.size)

    def sums(self, per_set: Floats) -> tuple[float, Floats, Floats]:
        """The expectation of `per_set`: over all sets, over those with each value, over those with each pair."""
        weighted = self.probability * per_set
        return float(weighted.sum()), self._spread(weighted), self._spread_pairs(weighted)

    def covariance(self) -> Floats:
        return self.joint - np.outer(self.inclusion, self.inclusion)

    def covariance_times(self, vector: Floats) -> Floats:
        total = vector[self.sets].sum(axis=1)
        return self._spread(self.probability * (total - self.inclusion @ vector))


def fit_listed(
    structure: Structure,
    l: int,
    sets: Ints,
    possible: Ints,
    target: Floats,
    name: str = "balanced",
    start: Floats | None = None,
) -> EnumeratedDesign:
    """The design with inclusion `target` over `sets[possible]`."""
    log_weights = fit(lambda weights: ListedFamily(sets[possible], weights), target, start=start)
    return EnumeratedDesign(structure, l, log_weights, np.setdiff1d(np.arange(len(sets)), possible), name)


class EnumeratedDesign(MaximumEntropy):
    """A design over the list of all valid sets.

    log_weights  by code
    excluded     numbers of valid sets, in lexicographic order, that are never drawn
    """

    draws = 1

    def __init__(
        self, structure: Structure, l: int, log_weights: Floats, excluded: Ints, name: str = "balanced"
    ) -> None:
        super().__init__(structure, l, name)
        self._given, self._excluded = log_weights, excluded
        self._all = list_sets(structure, l)
        self.possible = np.delete(self._all, excluded, axis=0)
        self.family = ListedFamily(self.possible, log_weights)

    def count(self) -> int:
        return len(self._all)

    def sets(self) -> Ints:
        return self._all

    @cached_property
    def _sampler(self) -> TableSampler:
        return TableSampler(self.possible, self.family.probability, self.size)

    def sample(self, codes: Ints, uniforms: Floats) -> Ints:
        return self._sampler.sample(codes, uniforms)

    @cached_property
    def _known(self) -> tuple[NDArray[np.uint64], Ints]:
        """Keys of the possible sets in ascending order, and which set each belongs to."""
        keys = self._key(self.possible)
        order = np.argsort(keys, kind="stable")
        if np.any(keys[order][1:] == keys[order][:-1]):
            raise InternalError("two sets share a key")
        return keys[order], order

    def _key(self, sets: Ints) -> NDArray[np.uint64]:
        """A number for each set: its digits in base F, or mixed bits where those do not fit."""
        base = np.uint64(self.size if self.size**self.l < 2**64 else 0x9E3779B97F4A7C15)
        key = np.zeros(len(sets), dtype=np.uint64)
        for column in sets.T:
            key = key * base + column.astype(np.uint64)
        return key

    def log_probability(self, sets: Ints) -> Floats:
        keys, order = self._known
        place = np.minimum(np.searchsorted(keys, self._key(sets)), len(keys) - 1)
        number = order[place]
        match = (self.possible[number] == sets).all(axis=1)
        return np.where(match, np.log(self.family.probability[number]), -np.inf)

    def inclusion(self) -> Floats:
        return self.family.inclusion

    def joint(self, codes: Ints) -> Floats:
        return self.family.joint[codes]

    def lightest(self, cost: Floats) -> Floats:
        total = cost[self.possible].sum(axis=1)
        least = np.full(self.size, np.inf)
        for column in self.possible.T:
            np.minimum.at(least, column, total)
        return least

    def least_error(self, prior: Floats, p: float = 1.0) -> float | None:
        if p == 0.0 or self.size > INFORMATION_LIMIT:
            return super().least_error(prior, p)
        mass = p * (prior / self.inclusion())[self.possible].sum(axis=1) + 1.0 - p
        return error_from(self.family.sums(1.0 / mass), self.inclusion(), prior, np.ones(self.size), p)

    def portable(self, p: float = 1.0) -> dict[str, Any]:
        if isinstance(self.structure, Circle) and not len(self._excluded):
            return portable_circle(self.structure, self.l, self._given, p)
        require_few(len(self._all))
        compatible, excluded = compatibility(self.structure), self._all[self._excluded].tolist()
        weights = whole(self._given)
        return document("listed", self.l, p, neighbours=neighbours(compatible), weights=weights, excluded=excluded)

    def parameters(self) -> Mapping[str, Any]:
        return {"log_weights": self._given.tolist(), "excluded": self._excluded.tolist()}
