"""What smoothing gains and loses: `ml`, `shrink`, `smooth` and the choice between them, on tables smooth and rough.

    python benchmarks/smoothing.py [repeats]

A table of 12 ordered by 6 unordered values is published with l = 3, along the first at least 2 ranks apart. Printed are
the root mean squared error of `ml` over cells and repeats, that of the others as a share of it, and what was chosen.
"""

from __future__ import annotations

import sys
from collections import Counter

import numpy as np

from polyseme.designs import make_design
from polyseme.designs.mechanism import Mechanism
from polyseme.inference.base import Reports
from polyseme.inference.sets.registry import ESTIMATORS, choose
from polyseme.kernel.arrays import Floats
from polyseme.kernel.randomness import SystemStream, experiment
from polyseme.semantics.distances.base import Clusters
from polyseme.semantics.distances.line import LineDistance

SHAPE, RECORDS, REPEATS = (12, 6), (100, 400, 2_000, 20_000), 8


def truths(generator: np.random.Generator) -> dict[str, Floats]:
    """Shares of the cells: what they look like along the ordered attribute is in their name."""
    along, other = np.linspace(-1.0, 1.0, SHAPE[0]), np.arange(1.0, SHAPE[1] + 1)
    heaps = np.where(np.arange(SHAPE[0]) % 5 == 0, 3.0, 1.0)
    made = {
        "smooth, independent": np.outer(np.exp(-2.0 * (along - 0.1) ** 2), other**-0.7),
        "smooth, dependent": np.exp(-3.0 * (along[:, None] - np.linspace(-0.6, 0.6, SHAPE[1])) ** 2) * other**-0.5,
        "heaped, dependent": np.outer(np.exp(-2.0 * along**2) * heaps, other**-0.7)
        * np.exp(0.5 * np.outer(along, np.linspace(-1.0, 1.0, SHAPE[1]))),
        "rough, independent": np.outer(generator.gamma(0.7, size=SHAPE[0]) + 0.05, generator.gamma(1.0, size=SHAPE[1])),
        "rough, dependent": generator.gamma(0.7, size=SHAPE) + 0.01,
    }
    spikes = np.full(SHAPE, 0.02)
    spikes[4, 3], spikes[8, 0] = 5.0, 3.0
    return {name: table / table.sum() for name, table in (*made.items(), ("two spikes", spikes))}


def published(truth: Floats, records: int, mechanisms: list[Mechanism], seed: int) -> tuple[Floats, Reports]:
    """True counts of one table of records, and its reports."""
    codes = np.unravel_index(experiment(seed).choice(truth.size, records, p=truth.ravel()), SHAPE)
    stream = SystemStream.seeded(seed)
    sets = tuple(mechanism.sample(code, stream) for mechanism, code in zip(mechanisms, codes))
    counts = np.bincount(np.ravel_multi_index(codes, SHAPE), minlength=truth.size).reshape(SHAPE)
    one = np.ones(records, dtype=np.int64)
    distances = (LineDistance.ranks(SHAPE[0]), None)
    return counts.astype(np.float64), Reports(sets, 0 * one, one, 1, distances=distances)


def main(repeats: int = REPEATS) -> None:
    structures = LineDistance.ranks(SHAPE[0]).structure(2), Clusters(np.arange(SHAPE[1]))
    mechanisms = [Mechanism(make_design("balanced", structure, 3)) for structure in structures]
    names = ("ml", "shrink", "smooth")
    print(f"{'records':>8}  {'truth':<21}{'ml':>8}{'shrink':>9}{'smooth':>9}{'chosen':>9}   choices of {repeats} runs")
    for records in RECORDS:
        errors: dict[str, list[list[float]]] = {}
        choices: dict[str, Counter[str]] = {}
        for seed in range(repeats):
            for name, truth in truths(experiment(seed)).items():
                counts, reports = published(truth, records, mechanisms, seed)
                fits = [ESTIMATORS[estimator].fit(reports, mechanisms) for estimator in names]
                choice, fit = choose(reports, mechanisms)
                choices.setdefault(name, Counter())[choice] += 1
                errors.setdefault(name, []).append([float(((f.values - counts) ** 2).mean()) for f in (*fits, fit)])
        for name, found in errors.items():
            root = np.sqrt(np.mean(found, axis=0))
            shares = "".join(f"{share:>9.2f}" for share in root[1:] / root[0])
            chosen = ", ".join(f"{choice} {count}" for choice, count in choices[name].most_common())
            print(f"{records:>8,}  {name:<21}{root[0]:>8.2f}{shares}   {chosen}", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
