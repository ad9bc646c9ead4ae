"""Cutting many classes at once, each along one axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from polyseme.arrays import Bools, Ints

__all__ = ["Parts", "halves", "nearest_to_half", "pooled", "sort_within"]

_NONE = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Parts:
    """Parts of classes.

    records  one part after the other, the parts of a class next to each other: (m,)
    starts   where each part begins
    owner    the class of each part, ascending from 0 without gaps
    """

    records: Ints = field(repr=False)
    starts: Ints = field(repr=False)
    owner: Ints = field(repr=False)

    @property
    def sizes(self) -> Ints:
        return np.diff(self.starts, append=len(self.records))

    @property
    def firsts(self) -> Ints:
        """The first part of each class."""
        return np.flatnonzero(np.diff(self.owner, prepend=-1))

    @classmethod
    def beginning(cls, records: Ints, begins: Bools, owner: Ints) -> Parts:
        """From whether a part begins at each record, and the class of each record."""
        starts = np.flatnonzero(begins)
        return cls(records, starts, owner[starts])

    def of(self, classes: Bools) -> Parts:
        """The parts of some classes, which are renumbered."""
        kept = classes[self.owner]
        sizes = self.sizes
        starts = np.cumsum(sizes[kept]) - sizes[kept]
        owner = (np.cumsum(classes) - 1)[self.owner[kept]]
        return Parts(self.records[np.repeat(kept, sizes)], starts, owner)

    @classmethod
    def classes(cls, pieces: Sequence[Parts]) -> Parts:
        """The parts of several pieces, each as a class of its own."""
        sizes = np.concatenate([_NONE, *(piece.sizes for piece in pieces)])
        records = np.concatenate([_NONE, *(piece.records for piece in pieces)])
        return cls(records, np.cumsum(sizes) - sizes, np.arange(len(sizes)))

    def numbers(self) -> Ints:
        """The part of each record."""
        return np.repeat(np.arange(len(self.starts)), self.sizes)


def sort_within(owner: Ints, values: Ints) -> Ints:
    """Places of records sorted by class, then by value; equals stay in their order.

    By digits of two bytes, the last first: such small numbers are sorted by counting, several times as fast as others.
    """
    order: Ints = np.argsort(values.astype(np.uint16), kind="stable")
    for digit in (*_digits(values)[1:], *_digits(owner)):
        step: Ints = np.argsort(digit[order], kind="stable")
        order = order[step]
    return np.asarray(order)


def _digits(numbers: Ints) -> list[NDArray[np.uint16]]:
    """Two bytes each, the last first."""
    shifts = range(0, max(1, int(numbers.max(initial=0)).bit_length()), 16)
    return [(numbers >> shift).astype(np.uint16) for shift in shifts]


def pooled(parts: Parts, pool: Bools) -> Parts:
    """The same classes, with those parts of each that are in the pool as one, its last."""
    order = np.lexsort((pool, parts.owner))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    records = parts.records[np.argsort(rank[parts.numbers()], kind="stable")]
    sizes = parts.sizes[order]
    joins = pool[order] & np.concatenate([[False], pool[order][:-1]])
    joins &= parts.owner[order] == np.concatenate([[-1], parts.owner[order][:-1]])
    return Parts(records, (np.cumsum(sizes) - sizes)[~joins], parts.owner[order][~joins])


def halves(owner: Ints, starts: Ints) -> Ints:
    """Where the second half of each class begins."""
    return np.asarray(starts + np.diff(starts, append=len(owner)) // 2)


def nearest_to_half(owner: Ints, starts: Ints, changes: Bools, weights: Ints | None = None) -> Ints:
    """Where the change of value that is nearest to the middle of each class is; each has at least one.

    changes  whether a record's value differs from the one in front; it says nothing at the first of a class
    weights  how many records each stands for, where that is more than one
    """
    before = np.arange(len(owner) + 1) if weights is None else np.append(0, np.cumsum(weights))
    inner = changes.copy()
    inner[starts] = False
    places = np.flatnonzero(inner)
    whose = owner[places]
    ends = np.append(starts[1:], len(owner))
    off = np.abs(2 * before[places] - before[starts[whose]] - before[ends[whose]])
    firsts = np.flatnonzero(np.diff(whose, prepend=-1))
    best = np.flatnonzero(off == np.minimum.reduceat(off, firsts)[whose])
    return places[best[np.flatnonzero(np.diff(whose[best], prepend=-1))]]
