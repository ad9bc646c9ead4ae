"""Age x occupation of the 45,222 complete Adult records at l = 5: how well each method recovers the table.

For every run all records are anonymized afresh; printed are the mean L2, L1 and Hellinger distances between the
reconstructed and the true table (the paper's Definitions 7 to 9), the standard error of the mean L2, and "kept": what a
method leaves of the records in cells above the average. This is the table of the paper's Figure 7, of which it says
that ValueAdding and Rating show much less there than is true.

    python benchmarks/adult_reconstruction.py FOLDER [--runs 20] [--l 5] [--only ml shrink ..] [--json]

Rating is printed in three readings: `rating-groups`, fixed groups of values; `rating-drawn`, sets filled with values of
other records; `rating-parted`, groups of records with different values. docs/decisions/rating.md says what speaks for
each.

Three rows show what other columns of the same records add to `smooth`: see `adult_help.py`.

FOLDER holds `adult.data` and `adult.test` as the UCI repository publishes them.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from adult import records
from adult_help import Columns, helped
from rating_readings import parted, shared_evenly

from polyseme.designs.mechanism import Mechanism
from polyseme.inference.base import Reports
from polyseme.inference.sets.registry import ESTIMATORS
from polyseme.kernel.randomness import SystemStream, experiment
from polyseme.papers.baselines import random_table, rating, rating_table, value_groups
from polyseme.privacy.calibration import choose, mechanism_for
from polyseme.privacy.promises import Diversity, Promises
from polyseme.semantics.distances import LineDistance

AGE, OCCUPATION, BAND = 0, 6, 10
WANTED = ("valueadding", "inverse", "bayes", "ml", "shrink", "smooth")

Array = np.ndarray
Table = tuple[Array, ...]


def columns(rows: list[list[str]]) -> tuple[Table, tuple[int, int]]:
    """Codes of the age in 10-year bands and of the occupation, and the sizes of their domains."""
    bands = np.array([int(row[AGE]) // BAND for row in rows])
    names, occupation = np.unique([row[OCCUPATION] for row in rows], return_inverse=True)
    age = bands - bands.min()
    return (age, occupation.astype(np.int64)), (int(age.max()) + 1, len(names))


def tabulate(codes: Table, shape: tuple[int, int]) -> Array:
    return np.bincount(np.ravel_multi_index(codes, shape), minlength=int(np.prod(shape))).reshape(shape).astype(float)


def grouped(sets: Table) -> Reports:
    """Identical combinations of sets counted once."""
    joined, counts = np.unique(np.column_stack(sets), axis=0, return_counts=True)
    width = sets[0].shape[1]
    parts = (np.ascontiguousarray(joined[:, :width]), np.ascontiguousarray(joined[:, width:]))
    # Bands of age stand in their order, occupations in none.
    bands = LineDistance.ranks(int(parts[0].max()) + 1)
    return Reports(parts, np.zeros(len(joined), dtype=np.int64), counts.astype(np.int64), 1, distances=(bands, None))


def distances(truth: Array, estimate: Array) -> dict[str, float]:
    above = truth > truth.mean()
    roots = np.sqrt(truth) - np.sqrt(np.maximum(estimate, 0.0))
    return {
        "l2": float(np.sqrt(((truth - estimate) ** 2).sum())),
        "l1": float(np.abs(truth - estimate).sum()),
        "hellinger": float(np.sqrt((roots**2).sum() / 2.0)),
        "kept": float(estimate[above].sum() / truth[above].sum()),
    }


def methods(codes: Table, shape: tuple[int, int], others: Columns, l: int, seed: int) -> dict[str, Callable[[], Array]]:
    """One run: the name of each method and how to get its table."""
    made: list[Mechanism] = [mechanism_for(choose(size, None, Promises.of(Diversity(l=l)))) for size in shape]
    stream = SystemStream.seeded(seed)
    sets = tuple(mechanism.sample(code, stream) for mechanism, code in zip(made, codes, strict=True))
    ours = grouped(sets)
    rated = grouped(tuple(rating(code, size, l, stream) for code, size in zip(codes, shape, strict=True)))
    found: dict[str, Callable[[], Array]] = {
        name: (lambda name=name: ESTIMATORS[name].fit(ours, made).values[0]) for name in WANTED if name in ESTIMATORS
    }
    for name, helping in others.helping(l, stream).items():
        found[f"smooth{name}"] = lambda helping=helping: helped(sets, made, helping)
    found["rating-drawn"] = lambda: ESTIMATORS["valueadding"].fit(rated, made).values[0]
    parts = [value_groups(np.bincount(code, minlength=size), l) for code, size in zip(codes, shape, strict=True)]
    found["rating-groups"] = lambda: rating_table(codes, parts)
    found["rating-parted"] = lambda: shared_evenly([parted(code, l, experiment(seed)) for code in codes], shape)
    found["random"] = lambda: random_table(len(codes[0]), shape, experiment(seed))
    return found


def run(folder: Path, runs: int, l: int, only: list[str] | None = None) -> dict[str, dict[str, float]]:
    rows = records(folder)
    codes, shape = columns(rows)
    others = Columns(rows)
    truth = tabulate(codes, shape)
    seen: dict[str, list[dict[str, float]]] = {}
    for seed in range(runs):
        for name, estimate in methods(codes, shape, others, l, seed).items():
            if only and name not in only:
                continue
            begin = time.perf_counter()
            measured = distances(truth, estimate())
            seen.setdefault(name, []).append({**measured, "seconds": time.perf_counter() - begin})
    summary = {}
    for name, results in seen.items():
        summary[name] = {key: float(np.mean([result[key] for result in results])) for key in results[0]}
        spread = np.std([result["l2"] for result in results], ddof=1) if runs > 1 else float("nan")
        summary[name]["l2_stderr"] = float(spread / np.sqrt(runs))
    return summary


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("../shared/data/adult"))
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--l", type=int, default=5)
    parser.add_argument("--only", nargs="+", metavar="METHOD")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    summary = run(arguments.folder, arguments.runs, arguments.l, arguments.only)
    if arguments.json:
        print(json.dumps(summary))
        return
    print(f"mean of {arguments.runs} runs")
    print(f"{'method':<15}{'L2':>10}{'+/-':>8}{'L1':>10}{'Hellinger':>11}{'kept':>7}{'seconds':>9}")
    for name, row in sorted(summary.items(), key=lambda item: item[1]["l2"]):
        print(
            f"{name:<15}{row['l2']:>10,.0f}{row['l2_stderr']:>8,.0f}{row['l1']:>10,.0f}"
            f"{row['hellinger']:>11.2f}{row['kept']:>7.2f}{row['seconds']:>9.2f}"
        )
    best = [name for name in ("smooth", "smooth+clear", "smooth+sets", "smooth+columns") if name in summary]
    print(f"\n{'times the L2 of':<19}" + "".join(f"{name:>16}" for name in best) + f"{'Random':>12}")
    for name in ("valueadding", "rating-groups", "rating-drawn", "rating-parted", "bayes"):
        if name in summary:
            times = "".join(f"{summary[name]['l2'] / summary[ours]['l2']:>16.2f}" for ours in best)
            of_random = f"{summary[name]['l2'] / summary['random']['l2']:>12.2f}" if "random" in summary else ""
            print(f"{name:<19}{times}{of_random}")


if __name__ == "__main__":
    main()
