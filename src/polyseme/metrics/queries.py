"""Error of counting queries: how wrong is the answer to "how many records lie in this box"?

The workload of Anatomy (Xiao and Tao 2006), on cross-tabulations: a query picks a contiguous range on every axis, of a
length that makes the expected selectivity what was asked for; its relative error is |estimate - truth| / truth.
Queries without any true record have no relative error: they are drawn but left out, and counted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyseme.arrays import Floats, Ints
from polyseme.errors import QuestionError
from polyseme.randomness import experiment

__all__ = ["QueryError", "as_grid", "query_error"]

_GRID = 10_000_000
"""The largest grid of combinations that queries are asked on: 80 MB for either table. A judgment."""


@dataclass(frozen=True)
class QueryError:
    """Relative errors of a workload.

    mean, median  of the relative errors; nan when no query had a true record
    absolute      mean absolute error over all queries, in records
    queries       how many were asked
    empty         how many had no true record
    """

    mean: float
    median: float
    absolute: float
    queries: int
    empty: int


def as_grid(table: Floats, cells: Mapping[str, Sequence[Any]]) -> Floats | None:
    """A table (cells, F_1, ...) with an axis for each attribute of the cells, whose values are put in order.

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
    """Sums of `table` over boxes [low, high), (queries, axes), by inclusion and exclusion of prefix sums."""
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
    asked = actual > 0.5  # counts: anything less is rounding of an empty box
    relative = wrong[asked] / actual[asked]
    mean, median = (float(relative.mean()), float(np.median(relative))) if relative.size else (np.nan, np.nan)
    return QueryError(mean, median, float(wrong.mean()), queries, int((~asked).sum()))
