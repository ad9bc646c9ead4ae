"""What a table means: roles, domains, attributes.

Nouns only. Turning columns into codes is the work of `tables`, reading YAML that of `policy`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import Literal

import numpy as np

from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.spelling import Label, written
from polyseme.privacy.promises import Promises
from polyseme.semantics.distances.base import Distance

__all__ = [
    "OTHERWISE",
    "Attribute",
    "Bins",
    "Condition",
    "Conditional",
    "Constraint",
    "Distributions",
    "Domain",
    "Member",
    "Missing",
    "Periods",
    "Resolved",
    "Role",
    "Schema",
    "Weighting",
]


class Role(Enum):
    """What an attribute is to an attacker."""

    IDENTIFIER = "identifier"
    QUASI_IDENTIFIER = "quasi-identifier"
    SENSITIVE = "sensitive"
    SENSITIVE_QID = "sensitive-qid"
    INSENSITIVE = "insensitive"
    WEIGHT = "weight"

    @property
    def is_published(self) -> bool:
        """Whether its column, or sets in its place, are in a release."""
        return self is not Role.IDENTIFIER

    @property
    def is_secret(self) -> bool:
        """Whether it must not be published as it is."""
        return self in (Role.SENSITIVE, Role.SENSITIVE_QID)

    @property
    def tells_apart(self) -> bool:
        """Whether records are found by it.

        Survey weights follow from what people are, and few share one.
        """
        return self in (Role.QUASI_IDENTIFIER, Role.WEIGHT)


@dataclass(frozen=True)
class Missing:
    """What happens to a record without a value: refused, dropped (and counted), or kept as one."""

    action: Literal["refuse", "drop", "category"] = "refuse"
    label: str = "(missing)"


@dataclass(frozen=True)
class Bins:
    """A numeric column in half-open intervals [edges[i], edges[i+1]); the last one is closed."""

    edges: tuple[float, ...]


@dataclass(frozen=True)
class Periods:
    """A date or time column cut into calendar periods."""

    every: Literal["year", "quarter", "month", "week", "day"]


@dataclass(frozen=True)
class Domain:
    """The values of a protected attribute in a fixed order; a value's code is its place here."""

    values: tuple[Label, ...]
    ordered: bool = False
    cut: Bins | Periods | None = None
    missing: Missing = field(default_factory=Missing)

    @property
    def size(self) -> int:
        return len(self.values)

    @cached_property
    def codes(self) -> Mapping[str, int]:
        """The code of each value, by the way it is written: to Python true and 1 are the same key."""
        return {written(value): code for code, value in enumerate(self.values)}


@dataclass(frozen=True)
class Weighting:
    """How survey weights are published: coarser, so that they distinguish fewer records.

    round  the step that they are multiples of; None for no rounding
    trim   what a larger weight is published as; None for no limit
    """

    round: float | None = None
    trim: float | None = None

    @property
    def in_words(self) -> str:
        """How a column of weights is published.

        >>> Weighting(round=50, trim=600).in_words, Weighting().in_words
        ('rounded to multiples of 50 and trimmed at 600', 'as it is')
        """
        rounded = f"rounded to multiples of {self.round:g}" if self.round is not None else ""
        trimmed = f"trimmed at {self.trim:g}" if self.trim is not None else ""
        return " and ".join(filter(None, [rounded, trimmed])) or "as it is"

    def applied(self, weights: Floats) -> Floats:
        """The weights as they are published; no record loses its weight by rounding.

        >>> Weighting(round=10, trim=80).applied(np.array([0.0, 2.0, 26.0, 91.5]))
        array([ 0., 10., 30., 80.])
        """
        if self.trim is not None:
            weights = np.minimum(weights, self.trim)
        if self.round is not None:
            weights = np.where(weights > 0.0, np.maximum(np.rint(weights / self.round), 1.0), 0.0) * self.round
        return np.asarray(weights, dtype=np.float64)


