"""Microdata: a table as a grouping method sees it, records of codes; and what a method makes of it, a recoding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from polyseme.arrays import Bools, Ints
from polyseme.hierarchies import Hierarchy
from polyseme.methods.keys import grouped, packed
from polyseme.methods.showing import Round, Rounds, Showing
from polyseme.results.explanation import Explanation
from polyseme.spelling import Label
from polyseme.tables.population import people_in_cells

__all__ = ["BLANK", "SUPPRESSED", "Cells", "Ladder", "Microdata", "Recoding", "Sensitive"]

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
    loss        by the measure that the method was asked to minimize; None where it minimises none
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
