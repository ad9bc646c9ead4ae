"""Ground distances, and the earth mover's distances on them.

The earth mover's distance between two distributions `a` and `b` is the least cost of turning one into the other, where
moving probability from one value to another costs their *ground distance*. For the three grounds of t-closeness (Li, Li
and Venkatasubramanian 2007) it needs no optimization, only the difference `b - a`:

    equal          1:                                        half the sum of |b_v - a_v|, the total variation
    ordered        |i - j| / (F - 1) for places i and j:     sum of |running total of b - a| / (F - 1)
    hierarchical   height of the lowest common ancestor      sum over nodes of w_n |b - a of all values below n|,
                   over the height of the tree:              w_n = (height above n - height of n) / 2 H

where
    F       how many values the domain has
    H       height of the tree: the most steps from its root down to a value; the root is the topmost node with at least
            two children, so that two values which meet only there are 1 apart, however many nodes are written above it

All are at most 1, so each earth mover's distance is at most the total variation. Promises, models, attacks and metrics
all use these. A ground answers in two ways: `work` takes differences over the whole domain, `of_classes` the counts of
equivalence classes, in time proportional to the different values per class.

In a tree with a height at every node, two values are as far apart as their lowest common ancestor is high. Whatever a
subtree has too much or too little of has to pass the edge above it, and nothing else needs to, so that

    EMD = sum over nodes n of w_n |extra mass of n|,   w_n = (height of the parent of n - height of n) / 2

where
    extra mass of n   the difference of the two distributions, summed over the values below n

(Mass that goes from u to v passes the edges from u up to their lowest common ancestor and those from there down to v:
its height on either side, half of which counts.)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from polyseme.kernel.arrays import Floats, Ints, multipliable
from polyseme.kernel.errors import PolicyError, nearest
from polyseme.semantics.distances.base import MATRIX_LIMIT, Distance
from polyseme.semantics.distances.tree import TreeDistance

__all__ = ["GROUNDS", "ClassCounts", "Dendrogram", "Equal", "Ground", "Hierarchical", "Ordered", "ground_from"]


@dataclass(frozen=True, eq=False)
class Dendrogram:
    """Nodes from the first (node 0) down, depth by depth, the children of a node side by side.

    parents  of each node, -1 for the first: (nodes,)
    starts   where the nodes of each depth begin, and where the deepest end: (depths + 1,)
    weights  `w_n` of each node, heights being shares of the tree's: (nodes,)
    leaves   the node of each value: (F,)
    """

    parents: Ints
    starts: Ints
    weights: Floats
    leaves: Ints

    @classmethod
    def of_tree(cls, parents: Ints, heights: Ints, values: Ints, height: int) -> Dendrogram:
        """From inner nodes with their parents (-1 for the first) and heights.

        Value v hangs under node `values[v]`.

        height  of the tree: nodes above its root cost nothing, since nothing has to pass them
        """
        above = np.concatenate([parents, values])
        heights = np.minimum(np.concatenate([heights, np.zeros(len(values), dtype=heights.dtype)]), height)
        return _in_order(above, heights.astype(np.float64), len(parents) + np.arange(len(values)))

    @classmethod
    def linked(cls, matrix: Floats) -> Dendrogram:
        """By complete linkage of pairwise distances: no two values meet lower than they are apart."""
        from scipy.cluster.hierarchy import linkage
        from scipy.spatial.distance import squareform

        size = len(matrix)
        if size < 2:
            return _in_order(np.full(1, -1), np.zeros(1), np.arange(size))
        joins = linkage(squareform(matrix, checks=False), method="complete")
        above = np.full(2 * size - 1, -1)
        above[joins[:, :2].astype(np.int64)] = size + np.arange(size - 1)[:, None]
        return _in_order(above, np.concatenate([np.zeros(size), joins[:, 2]]), np.arange(size))

    @cached_property
    def _steps(self) -> tuple[tuple[slice, Ints, Ints], ...]:
        """From the deepest nodes up: nodes of a depth, first child of each parent, the parents."""
        steps = []
        for low, high in zip(self.starts[-2:0:-1], self.starts[:1:-1], strict=True):
            parents, first = np.unique(self.parents[low:high], return_index=True)
            steps.append((slice(int(low), int(high)), first, parents))
        return tuple(steps)

    def _sums(self, values: Floats) -> Floats:
        """Sums over the values below each node: (..., F) -> (..., nodes)."""
        sums = np.zeros((*values.shape[:-1], len(self.parents)))
        sums[..., self.leaves] = values
        for nodes, first, parents in self._steps:
            sums[..., parents] += np.add.reduceat(sums[..., nodes], first, axis=-1)
        return sums

    def nearest(self) -> Floats:
        """How far each value is from the nearest other one: (F,)."""
        alone = self._sums(np.ones(len(self.leaves))) == 1.0
        node, climbed = self.leaves.copy(), np.zeros(len(self.leaves))
        for _ in range(len(self.starts) - 1):
            climbed += np.where(alone[node], 2.0 * self.weights[node], 0.0)
            node = np.maximum(self.parents[node], 0)
        return climbed

    def moved(self, difference: Floats) -> Floats:
        """The earth mover's distance for differences of distributions: (..., F) -> (...)."""
        return np.asarray(np.abs(self._sums(difference)) @ self.weights)

    def moved_entries(self, owner: Ints, value: Ints, share: Floats, whole: Floats, rows: int) -> Floats:
        """The same from `whole` to each of `rows` distributions that are nonzero at few values.

        Where a distribution has nothing below a node, the node lacks the mass of the whole. So everybody starts with
        the cost of lacking everything, and only nodes with entries below them are looked at.
        """
        expected = self._sums(whole)
        cost = np.full(rows, float(expected @ self.weights))
        leaf = self.leaves[value]
        held, node, mass = owner[:0], leaf[:0], share[:0]
        for nodes, _, _ in self._steps:
            fresh = (leaf >= nodes.start) & (leaf < nodes.stop)
            held, node = np.concatenate([held, owner[fresh]]), np.concatenate([node, leaf[fresh]])
            mass = np.concatenate([mass, share[fresh]])
            change = self.weights[node] * (np.abs(mass - expected[node]) - expected[node])
            cost += np.bincount(held, change, rows)
            keys, group = np.unique(held * len(self.parents) + self.parents[node], return_inverse=True)
            held, node = np.divmod(keys, len(self.parents))
            mass = np.bincount(group, mass, len(keys)).astype(np.float64)
        return cost


