"""Distances written out: a matrix, or any function of two values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from polyseme.kernel.arrays import Bools, Floats, Ints
from polyseme.kernel.errors import ImpossibleError, PolicyError, Problem
from polyseme.semantics.distances.base import MATRIX_LIMIT, Distance, Structure, recognize

__all__ = ["MatrixDistance", "function_distance"]

Value = TypeVar("Value")


class MatrixDistance(Distance):
    """`D[u, v]`, one number for each pair of values.

    >>> MatrixDistance([[0, 1, 5], [1, 0, 2], [5, 2, 0]]).between(np.array([0]), np.array([2]))
    array([5.])
    """

    kind = "matrix"

    def __init__(self, distances: Sequence[Sequence[float]] | Floats) -> None:
        try:
            self.distances: Floats = np.array(distances, dtype=np.float64)
        except (TypeError, ValueError):
            raise PolicyError(
                "a distance matrix holds one number for each pair of values", "rows of equal length, numbers only"
            ) from None
        if problems := _problems(self.distances):
            raise PolicyError(problems)

    @property
    def size(self) -> int:
        return len(self.distances)

    def between(self, left: Ints, right: Ints) -> Floats:
        chosen: Floats = self.distances[left, right]
        return chosen

    def structure(self, threshold: float) -> Structure:
        return recognize(self.distances >= threshold)

    def parameters(self) -> Mapping[str, Any]:
        return {"matrix": self.distances.tolist()}


def function_distance(function: Callable[[Value, Value], float], values: Sequence[Value]) -> MatrixDistance:
    """The distances that a Python function gives for every pair of `values`, as a matrix.

    >>> letters = function_distance(lambda one, other: abs(len(one) - len(other)), ["a", "bb", "dddd"])
    >>> letters.between(np.array([0]), np.array([2]))
    array([3.])
    """
    _refuse_large(len(values))
    return MatrixDistance(
        np.array([[function(left, right) for right in values] for left in values], dtype=np.float64).reshape(
            len(values), len(values)
        )
    )


def _refuse_large(size: int) -> None:
    if size > MATRIX_LIMIT:
        raise ImpossibleError(
            f"a matrix of all distances is refused for {size:,} values (limit {MATRIX_LIMIT:,})",
            "use a line, a circle or a tree, which need no matrix",
        )


def _problems(distances: Floats) -> list[Problem]:
    """Everything that keeps a matrix from being a distance."""
    shape = distances.shape
    if len(shape) != 2 or shape[0] != shape[1]:
        came = " x ".join(map(str, shape))
        return [Problem("", f"a distance matrix is square, one row and one column for each value; this is {came}")]
    _refuse_large(len(distances))
    finite = np.isfinite(distances)
    off_diagonal = ~np.eye(len(distances), dtype=bool)
    checks: list[tuple[str, Bools, str]] = [
        ("not a finite number", ~finite, "write a number for every pair"),
        ("not zero on the diagonal", finite & (distances != 0) & ~off_diagonal, "a value is at distance 0 from itself"),
        (
            "not positive off the diagonal",
            finite & (distances <= 0) & off_diagonal,
            "values at distance zero count as one value: merge them",
        ),
        (
            "not the same in both directions",
            np.triu(finite & finite.T & (distances != distances.T)),
            "a distance is symmetric",
        ),
    ]
    return [
        Problem("", f"{_count(wrong)} {what}, first at {_first(wrong)}", hint)
        for what, wrong, hint in checks
        if wrong.any()
    ]


def _count(wrong: Bools) -> str:
    number = int(wrong.sum())
    return "1 entry is" if number == 1 else f"{number} entries are"


def _first(wrong: Bools) -> str:
    row, column = np.argwhere(wrong)[0]
    return f"row {row + 1}, column {column + 1}"
