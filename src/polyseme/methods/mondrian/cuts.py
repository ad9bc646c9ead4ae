"""Cuts of many classes at once, each along one axis, and whether the parts fulfill a goal.

A goal may compare parts with the whole table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from polyseme.kernel.arrays import Bools, Ints
from polyseme.methods.goal import Goal
from polyseme.tables.equivalence_classes import Counts, people_in

__all__ = ["Judge", "Parts", "halves", "nearest_to_half", "pooled", "sort_within"]

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
    """Where the change of value that is nearest to the middle of each class is.

    Each has at least one.

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


@dataclass(frozen=True, eq=False)
class Judge:
    """A goal for a table of which nothing is suppressed.

    least   records, or people, that a class must have in any case, so that smaller ones need not be counted
    totals  the whole table as one class for each sensitive attribute

    fitting  how many people of a population fit what each part would show, where people are counted in one

    Parts are of rows, which may stand for several records each.
    """

    goal: Goal
    least: int
    totals: Mapping[str, Counts] = field(repr=False)
    fitting: Callable[[Parts], Ints] | None = field(default=None, repr=False)

    @classmethod
    def of(cls, goal: Goal, records: int, totals: Mapping[str, Counts] | None = None) -> Judge:
        asked = [d.spec.parameters["k"] for d in goal.demands if d.spec.model.name == "k-anonymity"]
        least = min(max([1, *asked]), records)
        return cls(goal, least, goal.totals() if totals is None else totals)

    def sizes(self, parts: Parts) -> Ints:
        """Records of each part, or people where these are counted."""
        if self.goal.people is None:
            return self.records(parts)
        return people_in(parts.numbers(), self.goal.people[parts.records], len(parts.starts))

    def records(self, parts: Parts) -> Ints:
        """Records of each part."""
        weights = self.goal.weights
        if weights is None or not len(parts.starts):
            return parts.sizes
        return np.asarray(np.add.reduceat(weights[parts.records], parts.starts))

    def failing(self, parts: Parts) -> tuple[str, ...]:
        """The models that some part violates."""
        sizes, counts = self._tallied(parts)
        people = self._people(parts)
        return tuple(d.name for d in self.goal.demands if not d.score(sizes, counts, people).fine.all())

    def each(self, parts: Parts) -> Bools:
        """Whether each part fulfills the goal."""
        fine = self.sizes(parts) >= self.least
        return fine & self._counted(parts) if self._counts else fine

    def all_of(self, parts: Parts) -> Bools:
        """Whether all parts of each class do. Where one is too small, values need not be counted."""
        fine = np.logical_and.reduceat(self.sizes(parts) >= self.least, parts.firsts)
        if self._counts and fine.any():
            counted = parts.of(fine)
            fine[fine] = np.logical_and.reduceat(self._counted(counted), counted.firsts)
        return fine

    def fine(self, classes: Ints, number: int) -> Bools:
        """Whether each class does, from the class of each row, numbered from 0 without gaps."""
        return self.goal.fine(*self._compared(*self.goal.counted(classes, number)))

    @property
    def _counts(self) -> bool:
        """Whether more than records has to be counted."""
        return bool(self.goal.sensitive) or self.goal.mapped

    def _counted(self, parts: Parts) -> Bools:
        return self.goal.fine(*self._tallied(parts), self._people(parts))

    def _people(self, parts: Parts) -> Ints | None:
        return None if self.fitting is None else self.fitting(parts)

    def _tallied(self, parts: Parts) -> tuple[Ints, dict[str, Counts]]:
        return self._compared(*self.goal.counted(parts.numbers(), len(parts.starts), parts.records))

    def _compared(self, sizes: Ints, counts: Mapping[str, Counts]) -> tuple[Ints, dict[str, Counts]]:
        """With the whole table for those who compare classes with it."""
        return sizes, {name: held.compared(self.totals[name]) for name, held in counts.items()}
