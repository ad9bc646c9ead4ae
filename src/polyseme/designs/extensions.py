"""Which values may join a set that is being built, so that it can still be completed."""

from __future__ import annotations

from itertools import combinations
from typing import Protocol

import numpy as np

from polyseme.arrays import Bools, Floats, Ints
from polyseme.designs.listing import list_sets
from polyseme.designs.ring import Ring, ring_of
from polyseme.distances.structure import Graph, Structure
from polyseme.errors import ImpossibleError

__all__ = ["Extensions", "ListedExtensions", "RingExtensions", "extensions_of"]


_CELLS = 1 << 25
"""Most subsets of all sets together that are listed."""


class Extensions(Protocol):
    """The candidates of a partial set: values compatible with all its members from which `l` can still be reached."""

    def degree(self, members: Ints) -> Ints:
        """How many candidates each partial set (n, k) has: (n,)."""
        ...

    def extend(self, members: Ints, uniforms: Floats) -> Ints:
        """Each partial set (n, k), rows ascending, with one uniformly chosen candidate: (n, k + 1), rows ascending."""
        ...


def extensions_of(structure: Structure, l: int) -> Extensions:
    """The candidates on any structure; a graph must have few enough sets to list."""
    return ListedExtensions(structure, l) if isinstance(structure, Graph) else RingExtensions(ring_of(structure), l)


class RingExtensions:
    """Candidates as intervals of places: no list and no mask, whatever the size of the domain."""

    def __init__(self, ring: Ring, l: int) -> None:
        self.ring, self.l = ring, l
        self.place = ring.places(np.arange(len(ring.order)))
        self.straight = bool(np.array_equal(ring.order, np.arange(len(ring.order))))

    def intervals(self, members: Ints) -> tuple[Ints, Ints]:
        """Where the candidates of each partial set stand: closed intervals of unrolled places."""
        places = self.place[members]
        if not self.straight:
            places.sort(axis=1)
        return self.ring.candidates(self.ring.anchor(places), self.l - members.shape[1])

    def degree(self, members: Ints) -> Ints:
        lower, upper = self.intervals(members)
        degree: Ints = np.maximum(upper - lower + 1, 0).sum(axis=1)
        return degree

    def extend(self, members: Ints, uniforms: Floats) -> Ints:
        lower, upper = self.intervals(members)
        total = np.maximum(upper - lower + 1, 0).cumsum(axis=1)
        rank = (uniforms * total[:, -1]).astype(np.int64)
        interval = (total <= rank[:, None]).sum(axis=1)
        rows = np.arange(len(members))
        # Counting back from the end of the interval needs no case for the first one.
        place = upper[rows, interval] + 1 - (total[rows, interval] - rank)
        joined = np.concatenate([members, self.ring.order[place % self.ring.size][:, None]], axis=1)
        joined.sort(axis=1)
        return joined


class ListedExtensions:
    """Candidates on a graph: every subset of a valid set, level by level, with its children.

    A partial set is known by its number in its level: found from the number of the set without its last member, which
    is a partial set too, so that keys stay small whatever the domain.
    """

    def __init__(self, structure: Structure, l: int) -> None:
        sets = list_sets(structure, l)
        if len(sets) << l > _CELLS:
            raise ImpossibleError(
                f"{len(sets):,} sets of {l} values have too many subsets to list", "a smaller l or a larger d has fewer"
            )
        self.l, self.base = l, structure.size
        self.keys: list[Ints] = []
        self.children: list[tuple[Ints, Ints]] = []
        for size in range(1, l + 1):
            level = _subsets(sets, size)
            self.keys.append(self._number(level[:, :-1])[0] * self.base + level[:, -1])
            if size > 1:
                self.children.append(self._family(level))

    def _number(self, members: Ints) -> tuple[Ints, Bools]:
        """The number of each partial set in its level, and whether it is there at all."""
        number, known = np.zeros(len(members), dtype=np.int64), np.ones(len(members), dtype=bool)
        for column, keys in zip(members.T, self.keys, strict=False):
            key = number * self.base + column
            number = np.minimum(np.searchsorted(keys, key), max(len(keys) - 1, 0))
            known &= keys[number] == key if len(keys) else False
        return number, known

    def _family(self, bigger: Ints) -> tuple[Ints, Ints]:
        """For the partial sets one smaller: where their children start, and the member each child adds."""
        size = bigger.shape[1]
        parent = np.concatenate([self._number(np.delete(bigger, column, axis=1))[0] for column in range(size)])
        added = bigger.T.ravel()
        order = np.lexsort((added, parent))
        starts = np.searchsorted(parent[order], np.arange(len(self.keys[size - 2]) + 1))
        return starts.astype(np.int64), added[order]

    def degree(self, members: Ints) -> Ints:
        number, known = self._number(members)
        starts, _ = self.children[members.shape[1] - 1]
        if len(starts) == 1:
            return np.zeros(len(members), dtype=np.int64)
        return np.where(known, starts[number + 1] - starts[number], 0)

    def extend(self, members: Ints, uniforms: Floats) -> Ints:
        number, _ = self._number(members)
        starts, added = self.children[members.shape[1] - 1]
        rank = (uniforms * (starts[number + 1] - starts[number])).astype(np.int64)
        joined = np.concatenate([members, added[starts[number] + rank][:, None]], axis=1)
        joined.sort(axis=1)
        return joined


def _subsets(sets: Ints, size: int) -> Ints:
    """The distinct subsets of this size of all sets, in lexicographic order."""
    pieces = [sets[:, list(columns)] for columns in combinations(range(sets.shape[1]), size)]
    return np.unique(np.concatenate(pieces), axis=0)
