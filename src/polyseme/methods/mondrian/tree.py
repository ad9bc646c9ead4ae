"""The tree of cuts: which class any record belongs to, from its leaves alone.

A node is cut along one axis, by leaves (an order) or by the groups of a level (a hierarchy). Its children follow each
other in the order of the value with which each begins; a record goes to the last that does not begin after its own.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from polyseme.kernel.arrays import Bools, Ints
from polyseme.methods.microdata import Ladder

__all__ = ["BY_LEAVES", "CutTree", "Cuts", "Growing"]

BY_LEAVES = -1
"""The level of a cut of an order."""
_UNCUT = -1


@dataclass(frozen=True, eq=False)
class Cuts:
    """How each node but the root was cut, in the order of numbers; parents come first.

    parents  the node that was cut
    axis     along which quasi-identifier
    level    by the groups of which level; `BY_LEAVES` for an order
    values   with which each begins
    """

    parents: Ints = field(repr=False)
    axis: Ints = field(repr=False)
    level: Ints = field(repr=False)
    values: Ints = field(repr=False)

    @classmethod
    def joined(cls, pieces: Iterable[Cuts]) -> Cuts:
        """The nodes of several pieces one after the other."""
        nothing = np.zeros(0, dtype=np.int64)
        found = [(nothing,) * 4, *((piece.parents, piece.axis, piece.level, piece.values) for piece in pieces)]
        return cls(*(np.concatenate(part, dtype=np.int64) for part in zip(*found, strict=True)))

    def __len__(self) -> int:
        return len(self.parents)

    def among(self, kept: Bools, number: Ints) -> Cuts:
        """Some of the nodes; `number` is the new one of each old one, the root first."""
        return Cuts(number[self.parents[kept]], self.axis[kept], self.level[kept], self.values[kept])

    def small(self) -> Cuts:
        """The same in numbers as small as will do."""
        return Cuts(*map(small, (self.parents, self.axis, self.level, self.values)))


def small(numbers: Ints) -> Ints:
    """The same numbers in as few bytes as will do."""
    least, most = (int(at(numbers, initial=0)) for at in (np.min, np.max))
    return numbers.astype(np.result_type(np.min_scalar_type(least), np.min_scalar_type(most)))


@dataclass(frozen=True, eq=False)
class CutTree:
    """Nodes are numbered from 0, the root.

    groups    for each quasi-identifier, the group of each leaf at each level: (levels, leaves)
    axis      along which each node is cut; -1 for one that is not: (nodes,)
    level     by the groups of which level; `BY_LEAVES` for an order: (nodes,)
    first     the first child of a node that is cut, as a place in `children`; of others, the row in `shown`: (nodes,)
    children  the nodes but for the root, by parent and the value with which they begin
    keys      parent and value as one number, ascending
    shown     the cells of the nodes that are not cut: (ends, q)

    Some millions of classes go with every task to the workers. So numbers are as small as will do, and only what the
    others follow from is pickled: 15 bytes for each of half a million classes of five quasi-identifiers.
    """

    groups: tuple[Ints, ...] = field(repr=False)
    axis: Ints = field(repr=False)
    level: Ints = field(repr=False)
    first: Ints = field(repr=False)
    children: Ints = field(repr=False)
    keys: Ints = field(repr=False)
    shown: Ints = field(repr=False)

    @classmethod
    def of(cls, ladders: tuple[Ladder, ...], cuts: Cuts, nodes: Ints, shown: Ints) -> CutTree:
        """From all cuts, and the cells of the nodes that were not cut, in the order of `nodes`."""
        return cls._of(tuple(np.stack(ladder.groups) for ladder in ladders), cuts, nodes, shown)

    @classmethod
    def _of(cls, groups: tuple[Ints, ...], cuts: Cuts, nodes: Ints, shown: Ints) -> CutTree:
        parents = cuts.parents.astype(np.int64)
        order = np.lexsort((cuts.values, parents))
        axis, level = np.full((2, len(cuts) + 1), _UNCUT)
        axis[parents], level[parents] = cuts.axis, cuts.level
        first = np.searchsorted(parents[order], np.arange(len(axis)))
        first[nodes] = np.arange(len(nodes))
        keys = parents[order] * _span(groups) + cuts.values[order]
        return cls(groups, small(axis), small(level), small(first), small(order + 1), keys, shown.astype(np.int32))

    def __reduce__(self) -> tuple[Any, ...]:
        ends = self.ends
        parts = (self.groups, self.cuts.small(), small(ends), small(self.shown[self.first[ends]]))
        return _unpacked, (zlib.compress(pickle.dumps(parts), level=1),)

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

    @property
    def cuts(self) -> Cuts:
        """How each node but the root came to be."""
        parents, values = np.zeros((2, len(self.axis)), dtype=np.int64)
        parents[self.children], values[self.children] = np.divmod(self.keys, self._span)
        parents, values = parents[1:], values[1:]
        return Cuts(parents, self.axis[parents].astype(np.int64), self.level[parents].astype(np.int64), values)

    def cells(self, leaves: Ints) -> Ints:
        """What each record shows."""
        return self.shown[self.first[self.nodes(leaves)]]

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
        self._pieces: list[Cuts] = []

    def add(self, parents: Ints, axis: Ints, level: Ints, values: Ints) -> Ints:
        """New nodes: the parent of each, how that is cut, and the value with which each begins."""
        self._pieces.append(Cuts(parents, axis, level, values))
        self._count += len(parents)
        return np.arange(self._count - len(parents), self._count)

    @property
    def cuts(self) -> Cuts:
        """All of them so far."""
        return Cuts.joined(self._pieces)

    def grown(self, ladders: tuple[Ladder, ...], nodes: Ints, shown: Ints) -> CutTree:
        """The tree, from the cells of the nodes that were not cut."""
        return CutTree.of(ladders, self.cuts, nodes, shown)


def _unpacked(packed: bytes) -> CutTree:
    return CutTree._of(*pickle.loads(zlib.decompress(packed)))  # noqa: S301 - inside of what is being unpickled


def _span(groups: tuple[Ints, ...]) -> int:
    """More than any value by which records are cut."""
    return 1 + max((part.shape[1] for part in groups), default=0)
