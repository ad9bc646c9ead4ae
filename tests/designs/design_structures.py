"""Small structures of every kind, and naive definitions to check against."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from polyseme.semantics.distances import LineDistance
from polyseme.semantics.distances.base import Circle, Clusters, Graph, Line


def line_of(positions, threshold):
    """A Line even where every two values are compatible."""
    order = np.argsort(positions).astype(np.int64)
    spots = np.asarray(positions, dtype=float)[order]
    ahead = np.array(
        [
            next((j for j in range(k + 1, len(spots)) if spots[j] - spots[k] >= threshold), len(spots))
            for k in range(len(spots))
        ]
    )
    return Line(order, ahead.astype(np.int64))


def circle_of(positions, length, threshold, spacing=None):
    order = np.argsort(positions).astype(np.int64)
    return Circle(order, np.asarray(positions, dtype=float)[order], float(length), float(threshold), spacing)


def even_circle(size, spacing):
    return circle_of(np.arange(size), size, spacing, spacing)


def random_graph(size, density, seed):
    """From a seed, or from numbers that hypothesis draws."""
    rng = np.random.default_rng(seed) if isinstance(seed, int) else seed
    upper = np.triu(rng.random((size, size)) < density, 1)
    return Graph(upper | upper.T)


def compatible(structure):
    """All compatible pairs, from the definition of each structure."""
    size = structure.size
    pairs = np.zeros((size, size), dtype=bool)
    if isinstance(structure, Graph):
        return structure.compatible
    if isinstance(structure, Clusters):
        return structure.labels[:, None] != structure.labels[None, :]
    for i in range(size):
        for j in range(i + 1, size):
            if isinstance(structure, Line):
                close = j < structure.ahead[i]
            else:
                arc = structure.positions[j] - structure.positions[i]
                close = min(arc, structure.length - arc) < structure.threshold
            u, v = structure.order[i], structure.order[j]
            pairs[u, v] = pairs[v, u] = not close
    return pairs


def valid_sets(structure, l):
    pairs = compatible(structure)
    rows = [r for r in combinations(range(structure.size), l) if all(pairs[a, b] for a, b in combinations(r, 2))]
    return np.array(rows, dtype=np.int64).reshape(-1, l)


def naive_simple(structure, l):
    """K(R | v) of Algorithm 1 as a dictionary, by following every order of draws."""
    pairs = compatible(structure)
    completable = {
        frozenset(s) for row in valid_sets(structure, l).tolist() for k in range(l + 1) for s in combinations(row, k)
    }
    channel = {}

    def draw(true, members, probability):
        if len(members) == l:
            channel[frozenset(members), true] = channel.get((frozenset(members), true), 0.0) + probability
            return
        candidates = [
            c
            for c in range(structure.size)
            if c not in members and all(pairs[c, m] for m in members) and frozenset([*members, c]) in completable
        ]
        for candidate in candidates:
            draw(true, [*members, candidate], probability / len(candidates))

    for value in range(structure.size):
        if frozenset([value]) in completable:
            draw(value, [value], 1.0)
    return channel


SCATTERED = [3.0, 0.0, 7.5, 1.2, 9.0, 4.4, 11.0, 5.1, 13.7, 2.1]
STRUCTURES = {
    "ranks": (LineDistance.ranks(10).structure(3), 3),
    "ranks-tight": (LineDistance.ranks(12).structure(3), 4),
    "ranks-many": (LineDistance.ranks(12).structure(2), 5),
    "scattered": (LineDistance(SCATTERED).structure(2.5), 3),
    "all-compatible": (line_of(np.arange(7), 1), 3),
    "circle": (even_circle(11, 3), 3),
    "circle-tight": (even_circle(12, 3), 4),
    "circle-uneven": (circle_of([0, 5.5, 1.5, 9, 3, 4, 7, 8.1, 10.4], 12.0, 2.0), 4),
    "clusters": (Clusters(np.array([2, 0, 1, 1, 3, 0, 2, 4, 4, 3])), 3),
    "clusters-tight": (Clusters(np.array([0, 1, 1, 2, 0, 2, 2])), 3),
    "singletons": (Clusters(np.arange(8)), 3),
    "graph": (random_graph(9, 0.75, 3), 3),
    "graph-thin": (random_graph(11, 0.6, 7), 3),
}
