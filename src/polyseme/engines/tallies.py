"""What is counted while a table is published, batch by batch; tallies add up to that of the whole table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from operator import add
from typing import TypeAlias, TypeVar

import numpy as np

from polyseme.engines.conditions import Fulfilled
from polyseme.errors import Problem, TableError, numbered
from polyseme.sightings import Sightings
from polyseme.tables.coding.dictionaries import Levels
from polyseme.tables.counting.matching import Fingerprints
from polyseme.tables.io.source import Source

__all__ = ["DRAWS", "GROUPS", "PEOPLE", "SETS", "BatchTally", "Print", "Problems"]

PEOPLE, DRAWS, SETS, GROUPS = "people", "draws", "sets", "groups"
Print: TypeAlias = tuple[str, str]
"""What fingerprints stand for, and the attribute.

people  of whom each record is
draws   (person, value) of each record; only where decoys are sticky. Sets of several strata are made from each other,
        so they count as one draw even where they differ
sets    (person, value, set); only where strata can give several sets for one value
groups  (group, value, stratum) of each record, where a group shares one set; the group is in the leading bits (see
        `tables.counting.tally`), so that groups whose members differ can be counted. Such groups take the place of
        people in `draws`
"""

Key = TypeVar("Key")
Value = TypeVar("Value")


class Problems:
    """Counts of what is wrong in the data, by place: column, what, hint; and where it was seen."""

    def __init__(
        self,
        counts: Mapping[tuple[str, str, str], int] | None = None,
        seen: Mapping[tuple[str, str, str], Sightings] | None = None,
    ) -> None:
        self.counts, self.seen = Counter(counts), dict(seen or {})

    def add(self, column: str, count: int, what: str, hint: str = "", seen: Sightings | None = None) -> None:
        if count:
            self.counts[column, what, hint] += count
            if seen is not None:
                self.seen[column, what, hint] = self.seen.get((column, what, hint), Sightings()) + seen

    def raise_any(self, source: Source | None = None) -> None:
        """Raise if there is one; the table says how its rows are counted."""
        if self.counts:
            raise TableError(self._problem(key, count, source) for key, count in self.counts.items())

    def _problem(self, key: tuple[str, str, str], count: int, source: Source | None) -> Problem:
        (column, what, hint), seen = key, self.seen.get(key)
        where, told = f"column '{column}'", numbered(count, what)
        if seen is None or source is None:
            return Problem(where, told, hint)
        return Problem.in_rows(where, told, hint, seen, source.row_numbers)


@dataclass(frozen=True)
class BatchTally:
    """What one batch, or several, add to what is known of the whole table.

    records, dropped  with all their values, and left out because one is missing
    problems          how often something is wrong, by column, what and hint; `seen` says where
    fulfilled         which conditions of impossible combinations some record fulfills
    levels            the published categories of ordered columns
    prints            fingerprints of the records, to count how often each occurs; there are as many as records, so an
                      engine takes them away before it adds tallies up
    """

    records: int = 0
    dropped: int = 0
    problems: Mapping[tuple[str, str, str], int] = field(default_factory=dict)
    fulfilled: Fulfilled = field(default_factory=Fulfilled)
    levels: Levels = field(default_factory=Levels)
    prints: Mapping[Print, Fingerprints] = field(default_factory=dict, repr=False, compare=False)
    seen: Mapping[tuple[str, str, str], Sightings] = field(default_factory=dict, repr=False, compare=False)

    def moved(self, by: int) -> BatchTally:
        """The same of a batch that begins so many rows further down."""
        return replace(self, seen={key: found.moved(by) for key, found in self.seen.items()}) if self.seen else self

    def __add__(self, other: BatchTally) -> BatchTally:
        return BatchTally(
            self.records + other.records,
            self.dropped + other.dropped,
            _merged(self.problems, other.problems, add),
            self.fulfilled + other.fulfilled,
            self.levels + other.levels,
            _merged(self.prints, other.prints, lambda one, two: np.concatenate([one, two])),
            _merged(self.seen, other.seen, add),
        )

    @property
    def counts(self) -> BatchTally:
        """The same without fingerprints: of a size that does not grow with the records."""
        return replace(self, prints={})


def _merged(
    one: Mapping[Key, Value], two: Mapping[Key, Value], join: Callable[[Value, Value], Value]
) -> dict[Key, Value]:
    """Both mappings, with what they have in common joined."""
    return {**one, **{key: join(one[key], value) if key in one else value for key, value in two.items()}}
