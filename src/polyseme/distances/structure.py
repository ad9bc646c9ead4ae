"""What a distance looks like at a threshold: which values may share a set.

A distance says how far apart any two values are; a threshold `d` turns that into "compatible or not". Four shapes cover
everything, and a design needs nothing else:

- `Line`: values sorted by position; each one's compatible successors are all from some index on.
- `Circle`: the same, closed.
- `Clusters`: incompatibility is an equivalence; a set takes at most one value of each cluster.
- `Graph`: anything else, as a boolean matrix.

Values are named by their codes 0 ... F-1 everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from polyseme.arrays import Bools, Floats, Ints

__all__ = ["Circle", "Clusters", "Graph", "Line", "Structure"]


@dataclass(frozen=True, eq=False)
class Line:
    """Points on a line. `order[k]` is the code of the k-th smallest; `ahead[k]` the first place compatible after it.

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
    """`labels[v]` is the cluster (0 ... C-1) of value `v`; values are compatible when their clusters differ."""

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
