"""How far an estimated cross-tabulation is from the true one, and the error of queries.

    x, x^     true and estimated number of records of a cell
    N         number of records
    p, q      x and x^ divided by their sums, negative estimates taken as zero

| name        | definition                                   | of                                         |
|-------------|----------------------------------------------|--------------------------------------------|
| `mse`       | mean over cells of (x/N - x^/N)^2            | journal paper, Equation 18                 |
| `l1`        | sum of |x - x^|                              | sensitive-QID paper, Definition 7          |
| `l2`        | square root of the sum of (x - x^)^2         | Definition 8                               |
| `hellinger` | sqrt(sum of (sqrt x - sqrt x^)^2) / sqrt 2   | Definition 9, on counts, not on shares     |
| `emd`       | earth mover's distance of p and q, at most 1 | equal ground distances, or a line          |
| `kl`        | sum of p ln(p / q)                           | infinite where a true cell is estimated 0  |
| `chi2`      | sum of (x^ - x)^2 / x over cells with x > 0  | Pearson                                    |

Negative estimates count as they are in `mse`, `l1`, `l2` and `chi2`, and as zero where a root or a logarithm is taken.

`queries` asks "how many records lie in this box?". The workload is that of Anatomy (Xiao and Tao 2006), on
cross-tabulations: a query picks a contiguous range on every axis, of a length that gives the requested expected
selectivity; its relative error is |estimate - truth| / truth. Queries without any true record have no relative error:
they are drawn but left out, and counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.errors import QuestionError
from polyseme.kernel.randomness import experiment
from polyseme.semantics.distances.ground import Equal, Ordered

__all__ = [
    "METRICS",
    "QueryError",
    "as_grid",
    "chi2",
    "compare",
    "covered",
    "emd",
    "hellinger",
    "kl",
    "l1",
    "l2",
    "mse",
    "per_cell",
    "query_error",
]

_ROUNDING = 1e-6
"""Records by which a whole number may miss the end of an interval that was computed."""


def _share(table: Floats) -> Floats:
    positive = np.maximum(table, 0.0)
    total = positive.sum()
    return positive / total if total > 0 else np.full(table.shape, 1.0 / table.size)


def _squared(truth: Floats, estimate: Floats, records: float) -> Floats:
    return ((truth - estimate) / records) ** 2


def _roots(truth: Floats, estimate: Floats) -> Floats:
    return (np.sqrt(np.maximum(truth, 0.0)) - np.sqrt(np.maximum(estimate, 0.0))) ** 2 / 2.0


def _surprise(truth: Floats, estimate: Floats) -> Floats:
    p, q = _share(truth), _share(estimate)
    ratio = np.divide(p, q, out=np.full(p.shape, np.inf), where=q > 0)
    logarithm: Floats = np.log(ratio, out=np.zeros(p.shape), where=p > 0)
    return p * logarithm


def _pearson(truth: Floats, estimate: Floats) -> Floats:
    return np.divide((truth - estimate) ** 2, truth, out=np.zeros(truth.shape), where=truth > 0)


def mse(truth: Floats, estimate: Floats, records: float) -> float:
    """Mean over cells of the squared difference of shares.

    >>> round(mse(np.array([120.0, 50.0]), np.array([110.0, 60.0]), 1000), 7)
    0.0001
    """
    return float(_squared(truth, estimate, records).mean())


def l1(truth: Floats, estimate: Floats, records: float = 1.0) -> float:
    """Sum of absolute differences of counts."""
    return float(np.abs(truth - estimate).sum())


def l2(truth: Floats, estimate: Floats, records: float = 1.0) -> float:
    """Root of the sum of squared differences of counts."""
    return float(np.sqrt(((truth - estimate) ** 2).sum()))


def hellinger(truth: Floats, estimate: Floats, records: float = 1.0) -> float:
    """Distance of the roots of counts, over sqrt 2: errors weigh more where records are few.

    >>> round(hellinger(np.array([10.0, 100.0]), np.array([10.0, 80.0])), 4)
    0.7465
    """
    return float(np.sqrt(_roots(truth, estimate).sum()))


def emd(truth: Floats, estimate: Floats, records: float = 1.0, positions: Floats | None = None) -> float:
    """Earth mover's distance of the two distributions, at most 1.

    Without `positions` all cells are equally far apart, and it is half the sum of |p - q|. With `positions` of the last
    axis on a line, each row is moved along the line, the whole line being 1 long, and rows count by their true share.
    """
    if positions is None:
        return float(Equal().work((_share(truth) - _share(estimate)).ravel()))
    rows, others = (np.reshape(table, (-1, len(positions))) for table in (truth, estimate))
    shifts = np.array([_share(row) - _share(other) for row, other in zip(rows, others, strict=True)])
    weights = rows.sum(axis=1) / rows.sum()
    return float(weights @ Ordered(positions).work(shifts))


def kl(truth: Floats, estimate: Floats, records: float = 1.0) -> float:
    """Kullback-Leibler divergence of the estimate from the truth, in nats; may be infinite."""
    return float(max(_surprise(truth, estimate).sum(), 0.0))


def chi2(truth: Floats, estimate: Floats, records: float = 1.0) -> float:
    """Pearson's statistic with the truth as expectation, over cells that have true records."""
    return float(_pearson(truth, estimate).sum())


