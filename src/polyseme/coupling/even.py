"""Completing what is left of the parent's set, where all sets of the domain are alike: no list is needed.

When every l values are equally likely, so is every completion: the proposal given v has the law K_s of the stratum when
the parent told the truth and B_s when it did not. Only the truth probabilities may differ.
"""

from __future__ import annotations

import numpy as np

from polyseme.arrays import Floats, Ints
from polyseme.coupling.base import Coupling
from polyseme.strata import Stratum

__all__ = ["Even"]


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
