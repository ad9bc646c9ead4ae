"""Drawing chains of places that hold a given place.

- `DistinctSampler`: all sets of distinct places equally likely; `l - 1` draws.
- `TableSampler`: few enough sets to list; one draw.
- `ChainSampler`: any number of sets; one draw for how many members stand before the given one, then one for each
  member, walking outwards by inverting cumulative sums.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from polyseme.arrays import Floats, Ints
from polyseme.designs.alias import CHUNK, SetTable
from polyseme.designs.chain import Chain

__all__ = ["ChainSampler", "DistinctSampler", "Inverse", "Sampler", "TableSampler", "sort_rows"]

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
    """Each row in ascending order, in place; a network of column swaps is faster than a sort for short rows."""
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
