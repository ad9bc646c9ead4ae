"""Ground distances, and the earth mover that works on them.

The earth mover's distance between two distributions `a` and `b` is the least cost of turning one into the other, where
moving probability from one value to another costs their *ground distance*. For the three grounds of t-closeness (Li, Li
and Venkatasubramanian 2007) it needs no optimisation, only the difference `b - a`:

    equal          1:                                        half the sum of |b_v - a_v|, the total variation
    ordered        |i - j| / (F - 1) for places i and j:     sum of |running total of b - a| / (F - 1)
    hierarchical   height of the lowest common ancestor      sum over nodes of w_n |b - a of all values below n|,
                   over the height of the tree:              w_n = (height above n - height of n) / 2 H

where
    F       how many values the domain has
    H       height of the tree: the most steps from its root down to a value; the root is the topmost node with at least
            two children, so that two values which meet only there are 1 apart, however many nodes are written above it

All are at most 1, so each earth mover's distance is at most the total variation. Promises, models, attacks and metrics
all ask here. A ground answers in two ways: `work` takes differences over the whole domain, `of_classes` the counts of
equivalence classes, in time proportional to the different values per class.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from polyseme.arrays import Floats, Ints, multipliable
from polyseme.distances.base import MATRIX_LIMIT, Distance
from polyseme.distances.dendrogram import Dendrogram
from polyseme.distances.tree import TreeDistance
from polyseme.errors import PolicyError, nearest

__all__ = ["GROUNDS", "ClassCounts", "Equal", "Ground", "Hierarchical", "Ordered", "ground_from"]

GROUNDS = ("equal", "ordered", "hierarchical")

_CHUNK = 4_000_000
"""Probabilities in memory at a time: 32 MB, chosen by judgment."""


class ClassCounts(Protocol):
    """How often each value occurs in each class and in the whole table; see `tables.classes.Counts`."""

    @property
    def sizes(self) -> Ints:
        """Records of each class."""

    @property
    def starts(self) -> Ints:
        """Where the entries of each class begin, and where the last one's end."""

    @property
    def owner(self) -> Ints:
        """The class of each entry."""

    @property
    def value(self) -> Ints:
        """The value of each entry, ascending within a class."""

    @property
    def count(self) -> Ints:
        """How often it occurs in the class, at least once."""

    @property
    def total(self) -> Ints:
        """How often each value of the domain occurs in the whole table."""


