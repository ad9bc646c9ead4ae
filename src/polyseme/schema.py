"""What a table means: roles, domains, attributes.

Nouns only. Turning columns into codes is the work of `tables`, reading YAML that of `policy`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any, Literal, TypeAlias

from polyseme.distances.base import Distance
from polyseme.distances.structure import Floats

__all__ = ["Attribute", "Bins", "Constraint", "Domain", "Label", "Missing", "Periods", "Protection", "Role", "Schema"]

Label: TypeAlias = str | int | float | bool


class Role(Enum):
    """What an attribute is to an attacker."""

    IDENTIFIER = "identifier"
    QUASI_IDENTIFIER = "quasi-identifier"
    SENSITIVE = "sensitive"
    SENSITIVE_QID = "sensitive-qid"
    INSENSITIVE = "insensitive"

    @property
    def is_published(self) -> bool:
        """Whether its column, or sets in its place, are in a release."""
        return self is not Role.IDENTIFIER

    @property
    def is_secret(self) -> bool:
        """Whether it must not be published as it is."""
        return self in (Role.SENSITIVE, Role.SENSITIVE_QID)


@dataclass(frozen=True)
class Missing:
    """What happens to a record without a value: refused, dropped (and counted), or a value of its own."""

    action: Literal["refuse", "drop", "category"] = "refuse"
    label: str = "(missing)"


@dataclass(frozen=True)
class Bins:
    """A numeric column cut into half-open intervals [edges[i], edges[i+1]); the last one is closed."""

    edges: tuple[float, ...]


@dataclass(frozen=True)
class Periods:
    """A date or time column cut into calendar periods."""

    every: Literal["year", "quarter", "month", "week", "day"]


@dataclass(frozen=True)
class Domain:
    """The values a protected attribute can have, in a fixed order; a value's code is its place here.

    prior      a public distribution over the values that designs are balanced for; uniform when None
    reference  a public distribution that closeness is measured against; any distribution when None
    reference_from_data  whether the reference is that of the records themselves, and so says something about them
    """

    values: tuple[Label, ...]
    ordered: bool = False
    cut: Bins | Periods | None = None
    missing: Missing = field(default_factory=Missing)
    prior: Floats | None = field(default=None, compare=False)
    reference: Floats | None = field(default=None, compare=False)
    reference_from_data: bool = False

    @property
    def size(self) -> int:
        return len(self.values)

    @cached_property
    def codes(self) -> Mapping[Label, int]:
        """The code of each value."""
        return {value: code for code, value in enumerate(self.values)}


@dataclass(frozen=True)
class Protection:
    """What was promised for one attribute: model names with their parameters, as the policy says them."""

    models: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Constraint:
    """Values that cannot occur in a record whose untouched attributes all have one of the given texts.

    when      for each untouched attribute, the texts; see `polyseme.strata.as_text`
    excluded  the codes of the values that are then impossible, ascending
    where     the place in the policy, for messages
    """

    when: Mapping[str, tuple[str, ...]]
    excluded: tuple[int, ...]
    where: str = field(default="", compare=False)


@dataclass(frozen=True)
class Attribute:
    """One column of a table and what it means; constraints say which of its values some records cannot have."""

    name: str
    role: Role
    domain: Domain | None = None
    distance: Distance | None = None
    protection: Protection | None = None
    constraints: tuple[Constraint, ...] = ()

    @property
    def protected(self) -> bool:
        """Whether its values are published as sets of candidates."""
        return self.protection is not None


@dataclass(frozen=True)
class Schema:
    """The attributes of a table, in column order."""

    attributes: tuple[Attribute, ...]

    def __getitem__(self, name: str) -> Attribute:
        return self.by_name[name]

    @cached_property
    def by_name(self) -> Mapping[str, Attribute]:
        return {attribute.name: attribute for attribute in self.attributes}

    @property
    def protected(self) -> tuple[Attribute, ...]:
        return tuple(attribute for attribute in self.attributes if attribute.protected)
