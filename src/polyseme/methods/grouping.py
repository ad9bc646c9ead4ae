"""What a method that looks at the whole table is given: a task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from polyseme.arrays import Ints
from polyseme.errors import PolicyError, Problem, nearest
from polyseme.kernel.work import Cancellation, current_cancellation
from polyseme.methods.bucketization import Grouping, Places
from polyseme.methods.goal import Goal
from polyseme.methods.microdata import Microdata, Recoding
from polyseme.randomness import SystemStream
from polyseme.schema import Attribute

__all__ = ["DealingMethod", "Generalizing", "GroupingMethod", "Task", "grouped_attribute", "require_goal"]


@dataclass(frozen=True, eq=False)
class Task:
    """A table, what its classes must reach, and how.

    sensitive   the attributes that classes or groups protect, with their domains and distances
    parameters  of the method, defaults filled in
    stream      random numbers for what is published and must not tell of the order of records
    """

    data: Microdata
    goal: Goal
    sensitive: Mapping[str, Attribute]
    parameters: Mapping[str, Any]
    stream: SystemStream
    cancellation: Cancellation = field(default_factory=current_cancellation)

    def require_goal(self, method: str) -> None:
        require_goal(self.goal, method)


def require_goal(goal: Goal, method: str) -> None:
    """Refuse a policy without a model that classes could be formed for."""
    if not goal.demands:
        what = f"{method} forms classes that reach the policy's models, and it lists none for them"
        raise PolicyError(Problem("$.models", what, "models: [{k-anonymity: {k: 5}}]"))


class GroupingMethod(Protocol):
    """A method that decides over the whole table which records share a class or a group."""

    @property
    def name(self) -> str:
        """The policy's and the manifest's word for it."""

    def models(
        self, parameters: Mapping[str, Any], sensitive: Mapping[str, Attribute]
    ) -> tuple[Mapping[str, Mapping[str, Any]], ...]:
        """What it promises by itself, beside the policy's models, as a policy writes them."""

    def counts(self, parameters: Mapping[str, Any]) -> bool:
        """Whether it works on counts of records that are alike; otherwise each record is looked at by itself."""

    def group(self, task: Task) -> Recoding | Grouping:
        """Classes with generalized quasi-identifiers, or groups that share their sensitive values."""


@runtime_checkable
class DealingMethod(GroupingMethod, Protocol):
    """A method whose groups follow from how many records have each value; only who is in which is drawn."""

    def places(self, parameters: Mapping[str, Any], attribute: Attribute, counts: Ints) -> Places:
        """The places of groups, from the records of each value of the attribute that is published by group."""


class Generalizing:
    """What all methods that form classes have in common."""

    def models(
        self, parameters: Mapping[str, Any], sensitive: Mapping[str, Attribute]
    ) -> tuple[Mapping[str, Mapping[str, Any]], ...]:
        """None by itself: classes are formed for the policy's models."""
        return ()


def grouped_attribute(method: str, parameters: Mapping[str, Any], sensitive: Mapping[str, Attribute]) -> Attribute:
    """The attribute that is published by group: the one that is named, or the only sensitive one."""
    where = f"$.method.{method}.attribute"
    named = parameters.get("attribute")
    if named is not None and named not in sensitive:
        what = f"'{named}' is no sensitive attribute without decoys of its own"
        raise PolicyError(Problem(where, what, nearest(named, sensitive)))
    if named is None and len(sensitive) != 1:
        what = "several attributes are sensitive" if sensitive else "no attribute is sensitive and without decoys"
        raise PolicyError(Problem(where, what, f"name one: attribute: {next(iter(sensitive), 'disease')}"))
    return sensitive[named] if named is not None else next(iter(sensitive.values()))
