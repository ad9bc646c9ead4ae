"""What columns that help gain and lose, as far as the truth does what the estimator takes for granted, and further.

    python benchmarks/helping.py [repeats]

A table of 8 ordered by 6 unordered values is published with l = 3. Two columns are published as they are, with 3 and 4
values or with 20 and 24. Printed are the root of the mean squared L2 without them; with them as a share of it, as
chosen by default and by `smooth` in any case; and how often they were used by default.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np

from polyseme.inference.base import Reports
from polyseme.inference.sets.auxiliary import Help, with_help
from polyseme.inference.sets.registry import choose
from polyseme.inference.sets.smooth import Smooth
from polyseme.kernel.arrays import Floats
from polyseme.kernel.randomness import SystemStream, experiment
from polyseme.privacy.calibration import choose as choose_recipe
from polyseme.privacy.calibration import mechanism_for
from polyseme.privacy.promises import Diversity, Promises
from polyseme.semantics.distances.line import LineDistance

SHAPE, RECORDS, REPEATS = (8, 6), (300, 3_000, 30_000, 300_000), 4
MECHANISMS = [mechanism_for(choose_recipe(size, None, Promises.of(Diversity(l=3)))) for size in SHAPE]
TRUTHS = ("nothing", "one attribute each", "the table", "only together", "everything")


def shares(how: str, kinds: tuple[int, int], generator: np.random.Generator) -> Floats:
    """Of (first column, second column, values, values); `how` says what the columns have to do with the values."""
    rows, columns, first, second = *SHAPE, *kinds
    normal = generator.normal
    logs = 0.7 * normal(size=(rows, 1)) + 0.7 * normal(size=columns) + 0.5 * normal(size=SHAPE)
    logs = logs + 0.5 * normal(size=(first, second, 1, 1))
    if how in ("one attribute each", "the table", "everything"):
        logs = logs + 0.8 * normal(size=(first, 1, rows, 1)) + 0.8 * normal(size=(1, second, 1, columns))
    if how == "the table":
        logs = logs + 0.8 * normal(size=(first, 1, *SHAPE))
    if how == "everything":
        logs = logs + 1.2 * normal(size=(first, second, *SHAPE))
    if how == "only together":
        sign = np.sign(normal(size=(first, second, 1, 1)))
        logs = logs + sign * (normal(size=(rows, 1)) + normal(size=columns))
    weights = np.exp(logs)
    return np.asarray(weights / weights.sum(), dtype=np.float64)


def losses(how: str, kinds: tuple[int, int], records: int, seed: int) -> tuple[list[float], bool]:
    """Squared L2 without the columns, by default with them, by `smooth` with them; and whether they were used."""
    generator = experiment(seed)
    truth = shares(how, kinds, generator)
    first, second, *codes = np.unravel_index(generator.choice(truth.size, records, p=truth.ravel()), truth.shape)
    stream = SystemStream.seeded(seed)
    sets = [mechanism.sample(code, stream) for mechanism, code in zip(MECHANISMS, codes, strict=True)]
    joined, counts = np.unique(np.column_stack([first, second, *sets]), axis=0, return_counts=True)
    parts = tuple(np.ascontiguousarray(part) for part in np.split(joined[:, 2:], [3], axis=1))
    order = (LineDistance.ranks(SHAPE[0]), None)
    rows = Reports(parts, np.zeros(len(counts), dtype=np.int64), counts, 1, distances=order)
    helped = with_help(rows, [Help("first", joined[:, 0]), Help("second", joined[:, 1])], MECHANISMS)
    table = np.zeros(SHAPE)
    np.add.at(table, tuple(codes), 1.0)
    fits = [choose(replace(helped, finer=None), MECHANISMS)[1], choose(helped, MECHANISMS)[1]]
    used = any(note.startswith("smoothed with the help") for note in fits[1].notes)
    fits.append(Smooth().fit(helped, MECHANISMS))
    return [float(((fit.values[0] - table) ** 2).sum()) for fit in fits], used


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else REPEATS
    print(f"{'the columns tell':<22}{'kinds':>8}{'records':>9}{'L2 without':>12}{'default':>9}{'always':>8}{'used':>6}")
    for kinds in ((3, 4), (20, 24)):
        for how in TRUTHS:
            for records in RECORDS:
                found = [losses(how, kinds, records, seed) for seed in range(repeats)]
                without, default, always = np.sqrt(np.mean([errors for errors, _ in found], axis=0))
                used = np.mean([was for _, was in found])
                print(
                    f"{how:<22}{kinds[0]:>5},{kinds[1]:>2}{records:>9,}{without:>12,.0f}{default / without:>9.2f}"
                    f"{always / without:>8.2f}{used:>6.0%}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
