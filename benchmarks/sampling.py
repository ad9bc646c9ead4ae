"""How many records a second each sampler draws on one core, with the cryptographic generator.

    python benchmarks/sampling.py [RECORDS]

If multi-freq-ldpy is installed, its subset selection runs in the same process for the ratio.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np

from polyseme.designs import make_design
from polyseme.designs.mechanism import Mechanism
from polyseme.kernel.randomness import StickyStream, SystemStream
from polyseme.semantics.distances import LineDistance
from polyseme.semantics.distances.base import Circle, Clusters, Structure


def even_circle(size: int, spacing: int) -> Circle:
    return Circle(np.arange(size), np.arange(size, dtype=float), float(size), float(spacing), spacing)


def leaves(size: int, clusters: int) -> Clusters:
    rng = np.random.default_rng(1)
    return Clusters(np.sort(np.concatenate([np.arange(clusters), rng.integers(0, clusters, size - clusters)])))


SETTINGS: list[tuple[str, str, Callable[[], Structure], int, float]] = [
    ("line F=148 d=10", "balanced", lambda: LineDistance.ranks(148).structure(10), 3, 20e6),
    ("line F=148 d=10", "simple", lambda: LineDistance.ranks(148).structure(10), 3, 0),
    ("line F=148 d=10", "duplicate", lambda: LineDistance.ranks(148).structure(10), 3, 0),
    ("line F=10,000 d=100", "balanced", lambda: LineDistance.ranks(10_000).structure(100), 5, 0),
    ("circle F=366 d=30", "balanced", lambda: even_circle(366, 30), 3, 0),
    ("70,000 leaves, 20 clusters", "balanced", lambda: leaves(70_000, 20), 3, 5e6),
    ("70,000 leaves, 2,000 clusters", "balanced", lambda: leaves(70_000, 2_000), 3, 5e6),
    ("70,000 values, plain", "balanced", lambda: Clusters(np.arange(70_000)), 3, 5e6),
]


def rate(work: Callable[[], object], records: int, repeats: int = 3) -> float:
    """Records a second of processor time, the best of a few runs: other work on the machine disturbs it least."""
    work()
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return records / best


def sticky_rate(records: int) -> float:
    mechanism = Mechanism(make_design("balanced", LineDistance.ranks(148).structure(10), 3))
    codes = np.random.default_rng(0).integers(0, 148, records)
    keys = [b"%012d" % index for index in range(records)]
    secret = bytes(32)
    return rate(lambda: mechanism.sample(codes, StickyStream(secret, "income", keys, codes)), records)


def main() -> None:
    records = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    stream = SystemStream()
    print(f"{'structure':32} {'design':10} {'l':>2} {'million/s':>10} {'wanted':>8}")
    for label, name, structure, l, wanted in SETTINGS:
        mechanism = Mechanism(make_design(name, structure(), l))
        count = records if wanted else max(records // 10, 1)
        codes = np.random.default_rng(0).integers(0, mechanism.size, count)
        found = rate(lambda m=mechanism, c=codes: m.sample(c, stream), count)
        goal = f"{wanted / 1e6:.0f}" if wanted else "-"
        print(f"{label:32} {name:10} {l:2} {found / 1e6:10.1f} {goal:>8}")
    print(
        f"{'sticky, line F=148 d=10':32} {'balanced':10}  3 {sticky_rate(min(records, 1_000_000)) / 1e6:10.1f} {'1':>8}"
    )


if __name__ == "__main__":
    main()
