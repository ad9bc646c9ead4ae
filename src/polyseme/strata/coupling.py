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

For `Even`: when every l values are equally likely, so is every completion: the proposal given v has the law K_s of the
stratum when the parent told the truth and B_s when it did not. Only the truth probabilities may differ.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from polyseme.designs.base import Design
from polyseme.kernel.arrays import Bools, Floats, Ints
from polyseme.kernel.errors import ImpossibleError
from polyseme.kernel.randomness import StickyStream
from polyseme.strata import Strata, Stratum, by_stratum

__all__ = ["Coupled", "Coupling", "Even", "Kept", "Nested", "couple", "log_channel", "parents"]

_ROUNDING = 1e-9
"""Ratios of probabilities that are 1 by construction come out this close to it."""
_BLOCK, _MOST_TRIES = 1 << 14, 1 << 24
"""With 2^24 tries at most, the law is exact but for 2e-8 at worst; nearly always a few are enough."""


class Coupling(ABC):
    """Sets of a stratum made from those of its parent.

    Everything is in codes of the whole domain.
    """

    draws = 1
    """How many uniform numbers a proposal takes."""

    def __init__(self, parent: Stratum, child: Stratum) -> None:
        self.parent, self.child = parent, child
        self._label = _label(child)

    @abstractmethod
    def propose(self, codes: Ints, sets: Ints, uniforms: Floats) -> tuple[Ints, Floats]:
        """A set for each set of the parent, from `uniforms` (draws, n), and its `w`.

        It is infinite if the set is impossible.
        """

    @abstractmethod
    def ratio(self, codes: Ints, sets: Ints) -> Floats:
        """`w` of sets that the stratum can have."""

    def sample(self, codes: Ints, sets: Ints, stream: StickyStream, depth: int) -> Ints:
        """The sets of the stratum for records whose parent sets are given.

        depth  how many ancestors the stratum has; numbers that made the parent's set are not used again
        """
        rows = np.arange(len(codes))
        completing = stream.lane(b"complete " + self._label, rows).uniforms(self.draws, len(rows))
        proposed, ratio = self.propose(codes, sets, completing)
        # Strata with the same parent share the number that decides, so that they keep the same sets.
        chance = stream.lane(b"keep %d" % depth, rows).uniforms(1, len(rows))[0]
        kept = np.isfinite(ratio)
        kept[kept] = chance[kept] * ratio[kept] <= 1.0 + _ROUNDING
        refused = np.flatnonzero(~kept)
        if refused.size:
            proposed = proposed.copy()
            proposed[refused] = self._afresh(codes[refused], stream.take(refused))
        return proposed

    def _afresh(self, codes: Ints, stream: StickyStream) -> Ints:
        """Draws from what the stratum's mechanism has beyond the proposals."""
        sets = np.empty((len(codes), self.child.mechanism.l), dtype=np.int64)
        waiting, first = np.arange(len(codes)), 0
        while waiting.size:
            # Twice as many as before, so that a few are enough for most and rare ones are found in large blocks.
            tries = max(1, min(first, _BLOCK // len(waiting), _MOST_TRIES - first))
            rows, numbers = np.repeat(waiting, tries), np.tile(np.arange(first, first + tries), len(waiting))
            lane = stream.lane(b"afresh " + self._label, rows, numbers)
            drawn = self.child.widen(self.child.mechanism.sample(self.child.narrow(codes[rows]), lane))
            chance = lane.lane(b"take", np.arange(len(rows))).uniforms(1, len(rows))[0]
            first += tries
            taken = (chance < 1.0 - self.ratio(codes[rows], drawn)).reshape(-1, tries)
            if first >= _MOST_TRIES:
                taken[:, -1] = True
            done, which = taken.any(axis=1), taken.argmax(axis=1)
            sets[waiting[done]] = drawn.reshape(len(waiting), tries, -1)[done, which[done]]
            waiting = waiting[~done]
        return sets


def _label(stratum: Stratum) -> bytes:
    """Names a stratum among those of its attribute, whatever the others are."""
    excluded = ",".join(map(str, stratum.excluded))
    conditions = [[name, *sorted(texts)] for name, texts in sorted(stratum.condition.when.items())]
    return f"{excluded} {json.dumps(conditions)}".encode() if conditions else excluded.encode()


def log_channel(stratum: Stratum, codes: Ints, sets: Ints) -> Floats:
    """`ln P(R | v)` in a stratum, of sets without impossible members."""
    return stratum.mechanism.log_channel(stratum.narrow(codes), stratum.narrow(sets))


class Even(Coupling):
    """Uniform completions among the possible values."""

    def __init__(self, parent: Stratum, child: Stratum) -> None:
        super().__init__(parent, child)
        self.draws = child.mechanism.l

    def propose(self, codes: Ints, sets: Ints, uniforms: Floats) -> tuple[Ints, Floats]:
        size, l = self.child.mechanism.size, sets.shape[1]
        # Ascending codes of the stratum; what is impossible comes last, as a code that no value has.
        left = np.where(self.child.forbids[sets], size, np.searchsorted(self.child.allowed, sets))
        left.sort(axis=1)
        for taken in range(l):
            rows = np.flatnonzero(left[:, taken] == size)
            drawn = (uniforms[taken, rows] * (size - taken)).astype(np.int64)
            for column in range(taken):
                # The drawn rank counts the values that are still free; every member up to it moves it on by one.
                drawn += drawn >= left[rows, column]
            left[rows, taken] = drawn
            left[rows, : taken + 1] = np.sort(left[rows, : taken + 1], axis=1)
        proposed = self.child.widen(left)
        return proposed, self.ratio(codes, proposed)

    def ratio(self, codes: Ints, sets: Ints) -> Floats:
        # K_s / B_s is 1 / rho = F / l where the set holds v, and 0 elsewhere.
        given = (sets == codes[:, None]).any(axis=1) * (self.child.mechanism.size / self.child.mechanism.l)
        before, here = (p * given + (1.0 - p) for p in (self.parent.mechanism.p, self.child.mechanism.p))
        ratio: Floats = np.divide(before, here, out=np.full(len(codes), np.inf), where=here > 0)
        return ratio


class Kept(Coupling):
    """The parent's set itself is proposed."""

    def propose(self, codes: Ints, sets: Ints, uniforms: Floats) -> tuple[Ints, Floats]:
        ratio = np.full(len(codes), np.inf)
        possible = np.flatnonzero(~self.child.forbids[sets].any(axis=1))
        ratio[possible] = self.ratio(codes[possible], sets[possible])
        return sets, ratio

    def ratio(self, codes: Ints, sets: Ints) -> Floats:
        here = log_channel(self.child, codes, sets)
        before = log_channel(self.parent, codes, sets)
        possible = np.isfinite(here)
        ratio = np.full(len(codes), np.inf)
        ratio[possible] = np.exp(before[possible] - here[possible])
        return ratio


class Nested(Coupling):
    """What is left of the parent's set is completed.

    With S the part of R that is possible in s, f(S | v) its probability, and c(S) the sum of B_s over the sets with S

        P~(R' | v) = sum over S in R' of f(S | v) B_s(R') / c(S)

    where f(S | v) = p_t K_t + (1 - p_t) B_t summed over the sets of which S is left, and K_t is 0 unless v is in S.
    """

    def __init__(self, parent: Stratum, child: Stratum) -> None:
        super().__init__(parent, child)
        self._base = np.uint64(parent.size + 1)
        before, design = parent.mechanism.design, child.mechanism.design
        self._sets = child.widen(design.sets())
        self._blind = design.blind_likelihood(design.sets())
        self._order = np.argsort(self._key(self._sets), kind="stable")
        self._sorted = self._key(self._sets)[self._order]
        self._list_parts(before)
        self._list_completions()

    def _key(self, sets: Ints) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
        """A number for each set or part of one; the code after the last stands for no member."""
        key = np.zeros(len(sets), dtype=np.uint64)
        for column in sets.T:
            key = key * self._base + column.astype(np.uint64)
        return key

    def _left(self, sets: Ints) -> tuple[Ints, Ints]:
        """The possible members of each set in front, and the order of columns that puts them there."""
        masked = np.where(self.child.forbids[sets], self.parent.size, sets)
        order = np.argsort(masked, axis=1, kind="stable")
        return np.take_along_axis(masked, order, axis=1), order

    def _list_parts(self, before: Design) -> None:
        """What can be left of a parent's set, with its probability given each member and blind."""
        own = before.sets()
        left, order = self._left(self.parent.widen(own))
        self._parts, number = np.unique(self._key(left), return_inverse=True)
        given = np.take_along_axis(before.likelihood(own), order, axis=1)
        self._given = np.stack([np.bincount(number, column, len(self._parts)) for column in given.T], axis=1)
        self._unseen = np.bincount(number, before.blind_likelihood(own), len(self._parts))

    def _list_completions(self) -> None:
        """Every part beside the sets that hold it, and the law of the proposals."""
        l = self._sets.shape[1]
        pairs = []
        for mask in range(1 << l):
            chosen = np.array([bool(mask >> column & 1) for column in range(l)])
            part = np.sort(np.where(chosen, self._sets, self.parent.size), axis=1)
            place = np.minimum(np.searchsorted(self._parts, self._key(part)), len(self._parts) - 1)
            sets = np.flatnonzero((self._parts[place] == self._key(part)) & (self._blind > 0))
            pairs.append((chosen, place[sets], sets))
        parts, sets = (np.concatenate([pair[index] for pair in pairs]) for index in (1, 2))
        cover: Floats = np.bincount(parts, self._blind[sets], len(self._parts)).astype(np.float64)
        order = np.argsort(parts, kind="stable")
        # Each part's sets add up to one, so that rounding stays as small for unlikely parts as for others.
        self._sums = np.append(0.0, np.cumsum((self._blind[sets] / cover[parts])[order]))
        self._completions = sets[order]
        self._bounds = np.searchsorted(parts[order], np.arange(len(self._parts) + 1))
        self._law(pairs, cover)

    def _law(self, pairs: Sequence[tuple[Bools, Ints, Ints]], cover: Floats) -> None:
        """`P~ / B_s` of each set: truthful proposals given each member, and blind ones."""
        self._truthful, self._blindly = np.zeros(self._sets.shape), np.zeros(len(self._sets))
        for chosen, parts, sets in pairs:
            for slot, column in enumerate(np.flatnonzero(chosen)):
                self._truthful[sets, column] += self._given[parts, slot] / cover[parts]
            self._blindly[sets] += self._unseen[parts] / cover[parts]

    def propose(self, codes: Ints, sets: Ints, uniforms: Floats) -> tuple[Ints, Floats]:
        part = np.searchsorted(self._parts, self._key(self._left(sets)[0]))
        begin, end = self._bounds[part], self._bounds[part + 1]
        spot = self._sums[begin] + uniforms[0] * (self._sums[end] - self._sums[begin])
        found = np.clip(np.searchsorted(self._sums, spot, side="right") - 1, begin, np.maximum(end - 1, begin))
        chosen = self._completions[np.minimum(found, len(self._completions) - 1)]
        proposed = self._sets[chosen]
        # A part that no set of the stratum holds cannot be completed.
        return proposed, np.where(end > begin, self._ratio(codes, proposed, chosen), np.inf)

    def ratio(self, codes: Ints, sets: Ints) -> Floats:
        place = np.minimum(np.searchsorted(self._sorted, self._key(sets)), len(self._sorted) - 1)
        return self._ratio(codes, sets, self._order[place])

    def _ratio(self, codes: Ints, sets: Ints, number: Ints) -> Floats:
        p = self.parent.mechanism.p
        truthful = np.where(sets == codes[:, None], self._truthful[number], 0.0).sum(axis=1)
        law = self._blind[number] * (p * truthful + (1.0 - p) * self._blindly[number])
        here = np.exp(log_channel(self.child, codes, sets))
        ratio: Floats = np.divide(law, here, out=np.full(len(codes), np.inf), where=here > 0)
        return ratio


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
