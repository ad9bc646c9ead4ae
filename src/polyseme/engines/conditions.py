"""Whether records fulfill the conditions that a policy declares.

A condition without records does nothing: most likely its values are spelled otherwise in the table, and decoys that
were declared impossible would be published. So it is refused, unless the policy says that it may be empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from polyseme.arrays import Ints
from polyseme.errors import PolicyError, Problem
from polyseme.schema import Attribute, Constraint
from polyseme.strata import Found, Placing

__all__ = ["Fulfilled", "absent_values", "require_fulfilled", "unfulfilled"]

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
    """The conditions that no record meets, apart from those that may be empty, and priors that match no record."""
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
    """Remarks on lists of values of which some occur in the table and some do not: those may be written otherwise."""
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
