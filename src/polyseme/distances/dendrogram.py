"""A tree with a height at every node, and the cost of moving probability through it.

Two values are as far apart as their lowest common ancestor is high. Whatever a subtree has too much or too little of
has to pass the edge above it, and nothing else needs to, so that

    EMD = sum over nodes n of w_n |extra mass of n|,   w_n = (height of the parent of n - height of n) / 2

where
    extra mass of n   the difference of the two distributions, summed over the values below n

(Mass that goes from u to v passes the edges from u up to their lowest common ancestor and those from there down to v:
its height on either side, half of which counts.)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from polyseme.arrays import Floats, Ints

__all__ = ["Dendrogram"]


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
        """From inner nodes with their parents (-1 for the first) and heights; value v hangs under node `values[v]`.

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
        """From the deepest nodes up: the nodes of a depth, where the children of each parent begin, the parents."""
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
