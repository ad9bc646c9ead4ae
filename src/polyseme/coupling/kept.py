"""Proposing the parent's set itself: sets coincide as often as those of two mechanisms can."""

from __future__ import annotations

import numpy as np

from polyseme.arrays import Floats, Ints
from polyseme.coupling.base import Coupling, log_channel

__all__ = ["Kept"]


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
