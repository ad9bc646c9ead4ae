"""Whether records fulfill the declared conditions, and what is counted while publishing.

A condition without records does nothing: most likely its values are spelled otherwise in the table, and decoys that
were declared impossible would be published. So it is refused, unless the policy says that it may be empty.

Tallies are made batch by batch, and add up to that of the whole table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from operator import add
from typing import TypeAlias, TypeVar

import numpy as np

from polyseme.kernel.arrays import Ints
from polyseme.kernel.errors import PolicyError, Problem, TableError, numbered
from polyseme.kernel.sightings import Sightings
from polyseme.schema import Attribute, Constraint
from polyseme.strata import Found, Placing
from polyseme.tables.distinct import Fingerprints
from polyseme.tables.io.source import Source
from polyseme.tables.labels import Levels

__all__ = [
    "DRAWS",
    "GROUPS",
    "PEOPLE",
    "SETS",
    "BatchTally",
    "Fulfilled",
    "Print",
    "Problems",
    "absent_values",
    "require_fulfilled",
    "unfulfilled",
]

_HINT = "check how the values are spelled in the table, or allow it to match no record: may-be-empty: true"


@dataclass(frozen=True)
class Fulfilled:
    """What occurred of all that conditions ask for. It adds up.

    conditions  protected attribute and number of each of its constraints that applies to some record
    values      column and spelling of each value that conditions list and some record has
    """

    conditions: frozenset[tuple[str, int]] = frozenset()
    values: frozenset[tuple[str, str]] = frozenset()

    @classmethod
    def of(cls, name: str, placing: Placing, found: Found, kept: Ints) -> Fulfilled:
        """By those records of a batch that are kept, for one protected attribute."""
        return cls(frozenset((name, number) for number in placing.applying(found.states[kept])), found.values)

    def __add__(self, other: Fulfilled) -> Fulfilled:
        return Fulfilled(self.conditions | other.conditions, self.values | other.values)


def unfulfilled(attributes: Iterable[Attribute], found: Fulfilled) -> list[Problem]:
    """Conditions and priors that no record meets, apart from those that may be empty."""
    attributes = tuple(attributes)
    return [*_impossible(attributes, found), *_priors(attributes, found)]


def _priors(attributes: Iterable[Attribute], found: Fulfilled) -> Iterator[Problem]:
    """Columns that a prior depends on, and of which no record has a value that it lists."""
    for attribute in attributes:
        listed: dict[str, set[str]] = {}
        for item in attribute.conditional:
            for name, texts in item.condition.when.items():
                listed.setdefault(name, set()).update(texts)
        for name, known in listed.items():
            if not any((name, text) in found.values for text in known):
                what = f"no record has a value of '{name}' that the prior lists, so the prior has no effect"
                hint = "a prior lists values as they are published, after generalization; check how they are spelled"
                yield Problem(f"$.attributes.{attribute.name}.prior", what, hint)


def _impossible(attributes: Iterable[Attribute], found: Fulfilled) -> list[Problem]:
    return [
        problem
        for attribute in attributes
        for number, constraint in enumerate(attribute.constraints)
        if not constraint.may_be_empty and (attribute.name, number) not in found.conditions
        for problem in _reasons(constraint, found)
    ]


def require_fulfilled(attributes: Iterable[Attribute], found: Fulfilled) -> None:
    """Raise, naming every condition that no record meets."""
    problems = unfulfilled(attributes, found)
    if problems:
        raise PolicyError(problems)


def _reasons(constraint: Constraint, found: Fulfilled) -> Iterator[Problem]:
    where = f"{constraint.where}.when"
    absent = [name for name in constraint.condition.when if not _occurring(constraint, name, found)]
    for name in absent:
        yield Problem(f"{where}.{name}", f"no record meets this condition on column '{name}'", _HINT)
    if not absent:
        names = ", ".join(f"'{name}'" for name in constraint.condition.when)
        yield Problem(where, f"no record meets these conditions on {names} together", _HINT)


def _occurring(constraint: Constraint, name: str, found: Fulfilled) -> int:
    return sum((name, text) in found.values for text in constraint.condition.when[name])


def absent_values(attributes: Iterable[Attribute], found: Fulfilled) -> list[str]:
    """Remarks on listed values that do not occur in the table: they may be written otherwise."""
    remarks = []
    for constraint in (constraint for attribute in attributes for constraint in attribute.constraints):
        for name, listed in constraint.condition.when.items():
            met = _occurring(constraint, name, found)
            if 0 < met < len(listed) and not constraint.may_be_empty:
                remarks.append(
                    f"{constraint.where}.when.{name}: {len(listed) - met:,} of the {len(listed):,} values do not occur "
                    "in any record; check how they are spelled in the table"
                )
    return remarks


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
        where, what_and_how_many = f"column '{column}'", numbered(count, what)
        if seen is None or source is None:
            return Problem(where, what_and_how_many, hint)
        return Problem.in_rows(where, what_and_how_many, hint, seen, source.row_numbers)


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