METRICS: Mapping[str, Callable[[Floats, Floats, float], float]] = {
    "mse": mse,
    "l1": l1,
    "l2": l2,
    "hellinger": hellinger,
    "emd": emd,
    "kl": kl,
    "chi2": chi2,
}
"""Every metric of a whole table by its name."""


def _aligned(truth: Floats, estimate: Floats) -> tuple[Floats, Floats]:
    truth, estimate = np.asarray(truth, dtype=np.float64), np.asarray(estimate, dtype=np.float64)
    if truth.shape != estimate.shape or truth.size == 0:
        raise QuestionError(
            f"two tables can only be compared cell by cell, not {truth.shape} with {estimate.shape}",
            "give both the same attributes in the same order",
        )
    return truth, estimate


def compare(truth: Floats, estimate: Floats, records: float | None = None) -> dict[str, float]:
    """Every metric by name; `records` is the sum of the true table unless given.

    >>> compare(np.array([10.0, 25.0]), np.array([10.0, 5.0]))["l1"]
    20.0
    """
    truth, estimate = _aligned(truth, estimate)
    total = float(truth.sum()) if records is None else float(records)
    return {name: metric(truth, estimate, total) for name, metric in METRICS.items()}


def covered(truth: Floats, low: Floats, high: Floats, level: float) -> dict[str, float]:
    """How many true numbers lie in their intervals; nothing where no cell has an interval.

    cells, covered  that have an interval, and whose true number lies in it
    coverage, level what share that is, and what share it should be

    >>> covered(np.array([3.0, 9.0]), np.array([2.0, 0.0]), np.array([4.0, 8.0]), 0.95)
    {'cells': 2.0, 'covered': 1.0, 'coverage': 0.5, 'level': 0.95}
    """
    known = np.isfinite(low) & np.isfinite(high)
    cells = int(known.sum())
    if not cells:
        return {}
    inside = int(((truth >= low - _ROUNDING) & (truth <= high + _ROUNDING) & known).sum())
    return {"cells": float(cells), "covered": float(inside), "coverage": inside / cells, "level": level}


def per_cell(truth: Floats, estimate: Floats, records: float | None = None) -> dict[str, Floats]:
    """What each cell adds to each metric: squared share error, |x - x^|, (x - x^)^2, ..."""
    truth, estimate = _aligned(truth, estimate)
    total = float(truth.sum()) if records is None else float(records)
    return {
        "mse": _squared(truth, estimate, total),
        "l1": np.abs(truth - estimate),
        "l2": (truth - estimate) ** 2,
        "hellinger": _roots(truth, estimate),
        "emd": np.abs(_share(truth) - _share(estimate)) / 2.0,
        "kl": _surprise(truth, estimate),
        "chi2": _pearson(truth, estimate),
    }


