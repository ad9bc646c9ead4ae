"""Axes of quasi-identifiers, cuts of many classes along them, and goals of the parts.

A goal may compare parts with the whole table.

An axis is a quasi-identifier along which classes have a width, are cut and shown.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyseme.kernel.arrays import Bools, Floats, Ints
from polyseme.methods.goal import Goal
from polyseme.methods.microdata import Cells, Ladder
from polyseme.semantics.hierarchies.hierarchy import MISSING_LABEL
from polyseme.tables.equivalence_classes import Counts, people_in

__all__ = [
    "Axis",
    "Hierarchical",
    "Judge",
    "Ordered",
    "Parts",
    "axis_of",
    "halves",
    "nearest_to_half",
    "pooled",
    "sort_within",
]


@dataclass(frozen=True, eq=False)
class Axis(ABC):
    """A quasi-identifier.

    ladder  its levels
    codes   the leaf of each record, as small a number as will do: (n,)

    Classes are given as records one class after the other, and where each starts. `extent` of a class is a pair of
    numbers that says how far it reaches: (classes, 2).
    """

    ladder: Ladder
    codes: NDArray[np.unsignedinteger[Any]] = field(repr=False)

    @abstractmethod
    def extents(self, records: Ints, starts: Ints) -> Ints:
        """How far each class reaches."""

    @abstractmethod
    def widths(self, extents: Ints) -> Floats:
        """The share of the leaves that each class spans: 0 for one, 1 for all."""

    @abstractmethod
    def values(self, records: Ints, owner: Ints, extents: Ints) -> Ints:
        """What the records are cut by; `owner` is the class of each."""

    @abstractmethod
    def cells(self, extents: Ints) -> tuple[Ints, Cells]:
        """The cell of each class, and the different cells."""


def axis_of(ladder: Ladder, codes: Ints, ordered: bool | None = None) -> Axis:
    """An axis; ordered if that is not said and the leaves are ascending numbers."""
    kind = Ordered if (_ascending(ladder) if ordered is None else ordered) else Hierarchical
    # Records are looked up in any order all the time, which is quick as long as their codes stay in the cache.
    return kind(ladder, codes.astype(np.min_scalar_type(max(ladder.leaves - 1, 0))))


def _missing(ladder: Ladder) -> bool:
    """Whether the last leaf is a missing value."""
    return ladder.leaves > 0 and ladder.labels[0][-1] in (None, MISSING_LABEL)


def _ascending(ladder: Ladder) -> bool:
    labels = ladder.labels[0][:-1] if _missing(ladder) else ladder.labels[0]
    try:
        numbers = [float(str(label)) for label in labels]
    except ValueError:
        return False
    return all(one < other for one, other in itertools.pairwise(numbers))


@dataclass(frozen=True, eq=False)
class Ordered(Axis):
    """Leaves in their order. The extent of a class is its lowest and its highest leaf."""

    def extents(self, records: Ints, starts: Ints) -> Ints:
        codes = self.codes[records]
        return np.column_stack([at.reduceat(codes, starts) for at in (np.minimum, np.maximum)]).astype(np.int64)

    def widths(self, extents: Ints) -> Floats:
        return (extents[:, 1] - extents[:, 0]) / max(self.ladder.leaves - 1, 1)

    def values(self, records: Ints, owner: Ints, extents: Ints) -> Ints:
        return self.codes[records].astype(np.int64)

    def cells(self, extents: Ints) -> tuple[Ints, Cells]:
        shown = extents.copy()
        last = self.ladder.leaves - 1
        if _missing(self.ladder):
            # A missing value meets others at the last level only.
            shown[(shown[:, 1] == last) & (shown[:, 0] < last)] = 0, last
        pairs, cell = _different(shown, self.ladder.leaves)
        labels = [self._label(low, high) for low, high in pairs.tolist()]
        # Ranges share the numbers that they are made of: there may be millions of them.
        leaves = np.arange(self.ladder.leaves)
        return cell, Cells(tuple(labels), tuple(leaves[low : high + 1] for low, high in pairs.tolist()))

    def _label(self, low: int, high: int) -> str | None:
        leaves = self.ladder.labels[0]
        if low == high:
            return leaves[low]
        if high == self.ladder.leaves - 1 and _missing(self.ladder):
            return self.ladder.labels[-1][0]
        return self._named.get((low, high), f"[{leaves[low]}, {leaves[high]}]")

    @cached_property
    def _named(self) -> dict[tuple[int, int], str | None]:
        """Ranges that are groups of a level between leaves and root; the lowest level names them."""
        named: dict[tuple[int, int], str | None] = {}
        for level in range(1, self.ladder.height):
            for label, leaves in zip(self.ladder.labels[level], Cells.of_level(self.ladder, level).leaves):
                if len(leaves) and leaves[-1] - leaves[0] == len(leaves) - 1:
                    named.setdefault((int(leaves[0]), int(leaves[-1])), label)
        return named


@dataclass(frozen=True, eq=False)
class Hierarchical(Axis):
    """Nodes of the hierarchy.

    The extent of a class is the level and the group of the lowest node above its values.
    """

    @cached_property
    def _groups(self) -> Ints:
        return np.stack(self.ladder.groups)

    def extents(self, records: Ints, starts: Ints) -> Ints:
        codes = self.codes[records]
        extents = np.zeros((len(starts), 2), dtype=np.int64)
        open_ = np.ones(len(starts), dtype=bool)
        for level, groups in enumerate(self.ladder.groups):
            low, high = (at.reduceat(groups[codes], starts) for at in (np.minimum, np.maximum))
            found = open_ & (low == high)
            extents[found] = np.column_stack([np.full(int(found.sum()), level), low[found]])
            open_ &= ~found
            if not open_.any():
                break
        return extents

    @cached_property
    def _below(self) -> Ints:
        """Leaves below each group of each level."""
        sizes = np.zeros((self.ladder.height + 1, self.ladder.leaves), dtype=np.int64)
        for level, groups in enumerate(self.ladder.groups):
            sizes[level, : self.ladder.size(level)] = np.bincount(groups, minlength=self.ladder.size(level))
        return sizes

    def widths(self, extents: Ints) -> Floats:
        return (self._below[extents[:, 0], extents[:, 1]] - 1) / max(self.ladder.leaves - 1, 1)

    def values(self, records: Ints, owner: Ints, extents: Ints) -> Ints:
        children: Ints = self._groups[extents[owner, 0] - 1, self.codes[records]]
        return children

    def cells(self, extents: Ints) -> tuple[Ints, Cells]:
        pairs, cell = _different(extents, self.ladder.leaves)
        levels = {level: Cells.of_level(self.ladder, level) for level in np.unique(pairs[:, 0]).tolist()}
        found = [(levels[level].labels[group], levels[level].leaves[group], level) for level, group in pairs.tolist()]
        labels = _distinguished([(label, level) for label, _, level in found])
        return cell, Cells(labels, tuple(leaves for _, leaves, _ in found))


def _different(pairs: Ints, span: int) -> tuple[Ints, Ints]:
    """The distinct pairs of numbers in order, and the index of each; the second is below `span`."""
    found, place = np.unique(pairs[:, 0] * span + pairs[:, 1], return_inverse=True)
    return np.column_stack(np.divmod(found, max(span, 1))), place


def _distinguished(shown: list[tuple[str | None, int]]) -> tuple[str | None, ...]:
    """Labels with their level where they occur at several, so that classes do not look alike."""
    seen: set[str | None] = set()
    labels: list[str | None] = []
    for label, level in shown:
        labels.append(f"{label} (level {level})" if label in seen else label)
        seen.add(label)
    return tuple(labels)


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
        sizes = [d.spec.parameters["k"] for d in goal.demands if d.spec.model.name == "k-anonymity"]
        least = min(max([1, *sizes]), records)
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