@dataclass(frozen=True)
class Distributions:
    """Public distributions over the values of a domain, or of those that are left of it.

    prior                that designs are balanced for; uniform when None
    reference            that closeness is measured against; any distribution when None
    learner_prior        what a learner is taken to know, where that is not what the design is balanced for
    reference_from_data  whether the reference is that of the records themselves, and so says something about them
    """

    prior: Floats | None = field(default=None, compare=False)
    reference: Floats | None = field(default=None, compare=False)
    reference_from_data: bool = False
    learner_prior: Floats | None = field(default=None, compare=False)

    @property
    def known(self) -> Floats | None:
        """What an attacker who reads public statistics knows: the prior, or else the reference."""
        return self.reference if self.prior is None else self.prior

    def made_for(self, prior: Floats) -> Distributions:
        """The same where the design is balanced for another prior than the one that is known."""
        return replace(self, prior=prior, learner_prior=self.known)

    def among(self, allowed: Ints) -> Distributions:
        """The same given that the value is one of these, adding up to one.

        None where none of them is expected.

        >>> Distributions(np.array([0.2, 0.2, 0.6])).among(np.array([0, 2])).prior
        array([0.25, 0.75])
        """
        return replace(self, prior=_given(self.prior, allowed), reference=_given(self.reference, allowed))


def _given(shares: Floats | None, allowed: Ints) -> Floats | None:
    if shares is None:
        return None
    left = shares[allowed]
    return np.asarray(left / left.sum()) if left.sum() > 0.0 else None


@dataclass(frozen=True)
class Condition:
    """A condition on untouched attributes of a record: each named one has one of its texts.

    The texts are spellings (see `polyseme.kernel.spelling`). Without any name it is the condition of the records
    that fulfill none of the others.
    """

    when: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash(frozenset(self.when.items()))

    def __bool__(self) -> bool:
        """Whether it asks for anything."""
        return bool(self.when)


OTHERWISE = Condition()
"""The condition of the records that fulfill none of the others."""


@dataclass(frozen=True)
class Conditional:
    """Distributions of the records that fulfill a condition, in place of the general ones.

    share  of the people who are expected to fulfill it; None where it is not stated. It is not part of a release
    """

    condition: Condition
    distributions: Distributions
    share: float | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Constraint:
    """Values that cannot occur in a record that fulfills a condition.

    excluded  their codes, ascending
    where     the place in the policy, for messages
    may_be_empty  whether it is fine that no record meets the condition
    """

    condition: Condition
    excluded: tuple[int, ...]
    where: str = field(default="", compare=False)
    may_be_empty: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Member:
    """An attribute that is published only in combination with others.

    codes  its value in each combination, by the combination's code
    """

    name: str
    domain: Domain
    codes: tuple[int, ...]


@dataclass(frozen=True)
class Attribute:
    """One column of a table and what it means.

    constraints    which of its values some records cannot have
    distributions  what is publicly expected of the values
    conditional    what is expected of them under conditions that exclude each other
    members        of a joint attribute, whose values are combinations: the columns that it is made of
    weighting      of a survey weight: how it is published
    shared_by      the column whose groups share one value: all records of a group have one set; empty for none
    """

    name: str
    role: Role
    domain: Domain | None = None
    distance: Distance | None = None
    promises: Promises = field(default_factory=Promises)
    constraints: tuple[Constraint, ...] = ()
    distributions: Distributions = field(default_factory=Distributions)
    conditional: tuple[Conditional, ...] = ()
    members: tuple[Member, ...] = ()
    weighting: Weighting | None = None
    shared_by: str = ""

    def expected(self, condition: Condition) -> Distributions:
        """The distributions of the records under one of its conditions.

        Everybody's where it is none of them.
        """
        return self._conditional.get(condition, self.distributions)

    @cached_property
    def _conditional(self) -> Mapping[Condition, Distributions]:
        return {item.condition: item.distributions for item in self.conditional}

    @property
    def protected(self) -> bool:
        """Whether its values are published as sets of candidates."""
        return bool(self.promises)


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


@dataclass(frozen=True)
class Resolved:
    """A schema, the protected attributes whose domain comes from the data, and remarks.

    unspoken  attributes whose values must not appear in a message: they come from the data, or from a file
    """

    schema: Schema
    from_data: tuple[str, ...]
    remarks: tuple[str, ...] = ()
    unspoken: tuple[str, ...] = ()
