"""Sticky sets of people whose stratum changes: as far the same as the mechanisms allow.

Values that are impossible for a record give it a mechanism of its own (see `strata`), and another mechanism draws other
sets. The sets of a person in two strata could be intersected, so the sets of a stratum are not drawn afresh but made
from those of its *parent*, the stratum with most of the same values impossible:

    R        the set that the parent's mechanism draws for the person: P_t(R | v)
    R'       a proposal made from R; its law given v is then some P~(R' | v)
    w        P~(R' | v) / P_s(R' | v), where s is the stratum itself

R' is taken with probability min(1, 1/w). If it is not, sets are drawn from P_s, each taken with probability
max(0, 1 - w), until one is. This is the maximal coupling of P~ and P_s: the set's law is

    min(P~, P_s) + (1 - sum min(P~, P_s)) * (P_s - P~)^+ / sum (P_s - P~)^+  =  P_s

exactly, whatever the proposal, and one further draw a record is expected at most. There are three kinds of proposal:

- `Kept`: R itself. The sets coincide as often as those of two mechanisms can.
- `Nested`: the members of R that are possible in s, completed by a draw from the blind distribution B_s among the sets
  that hold them all. Both sets then have all of these in common, and under balanced designs each of them is equally
  likely: nothing is gained beyond knowing what is impossible. Its law is a sum over subsets, so sets are listed. Of a
  set of two with an impossible member only the truth is left, so there it is better to keep more sets whole.
- `Even`: the same where all sets are alike, in closed form, for domains of any size.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from polyseme.arrays import Ints
from polyseme.coupling.base import Coupling
from polyseme.coupling.even import Even
from polyseme.coupling.kept import Kept
from polyseme.coupling.nested import Nested
from polyseme.designs.base import Design
from polyseme.errors import ImpossibleError
from polyseme.randomness import StickyStream
from polyseme.strata import Strata, Stratum, by_stratum

__all__ = ["Coupled", "Coupling", "Even", "Kept", "Nested", "couple", "parents"]

NESTED_LIMIT = 1 << 21
"""Most pairs of a set and one of its subsets that are listed for an attribute; some 100 MB."""


def couple(parent: Stratum, child: Stratum, limit: int = NESTED_LIMIT) -> Coupling:
    """The coupling that keeps most: nested where all sets are alike, or can be listed."""
    l = child.mechanism.l
    if parent.excluded == child.excluded:
        # Nothing has to be replaced: another prior only makes other sets likely.
        return Kept(parent, child)
    if parent.mechanism.design.even and child.mechanism.design.even:
        return Even(parent, child)
    listed = l > 2 and (parent.size + 1) ** l < 1 << 64
    if listed and all(_is_short(stratum.mechanism.design, limit >> l) for stratum in (child, parent)):
        return Nested(parent, child)
    return Kept(parent, child)


def _is_short(design: Design, limit: int) -> bool:
    try:
        return design.count() <= limit
    except ImpossibleError:
        return False


def parents(strata: Sequence[Stratum]) -> list[int]:
    """For each stratum the one with most of its impossible values; the first is its own parent.

    Strata under a condition come from those under none, so that a condition that changes has one step back and one
    forth; where the same values are impossible under none, that one is the parent.

    >>> from unittest.mock import Mock
    >>> strata = [Stratum(codes, 9, Mock()) for codes in ((), (4,), (0, 1), (0, 1, 4), (1, 4), (0, 1, 4, 5))]
    >>> parents(strata)
    [0, 0, 0, 2, 1, 3]
    """
    found = []
    free = [(number, frozenset(other.excluded)) for number, other in enumerate(strata) if not other.condition]
    for stratum in strata:
        mine = frozenset(stratum.excluded)
        inside = [(number, other) for number, other in free if other < mine or (stratum.condition and other == mine)]
        found.append(max(inside, key=lambda pair: len(pair[1]), default=(0, mine))[0])
    return found


class Coupled:
    """Sticky sets for all strata of an attribute."""

    def __init__(self, strata: Strata) -> None:
        self.strata = strata

    @cached_property
    def _parents(self) -> list[int]:
        return parents(self.strata.members)

    @cached_property
    def _couplings(self) -> dict[int, Coupling]:
        return {}

    def _coupling(self, number: int) -> Coupling:
        if number not in self._couplings:
            members = self.strata.members
            limit = NESTED_LIMIT // (len(members) - 1)
            self._couplings[number] = couple(members[self._parents[number]], members[number], limit)
        return self._couplings[number]

    def sample(self, places: Ints, codes: Ints, stream: StickyStream) -> Ints:
        """A set for each record in its stratum `places`, in codes of the whole domain: (n, l)."""
        sets = np.empty((len(places), self.strata.members[0].mechanism.l), dtype=np.int64)
        for number, rows in by_stratum(places):
            sets[rows] = self._draw(number, codes[rows], stream.take(rows))[0]
        return sets

    def _draw(self, number: int, codes: Ints, stream: StickyStream) -> tuple[Ints, int]:
        """Sets of one stratum, and how many ancestors it has."""
        if number == 0:
            return self.strata.members[0].mechanism.sample(codes, stream), 0
        sets, depth = self._draw(self._parents[number], codes, stream)
        return self._coupling(number).sample(codes, sets, stream, depth + 1), depth + 1
