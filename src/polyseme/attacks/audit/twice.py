"""Two releases of the same people, brought to one numbering of the values.

The second release may list its values in another order, or have more or fewer of them: decoys change with that, so it
is just then that two releases are worth intersecting. Values are joined by their labels. A value that one of the two
domains does not have is not true of any person who is in both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyseme.arrays import Floats, Ints
from polyseme.attacks.audit.seen import Part
from polyseme.attacks.posterior import uniform
from polyseme.errors import ReleaseError
from polyseme.mechanism import Mechanism
from polyseme.release import Column, Sets
from polyseme.schema import Bins, Domain
from polyseme.spelling import names_of

__all__ = ["Joined", "counterpart", "join"]


def counterpart(part: Part, again: Column) -> Part | None:
    """The other release's stratum of the same records, in which the same common values are left; None without one.

    Where the other release gives distributions for other conditions, its strata hold other records.
    """
    if not isinstance(again, Sets) or not _comparable(part.item.domain, again.domain):
        raise ReleaseError(f"'{part.item.name}' is not published over comparable values in both releases")
    mine, other = part.item.domain, again.domain
    here, there = (names_of(domain.values) for domain in (mine, other))
    wanted = {here[code] for code in part.stratum.excluded}.intersection(there)
    fitting = [
        number
        for number, member in enumerate(again.strata.members)
        if {there[code] for code in member.excluded}.intersection(here) == wanted
        and (not again.attribute.conditional or member.condition == part.stratum.condition)
    ]
    return Part(again, fitting[0]) if len(fitting) == 1 else None


def _left(part: Part) -> list[str]:
    """The values that are left in a stratum, by name."""
    names = names_of(part.item.domain.values)
    return [names[code] for code in part.stratum.allowed]


def _comparable(mine: Domain, other: Domain) -> bool:
    """Whether equal labels mean equal values: bins with other edges do not."""
    return mine.values == other.values or not any(isinstance(domain.cut, Bins) for domain in (mine, other))


@dataclass(frozen=True, eq=False)
class _Renumbered(Mechanism):
    """A mechanism whose sets come in other codes: `own` are its codes for them."""

    own: Ints | None = None

    def weights(self, sets: Ints) -> tuple[Floats, Floats]:
        codes = sets if self.own is None else self.own[sets]
        order = np.argsort(codes, axis=1)
        inside, outside = super().weights(np.take_along_axis(codes, order, axis=1))
        placed = np.empty_like(inside)
        np.put_along_axis(placed, order, inside, axis=1)
        return placed, outside


@dataclass(frozen=True, eq=False)
class Joined:
    """The other release in the numbering of the first.

    codes      for each value of the other stratum; values that only the other has are numbered after all the first has
    mechanism  of the other stratum, for sets in these codes
    prior      over all codes: that of the first, given that both have the value
    same       whether both have the same values in the same order
    """

    codes: Ints
    mechanism: Mechanism
    prior: Floats
    same: bool


def join(part: Part, other: Part) -> Joined | None:
    """The stratum of another release joined to that of the first; None when they have no likely value in common."""
    mine, theirs = _left(part), _left(other)
    prior = uniform(len(mine)) if part.stratum.prior is None else part.stratum.prior
    mechanism = other.stratum.mechanism
    if mine == theirs:
        return Joined(np.arange(len(mine)), mechanism, prior, same=True)
    number = {label: code for code, label in enumerate(mine)}
    for label in theirs:
        number.setdefault(label, len(number))
    codes = np.array([number[label] for label in theirs])
    own = np.zeros(len(number), dtype=np.int64)
    own[codes] = np.arange(len(codes))
    shares = np.zeros(len(number))
    shared = codes[codes < len(mine)]
    shares[shared] = prior[shared]
    if not shares.sum() > 0.0:
        return None
    return Joined(codes, _Renumbered(mechanism.design, mechanism.p, own), shares / shares.sum(), same=False)
