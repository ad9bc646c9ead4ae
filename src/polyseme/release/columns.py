"""How one column of a release was published.

AsIs         the values of the table
Sets         a set of candidates in the place of each value
Generalized  a coarser value in the place of each value: a range, a branch of a tree
Grouped      the values of a group of records, without saying which record has which
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from polyseme.designs.mechanism import Mechanism
from polyseme.kernel.errors import ReleaseError
from polyseme.privacy.promises import Channel, Grounds, Known
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
    """An unchanged column; a sensitive one only in classes of records that protect it."""

    @property
    def in_words(self) -> str:
        return "as it is" if self.attribute.weighting is None else self.attribute.weighting.in_words


@dataclass(frozen=True)
class Generalized(_Published):
    """A column whose values were replaced by coarser ones; `*` for nothing at all.

    level       at which every record is shown that is not suppressed, 0 for the values themselves; None where records
                differ
    stands_for  the values that each label may stand for, where the policy lists them: values found in the table are
                never published this way
    """

    level: int | None = None
    stands_for: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)

    @property
    def in_words(self) -> str:
        if self.level is None:
            return "generalized"
        return f"generalized to level {self.level}" if self.level else "as it is (level 0)"


@dataclass(frozen=True)
class Grouped(_Published):
    """A column in which each record shows all values of its group, sorted.

    group  the column that says which records belong together
    """

    group: str = ""

    in_words = "by group"

    @property
    def domain(self) -> Domain:
        if self.attribute.domain is None:
            raise ReleaseError(f"'{self.name}' is published by group, but has no domain")
        return self.attribute.domain


@dataclass(frozen=True)
class Sets(_Published):
    """A column of candidate sets, how they were drawn and what was promised for them.

    strata     the mechanisms; the first is that of the records to which no condition applies
    threshold  the least distance between two candidates; None where the values have no distance
    domain_from_data  whether the list of values was taken from the records
    repeats    records to a draw, as the design effect counts them: with sticky decoys all records of one person with
               one value have one set, and so have those of a group that shares one; `n` records then tell as much as
               `n / repeats` independent ones
    differing  the share of groups whose members do not all share a set, rounded up, where groups are to share one
    posterior  how likely any candidate can be, at most, under the declared prior; infinite where none is promised,
               None where the manifest does not say
    """

    strata: Strata
    threshold: float | None = None
    domain_from_data: bool = False
    repeats: float = 1.0
    posterior: float | None = None
    differing: float = 0.0

    @property
    def shared_by(self) -> str:
        """The column of the table whose groups share one set; empty where every record has its own."""
        return self.attribute.shared_by

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
        return f"sets of {self.l}" if self.l > 1 else "one value, drawn at random"

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
        """The mechanism of each stratum and what is public about its values.

        First that of the whole domain.
        """
        grounds = Grounds(self.attribute.distance)
        return tuple(self._channel(member, grounds) for member in self.strata.members)

    def _channel(self, member: Stratum, grounds: Grounds) -> Channel:
        codes = member.allowed if member.excluded else None
        expected = member.distributions
        known = Known(member.size, expected.prior, expected.reference, grounds, codes, expected.learner_prior)
        return Channel(member.mechanism, known)


Column: TypeAlias = AsIs | Sets | Generalized | Grouped