class Ground(ABC):
    """What it costs to move probability from one value to another: at most 1."""

    name: str

    @abstractmethod
    def work(self, difference: Floats) -> Floats:
        """The earth mover's distance for differences `b - a` of distributions: (..., F) -> (...)."""

    def of_classes(self, counts: ClassCounts) -> Floats:
        """The earth mover's distance of each class from the whole table."""
        whole, classes = counts.total / counts.total.sum(), len(counts.sizes)
        out, step = np.empty(classes), max(1, _CHUNK // len(whole))
        for start in range(0, classes, step):
            rows = slice(start, min(start + step, classes))
            entries = slice(counts.starts[rows.start], counts.starts[rows.stop])
            shift = np.tile(-whole, (rows.stop - rows.start, 1))
            owner = counts.owner[entries]
            shift[owner - start, counts.value[entries]] += counts.count[entries] / counts.sizes[owner]
            out[rows] = self.work(shift)
        return out

    def nearest(self, size: int) -> Floats:
        """At least how much it costs to move from each value of a domain of `size` to another: (F,)."""
        return np.zeros(size)

    def among(self, codes: Ints, size: int) -> Ground:
        """The same ground for distributions over some values of a domain of `size`."""
        return self if len(codes) == size else _Among(self, codes, size)


class Equal(Ground):
    """Every move costs 1.

    >>> float(Equal().work(np.array([0.25, -0.125, -0.125])))
    0.25
    """

    name = "equal"

    def work(self, difference: Floats) -> Floats:
        return np.asarray(np.abs(difference).sum(axis=-1) / 2.0)

    def of_classes(self, counts: ClassCounts) -> Floats:
        """From an integer numerator and denominator, so that a distance of exactly t is not above t."""
        records = int(counts.total.sum())
        count, total, sizes = multipliable(records, counts.count, counts.total, counts.sizes)
        extra = np.maximum(count * records - total[counts.value] * sizes[counts.owner], 0)
        return np.asarray(np.add.reduceat(extra, counts.starts[:-1]) / (sizes * records), dtype=np.float64)

    def nearest(self, size: int) -> Floats:
        return np.ones(size)

    def among(self, codes: Ints, size: int) -> Ground:
        return self


@dataclass(frozen=True, eq=False)
class Ordered(Ground):
    """Moving over k places of the domain's order costs k / (F - 1).

    positions  where the values stand instead, if not one place apart: the whole line is then 1 long

    >>> float(Ordered().work(np.array([-1.0, 0.0, 1.0])))
    1.0
    >>> float(Ordered(np.array([0.0, 1.0, 5.0])).work(np.array([-1.0, 1.0, 0.0])))
    0.2
    """

    positions: Floats | None = None
    name = "ordered"

    def work(self, difference: Floats) -> Floats:
        if self.positions is None:
            steps = max(difference.shape[-1] - 1, 1)
            return np.asarray(np.abs(np.cumsum(difference, axis=-1)[..., :-1]).sum(axis=-1) / steps)
        order = np.argsort(self.positions)
        gaps = np.diff(np.asarray(self.positions, dtype=np.float64)[order])
        return np.asarray(np.abs(np.cumsum(difference[..., order], axis=-1)[..., :-1]) @ gaps / gaps.sum())

    def nearest(self, size: int) -> Floats:
        return np.full(size, 1.0 / max(size - 1, 1)) if self.positions is None else super().nearest(size)

    def of_classes(self, counts: ClassCounts) -> Floats:
        """Sum of absolute differences of the cumulative distributions, over F - 1.

        The cumulative distribution of a class is constant between two of its values while that of the table rises, so
        each such stretch is one crossing point (binary search) and two differences of prefix sums.
        """
        if self.positions is not None:
            return super().of_classes(counts)
        size = len(counts.total)
        if size == 1:
            return np.zeros(len(counts.sizes))
        whole = np.cumsum(counts.total) / counts.total.sum()
        prefix = np.concatenate(([0.0], np.cumsum(whole)))
        running = np.cumsum(counts.count)
        before = np.concatenate(([0], running))[counts.starts[:-1]]
        level = (running - before[counts.owner]) / counts.sizes[counts.owner]
        # A class has one stretch from 0 to its first value, at level 0, and one from each value to the next.
        stop = np.append(counts.value[1:], size)
        stop[counts.starts[1:] - 1] = size
        stretches = _stretch(whole, prefix, level, counts.value, stop)
        leading = prefix[counts.value[counts.starts[:-1]]]
        return np.asarray((np.add.reduceat(stretches, counts.starts[:-1]) + leading) / (size - 1))


def _stretch(whole: Floats, prefix: Floats, level: Floats, start: Ints, stop: Ints) -> Floats:
    """`sum |level - whole[i]|` for i from `start` to `stop - 1`, `whole` being non-decreasing with sums `prefix`."""
    cross = np.clip(np.searchsorted(whole, level), start, stop)
    below = level * (cross - start) - (prefix[cross] - prefix[start])
    above = (prefix[stop] - prefix[cross]) - level * (stop - cross)
    return below + above


@dataclass(frozen=True, eq=False)
class Hierarchical(Ground):
    """Moving costs the height of the lowest common ancestor over the height of the tree.

    >>> tree = TreeDistance.from_paths([("flu", "lung", "*"), ("asthma", "lung", "*"), ("ulcer", "stomach", "*")])
    >>> Hierarchical.from_distance(tree).work(np.array([[1.0, -1.0, 0.0], [1.0, 0.0, -1.0]]))
    array([0.5, 1. ])
    """

    tree: Dendrogram
    name = "hierarchical"

    @classmethod
    def from_distance(cls, distance: Distance) -> Hierarchical:
        """The hierarchy of a distance: of a tree, whatever its measure, the tree itself.

        For any other distance, complete linkage builds a hierarchy that lies above it, as high as its largest distance:
        the earth mover's distance may come out too large, never too small, so promises stay safe.
        """
        if isinstance(distance, TreeDistance):
            return cls(Dendrogram.of_tree(distance.parents, distance.heights, distance.values, distance.height))
        return cls(Dendrogram.linked(distance.matrix()))

    def work(self, difference: Floats) -> Floats:
        return self.tree.moved(difference)

    def nearest(self, size: int) -> Floats:
        return self.tree.nearest()

    def of_classes(self, counts: ClassCounts) -> Floats:
        share = counts.count / counts.sizes[counts.owner]
        whole = counts.total / counts.total.sum()
        return self.tree.moved_entries(counts.owner, counts.value, share, whole, len(counts.sizes))


class _Among(Ground):
    """A ground of the whole domain, for distributions over some of its values."""

    def __init__(self, ground: Ground, codes: Ints, size: int) -> None:
        self.name = ground.name
        self._ground, self._codes, self._size = ground, codes, size

    def work(self, difference: Floats) -> Floats:
        whole = np.zeros((*difference.shape[:-1], self._size))
        whole[..., self._codes] = difference
        return self._ground.work(whole)


def ground_from(name: str, distance: Distance | None = None) -> Ground:
    """The ground a policy names; a hierarchical one needs the attribute's distance.

    For a distance that is not a tree, beyond `MATRIX_LIMIT` values a hierarchy is replaced by the equal ground, which
    is never smaller.
    """
    if name == "equal":
        return Equal()
    if name == "ordered":
        return Ordered()
    if name != "hierarchical":
        raise PolicyError(f"there is no ground distance '{name}'", nearest(name, GROUNDS))
    if distance is None:
        raise PolicyError("a hierarchical ground needs a distance", "give the attribute a tree, or use ground: equal")
    small = isinstance(distance, TreeDistance) or distance.size <= MATRIX_LIMIT
    return Hierarchical.from_distance(distance) if small else Equal()
