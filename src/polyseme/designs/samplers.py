"""Samplers: alias tables over the sets that hold a value, and chains of places.

`SetTable` takes one draw a record. For each value v the sets that hold it lie side by side, `n_v` cells. A uniform
number picks a cell and, by its fraction, either the cell's own set or the cell's alias, so that set R comes out with
probability `K(R | v)` (Walker's method). A cell is 16 bytes, fetched at once; members of a set are packed into one word
where they fit.

Uniform numbers have 53 bits: with up to 4 million cells at least 31 of them are left to decide between a set and its
alias, so no probability is off by more than 2**-31 of a cell.

Samplers of chains that hold a given place:

- `DistinctSampler`: all sets of distinct places equally likely; `l - 1` draws.
- `TableSampler`: few enough sets to list; one draw.
- `ChainSampler`: any number of sets; one draw for how many members stand before the given one, then one for each
  member, walking outwards by inverting cumulative sums.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from polyseme.designs.chain import Chain
from polyseme.kernel.arrays import Floats, Ints

__all__ = [
    "CHUNK",
    "TABLE_LIMIT",
    "ChainSampler",
    "DistinctSampler",
    "Inverse",
    "Sampler",
    "SetTable",
    "TableSampler",
    "alias_cells",
    "sort_rows",
]

TABLE_LIMIT = 4_000_000
"""Largest number of (value, set) pairs for which a table is built: 64 MB at 16 bytes each, chosen by judgment."""

_CELL = np.dtype([("keep", "<f8"), ("own", "<u4"), ("alias", "<u4")])
CHUNK = 1 << 15
"""Records that are drawn together, so that their rows are still in the cache for the next step.

Measured on a million records: from 2^14 to 2^16 no difference beyond noise; 2^10 takes two to four times as long, all
at once up to twice.
"""


def alias_cells(weights: Floats) -> tuple[Floats, Ints]:
    """For each cell the share that keeps its own outcome, and the outcome of the rest.

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
    """Draws a listed set that holds a given value, in proportion to the set's probability."""

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


_MANY_MEMBERS = 20
"""Beyond so many members a shuffle is quicker than insertion: measured, they are level between 20 and 30 members in
domains of 200 to 1,000 values, between 30 and 60 in one of 4,096."""
_SWAP_PLACES = 4_096
"""Largest domain for that, unless sets are larger than its root: a row of all places has to be laid out."""
_SWAP_BYTES, _SWAP_ROWS = 1 << 20, 512
"""Bytes of such rows at a time, and least rows: chosen by judgment, half of a common second-level cache."""
_NETWORK = 4
"""Widest rows that are sorted by column swaps: measured, twice as quick for 4 columns, level with a sort at 5."""
_GUIDE_ROUNDING = 1e-12
"""The guide looks a little to the left, so that rounding never starts a search behind its target."""


class Sampler(Protocol):
    """Draws rows of ascending places that hold given ones."""

    draws: int

    def sample(self, places: Ints, uniforms: Floats) -> Ints:
        """Rows (n, l) for `places` (n,) from `uniforms` (draws, n)."""
        ...


def sort_rows(rows: Ints) -> Ints:
    """Each row in ascending order, in place, by a network of column swaps.

    For short rows that is faster than a sort.
    """
    width = rows.shape[1]
    if width > _NETWORK:
        rows.sort(axis=1)
        return rows
    for last in range(width - 1, 0, -1):
        for column in range(last):
            left, right = rows[:, column], rows[:, column + 1]
            smaller = np.minimum(left, right)
            np.maximum(left, right, out=right)
            left[:] = smaller
    return rows


class Inverse:
    """Where a number falls among ascending cumulative sums: `sums[j] <= t < sums[j + 1]`.

    A guide says from which j on to look for each of equally wide ranges of t, so a search is a step or two.
    """

    def __init__(self, sums: Floats) -> None:
        self.sums = sums
        buckets = 2 * len(sums)
        self.scale = buckets / sums[-1] if sums[-1] > 0 else 0.0
        edges = np.arange(buckets + 1) * (sums[-1] / buckets) * (1 - _GUIDE_ROUNDING)
        guide = np.searchsorted(sums, edges, side="right") - 1
        self.guide: Ints = np.clip(guide, 0, len(sums) - 2).astype(np.int64)

    def __call__(self, values: Floats) -> Ints:
        found: Ints = self.guide.take((values * self.scale).astype(np.int64), mode="clip")
        last = len(self.sums) - 2
        for _ in range(3):
            found += self.sums.take(np.minimum(found, last) + 1) <= values
        late = np.flatnonzero((found > last) | (self.sums.take(np.minimum(found, last) + 1) <= values))
        if late.size:
            found[late] = np.clip(np.searchsorted(self.sums, values[late], side="right") - 1, 0, last)
        return found


class TableSampler:
    """One draw from a table of all possible sets."""

    draws = 1

    def __init__(self, sets: Ints, probability: Floats, size: int) -> None:
        self._table = SetTable(sets, probability, size)

    def sample(self, places: Ints, uniforms: Floats) -> Ints:
        return self._table.sample(places, uniforms[0])


