"""Completing what is left of the parent's set, where all sets can be listed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from polyseme.arrays import Bools, Floats, Ints
from polyseme.coupling.base import Coupling, log_channel
from polyseme.designs.base import Design
from polyseme.strata import Stratum

__all__ = ["Nested"]


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
        """What can be left of a set of the parent, and how likely: given each member of it, and blindly."""
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
