"""Microdata: a table as a grouping method sees it; recodings, and rules to show records.

A rule (`Showing`) says what any record shows of its quasi-identifiers, from its own leaves and nothing else.

    showing.cells(leaves)       # (n, q) leaves -> (n, q) cells, -1 throughout for a record of which nothing is shown

A method that works on counts of records that are alike returns such a rule. A worker with a part of the table, in
whatever order and on whatever machine, can apply it: it knows no row numbers, is small, and can be pickled.

Rows of codes are grouped by sorting integers: one key a row, one sort, one sum for each group. Columns are digits of
one number (mixed radix), the last the least significant. Where the numbers would not fit into 63 bits, what there is so
far is renumbered without gaps first. Few possible keys are counted in a table; otherwise keys are sorted with the row
number in their low bits, which is several times faster than sorting row numbers by their keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from polyseme.kernel.arrays import Bools, Ints
from polyseme.kernel.spelling import Label
from polyseme.results.explanation import Explanation
from polyseme.semantics.hierarchies import Hierarchy
from polyseme.tables.people import people_in_cells

__all__ = [
    "BLANK",
    "SUPPRESSED",
    "Cells",
    "Groups",
    "Known",
    "Ladder",
    "Microdata",
    "Recoding",
    "Round",
    "Rounds",
    "Sensitive",
    "Showing",
    "grouped",
    "packed",
]

_DENSE = 4
"""Possible keys for each row up to which a table of all keys is quicker than sorting."""
_BITS = 62


@dataclass(frozen=True, eq=False)
class Groups:
    """Rows with the same key, in the order of keys.

    keys  of each group
    sums  of each kind of weight of its rows
    row   one row of each group
    """

    keys: Ints
    sums: tuple[Ints, ...]
    row: Ints


def packed(columns: Iterable[tuple[Ints, int]], rows: int) -> tuple[Ints, int]:
    """One key a row from columns of codes with their numbers of codes; and how many keys are possible.

    >>> packed([(np.array([0, 1, 1]), 2), (np.array([2, 0, 2]), 3)], 3)
    (array([2, 3, 5]), 6)
    """
    keys, space = np.zeros(rows, dtype=np.int64), 1
    for codes, size in columns:
        if space * size > 1 << _BITS:
            found, keys = np.unique(keys, return_inverse=True)
            space = max(len(found), 1)
        if size != 1:
            keys = keys * size + codes if space > 1 else codes.astype(np.int64)
        space *= size
    return keys, space


def grouped(keys: Ints, space: int, weights: Sequence[Ints]) -> Groups:
    """The groups of rows with the same key."""
    if space <= _DENSE * len(keys):
        return _counted(keys, space, weights)
    bits = max(len(keys) - 1, 1).bit_length()
    if space.bit_length() + bits > _BITS + 1:
        order = np.argsort(keys, kind="stable")
        ordered = keys[order]
    else:
        both = (keys << bits) | np.arange(len(keys))
        both.sort()
        ordered, order = both >> bits, both & ((1 << bits) - 1)
    heads = np.flatnonzero(np.concatenate((np.ones(min(len(keys), 1), dtype=bool), ordered[1:] != ordered[:-1])))
    sums = tuple(np.add.reduceat(weight[order], heads) if len(heads) else heads for weight in weights)
    return Groups(ordered[heads], sums, order[heads])


def _counted(keys: Ints, space: int, weights: Sequence[Ints]) -> Groups:
    rows = np.full(space, -1)
    rows[keys] = np.arange(len(keys))
    found = np.flatnonzero(rows >= 0)
    sums = tuple(np.bincount(keys, weight, space)[found].astype(np.int64) for weight in weights)
    return Groups(found, sums, rows[found])


@dataclass(frozen=True, eq=False)
class Known:
    """Different combinations of codes, among which those of other rows are looked up.

    sizes  the number of codes of each column
    steps  up to which column codes are digits of one number, and the numbers that there are; then their places go on

    >>> Known.of(np.array([[1, 2], [0, 0]]), [2, 3]).find(np.array([[0, 0], [0, 1], [1, 2]]))
    array([ 0, -1,  1])
    """

    sizes: tuple[int, ...]
    steps: tuple[tuple[int, Ints], ...] = field(repr=False)

    @classmethod
    def of(cls, rows: Ints, sizes: Sequence[int]) -> Known:
        keys, space, steps = np.zeros(len(rows), dtype=np.int64), 1, []
        for place, size in enumerate(sizes):
            if space * size > 1 << _BITS:
                found, keys = np.unique(keys, return_inverse=True)
                steps.append((place, found))
                space = max(len(found), 1)
            keys, space = keys * size + rows[:, place], space * size
        return cls(tuple(sizes), (*steps, (len(sizes), np.unique(keys))))

    def find(self, rows: Ints) -> Ints:
        """The place of each row among the combinations in their order; -1 for one that is not known."""
        keys, known, first = np.zeros(len(rows), dtype=np.int64), np.ones(len(rows), dtype=bool), 0
        for last, found in self.steps:
            if not len(found):
                return np.full(len(rows), -1, dtype=np.int64)
            for place in range(first, last):
                keys = keys * self.sizes[place] + rows[:, place]
            places = np.minimum(np.searchsorted(found, keys), len(found) - 1)
            known &= found[places] == keys
            keys, first = places, last
        return np.where(known, keys, -1)


_NOTHING = -1


class Showing(Protocol):
    """What a record shows follows from its leaves."""

    def cells(self, leaves: Ints) -> Ints:
        """The cell of each record in each quasi-identifier; -1 throughout where nothing is shown."""


@dataclass(frozen=True, eq=False)
class Round:
    """Records at the same levels, but for those in some classes.

    groups  for each quasi-identifier, the cell of each leaf
    hidden  the classes, as combinations of cells, that are not shown at these levels
    """

    groups: tuple[Ints, ...] = field(repr=False)
    hidden: Known = field(repr=False)

    @classmethod
    def of(cls, groups: Sequence[Ints], sizes: Sequence[int], hidden: Ints, offsets: Sequence[int] = ()) -> Round:
        """From the group of each leaf, the number of groups, and the groups of records that are not shown.

        offsets  for each quasi-identifier, the cell that its first group has
        """
        moved = offsets or (0,) * len(groups)
        tops = [size + first for size, first in zip(sizes, moved, strict=True)]
        return cls(
            tuple(codes + first for codes, first in zip(groups, moved, strict=True)),
            Known.of(hidden + np.array(moved, dtype=np.int64), tops),
        )

    def cells(self, leaves: Ints) -> Ints:
        """At these levels, whether or not that is shown."""
        found = np.empty(leaves.shape, dtype=np.int64)
        for place, groups in enumerate(self.groups):
            found[:, place] = groups[leaves[:, place]]
        return found


@dataclass(frozen=True)
class Rounds:
    """One choice of levels after the other: a record is shown at the first at which its class is."""

    rounds: tuple[Round, ...]

    def cells(self, leaves: Ints) -> Ints:
        shown = np.full(leaves.shape, _NOTHING, dtype=np.int64)
        left = np.arange(len(leaves))
        for step in self.rounds:
            cells = step.cells(leaves[left])
            hidden = step.hidden.find(cells) >= 0
            shown[left[~hidden]] = cells[~hidden]
            left = left[hidden]
        return shown


SUPPRESSED = -1
"""The class of a record of which nothing is shown but its sensitive values, if those."""
BLANK = -1
"""The code of a sensitive value that is not shown."""


@dataclass(frozen=True, eq=False)
class Ladder:
    """The levels of one quasi-identifier as a search climbs them: a hierarchy in which every record has a leaf.

    name    of the quasi-identifier
    groups  at each level, the group of each leaf; level 0 is the identity, the last level has one group
    labels  at each level, what is shown for each group; None for a missing value that may be anything

    A missing value that may be anything is one more leaf, the last, which meets the others at the last level only.
    """

    name: str
    groups: tuple[Ints, ...] = field(repr=False)
    labels: tuple[tuple[str | None, ...], ...] = field(repr=False)

    @classmethod
    def of(cls, name: str, hierarchy: Hierarchy) -> Ladder:
        if hierarchy.missing != "wildcard":
            return cls(name, hierarchy.groups, hierarchy.labels)
        sizes = [len(labels) for labels in hierarchy.labels]
        groups = [np.append(level, size) for level, size in zip(hierarchy.groups[:-1], sizes)]
        labels = [(*level, None) for level in hierarchy.labels[:-1]]
        top = np.zeros(sizes[0] + 1, dtype=np.int64)
        return cls(name, (*groups, top), (*labels, hierarchy.labels[-1]))

    @property
    def height(self) -> int:
        """The last level."""
        return len(self.groups) - 1

    @property
    def leaves(self) -> int:
        """How many leaves there are."""
        return len(self.groups[0])

    def size(self, level: int) -> int:
        """How many groups a level has."""
        return len(self.labels[level])


@dataclass(frozen=True, eq=False)
class Sensitive:
    """A sensitive attribute: the code of each record, and the values by their codes.

    codes   (n,), all of them at least 0
    labels  the declared domain in its order, or the values that occur, sorted
    """

    name: str
    codes: Ints = field(repr=False)
    labels: tuple[Label, ...] = field(repr=False)


@dataclass(frozen=True, eq=False)
class Microdata:
    """The records of a table as codes; those that are alike may share a row.

    ladders     the quasi-identifiers
    codes       the leaf of each row on each ladder: (n, q), all of them at least 0
    sensitive   by name
    population  the leaves of the people of a reference population, for k-map: (m, q)
    counts      how many records each row stands for, at least one: (n,); None where each is a record
    people      whose each row is, numbered from 0: (n,); None where that is not known, and records are counted
    """

    ladders: tuple[Ladder, ...]
    codes: Ints = field(repr=False)
    sensitive: Mapping[str, Sensitive] = field(default_factory=dict)
    population: Ints | None = field(default=None, repr=False)
    counts: Ints | None = field(default=None, repr=False)
    people: Ints | None = field(default=None, repr=False)

    @property
    def rows(self) -> int:
        return len(self.codes)

    @cached_property
    def records(self) -> int:
        return self.rows if self.counts is None else int(self.counts.sum())

    @property
    def each(self) -> Ints:
        """How many records each row stands for."""
        return np.ones(self.rows, dtype=np.int64) if self.counts is None else self.counts

    @cached_property
    def units(self) -> int:
        """How many people there are where these are counted, and records otherwise: what a limit is a share of."""
        return self.records if self.people is None else len(np.unique(self.people))

    def units_of(self, rows: Bools) -> int:
        """People with at least one of these rows, or their records where these are counted."""
        if self.people is not None:
            return len(np.unique(self.people[rows]))
        return int(self.each[rows].sum())

    def among(self, rows: Ints) -> Microdata:
        """Some of the rows, without their sensitive values."""
        counts = None if self.counts is None else self.counts[rows]
        people = None if self.people is None else self.people[rows]
        return replace(self, codes=self.codes[rows], sensitive={}, counts=counts, people=people)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(ladder.name for ladder in self.ladders)

    def round(self, levels: Sequence[int], hidden: Bools, offsets: Sequence[int] = ()) -> Round:
        """Records at these levels as a rule, but for those that look like some of the rows."""
        groups = [ladder.groups[level] for ladder, level in zip(self.ladders, levels, strict=True)]
        rows = np.empty((np.count_nonzero(hidden), len(groups)), dtype=np.int64)
        for place, (codes, _) in enumerate(self.at(levels, self.codes[hidden])):
            rows[:, place] = codes
        sizes = [ladder.size(level) for ladder, level in zip(self.ladders, levels, strict=True)]
        return Round.of(groups, sizes, rows, offsets)

    def at(self, levels: Sequence[int], codes: Ints | None = None) -> list[tuple[Ints, int]]:
        """The group of each row (or of each row of the given leaves) at levels, and how many groups there are."""
        leaves = (self.codes if codes is None else codes).T
        return [
            (ladder.groups[level][column], ladder.size(level))
            for ladder, level, column in zip(self.ladders, levels, leaves, strict=True)
        ]


@dataclass(frozen=True, eq=False)
class Cells:
    """The different cells in which a recoding shows one quasi-identifier.

    labels  what is shown for each cell; None for a missing value
    leaves  the leaves that each cell may stand for, ascending: what is possible for a reader
    """

    labels: tuple[str | None, ...] = field(repr=False)
    leaves: tuple[Ints, ...] = field(repr=False)

    @classmethod
    def of_level(cls, ladder: Ladder, level: int) -> Cells:
        """All groups of a level."""
        groups = ladder.groups[level]
        order = np.argsort(groups, kind="stable")
        bounds = np.searchsorted(groups[order], np.arange(ladder.size(level) + 1))
        return cls(ladder.labels[level], tuple(np.split(order, bounds[1:-1])))


@dataclass(frozen=True, eq=False)
class Recoding:
    """Which records share a class, and what each class shows of the quasi-identifiers.

    classes     the class of each row of the microdata, numbered from 0; `SUPPRESSED` where nothing is shown: (n,)
    shown       the cell of each class in each quasi-identifier: (classes, q)
    cells       for each quasi-identifier, its cells
    levels      for each quasi-identifier the level at which all records are shown; empty where they differ
    loss        by the measure that the method minimizes; None where it minimizes none
    gap         how much smaller the least loss could be at the most; 0 for an optimum, None where nothing is proved
    replaced    sensitive attributes that are shown otherwise than they are, by name; `BLANK` for a value taken away
    actions     how often each action was taken, for a method that takes several
    explanation why, class by class: for the owner of the table, never for publication
    counts      how many records each row stands for; None where each is a record
    showing     what any record shows, from its leaves alone; None where that depends on which record it is
    """

    classes: Ints = field(repr=False)
    shown: Ints = field(repr=False)
    cells: tuple[Cells, ...] = field(repr=False)
    levels: tuple[int, ...] = ()
    loss: float | None = None
    gap: float | None = None
    replaced: Mapping[str, Sensitive] = field(default_factory=dict, repr=False)
    actions: Mapping[str, int] = field(default_factory=dict)
    explanation: Explanation | None = field(default=None, repr=False)
    counts: Ints | None = field(default=None, repr=False)
    showing: Showing | None = field(default=None, repr=False)

    @cached_property
    def suppressed(self) -> Bools:
        """Whether nothing is shown of each row."""
        return np.asarray(self.classes == SUPPRESSED)

    @cached_property
    def lost(self) -> int:
        """Records of which nothing is shown."""
        return int(np.count_nonzero(self.suppressed) if self.counts is None else self.counts[self.suppressed].sum())

    def people(self, data: Microdata) -> Ints | None:
        """How many people of the population fit what each class shows; None without a population."""
        if data.population is None:
            return None
        each = np.ones(len(data.population), dtype=np.int64)
        return people_in_cells(self.shown, [cells.leaves for cells in self.cells], data.population, each)

    @cached_property
    def sizes(self) -> Ints:
        """Records of each class."""
        kept = ~self.suppressed
        weights = None if self.counts is None else self.counts[kept]
        return np.bincount(self.classes[kept], weights, len(self.shown)).astype(np.int64)

    @classmethod
    def of_levels(
        cls, data: Microdata, levels: Sequence[int], suppressed: Bools, loss: float | None, gap: float | None
    ) -> Recoding:
        """All records at the same levels, but for those that are suppressed."""
        columns = data.at(levels)
        kept = np.flatnonzero(~suppressed)
        keys, space = packed([(codes[kept], size) for codes, size in columns], len(kept))
        groups = grouped(keys, space, ())
        classes = np.full(data.rows, SUPPRESSED, dtype=np.int64)
        classes[kept] = np.searchsorted(groups.keys, keys)
        shown = np.empty((len(groups.row), len(columns)), dtype=np.int64)
        for place, (codes, _) in enumerate(columns):
            shown[:, place] = codes[kept[groups.row]]
        cells = tuple(Cells.of_level(ladder, level) for ladder, level in zip(data.ladders, levels, strict=True))
        showing = Rounds((data.round(levels, suppressed),))
        return cls(classes, shown, cells, tuple(levels), loss, gap, counts=data.counts, showing=showing)
