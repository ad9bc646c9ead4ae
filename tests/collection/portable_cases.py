"""Designs of every kind that can be drawn on devices, small enough to go through all their sets."""

from __future__ import annotations

import numpy as np

from polyseme.designs import make_design
from polyseme.designs.circle import fit_rooted
from polyseme.kernel.errors import ImpossibleError
from polyseme.semantics.distances import LineDistance
from polyseme.semantics.distances.base import Circle, Clusters, Graph


def shares(size, seed, power=1.0):
    raw = np.random.default_rng(seed).random(size) ** power + 0.2
    return raw / raw.sum()


def circle(positions, length, threshold, spacing=None):
    order = np.argsort(positions).astype(np.int64)
    return Circle(order, np.asarray(positions, dtype=float)[order], float(length), float(threshold), spacing)


def graph(size, density, seed):
    upper = np.triu(np.random.default_rng(seed).random((size, size)) < density, 1)
    return Graph(upper | upper.T)


UNEVEN = [0.0, 1.1, 2.0, 3.4, 4.1, 5.3, 6.2, 7.7, 8.3, 9.6]
LABELS = np.array([2, 0, 1, 1, 3, 0, 2, 4, 4, 3, 5])
FULL = np.array([0.25, 0.25, 0.125, 0.125, 0.125, 0.125])


def cases():
    """Name, design and truth probability."""
    singles = Clusters(np.arange(7))
    return {
        "clusters-even": (make_design("balanced", singles, 3), 1.0),
        "clusters-even-lying": (make_design("balanced", singles, 3), 0.7),
        "clusters-prior": (make_design("balanced", singles, 3, shares(7, 1)), 0.85),
        "clusters-shares": (make_design("balanced", Clusters(LABELS), 3, shares(11, 2)), 0.6),
        "clusters-full": (make_design("balanced", Clusters(np.array([0, 0, 1, 2, 3, 3])), 2, FULL), 0.9),
        "clusters-all": (make_design("balanced", Clusters(np.arange(4)), 4), 1.0),
        "line-ranks": (make_design("balanced", LineDistance.ranks(9).structure(3), 3), 1.0),
        "line-prior": (make_design("balanced", LineDistance.ranks(11).structure(2), 3, shares(11, 3, 0.3)), 0.8),
        "line-scattered": (
            make_design("balanced", LineDistance([3.0, 0.0, 7.5, 1.2, 9.0, 4.4, 11.0, 5.1]).structure(1.4), 2),
            0.75,
        ),
        "line-least-risk": (
            make_design("least-risk", LineDistance([*range(1, 8), *range(11, 16)]).structure(4.0), 3),
            1.0,
        ),
        "circle-even": (make_design("balanced", circle(np.arange(9), 9, 2, 2), 3), 0.5),
        "circle-turned": (make_design("balanced", circle([3, 0, 4, 1, 5, 2, 6, 7], 8, 2, 2), 2), 1.0),
        "circle-uneven": (make_design("balanced", circle(UNEVEN, 11, 2.2), 3), 0.65),
        "circle-rooted": (fit_rooted(circle(UNEVEN, 11, 1.5), 3, 3 * shares(10, 4, 0.2)), 0.9),
        "listed": (make_design("balanced", graph(9, 0.75, 5), 3), 0.8),
        "listed-prior": (make_design("balanced", graph(8, 0.8, 6), 2, shares(8, 7, 0.3)), 1.0),
        "table-line": (make_design("sharp", LineDistance.ranks(9).structure(2), 3), 0.7),
        "table-clusters": (make_design("sharp", Clusters(np.array([0, 0, 1, 2, 2, 3, 3])), 2), 1.0),
    }


def random_designs(count):
    """Designs of all structures with random sizes, weights and truth probabilities."""
    for seed in range(count):
        rng = np.random.default_rng(seed)
        size, l = int(rng.integers(4, 16)), int(rng.integers(1, 4))
        prior = None if rng.random() < 0.3 else shares(size, seed, float(rng.random()))
        spots = np.cumsum(rng.random(size) + 0.3)
        structure = (
            LineDistance(rng.permutation(spots)).structure(float(rng.random() * spots[-1] / (l + 1))),
            Clusters(np.unique(rng.integers(0, max(size - 2, 1), size), return_inverse=True)[1]),
            circle(spots, spots[-1] + 1, float(rng.random() * spots[-1] / (l + 1))),
            circle(np.arange(size), size, 2, 2),
        )[seed % 4]
        try:
            design = make_design("balanced" if rng.random() < 0.7 else "least-risk", structure, l, prior)
        except ImpossibleError:
            continue
        yield design, 1.0 if rng.random() < 0.4 else float(rng.random()), rng
