"""The interface of a semantic distance."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from polyseme.arrays import Bools, Floats, Ints
from polyseme.distances.structure import Clusters, Graph, Structure
from polyseme.errors import ImpossibleError, PolicyError

__all__ = ["MATRIX_LIMIT", "Distance", "numbers", "recognise"]

MATRIX_LIMIT = 5_000
"""Largest domain for which a full F x F matrix is ever built: 200 MB, chosen by judgment."""


class Distance(ABC):
    """How far apart two values of a domain are. Symmetric, zero only between a value and itself.

    Values are named by their codes, the positions in the domain. `parameters` are public: they go into the manifest,
    and `distance_from` builds the same distance from them.
    """

    kind: str

    @property
    @abstractmethod
    def size(self) -> int:
        """How many values the domain has."""

    @abstractmethod
    def between(self, left: Ints, right: Ints) -> Floats:
        """Distances of pairs of codes, element by element (arrays broadcast)."""

    @abstractmethod
    def structure(self, threshold: float) -> Structure:
        """Which values are compatible at this threshold, in the simplest shape that says it."""

    @abstractmethod
    def parameters(self) -> Mapping[str, Any]:
        """Everything needed to build this distance again, ready for JSON."""

    def among(self, codes: Ints) -> Distance | None:
        """The distance between some of the values only; None where it has no form of its own."""
        return None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} over {self.size:,} values>"

    def compatible(self, left: Ints, right: Ints, threshold: float) -> Bools:
        """Whether pairs of codes are at least `threshold` apart."""
        return self.between(left, right) >= threshold

    def matrix(self) -> Floats:
        """All pairwise distances; refuses domains beyond `MATRIX_LIMIT`."""
        if self.size > MATRIX_LIMIT:
            raise ImpossibleError(
                f"a matrix of all distances is refused for {self.size:,} values (limit {MATRIX_LIMIT:,})",
                "use a line, a circle or a tree, which need no matrix",
            )
        codes = np.arange(self.size)
        return self.between(codes[:, None], codes[None, :])


def recognise(compatible: Bools) -> Clusters | Graph:
    """The simplest structure with these compatible pairs: clusters if closeness is an equivalence, else a graph."""
    close = ~compatible
    np.fill_diagonal(close, True)
    first = close.argmax(axis=1)
    # An equivalence relation has identical rows within a class, so comparing each row with that of its first member
    # is enough.
    if np.array_equal(close, close[first]):
        labels = np.unique(first, return_inverse=True)[1]
        return Clusters(labels.astype(np.int64))
    graph = compatible.copy()
    np.fill_diagonal(graph, False)
    return Graph(graph)


def numbers(given: Sequence[float] | Floats, expected: str) -> Floats:
    """`given` as a row of finite numbers, or a `PolicyError` that says what was expected."""
    try:
        row = np.array(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise PolicyError(expected) from error
    if row.ndim != 1 or not np.all(np.isfinite(row)):
        raise PolicyError(expected)
    return row
