"""Small designs by plain enumeration, independent of the package's own."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np

from polyseme.designs.base import Design
from polyseme.designs.distribution import SetDistribution, compatibility
from polyseme.designs.mechanism import Mechanism
from polyseme.semantics.distances.base import Clusters
from polyseme.semantics.distances.line import LineDistance
from polyseme.testing.estimators import long_form, report, tabulate

__all__ = [
    "Listed",
    "ListedSequential",
    "Uniforms",
    "clusters",
    "line",
    "long_form",
    "plain",
    "report",
    "sequential",
    "tabulate",
    "valid_sets",
]


def valid_sets(structure, l):
    far = compatibility(structure)
    rows = [row for row in combinations(range(structure.size), l) if all(far[u, v] for u, v in combinations(row, 2))]
    return np.array(rows, dtype=np.int64).reshape(-1, l)


class _ListedChannel:
    """What follows from a table of K(R | v) and B(R)."""

    draws = 1

    def _index(self, sets):
        lookup = {tuple(row): place for place, row in enumerate(self._sets.tolist())}
        return np.array([lookup.get(tuple(row), -1) for row in np.asarray(sets).tolist()], dtype=np.int64)

    def sample(self, codes, uniforms):
        cumulative = np.cumsum(self._channel, axis=1)
        places = np.empty(len(codes), dtype=np.int64)
        for code in range(self.size):
            here = codes == code
            places[here] = np.searchsorted(cumulative[code] / cumulative[code, -1], uniforms[0, here], side="right")
        return self._sets[np.minimum(places, len(self._sets) - 1)]

    def sample_blind(self, uniforms):
        cumulative = np.cumsum(self._blind)
        places = np.searchsorted(cumulative / cumulative[-1], uniforms[0], side="right")
        return self._sets[np.minimum(places, len(self._sets) - 1)]

    def count(self):
        return len(self._sets)

    def sets(self):
        return self._sets

    def conditional_inclusion(self, codes):
        indicator = np.zeros((len(self._sets), self.size))
        np.put_along_axis(indicator, self._sets, 1.0, axis=1)
        return (self._channel @ indicator)[codes]

    def worst_posterior(self, prior, p):
        joint = prior[:, None] * (p * self._channel + (1 - p) * self._blind)
        return float((joint / joint.sum(axis=0)).max())

    def parameters(self):
        return {}


class Listed(_ListedChannel, SetDistribution):
    """Every valid set, uniform or with weights fitted to prescribed inclusion."""

    name = "listed"

    def __init__(self, structure, l, target=None):
        self.structure, self.l = structure, l
        self._sets = valid_sets(structure, l)
        theta = np.ones(structure.size)
        for _ in range(0 if target is None else 4000):
            off = target / self._inclusion(theta)
            theta *= off**0.7
            if np.abs(off - 1.0).max() < 1e-14:
                break
        self._blind = self._probability(theta)
        self._rho = self._inclusion(theta)
        self._channel = np.zeros((structure.size, len(self._sets)))
        for place, row in enumerate(self._sets):
            self._channel[row, place] = self._blind[place] / self._rho[row]

    def _probability(self, theta):
        weight = np.prod(theta[self._sets], axis=1)
        return weight / weight.sum()

    def _inclusion(self, theta):
        weight = np.repeat(self._probability(theta), self.l)
        return np.bincount(self._sets.ravel(), weights=weight, minlength=self.structure.size)

    def log_probability(self, sets):
        place = self._index(sets)
        return np.log(np.where(place >= 0, self._blind[place], 0.0))

    def inclusion(self):
        return self._rho


class ListedSequential(_ListedChannel, Design):
    """Algorithm 1: decoys one after the other, each uniform over what is still compatible (no dead ends assumed)."""

    name = "listed-sequential"

    def __init__(self, structure, l):
        self.structure, self.l = structure, l
        far = compatibility(structure)
        self._sets = valid_sets(structure, l)
        self._channel = np.zeros((structure.size, len(self._sets)))
        for place, row in enumerate(self._sets):
            for v in row:
                for order in permutations([u for u in row if u != v]):
                    room, probability = far[v].copy(), 1.0
                    for u in order:
                        probability *= room[u] / room.sum()
                        room &= far[u]
                    self._channel[v, place] += probability
        self._channel /= self._channel.sum(axis=1, keepdims=True)
        self._blind = self._channel.mean(axis=0)

    def likelihood(self, sets):
        place = self._index(sets)
        return np.take_along_axis(self._channel[:, place].T, np.asarray(sets), axis=1)

    def blind_likelihood(self, sets):
        return self._blind[self._index(sets)]

    def blind_inclusion(self):
        return np.full(self.size, 1 / self.size) @ self.conditional_inclusion(np.arange(self.size))


def line(size, l, d, p=1.0, balanced=True):
    structure = LineDistance.ranks(size).structure(d)
    return Mechanism(Listed(structure, l, np.full(size, l / size) if balanced else None), p)


def sequential(size, l, d, p=1.0):
    return Mechanism(ListedSequential(LineDistance.ranks(size).structure(d), l), p)


def plain(size, l, p=1.0):
    return Mechanism(Listed(Clusters(np.arange(size)), l), p)


def clusters(labels, l, p=1.0, target=None):
    return Mechanism(Listed(Clusters(np.asarray(labels)), l, target), p)


class Uniforms:
    """A stream of an ordinary generator."""

    def __init__(self, generator):
        self.generator = generator

    def uniforms(self, draws, records):
        return self.generator.random((draws, records))