_GRID = 10_000_000
"""The largest grid of combinations for queries: 80 MB for either table. A judgment."""


@dataclass(frozen=True)
class QueryError:
    """Relative errors of a workload.

    mean, median  of the relative errors; nan when no query had a true record
    absolute      mean absolute error over all queries, in records
    queries       how many were drawn
    empty         how many had no true record
    """

    mean: float
    median: float
    absolute: float
    queries: int
    empty: int


def as_grid(table: Floats, cells: Mapping[str, Sequence[Any]]) -> Floats | None:
    """A table (cells, F_1, ...) with an axis for each attribute of the cells, values in order.

    Combinations that are no cell have no record. None when there are too many of them.

    >>> as_grid(np.array([[1.0], [2.0], [3.0]]), {"sex": ["f", "m", "m"], "age": [30, 30, 20]})[..., 0].tolist()
    [[0.0, 1.0], [3.0, 2.0]]
    """
    if not cells:
        return np.asarray(table[0], dtype=np.float64)
    ranks = []
    for values in cells.values():
        keys = [_order(value) for value in values]
        order = {key: rank for rank, key in enumerate(sorted(set(keys)))}
        ranks.append(np.array([order[key] for key in keys]))
    shape = tuple(int(rank.max()) + 1 for rank in ranks)
    if math.prod((*shape, *table.shape[1:])) > _GRID:
        return None
    grid = np.zeros((*shape, *table.shape[1:]))
    grid[tuple(ranks)] = table
    return grid


def _order(value: Any) -> tuple[int, float, str]:
    """Numbers by size, then words by the alphabet, then what is missing."""
    if isinstance(value, int | float):
        return 0, float(value), ""
    return (2, 0.0, "") if value is None else (1, 0.0, str(value))


def _box_sums(table: Floats, low: Ints, high: Ints) -> Floats:
    """Sums of `table` over boxes [low, high), (queries, axes), from prefix sums."""
    prefix = np.pad(table, [(1, 0)] * table.ndim)
    for axis in range(table.ndim):
        prefix = np.cumsum(prefix, axis=axis)
    total = np.zeros(len(low))
    for corner in range(1 << table.ndim):
        upper = np.array([(corner >> axis) & 1 for axis in range(table.ndim)], dtype=bool)
        sign = -1.0 if (table.ndim - int(upper.sum())) % 2 else 1.0
        total += sign * prefix[tuple(np.where(upper, high, low).T)]
    return total


def query_error(
    truth: Floats, estimate: Floats, *, queries: int = 1_000, selectivity: float = 0.1, seed: int = 0
) -> QueryError:
    """Errors of random range queries on an estimated table.

    >>> query_error(np.ones((4, 4)), np.ones((4, 4)), queries=50).mean
    0.0
    """
    truth, estimate = np.asarray(truth, dtype=np.float64), np.asarray(estimate, dtype=np.float64)
    if truth.shape != estimate.shape or truth.size == 0:
        raise QuestionError("the two tables have different shapes", "give both the same attributes in the same order")
    if not 0.0 < selectivity <= 1.0:
        raise QuestionError(f"a selectivity lies above 0 and up to 1, not {selectivity}", "try 0.1")
    random = experiment(seed)
    shape = np.array(truth.shape)
    width = np.clip(np.round(shape * selectivity ** (1.0 / truth.ndim)).astype(np.int64), 1, shape)
    low = random.integers(0, shape - width + 1, size=(queries, truth.ndim))
    actual, guess = _box_sums(truth, low, low + width), _box_sums(estimate, low, low + width)
    wrong = np.abs(guess - actual)
    nonempty = actual > 0.5  # counts: anything less is rounding of an empty box
    relative = wrong[nonempty] / actual[nonempty]
    mean, median = (float(relative.mean()), float(np.median(relative))) if relative.size else (np.nan, np.nan)
    return QueryError(mean, median, float(wrong.mean()), queries, int((~nonempty).sum()))
