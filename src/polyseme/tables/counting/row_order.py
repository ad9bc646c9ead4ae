"""The order in which sets stand in a release: of the candidates within a set, and of the rows.

A set in another order than the domain's can tell which candidate is true, and so can the order of the rows. Rows are
looked at while they are counted: how often each value occurs in each block of neighboring rows, and how many candidates
the rows of a pair of neighbors share.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyseme.arrays import Floats, Ints

__all__ = ["Neighbors", "RowOrder"]

_BLOCKS = 64
"""Blocks of rows at the most: sorted rows differ between far fewer."""
_CELLS = 1 << 22
"""Counters of all blocks together (32 MB): with very many values there are fewer blocks."""
_WORK = 200_000_000
"""Comparisons of candidates with those of a neighbor, about a second of work: later rows are left out. A judgment."""


@dataclass(frozen=True)
class Neighbors:
    """Pairs of rows that stand side by side, each row in one pair.

    pairs     how many
    shared    candidates that both rows of a pair have, of all pairs together
    expected  the same if every first row could stand beside every second one
    width     candidates of a set
    """

    pairs: int
    shared: float
    expected: float
    width: int


class RowOrder:
    """What is known of the order of a column of sets.

    size   how many values there are
    width  candidates of a set
    rows   how many there will be
    """

    def __init__(self, size: int, width: int, rows: int) -> None:
        most = max(min(_BLOCKS, rows // 2, _CELLS // max(size, 1)), 1)
        blocks = 1 << (most.bit_length() - 1)
        self._length = -(-max(rows, 1) // blocks)
        self._held: Floats = np.zeros((blocks, size))
        self._rows = np.zeros(blocks)
        self._sides: Floats = np.zeros((2, size))
        self._waiting: Ints = np.zeros((0, width), dtype=np.int64)
        self._width, self._pairs, self._shared = width, 0, 0.0
        self.unsorted, self.counted = 0, False

    def add(self, sets: Ints, counts: Ints | None = None) -> None:
        """The next rows as they are published, (n, width); `counts` where rows were counted, in whatever order."""
        wrong = (sets[:, 1:] <= sets[:, :-1]).any(axis=1)
        self.unsorted += int(np.count_nonzero(wrong) if counts is None else counts[wrong].sum())
        self.counted |= counts is not None
        if not self.counted:
            self._add_to_blocks(sets)
            self._add_pairs(sets)

    def _add_to_blocks(self, sets: Ints) -> None:
        done, row = 0, int(self._rows.sum())
        while done < len(sets):
            block = min((row + done) // self._length, len(self._rows) - 1)
            last = block == len(self._rows) - 1
            stop = len(sets) if last else min((block + 1) * self._length - row, len(sets))
            self._held[block] += np.bincount(sets[done:stop].ravel(), minlength=self._held.shape[1])
            self._rows[block] += stop - done
            done = stop

    def _add_pairs(self, sets: Ints) -> None:
        if self._pairs * self._width**2 > _WORK:
            return
        rows = np.concatenate([self._waiting, sets])
        pairs = len(rows) // 2
        sides = rows[0 : 2 * pairs : 2], rows[1 : 2 * pairs : 2]
        self._waiting = rows[2 * pairs :]
        self._pairs += pairs
        self._shared += sum(int(np.count_nonzero(sides[0][:, [k]] == sides[1])) for k in range(self._width))
        for total, side in zip(self._sides, sides):
            total += np.bincount(side.ravel(), minlength=len(total))

    @property
    def rows(self) -> float:
        """Rows whose order is known."""
        return float(self._rows.sum())

    @property
    def held(self) -> Floats:
        """How often each value occurs in all of them: (F,)."""
        return np.asarray(self._held.sum(axis=0))

    def blocks(self) -> tuple[Floats, Floats]:
        """Rows of each block, of all scales from two blocks up: (blocks,); how often each holds each value."""
        rows, held = self._rows, self._held
        sizes, counts = [rows], [held]
        while len(rows) > 2:
            rows, held = rows.reshape(-1, 2).sum(axis=1), held.reshape(-1, 2, held.shape[1]).sum(axis=1)
            sizes.append(rows)
            counts.append(held)
        return np.concatenate(sizes), np.concatenate(counts)

    def neighbors(self) -> Neighbors:
        """The pairs that were looked at."""
        expected = float(self._sides[0] @ self._sides[1]) / max(self._pairs, 1)
        return Neighbors(self._pairs, self._shared, expected, self._width)
