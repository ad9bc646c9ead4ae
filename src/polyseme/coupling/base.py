"""The maximal coupling of a stratum's sets with proposals made from those of its parent."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod

import numpy as np

from polyseme.arrays import Floats, Ints
from polyseme.randomness import StickyStream
from polyseme.strata import Stratum

__all__ = ["Coupling", "log_channel"]

_ROUNDING = 1e-9
"""Ratios of probabilities that are 1 by construction come out this close to it."""
_BLOCK, _MOST_TRIES = 1 << 14, 1 << 24
"""With 2^24 tries at most, the law is exact but for 2e-8 at worst; nearly always a few are enough."""


class Coupling(ABC):
    """Sets of a stratum made from those of its parent; everything is in codes of the whole domain."""

    draws = 1
    """How many uniform numbers a proposal takes."""

    def __init__(self, parent: Stratum, child: Stratum) -> None:
        self.parent, self.child = parent, child
        self._label = _label(child)

    @abstractmethod
    def propose(self, codes: Ints, sets: Ints, uniforms: Floats) -> tuple[Ints, Floats]:
        """A set for each set of the parent, from `uniforms` (draws, n), and its `w`: infinite if it is impossible."""

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
    asked = [[name, *sorted(texts)] for name, texts in sorted(stratum.condition.when.items())]
    return f"{excluded} {json.dumps(asked)}".encode() if asked else excluded.encode()


def log_channel(stratum: Stratum, codes: Ints, sets: Ints) -> Floats:
    """`ln P(R | v)` in a stratum, of sets without impossible members."""
    return stratum.mechanism.log_channel(stratum.narrow(codes), stratum.narrow(sets))
