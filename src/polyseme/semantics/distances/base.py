"""The interface of a semantic distance, and which values may share a set at a threshold.

A distance says how far apart any two values are; a threshold `d` turns that into "compatible or not". Four shapes cover
everything, and a design needs nothing else:

- `Line`: values sorted by position; each one's compatible successors are all from some index on.
- `Circle`: the same, closed.
- `Clusters`: incompatibility is an equivalence; a set takes at most one value of each cluster.
- `Graph`: anything else, as a boolean matrix.

Values are named by their codes 0 ... F-1 everywhere.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from polyseme.kernel.arrays import Bools, Floats, Ints
from polyseme.kernel.errors import ImpossibleError, PolicyError

__all__ = ["MATRIX_LIMIT", "Circle", "Clusters", "Distance", "Graph", "Line", "Structure", "numbers", "recognize"]


@dataclass(frozen=True, eq=False)
class Line:
    """Points on a line. `order[k]` is the code of the k-th smallest.

    `ahead[k]` is the first place compatible after it.

    `ahead[k]` is `F` when nothing larger is far enough; it is non-decreasing and always beyond `k`.
    """

    order: Ints
    ahead: Ints

    @property
    def size(self) -> int:
        return len(self.order)


@dataclass(frozen=True, eq=False)
class Circle:
    """Points on a closed line; `positions` are sorted along `order` and lie in [0, length)."""

    order: Ints
    positions: Floats
    length: float
    threshold: float
    spacing: int | None = field(default=None)
    """For equally spaced values: how many steps apart two members must be; None when spacing is unequal."""

    @property
    def size(self) -> int:
        return len(self.order)


@dataclass(frozen=True, eq=False)
class Clusters:
    """`labels[v]` is the cluster (0 ... C-1) of value `v`.

    Values are compatible when their clusters differ.
    """

    labels: Ints

    @property
    def size(self) -> int:
        return len(self.labels)

    @property
    def count(self) -> int:
        return int(self.labels.max(initial=-1)) + 1


@dataclass(frozen=True, eq=False)
class Graph:
    """`compatible[u, v]`: may `u` and `v` stand in one set? Symmetric, false on the diagonal."""

    compatible: Bools

    @property
    def size(self) -> int:
        return len(self.compatible)


Structure: TypeAlias = Line | Circle | Clusters | Graph


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


def recognize(compatible: Bools) -> Clusters | Graph:
    """The simplest structure with these pairs: clusters for an equivalence, else a graph."""
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


recognise = recognize
"""The earlier spelling, which plugins may import."""
