"""Distance in a tree of categories."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, Literal, get_args

import numpy as np

from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.errors import ImpossibleError, PolicyError, nearest
from polyseme.kernel.spelling import spellings
from polyseme.semantics.distances.base import MATRIX_LIMIT, Clusters, Distance, Graph, Structure, recognize

__all__ = ["Measure", "TreeDistance"]

Measure = Literal["ancestor", "path"]

_CELLS = 20_000_000
"""Most nodes times levels of a tree: 160 MB of numbers, chosen by judgment."""


class TreeDistance(Distance):
    """How far up two values meet.

    `ancestor` (the journal paper): the height of the closest common ancestor, so siblings are 1 apart.
    `path` (the (l, e) paper): `((h_u - h_c) + (h_v - h_c)) / 2`.

    where
        height      of a node: the most steps down from it to a value of the domain
        h_u, h_v    levels of the two values, the root being at level 0
        h_c         level of their closest common ancestor

    When all values are equally deep the two are the same number. When they are not, `ancestor` is still an
    ultrametric (heights grow on the way up), so closeness falls apart into clusters at every threshold; `path` may not.

    The tree is kept as its inner nodes: `parents[i]` is the parent of node i, always an earlier one, the first is node
    0 with parent -1; `values[v]` is the node that value v hangs under. `names` are the nodes' labels, for readers. The
    root is the topmost node with at least two children: what stands above it says the same of every value.

    >>> disease = TreeDistance.from_paths([("flu", "lung", "*"), ("asthma", "lung", "*"), ("ulcer", "stomach", "*")])
    >>> disease.between(np.array([0, 0]), np.array([1, 2]))
    array([1., 2.])
    """

    kind = "tree"

    def __init__(
        self,
        parents: Sequence[int] | Ints,
        values: Sequence[int] | Ints,
        names: Sequence[str] | None = None,
        measure: Measure = "ancestor",
    ) -> None:
        if measure not in get_args(Measure):
            raise PolicyError(f"unknown measure of a tree '{measure}'", nearest(str(measure), get_args(Measure)))
        self.parents: Ints = np.asarray(parents, dtype=np.int64)
        self.values: Ints = np.asarray(values, dtype=np.int64)
        self.names = tuple(names) if names is not None else ("",) * len(self.parents)
        self.measure: Measure = measure
        self._check()
        self._levels, self._line = _lines(self.parents)
        self._heights = _heights(self.parents, self.values)

    def _check(self) -> None:
        nodes = np.arange(len(self.parents))
        rooted = len(nodes) > 0 and self.parents[0] == -1
        if not (rooted and np.all(self.parents[1:] >= 0) and np.all(self.parents < nodes)):
            raise PolicyError("the nodes of a tree start with the root, and each comes after its parent")
        if np.any((self.values < 0) | (self.values >= len(nodes))):
            raise PolicyError(f"every value of a tree hangs under one of its {len(nodes)} nodes")
        if len(self.names) != len(nodes):
            raise PolicyError(f"a tree of {len(nodes)} nodes came with {len(self.names)} names")

    @classmethod
    def from_paths(
        cls,
        paths: Sequence[Sequence[str]],
        measure: Measure = "ancestor",
        beyond: Sequence[Sequence[str]] = (),
    ) -> TreeDistance:
        """From one path for each value in the domain's order: the value first, the root last.

        beyond  paths of the same tree whose values are not in the domain: they say where its root is

        Two nodes are the same if the spellings of their labels and of all labels above are. Paths may differ in
        length; where they do not end in one root, a root is added. A value that is also an inner node counts as a leaf
        just below that node.
        """
        labels = list(dict.fromkeys(chain.from_iterable((*paths, *beyond))))
        spelled = dict(zip(labels, spellings(labels)))
        tops = {spelled[path[-1]] for path in (*paths, *beyond)}
        one_root = len(tops) == 1 and any(len(path) > 1 for path in paths)
        names = [paths[0][-1] if one_root else "*"]
        parents = [-1]
        known: dict[tuple[int, str], int] = {}
        lines = [path[:-1] if one_root else path for path in paths]
        values = []
        for line in lines:
            node = 0
            for label in reversed(line[1:]):
                place = (node, spelled[label])
                child = known.get(place)
                if child is None:
                    child = known[place] = len(parents)
                    parents.append(node)
                    names.append(label)
                node = child
            values.append(node)
        for value, line in enumerate(lines):
            if line:
                values[value] = known.get((values[value], spelled[line[0]]), values[value])
        elsewhere = ([spelled[label] for label in reversed(path[: -1 if one_root else None])] for path in beyond)
        departures = chain.from_iterable(_departure(known, line) for line in elsewhere)
        root = _root(parents, values)
        highest = min(departures, default=root)
        if highest < root:
            # A branch without a value of the domain: the root is where it leaves.
            parents.append(highest)
            names.append("")
        return cls(parents, values, names, measure)

    @property
    def size(self) -> int:
        return len(self.values)

    @cached_property
    def root(self) -> int:
        """The topmost node with at least two children, which are nodes or values."""
        return _root(self.parents.tolist(), self.values.tolist())

    @property
    def height(self) -> int:
        """The most steps from the root down to a value: the largest possible `ancestor` distance."""
        return int(self._heights[self.root])

    @property
    def heights(self) -> Ints:
        """Of each node: the most steps down from it to a value; 0 where no value is below."""
        return self._heights

    @cached_property
    def places(self) -> Ints:
        """The place of each value in an order in which the values under any node stand together."""
        places = np.empty(self.size, dtype=np.int64)
        places[np.lexsort(self._line[self.values].T[::-1])] = np.arange(self.size)
        return places

    def between(self, left: Ints, right: Ints) -> Floats:
        one, other = self.values[left], self.values[right]
        # Lines from the root agree down to the closest common ancestor and never again.
        shared = np.zeros(np.broadcast_shapes(one.shape, other.shape), dtype=np.int32)
        for level in range(1, self._line.shape[1]):
            shared += self._line[one, level] == self._line[other, level]
        meeting = np.minimum(shared, self._levels[one])
        if self.measure == "ancestor":
            apart = self._heights[self._line[one, meeting]].astype(np.float64)
        else:
            apart = (self._levels[one] + self._levels[other] + 2) / 2 - meeting
        return np.where(np.equal(left, right), 0.0, apart)

    def structure(self, threshold: float) -> Structure:
        if threshold <= 1:  # any two values are at least 1 apart, under either measure
            return Clusters(np.arange(self.size, dtype=np.int64))
        levels = self._levels[self.values]
        if self.measure == "ancestor" or not self.size or levels.min() == levels.max():
            return Clusters(self._cluster_labels(threshold))
        return self._structure_of_paths(threshold)

    def _cluster_labels(self, threshold: float) -> Ints:
        """Clusters by the highest ancestor still lower than the threshold."""
        nodes = len(self.parents)
        low = self._heights < threshold
        top = np.arange(nodes)
        for level in range(1, self._line.shape[1]):
            here = np.flatnonzero(self._levels == level)
            above = self.parents[here]
            top[here] = np.where(low[above], top[above], here)
        # Under a node as high as the threshold every value stands for itself.
        own = np.where(low[self.values], top[self.values], nodes + np.arange(self.size))
        return np.unique(own, return_inverse=True)[1].astype(np.int64)

    def _structure_of_paths(self, threshold: float) -> Structure:
        """The structure of unequal depths under `path`: one value per parent node is enough."""
        _, first, kind = np.unique(self.values, return_index=True, return_inverse=True)
        self._refuse_large(len(first), "nodes with values of unequal depth")
        shape = recognize(self.between(first[:, None], first[None, :]) >= threshold)
        if isinstance(shape, Clusters):
            return Clusters(shape.labels[kind])
        self._refuse_large(self.size, "values of unequal depth")
        return Graph(shape.compatible[np.ix_(kind, kind)])

    def _refuse_large(self, count: int, what: str) -> None:
        if count > MATRIX_LIMIT:
            raise ImpossibleError(
                f"the measure 'path' is refused for {count:,} {what} (limit {MATRIX_LIMIT:,})",
                "use the measure 'ancestor', or a tree whose values are all equally deep",
            )

    def parameters(self) -> Mapping[str, Any]:
        return {
            "tree": {
                "measure": self.measure,
                "parents": self.parents.tolist(),
                "names": list(self.names),
                "values": self.values.tolist(),
            }
        }


def _root(parents: Sequence[int], values: Sequence[int]) -> int:
    """The topmost node with at least two children; the last node of a tree that never branches."""
    children = np.bincount(np.array([*parents[1:], *values], dtype=np.int64), minlength=len(parents))
    below = {above: node for node, above in enumerate(parents) if node}
    node = 0
    while children[node] == 1 and node in below:
        node = below[node]
    return node


def _departure(known: Mapping[tuple[int, str], int], line: Sequence[str]) -> Iterator[int]:
    """The node at which a path down from the root leaves a tree, if it does.

    Nodes above others come earlier.
    """
    node = 0
    for label in line:
        if (node, label) not in known:
            yield node
            return
        node = known[node, label]


def _lines(parents: Ints) -> tuple[Ints, Ints]:
    """The level of each node, and its line from the root: `line[i, k]` is the one at level k.

    Beyond its own level a node's line repeats a number that no other node has.
    """
    counted = [0]
    for parent in parents[1:].tolist():
        counted.append(counted[parent] + 1)
    levels = np.array(counted, dtype=np.int64)
    if len(parents) * (int(levels.max(initial=0)) + 1) > _CELLS:
        raise ImpossibleError(
            f"a tree of {len(parents):,} nodes, {int(levels.max()):,} deep, is too large (limit {_CELLS:,} in all)",
            "a tree of categories is a few levels deep",
        )
    nodes = np.arange(len(parents))
    line = np.repeat(-1 - nodes[:, None], int(levels.max(initial=0)) + 1, axis=1)
    for level in range(line.shape[1]):
        here = np.flatnonzero(levels == level)
        if level:
            line[here, :level] = line[parents[here], :level]
        line[here, level] = here
    return levels, line


def _heights(parents: Ints, values: Ints) -> Ints:
    """The most steps from each node down to a value of the domain; 0 where there is none."""
    heights = [0] * len(parents)
    for node in np.unique(values).tolist():
        heights[node] = 1
    above = parents.tolist()
    for node in range(len(above) - 1, 0, -1):
        if heights[node]:
            heights[above[node]] = max(heights[above[node]], heights[node] + 1)
    return np.array(heights, dtype=np.int64)
