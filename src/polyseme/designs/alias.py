"""One draw a record: alias tables over all sets that hold a value.

For each value v the sets that hold it lie side by side, `n_v` cells. A uniform number picks a cell and, by its
fraction, either the cell's own set or the cell's alias, so that set R comes out with probability `K(R | v)` (Walker's
method). A cell is 16 bytes, fetched at once; members of a set are packed into one word where they fit.

Uniform numbers have 53 bits: with up to 4 million cells at least 31 of them are left to decide between a set and its
alias, so no probability is off by more than 2**-31 of a cell.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from polyseme.arrays import Floats, Ints

__all__ = ["CHUNK", "TABLE_LIMIT", "SetTable", "alias_cells"]

TABLE_LIMIT = 4_000_000
"""Largest number of (value, set) pairs for which a table is built: 64 MB at 16 bytes each, chosen by judgment."""

_CELL = np.dtype([("keep", "<f8"), ("own", "<u4"), ("alias", "<u4")])
CHUNK = 1 << 15
"""Records that are drawn together, so that their rows are still in the cache for the next step.

Measured on a million records: from 2^14 to 2^16 no difference beyond noise; 2^10 takes two to four times as long, all
at once up to twice.
"""


def alias_cells(weights: Floats) -> tuple[Floats, Ints]:
    """For each cell the share of it that keeps its own outcome, and the outcome that gets the rest.

    The sweep that hands the excess of heavy outcomes to light ones, as prefix sums: with cumulative deficits `D_i` of
    the light and cumulative excesses `E_j` of the heavy, light i is filled by the first heavy j with
    `E_j >= D_{i-1}`; heavy j itself runs dry at the first light with `D_i > E_j`, and the next heavy fills it up.
    """
    count = len(weights)
    scaled = weights * (count / weights.sum())
    keep, alias = np.ones(count), np.arange(count, dtype=np.int64)
    light, heavy = np.flatnonzero(scaled < 1.0), np.flatnonzero(scaled >= 1.0)
    if light.size == 0 or heavy.size == 0:
        return keep, alias
    deficit, excess = np.cumsum(1.0 - scaled[light]), np.cumsum(scaled[heavy] - 1.0)
    source = np.searchsorted(excess, np.append(0.0, deficit[:-1]), side="left")
    keep[light], alias[light] = scaled[light], heavy[np.minimum(source, heavy.size - 1)]
    dry = np.searchsorted(deficit, excess, side="right")
    runs = np.flatnonzero((dry < light.size) & (np.arange(heavy.size) < heavy.size - 1))
    keep[heavy[runs]] = np.clip(1.0 + excess[runs] - deficit[dry[runs]], 0.0, 1.0)
    alias[heavy[runs]] = heavy[runs + 1]
    return keep, alias


class SetTable:
    """Draws a listed set that holds a given value, with probability proportional to the set's own."""

    def __init__(self, sets: Ints, probability: Floats, size: int) -> None:
        self.l = sets.shape[1]
        holder = sets.ravel()
        order = np.argsort(holder, kind="stable")
        numbers = (order // self.l).astype(np.uint32)
        counts = np.bincount(holder, minlength=size)
        self.cells: Floats = counts.astype(np.float64)
        self.start: Ints = (np.cumsum(counts) - counts).astype(np.int64)
        table = np.empty(len(numbers), dtype=_CELL)
        for value in range(size):
            group = slice(self.start[value], self.start[value] + counts[value])
            if counts[value]:
                keep, alias = alias_cells(probability[numbers[group]])
                table["keep"][group], table["own"][group] = keep, numbers[group]
                table["alias"][group] = numbers[group][alias]
        self.table: NDArray[np.complex128] = table.view(np.complex128)
        self.bits = max(1, int(size - 1).bit_length())
        self.packed = self._pack(sets) if self.bits * self.l <= 64 else None
        self.sets = sets

    def _pack(self, sets: Ints) -> NDArray[np.uint64]:
        packed = np.zeros(len(sets), dtype=np.uint64)
        for column in sets.T:
            packed = packed << np.uint64(self.bits) | column.astype(np.uint64)
        return packed

    def sample(self, codes: Ints, uniforms: Floats) -> Ints:
        """A set for each code from one uniform number each: (n, l)."""
        out = np.empty((len(codes), self.l), dtype=np.int64)
        for first in range(0, len(codes), CHUNK):
            chunk = slice(first, first + CHUNK)
            self._draw(codes[chunk], uniforms[chunk], out[chunk])
        return out

    def _draw(self, codes: Ints, uniforms: Floats, out: Ints) -> None:
        share = self.cells.take(codes)
        share *= uniforms
        place = share.astype(np.int64)
        share -= place
        place += self.start.take(codes)
        cell = self.table.take(place).view(_CELL)
        number = np.where(share < cell["keep"], cell["own"], cell["alias"])
        if self.packed is None:
            out[:] = self.sets.take(number, axis=0)
            return
        word = self.packed.take(number)
        mask = np.uint64((1 << self.bits) - 1)
        for column in range(self.l - 1, 0, -1):
            np.bitwise_and(word, mask, out=out[:, column], casting="unsafe")
            word >>= np.uint64(self.bits)
        out[:, 0] = word
