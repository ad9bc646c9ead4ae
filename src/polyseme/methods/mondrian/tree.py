"""The tree of cuts: which class any record belongs to, from its leaves alone.

A node is cut along one axis, by leaves (an order) or by the groups of a level (a hierarchy). Its children follow each
other in the order of the value with which each begins; a record goes to the last that does not begin after its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from polyseme.arrays import Ints
from polyseme.methods.microdata import Ladder

__all__ = ["BY_LEAVES", "CutTree", "Growing"]

BY_LEAVES = -1
"""The level of a cut of an order."""
_UNCUT = -1


@dataclass(frozen=True, eq=False)
class CutTree:
    """Nodes are numbered from 0, the root.

    groups    for each quasi-identifier, the group of each leaf at each level: (levels, leaves)
    axis      along which each node is cut; -1 for one that is not: (nodes,)
    level     by the groups of which level; `BY_LEAVES` for an order: (nodes,)
    first     the first child of each node, as a place in `children`: (nodes,)
    children  the nodes but for the root, by parent and the value with which they begin
    keys      parent and value as one number, ascending
    shown     the cells of each node that is not cut: (nodes, q)
    """

    groups: tuple[Ints, ...] = field(repr=False)
    axis: Ints = field(repr=False)
    level: Ints = field(repr=False)
    first: Ints = field(repr=False)
    children: Ints = field(repr=False)
    keys: Ints = field(repr=False)
    shown: Ints = field(repr=False)

    def nodes(self, leaves: Ints) -> Ints:
        """The node that is not cut to which each record belongs."""
        found = np.zeros(len(leaves), dtype=np.int64)
        going = np.flatnonzero(self.axis[found] != _UNCUT)
        while len(going):
            at = found[going]
            keys = at * self._span + self._values(leaves, going, at)
            # What comes before all children goes to the first; nothing does that was there when the tree grew.
            place = np.maximum(np.searchsorted(self.keys, keys, side="right") - 1, self.first[at])
            found[going] = self.children[place]
            going = going[self.axis[found[going]] != _UNCUT]
        return found

    @property
    def ends(self) -> Ints:
        """The nodes that are not cut."""
        return np.flatnonzero(self.axis == _UNCUT)

    @property
    def parents(self) -> Ints:
        """The node from which each was cut; the root's is the root."""
        found = np.zeros(len(self.axis), dtype=np.int64)
        found[self.children] = self.keys // self._span
        return found

    def cells(self, leaves: Ints) -> Ints:
        """What each record shows."""
        return self.shown[self.nodes(leaves)]

    @property
    def _span(self) -> int:
        return _span(self.groups)

    def _values(self, leaves: Ints, rows: Ints, nodes: Ints) -> Ints:
        """What records are cut by at their nodes."""
        values = np.empty(len(rows), dtype=np.int64)
        axis, level = self.axis[nodes], self.level[nodes]
        for place, groups in enumerate(self.groups):
            here = np.flatnonzero(axis == place)
            codes, by = leaves[rows[here], place], level[here]
            values[here] = np.where(by == BY_LEAVES, codes, groups[by, codes])
        return values


class Growing:
    """A tree while it grows: children are added to nodes that are there."""

    def __init__(self) -> None:
        self._count = 1
        self._pieces: list[tuple[Ints, Ints, Ints, Ints]] = []

    def add(self, parents: Ints, axis: Ints, level: Ints, values: Ints) -> Ints:
        """New nodes: the parent of each, how that is cut, and the value with which each begins."""
        self._pieces.append((parents, axis, level, values))
        self._count += len(parents)
        return np.arange(self._count - len(parents), self._count)

    def grown(self, ladders: tuple[Ladder, ...], nodes: Ints, shown: Ints) -> CutTree:
        """The tree, from the cells of the nodes that were not cut."""
        nothing = np.zeros(0, dtype=np.int64)
        pieces = [(nothing, nothing, nothing, nothing), *self._pieces]
        parent, axis, level, value = (np.concatenate(part) for part in zip(*pieces, strict=True))
        groups = tuple(np.stack(ladder.groups) for ladder in ladders)
        order = np.lexsort((value, parent))
        cut, by = np.full((2, self._count), _UNCUT)
        cut[parent], by[parent] = axis, level
        first = np.searchsorted(parent[order], np.arange(self._count))
        cells = np.zeros((self._count, shown.shape[1]), dtype=np.int64)
        cells[nodes] = shown
        keys = parent[order] * _span(groups) + value[order]
        return CutTree(groups, cut, by, first, order + 1, keys, cells)


def _span(groups: tuple[Ints, ...]) -> int:
    """More than any value by which records are cut."""
    return 1 + max((part.shape[1] for part in groups), default=0)
