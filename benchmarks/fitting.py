"""How long it takes to fit a balanced design.

python benchmarks/fitting.py
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from polyseme.designs import make_design
from polyseme.kernel.arrays import Floats
from polyseme.semantics.distances import LineDistance
from polyseme.semantics.distances.base import Clusters, Structure


def leaves(size: int, clusters: int) -> Clusters:
    rng = np.random.default_rng(1)
    return Clusters(np.concatenate([np.arange(clusters), rng.integers(0, clusters, size - clusters)]))


def bumpy(size: int) -> Floats:
    weights = np.random.default_rng(2).random(size) + 0.5
    return weights / weights.sum()


SETTINGS: list[tuple[str, Callable[[], Structure], int, Floats | None, float]] = [
    ("line F=148 d=10", lambda: LineDistance.ranks(148).structure(10), 3, None, 0),
    ("line F=1,000 d=50", lambda: LineDistance.ranks(1_000).structure(50), 5, None, 1.0),
    ("line F=1,000 d=50, prior", lambda: LineDistance.ranks(1_000).structure(50), 5, bumpy(1_000), 1.0),
    ("line F=1,000 d=190 (crowded)", lambda: LineDistance.ranks(1_000).structure(190), 5, None, 1.0),
    ("line F=10,000 d=500", lambda: LineDistance.ranks(10_000).structure(500), 5, None, 0),
    ("70,000 leaves, 2,000 clusters", lambda: leaves(70_000, 2_000), 3, None, 5.0),
    ("70,000 leaves, clusters, prior", lambda: leaves(70_000, 2_000), 3, bumpy(70_000), 5.0),
    ("70,000 values, prior", lambda: Clusters(np.arange(70_000)), 3, bumpy(70_000), 5.0),
]


def main() -> None:
    print(f"{'structure':32} {'l':>2} {'seconds':>9} {'wanted':>7} {'inclusion error':>16}")
    for label, structure, l, prior, wanted in SETTINGS:
        shape = structure()
        start = time.perf_counter()
        design = make_design("balanced", shape, l, prior)
        taken = time.perf_counter() - start
        target = l * (prior if prior is not None else np.full(design.size, 1 / design.size))
        error = np.abs(design.blind_inclusion() / target - 1).max()
        print(f"{label:32} {l:2} {taken:9.3f} {(f'{wanted:.0f}' if wanted else '-'):>7} {error:16.1e}")


if __name__ == "__main__":
    main()
