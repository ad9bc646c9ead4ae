"""How close estimates come to the limit of what the reports can tell. Run: python benchmarks/accuracy.py [repeats]

For each (l, d) on 14 ordered values, a smooth truth of 100,000 records is published again and again. The mean squared
error of the estimated proportions is compared with the finite-population limit

    mean over values of (CRB - multinomial variance) / N,     CRB = (F^-1 restricted to tables of total one)

with F the Fisher information of one report at the truth. The papers' pipeline is Algorithm 1 with Equation 2.
"""

from __future__ import annotations

import sys

import numpy as np

from polyseme.designs import make_design
from polyseme.designs.mechanism import Mechanism
from polyseme.inference.base import Reports
from polyseme.inference.sets.registry import ESTIMATORS
from polyseme.kernel.arrays import Floats
from polyseme.kernel.randomness import experiment
from polyseme.semantics.distances.line import LineDistance

SETTINGS = ((2, 2), (2, 4), (3, 2), (3, 3), (3, 4), (4, 2), (4, 3), (5, 2))
VALUES, RECORDS, REPEATS = 14, 100_000, 400


def smooth_truth(generator: np.random.Generator) -> Floats:
    """A bell over the ranks with all values present."""
    places = np.arange(VALUES)
    weight = np.exp(-0.5 * ((places - generator.uniform(4.0, 9.0)) / generator.uniform(3.0, 4.5)) ** 2)
    return np.asarray(weight / weight.sum())


def limit(mechanism: Mechanism, shares: Floats, records: int) -> float:
    """The least mean squared error of proportions about the records themselves."""
    _, channel = mechanism.channel()
    seen = shares @ channel
    information = (channel / seen) @ channel.T
    # On tables of total one the inverse loses `x x'`; drawing the records accounts for diag(x) - x x'.
    return float((np.linalg.inv(information).diagonal() - shares).mean() / records)


def repeated(mechanism: Mechanism, truth: Floats, repeats: int, generator: np.random.Generator) -> Reports:
    """All repeats as cells of one table: how often each valid set came up."""
    sets, channel = mechanism.channel()
    channel = channel / channel.sum(axis=1, keepdims=True)
    drawn = sum(generator.multinomial(int(count), row, size=repeats) for count, row in zip(truth, channel))
    counts = np.asarray(drawn, dtype=np.int64)
    cell, place = np.nonzero(counts)
    return Reports((sets[place],), cell.astype(np.int64), counts[cell, place], repeats)


def main(repeats: int = REPEATS) -> dict[tuple[int, int], float]:
    print(f"{VALUES} ordered values, {RECORDS:,} records, {repeats} repeats; mean squared error over the limit")
    print(f"{'(l, d)':>8} {'limit':>10} {'ml':>8} {'inverse':>8} {'pipeline':>10}")
    ratios = {}
    structure_of = LineDistance.ranks(VALUES).structure
    for setting in SETTINGS:
        l, d = setting
        generator = experiment(100 * l + d)
        shares = smooth_truth(generator)
        truth = generator.multinomial(RECORDS, shares).astype(np.float64)
        balanced = Mechanism(make_design("balanced", structure_of(d), l))
        simple = Mechanism(make_design("simple", structure_of(d), l))
        bound = limit(balanced, truth / RECORDS, RECORDS)
        reports = repeated(balanced, truth, repeats, generator)
        errors = {
            name: float(((ESTIMATORS[name].fit(reports, [balanced]).values - truth) ** 2).mean()) / RECORDS**2 / bound
            for name in ("ml", "inverse")
        }
        published = repeated(simple, truth, repeats, generator)
        paper = float(((ESTIMATORS["paper"].fit(published, [simple]).values - truth) ** 2).mean()) / RECORDS**2
        ratios[setting] = errors["ml"]
        print(f"{setting!s:>8} {bound:10.2e} {errors['ml']:8.3f} {errors['inverse']:8.3f} {paper / bound:10.1f}")
    print(f"worst ratio of ml: {max(ratios.values()):.3f}   (promised: 1.15)")
    return ratios


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
