"""What a grouping or generalization of records costs.

E          an equivalence class, |E| its records
N          records of the table
c(E, v)    records of E with sensitive value v
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import polars as pl

from polyseme.arrays import Floats, Ints
from polyseme.distances.base import Distance
from polyseme.errors import TableError
from polyseme.tables.classes import Counts

__all__ = [
    "average_class_size",
    "discernibility",
    "diversity_degrees",
    "entropy_loss",
    "information_losses",
    "precision",
]


def discernibility(sizes: Ints, suppressed: int = 0) -> int:
    """DM*: sum of |E|^2, plus `N` for every suppressed row when their number is given.

    >>> discernibility(np.array([2, 3]))
    13
    """
    records = int(sizes.sum()) + suppressed
    return int((sizes.astype(np.int64) ** 2).sum()) + suppressed * records


def average_class_size(sizes: Ints, k: int = 1) -> float:
    """N / (number of classes * k): 1 is as good as k-anonymity can be."""
    return float(sizes.sum() / (len(sizes) * k))


def precision(levels: Sequence[int] | Ints, heights: Sequence[int] | Ints) -> float:
    """1 - mean of (level / height): how little of the hierarchies was climbed, over attributes or over cells.

    where
        levels   how high each attribute was generalized, (attributes,); or each cell, (records, attributes)
        heights  how high each hierarchy is, (attributes,); an attribute without hierarchy has height 0

    >>> precision([1, 0], [2, 4])
    0.75
    """
    climbed, full = np.asarray(levels, dtype=np.float64), np.asarray(heights, dtype=np.float64)
    return float(1.0 - np.mean(np.divide(climbed, full, out=np.zeros(climbed.shape), where=full > 0)))


def entropy_loss(original: pl.DataFrame, generalized: pl.DataFrame) -> float:
    """Bits lost by generalizing: sum over rows and columns of -log2(freq(value) / freq(generalized value)).

    Rows correspond one to one. Frequencies of values are taken in `original`, those of generalized values in
    `generalized`, before any row is suppressed.
    """
    if original.height != generalized.height:
        raise TableError(f"the tables have {original.height:,} and {generalized.height:,} rows", "keep rows in order")
    total = 0.0
    for name in generalized.columns:
        pairs = pl.DataFrame({"v": original[name], "g": generalized[name]}).group_by("v", "g").len("n")
        pairs = pairs.with_columns(
            pl.col("n").sum().over("v").alias("value"), pl.col("n").sum().over("g").alias("node")
        )
        n, value, node = (pairs[column].to_numpy().astype(np.float64) for column in ("n", "value", "node"))
        total += float((n * (np.log2(node) - np.log2(value))).sum())
    return total


def information_losses(counts: Counts, reading: Literal["equation", "example"] = "equation") -> Floats:
    """Information loss of each class when only its values are published, as in Anatomy: Equations 3 to 6.

        IL(t) = (1 - c(E, v)/|E|)^2 + sum over u != v of (c(E, u)/|E|)^2,   v being the value of record t

    `equation` is this, summed over the records of the class: `|E| - sum_v c(E, v)^2 / |E|`. The paper's own example,
    IL(t1) = (1/3 - 1)^2, keeps the first term only: `example`, summed `sum_v c(E, v) (1 - c(E, v)/|E|)^2`. Suppressed
    records are in no class, so their number belongs beside it.
    """
    if reading == "equation":
        squares = np.add.reduceat(counts.count.astype(np.float64) ** 2, counts.starts[:-1])
        return counts.sizes - squares / counts.sizes
    wrong = 1.0 - counts.count / counts.sizes[counts.owner]
    return np.add.reduceat(counts.count * wrong**2, counts.starts[:-1])


def diversity_degrees(counts: Counts, distance: Distance) -> Floats:
    """Diversity degree of each class: sum over pairs of records of the distance of their values, over |E|.

    Equation 9 of the (l, e) paper; the table's degree is the mean over classes (Equation 10).
    """
    degree = np.zeros(len(counts.sizes))
    for rows, values, count in counts.blocks():
        for step in range(1, values.shape[1]):
            apart = distance.between(values[:, :-step], values[:, step:])
            degree[rows] += (apart * count[:, :-step] * count[:, step:]).sum(axis=1)
    return degree / counts.sizes
