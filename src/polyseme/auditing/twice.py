"""Two releases of the same people, brought to one numbering of the values.

The second release may list its values in another order, or have more or fewer of them: decoys change with that, so it
is just then that two releases are worth intersecting. Values are joined by their labels. A value that one of the two
domains does not have is true of nobody who stands in both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyseme.attacks.posterior import uniform
from polyseme.auditing.seen import Part
from polyseme.distances.structure import Floats, Ints
from polyseme.errors import ReleaseError
from polyseme.mechanism import Mechanism
from polyseme.release import PublishedAttribute
from polyseme.schema import Bins
from polyseme.tables.codes import label_text

__all__ = ["Joined", "counterpart", "join"]


def counterpart(part: Part, again: PublishedAttribute) -> Part | None:
    """The stratum of the other release in which the same common values are left; None when there is not just one."""
    mine, other = part.item.domain, again.domain
    bins = isinstance(mine.cut, Bins) or isinstance(other.cut, Bins)
    if again.mechanism is None or (bins and mine.values != other.values):
        raise ReleaseError(f"'{part.item.name}' is not published over comparable values in both releases")
    here, there = (set(map(label_text, domain.values)) for domain in (mine, other))
    wanted = {label_text(mine.values[code]) for code in part.stratum.excluded} & there
    fitting = [
        number
        for number, member in enumerate(again.strata.members)
        if {label_text(other.values[code]) for code in member.excluded} & here == wanted
    ]
    return Part(again, fitting[0]) if len(fitting) == 1 else None


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


def join(part: Part, other: Part, prior: Floats | None) -> Joined | None:
    """The stratum of another release joined to that of the first; None when they have no likely value in common."""
    mine, theirs = (
        [label_text(item.item.domain.values[code]) for code in item.stratum.allowed] for item in (part, other)
    )
    prior = uniform(len(mine)) if prior is None else prior
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