def _in_order(above: Ints, heights: Floats, leaves: Ints) -> Dendrogram:
    """Nodes in any order, renumbered from the root down."""
    depths = _breadth_first(above)
    order = np.concatenate(depths)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    starts = np.cumsum([0, *map(len, depths)])
    parents, root = place[above[order]], order[0]
    parents[0] = -1
    climbs = heights[above] - heights
    climbs[root] = 0.0
    weights = climbs[order] / (2.0 * heights[root]) if heights[root] > 0.0 else np.zeros(len(order))
    return Dendrogram(parents, starts, weights, place[leaves])


def _breadth_first(above: Ints) -> list[Ints]:
    """The nodes of each depth, from the root down; children in the order of their parents."""
    children = np.argsort(above, kind="stable")
    owners = above[children]
    depths = [children[:1]]
    while True:
        low, high = (np.searchsorted(owners, depths[-1], side) for side in ("left", "right"))
        counts = high - low
        if not counts.any():
            return depths
        offset = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        depths.append(children[np.repeat(low, counts) + offset])


GROUNDS = ("equal", "ordered", "hierarchical")

_CHUNK = 4_000_000
"""Probabilities in memory at a time: 32 MB, chosen by judgment."""


class ClassCounts(Protocol):
    """How often each value occurs in each class and in the whole table.

    See `tables.equivalence_classes.Counts`.
    """

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
    """`sum |level - whole[i]|` for i in [start, stop), `whole` sorted with sums `prefix`."""
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
