"""How often honest releases fail the test of their mechanism, and how soon wrong ones do.

    python benchmarks/evidence.py [repeats]

Every design x number of records x kind of truth x form; the figures in docs/verification.md are of 5 repeats.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import numpy as np

from polyseme.designs import make_design
from polyseme.designs.mechanism import Mechanism
from polyseme.inference.base import Reports
from polyseme.inference.counts import distinct
from polyseme.kernel.arrays import Ints
from polyseme.kernel.randomness import SystemStream, experiment
from polyseme.scrutiny.verification import LEVEL, Evidence, examine
from polyseme.semantics.distances import CircleDistance, LineDistance, MatrixDistance
from polyseme.semantics.distances.base import Clusters

RANKS = LineDistance.ranks
UNEVEN = LineDistance(np.array([1, 2, 3, 4, 5, 6, 7, 8, 15, 20, 25, 30.0]))
ROOTS = MatrixDistance(np.array([[abs(row - column) ** 0.5 for column in range(12)] for row in range(12)]))
RISING = np.linspace(1, 5, 30) / np.linspace(1, 5, 30).sum()
DESIGNS = {
    "line 14 (2,6)": ("balanced", RANKS(14).structure(6), 2, 1.0, None),
    "line 14 (3,4)": ("balanced", RANKS(14).structure(4), 3, 1.0, None),
    "line 14 (3,4), p = 0.5": ("balanced", RANKS(14).structure(4), 3, 0.5, None),
    "line 200 (2,20)": ("balanced", RANKS(200).structure(20), 2, 1.0, None),
    "simple 14 (2,6)": ("simple", RANKS(14).structure(6), 2, 1.0, None),
    "simple 14 (3,4)": ("simple", RANKS(14).structure(4), 3, 1.0, None),
    "duplicate 12 (3,2)": ("duplicate", RANKS(12).structure(2), 3, 1.0, None),
    "circle 12 (3,3)": ("balanced", CircleDistance.ranks(12).structure(3), 3, 1.0, None),
    "least-risk 12 (3,6)": ("least-risk", UNEVEN.structure(6), 3, 1.0, None),
    "matrix 12 (3,1.5)": ("balanced", ROOTS.structure(1.5), 3, 1.0, None),
    "5 clusters of 4, l = 3": ("balanced", Clusters(np.repeat(np.arange(5), 4)), 3, 1.0, None),
    "diversity 30, l = 4": ("balanced", Clusters(np.arange(30)), 4, 1.0, None),
    "diversity 30 with a prior": ("balanced", Clusters(np.arange(30)), 4, 1.0, RISING),
    "diversity 100, l = 3": ("balanced", Clusters(np.arange(100)), 3, 1.0, None),
    "response 20, p = 0.3": ("balanced", Clusters(np.arange(20)), 1, 0.3, None),
    "closeness 20, l = 5, p = 0.2": ("balanced", Clusters(np.arange(20)), 5, 0.2, None),
    "diversity 400, l = 3": ("balanced", Clusters(np.arange(400)), 3, 1.0, None),
    "line 300 (4,10)": ("balanced", RANKS(300).structure(10), 4, 1.0, None),
}
SIZES = (10, 60, 1_000, 20_000)


def truths(size: int, records: int, seed: int) -> Iterator[tuple[str, Ints]]:
    rng = experiment(1_000_000 * seed + records)
    few = rng.permutation(size)[: max(2, size // 8)]
    yield "uniform", rng.integers(0, size, records)
    yield "spike", np.where(rng.random(records) < 0.97, size // 3, rng.integers(0, size, records))
    yield "one", np.zeros(records, dtype=np.int64)
    yield "sparse", few[rng.integers(0, len(few), records)]
    yield "steep", np.minimum(rng.geometric(0.4, records) - 1, size - 1)


def judged(sets: Ints, mechanism: Mechanism, paired: bool = True) -> Evidence:
    rows, place = distinct(sets if paired else sets.reshape(-1, 1), mechanism.size)
    counts = np.bincount(place, minlength=len(rows))
    return examine(Reports((rows,), np.zeros(len(rows), dtype=np.int64), counts, 1, paired), mechanism)


def honest(repeats: int) -> None:
    everything: list[float] = []
    for name, (design, structure, l, p, prior) in DESIGNS.items():
        mechanism = Mechanism(make_design(design, structure, l, prior), p)
        begin, found = time.perf_counter(), []
        for records in SIZES:
            for repeat in range(repeats):
                for kind, codes in truths(mechanism.size, records, repeat):
                    sets = mechanism.sample(codes, SystemStream.seeded(f"{name} {records} {repeat} {kind}"))
                    found += [judged(sets, mechanism, paired).p_value for paired in (True, False)]
        each = (time.perf_counter() - begin) / len(found)
        print(f"{name:32} {len(found):5} releases  least p-value {min(found):.3g}  {1e3 * each:6.1f} ms", flush=True)
        everything += found
    values = np.array(everything)
    shares = ", ".join(f"p < {level:g}: {(values < level).mean():.5f}" for level in (0.1, 0.01, 0.001, LEVEL))
    print(f"{len(values):,} honest releases; {shares}")


def forged() -> None:
    for l, d in ((2, 6), (3, 4), (4, 3)):
        balanced, simple = (Mechanism(make_design(name, RANKS(14).structure(d), l)) for name in ("balanced", "simple"))
        for records in (100, 300, 1_000, 10_000):
            codes = experiment(records).integers(0, 14, records)
            found = judged(simple.sample(codes, SystemStream.seeded(f"forged {records}")), balanced)
            print(f"simple labeled balanced ({l},{d}), {records:6,} records: {found.p_value:.1e} {found.parameters()}")
    together = Mechanism(make_design("balanced", RANKS(14).structure(2), 2))
    for records in (20, 50, 100):
        codes = experiment(records).integers(0, 14, records)
        sets = np.sort(np.stack([codes, (codes + 7) % 14], axis=1), axis=1)
        print(f"every value beside v+-7, {records:6,} records: {judged(sets, together).p_value:.1e}")


if __name__ == "__main__":
    forged()
    honest(int(sys.argv[1]) if len(sys.argv) > 1 else 2)