class DistinctSampler:
    """All sets of `l` of `size` places, equally likely."""

    def __init__(self, size: int, l: int) -> None:
        self.size, self.l, self.draws = size, l, max(l - 1, 1)
        # Insertion takes l * l steps; a row of all places to swap in takes l, but has to be laid out first.
        swaps = l > _MANY_MEMBERS and size <= max(_SWAP_PLACES, l * l)
        self._draw = self._swapped if swaps else self._inserted
        self._short = np.dtype(np.int16 if size <= np.iinfo(np.int16).max else np.int32)
        fitting = _SWAP_BYTES // (self._short.itemsize * size)
        self._chunk = max(fitting, _SWAP_ROWS) if swaps else CHUNK

    def sample(self, places: Ints, uniforms: Floats) -> Ints:
        out = np.empty((len(places), self.l), dtype=np.int64)
        for start in range(0, len(places), self._chunk):
            chunk = slice(start, start + self._chunk)
            out[chunk] = self._draw(np.asarray(places[chunk], dtype=np.int64), uniforms[:, chunk])
        return out

    def _inserted(self, places: Ints, uniforms: Floats) -> Ints:
        """One member after the other, each put in its place."""
        members = [places]
        for taken in range(1, self.l):
            # The drawn rank counts the places that are still free; every member up to it moves it on by one.
            drawn = (uniforms[taken - 1] * (self.size - taken)).astype(np.int64)
            for member in members:
                drawn += drawn >= member
            members = _insert(members, drawn)
        return np.column_stack(members)

    def _swapped(self, places: Ints, uniforms: Floats) -> Ints:
        """The first steps of a shuffle of all the other places."""
        rows = np.arange(len(places))
        others = np.tile(np.arange(self.size - 1, dtype=self._short), (len(places), 1))
        for taken in range(self.l - 1):
            drawn = taken + (uniforms[taken] * (self.size - 1 - taken)).astype(np.int64)
            chosen = others[rows, drawn]
            others[rows, drawn] = others[:, taken]
            others[:, taken] = chosen
        chosen = others[:, : self.l - 1]
        chosen += chosen >= places[:, None]
        members = np.column_stack([chosen, places.astype(self._short)])
        members.sort(axis=1)
        return members.astype(np.int64)


def _insert(members: list[Ints], drawn: Ints) -> list[Ints]:
    """Ascending columns with one more value put in its place."""
    result = []
    for member in members:
        result.append(np.minimum(member, drawn))
        drawn = np.maximum(member, drawn)
    return [*result, drawn]


class ChainSampler:
    """Walks outwards from the given place."""

    def __init__(self, chain: Chain) -> None:
        self.chain, self.l, self.draws = chain, chain.l, chain.l
        self.split = np.cumsum(chain.split, axis=0)
        self.leftward = [Inverse(row) for row in chain.prefix]
        self.rightward = [Inverse(np.ascontiguousarray(row[::-1])) for row in chain.suffix]

    def sample(self, places: Ints, uniforms: Floats) -> Ints:
        out = np.empty((len(places), self.l), dtype=np.int64)
        for start in range(0, len(places), CHUNK):
            chunk = slice(start, start + CHUNK)
            out[chunk] = self._walk(np.asarray(places[chunk]), uniforms[:, chunk])
        return out

    def _walk(self, places: Ints, uniforms: Floats) -> Ints:
        out = np.empty((len(places), self.l), dtype=np.int64)
        level = uniforms[0] * self.split[-1].take(places)
        before = np.zeros(len(places), dtype=np.int64)
        for row in self.split[:-1]:
            before += row.take(places) <= level
        for r in range(self.l):
            group = np.flatnonzero(before == r)
            if group.size:
                out[group] = self._outwards(places[group], uniforms[1:, group], r)
        return out

    def _outwards(self, places: Ints, uniforms: Floats, r: int) -> Ints:
        """Sets in which exactly `r` members stand before the given place."""
        steps = self.chain.steps
        out = np.empty((len(places), self.l), dtype=np.int64)
        out[:, r] = here = places
        for column in range(r - 1, -1, -1):
            sums, low, high = self.chain.prefix[column], steps.back_low.take(here), steps.back_high.take(here)
            floor = sums.take(low)
            target = floor + uniforms[column] * (sums.take(high) - floor)
            here = np.clip(self.leftward[column](target), low, high - 1)
            out[:, column] = here
        here = places
        for column in range(r + 1, self.l):
            left = self.l - 1 - column
            sums, low, high = self.chain.suffix[left], steps.low.take(here), steps.high.take(here)
            floor = sums.take(high)
            target = floor + uniforms[column - 1] * (sums.take(low) - floor)
            here = np.clip(self.chain.size - 1 - self.rightward[left](target), low, high - 1)
            out[:, column] = here
        return out

    def blind(self, uniforms: Floats) -> Ints:
        """Sets that need hold no given place, from `uniforms` (draws + 1, n)."""
        cumulative = np.append(0.0, np.cumsum(self.chain.inclusion))
        places = Inverse(cumulative)(uniforms[0] * cumulative[-1])
        return self.sample(places, uniforms[1:])
