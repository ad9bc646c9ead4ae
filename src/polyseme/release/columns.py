"""How one column of a release was published.

AsIs         the values of the table
Sets         a set of candidates in the place of each value
Generalized  a coarser value in the place of each value: a range, a branch of a tree
Grouped      the values of a group of records, without saying which record has which
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from polyseme.errors import ReleaseError
from polyseme.mechanism import Mechanism
from polyseme.promises import Channel, Grounds, Known
from polyseme.schema import Attribute, Domain
from polyseme.strata import Strata, Stratum

__all__ = ["AsIs", "Column", "Generalized", "Grouped", "Sets"]


@dataclass(frozen=True)
class _Published:
    attribute: Attribute

    @property
    def name(self) -> str:
        return self.attribute.name


@dataclass(frozen=True)
class AsIs(_Published):
    """A column that nothing was done to."""

    in_words = "as it is"


@dataclass(frozen=True)
class Generalized(_Published):
    """A column whose values were replaced by coarser ones."""

    in_words = "as generalized values"


@dataclass(frozen=True)
class Grouped(_Published):
    """A column whose values are published for groups of records."""

    in_words = "by group"


@dataclass(frozen=True)
class Sets(_Published):
    """A column of candidate sets, how they were drawn and what was promised for them.

    strata     the mechanisms; the first is that of the records to which no condition applies
    threshold  the least distance between two candidates; None where the values have no distance
    domain_from_data  whether the list of values was taken from the records
    repeats    records to a draw, as the design effect counts them: with sticky decoys all records of one person with
               one value have one set, so `n` records tell as much as `n / repeats` independent ones
    posterior  how likely any candidate can be, at most, under the declared prior; infinite where none is promised,
               None where the manifest does not say
    """

    strata: Strata
    threshold: float | None = None
    domain_from_data: bool = False
    repeats: float = 1.0
    posterior: float | None = None

    @property
    def mechanism(self) -> Mechanism:
        """That of the records to which no condition applies; all strata have its l."""
        return self.strata.members[0].mechanism

    @property
    def l(self) -> int:  # noqa: E743 - the field's own letter
        """How many candidates each set holds."""
        return self.mechanism.l

    @property
    def in_words(self) -> str:
        return f"sets of {self.l}"

    @property
    def stratified(self) -> bool:
        """Whether some records have a mechanism of their own."""
        return len(self.strata.members) > 1

    @property
    def domain(self) -> Domain:
        if self.attribute.domain is None:
            raise ReleaseError(f"'{self.name}' is published as sets, but has no domain")
        return self.attribute.domain

    @cached_property
    def channels(self) -> tuple[Channel, ...]:
        """The mechanism of each stratum and what is public about its values; first that of the whole domain."""
        grounds = Grounds(self.attribute.distance)
        return tuple(self._channel(member, grounds) for member in self.strata.members)

    def _channel(self, member: Stratum, grounds: Grounds) -> Channel:
        codes = member.allowed if member.excluded else None
        expected = member.distributions
        known = Known(member.size, expected.prior, expected.reference, grounds, codes, expected.stated)
        return Channel(member.mechanism, known)


Column: TypeAlias = AsIs | Sets | Generalized | Grouped
