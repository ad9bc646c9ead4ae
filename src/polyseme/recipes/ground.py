"""Ground distances: what it costs to move probability from one value to another.

The earth mover's distance between two distributions `a` and `b` is the least cost of turning one into the other. For
the three grounds of t-closeness it needs no optimisation, only the difference `b - a`:

    equal          every move costs 1:              half the sum of |b_v - a_v|, the total variation
    ordered        |i - j| / (F - 1) for places:    sum of |running total of b - a| / (F - 1)
    hierarchical   height of the common ancestor:   sum over nodes of (height above it - own height) / 2 * |extra mass|

All are scaled so that the dearest move costs 1, so each of them is at most the total variation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform

from polyseme.distances.base import MATRIX_LIMIT, Distance
from polyseme.distances.structure import Floats, Ints
from polyseme.errors import PolicyError, nearest

__all__ = ["GROUNDS", "Equal", "Ground", "Hierarchical", "Ordered", "ground_from"]

GROUNDS = ("equal", "ordered", "hierarchical")


class Ground(ABC):
    """The cost of moving probability, at most 1."""

    name: str

    @abstractmethod
    def work(self, difference: Floats) -> Floats:
        """The earth mover's distance for differences `b - a` of distributions: (.., F) -> (..)."""


class Equal(Ground):
    """Every move costs 1.

    >>> float(Equal().work(np.array([0.25, -0.125, -0.125])))
    0.25
    """

    name = "equal"

    def work(self, difference: Floats) -> Floats:
        return np.asarray(np.abs(difference).sum(axis=-1) / 2.0)


class Ordered(Ground):
    """Moving over k places of the domain's order costs k / (F - 1).

    >>> float(Ordered().work(np.array([-1.0, 0.0, 1.0])))
    1.0
    """

    name = "ordered"

    def work(self, difference: Floats) -> Floats:
        steps = max(difference.shape[-1] - 1, 1)
        return np.asarray(np.abs(np.cumsum(difference, axis=-1)[..., :-1]).sum(axis=-1) / steps)


@dataclass(frozen=True, eq=False)
class Hierarchical(Ground):
    """Moving costs the height of the lowest common ancestor, as a share of the highest.

    children  the two nodes joined at each step; values are 0 .. F-1, the k-th join is node F + k: (F - 1, 2)
    weights   half of how much higher the parent of each node is: (2F - 1,)
    """

    children: Ints
    weights: Floats
    name = "hierarchical"

    @classmethod
    def from_distance(cls, distance: Distance) -> Hierarchical:
        """The hierarchy of a distance, by complete linkage.

        For a tree with equally deep leaves that is the tree itself. For any other distance it is a hierarchy that lies
        above it: the earth mover's distance may come out too large, never too small, so promises stay safe.
        """
        matrix = distance.matrix()
        if len(matrix) < 2:
            return cls(np.empty((0, 2), dtype=np.int64), np.zeros(len(matrix)))
        joins = linkage(squareform(matrix, checks=False), method="complete")
        children = joins[:, :2].astype(np.int64)
        heights = np.concatenate([np.zeros(len(matrix)), joins[:, 2] / joins[-1, 2]])
        above = heights.copy()
        above[children] = heights[len(matrix) :, None]
        return cls(children, (above - heights) / 2.0)

    def work(self, difference: Floats) -> Floats:
        size = difference.shape[-1]
        extra = np.empty((*difference.shape[:-1], len(self.weights)))
        extra[..., :size] = difference
        for node, (left, right) in enumerate(self.children, start=size):
            extra[..., node] = extra[..., left] + extra[..., right]
        return np.asarray(np.abs(extra) @ self.weights)


def ground_from(name: str, distance: Distance | None = None) -> Ground:
    """The ground a policy names; a hierarchical one needs the attribute's distance.

    Beyond `MATRIX_LIMIT` values a hierarchy is replaced by the equal ground, which is never smaller.
    """
    if name == "equal":
        return Equal()
    if name == "ordered":
        return Ordered()
    if name != "hierarchical":
        raise PolicyError(f"there is no ground distance '{name}'", nearest(name, GROUNDS))
    if distance is None:
        raise PolicyError("a hierarchical ground needs a distance", "give the attribute a tree, or use ground: equal")
    return Hierarchical.from_distance(distance) if distance.size <= MATRIX_LIMIT else Equal()
