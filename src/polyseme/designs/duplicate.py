"""Algorithm 3 of the journal paper (duplicate processing), with its exact channel.

Values stand on a circle of ranks. A member at rank i excludes the `2d - 1` ranks from `i - d + 1` on; where some of
these are excluded already, it goes on upwards until it has excluded `2d - 1` new ones. So after k members exactly
`k (2d - 1)` ranks are gone and the next decoy is uniform over the remaining ones:

    K(R | v) = sum over orders of R without v in which every decoy is allowed of prod_k 1 / (F - k (2d - 1))

Which ranks are gone does not depend on the order in which members excluded them (as where cars end up parked does not
depend on who came first), so the sum runs over subsets of R. Once `(l - 1)(2d - 1) >= F` nothing remains to draw from.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from polyseme.designs.samplers import CHUNK
from polyseme.designs.sequential import Sequential, rank_spacing
from polyseme.kernel.arrays import Bools, Floats, Ints
from polyseme.kernel.errors import ImpossibleError
from polyseme.semantics.distances.base import Structure

__all__ = ["Duplicate"]


class Duplicate(Sequential):
    """Algorithm 1 with Algorithm 3 in place of `extract`."""

    name = "duplicate"

    def __init__(self, structure: Structure, l: int) -> None:
        super().__init__(structure, l)
        ranks = rank_spacing(structure)
        if ranks is None:
            raise ImpossibleError(
                "the duplicate design needs equally spaced values, on a line or a circle",
                "use `line: rank`, or the simple or balanced design",
            )
        order, self.d = ranks
        self.window = 2 * self.d - 1
        if (l - 1) * self.window >= structure.size:
            raise ImpossibleError(
                f"duplicate processing runs out of values: (l-1)(2d-1) = {(l - 1) * self.window} is not below "
                f"F = {structure.size}",
                f"at d = {self.d} it works up to l = {1 + (structure.size - 1) // self.window}, "
                f"at l = {l} up to d = {((structure.size - 1) // max(l - 1, 1) + 1) // 2}",
            )
        self._order = order
        self._rank = np.empty(structure.size, dtype=np.int64)
        self._rank[order] = np.arange(structure.size)

    def _blocks(self, offsets: Ints) -> tuple[Ints, Ints]:
        """Where the excluded blocks begin, and how many ranks run over the end of the circle.

        offsets  ranks of the members, counted from one of them (n, k), each row ascending from 0; seen from
                 `d - 1` before that member a block begins at its offset or where the one before it ends
        """
        begins = offsets.copy()
        for column in range(1, offsets.shape[1]):
            begins[:, column] = np.maximum(offsets[:, column], begins[:, column - 1] + self.window)
        over = np.maximum(begins[:, -1] + self.window - self.size, 0)
        return begins, over

    def sample(self, codes: Ints, uniforms: Floats) -> Ints:
        sets = np.empty((len(codes), self.l), dtype=np.int64)
        for start in range(0, len(codes), CHUNK):
            chunk = slice(start, start + CHUNK)
            sets[chunk] = self._draw(self._rank[codes[chunk]], uniforms[:, chunk])
        return sets

    def _draw(self, ranks: Ints, uniforms: Floats) -> Ints:
        offsets = np.zeros((len(ranks), 1), dtype=np.int64)
        for taken in range(1, self.l):
            begins, over = self._blocks(offsets)
            # What runs over the end takes the first free ranks after the start.
            spot = (uniforms[taken - 1] * (self.size - taken * self.window)).astype(np.int64) + over
            for column in range(taken):
                spot += self.window * (spot >= begins[:, column])
            offset = (spot - (self.d - 1)) % self.size
            offsets = np.sort(np.concatenate([offsets, offset[:, None]], axis=1), axis=1)
        rows: Ints = self._order[(ranks[:, None] + offsets) % self.size]
        rows.sort(axis=1)
        return rows

    def _allowed(self, members: Ints, candidate: Ints) -> Bools:
        """Whether ranks `candidate` (n,) may join the ranks `members` (n, k)."""
        offsets = np.sort((members - members[:, :1]) % self.size, axis=1)
        begins, over = self._blocks(offsets)
        spot = (candidate - members[:, 0] + self.d - 1) % self.size
        passed = spot[:, None] >= begins
        blocked = (passed & (spot[:, None] < begins + self.window)).any(axis=1)
        allowed: Bools = ~blocked & (spot - self.window * passed.sum(axis=1) >= over)
        return allowed

    def _likelihood(self, sets: Ints) -> Floats:
        ranks = self._rank[sets]
        full = (1 << self.l) - 1
        ways: dict[int, Floats] = {full: np.ones(len(sets))}
        for mask in range(full - 1, 0, -1):
            members = [column for column in range(self.l) if mask >> column & 1]
            total = np.zeros(len(sets))
            for column in range(self.l):
                if not mask >> column & 1:
                    total += ways[mask | 1 << column] * self._allowed(ranks[:, members], ranks[:, column])
            ways[mask] = total / (self.size - len(members) * self.window)
        return np.stack([ways[1 << column] for column in range(self.l)], axis=1)

    def parameters(self) -> Mapping[str, Any]:
        return {}
