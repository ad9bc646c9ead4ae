"""How often each fingerprint occurs, in bounded memory: beyond a limit they wait in files, apart by their value.

Eight bytes a record and no more than `HELD_BYTES` of them in memory; on counting, one file at a time is read, which is
a 256th of all of them: 31 MB for a thousand million records.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from polyseme.arrays import Ints, multipliable
from polyseme.tables.counting.matching import Fingerprints, class_sizes

__all__ = ["HELD_BYTES", "TAIL_BITS", "Tallied", "Tally", "headed"]

HELD_BYTES = 64 << 20
"""Fingerprints of 8 million records; larger tables wait in files."""
TAIL_BITS = 24
"""Of a fingerprint with a head: the bits for what tells members of a group apart. Two groups of a million have the
same head with a probability of about one half; two different members the same tail with one of 6e-8."""
_FILES = 256
"""One for each value of the leading byte; each is small enough to be read whole."""


@dataclass(frozen=True)
class Tallied:
    """What was counted: all fingerprints, different ones, and the sum of the squares of how often each occurs.

    heads    different heads of fingerprints that were made by `headed`
    several  those of them that occur with more than one tail
    """

    total: int = 0
    distinct: int = 0
    squares: int = 0
    heads: int = 0
    several: int = 0

    @property
    def repeats(self) -> float:
        """How many alike there are for a fingerprint taken at random, itself included: 1 when all differ."""
        return self.squares / self.total if self.total else 1.0


def headed(heads: Fingerprints, tails: Fingerprints) -> Fingerprints:
    """Fingerprints whose leading bits say which group a record is of, the others which member."""
    bits = np.uint64(TAIL_BITS)
    return heads >> bits << bits | tails >> (np.uint64(64) - bits)


class Tally:
    """Fingerprints to be counted; its files are in a folder of their own below `parent` and go with it."""

    def __init__(self, parent: Path, held: int = HELD_BYTES) -> None:
        self._parent, self._limit = parent, held
        self._waiting: list[Fingerprints] = []
        self._bytes = 0
        self._folder: Path | None = None
        self._counted: list[tuple[Fingerprints, Ints]] = []

    def add(self, prints: Fingerprints, counts: Ints | None = None) -> None:
        """Some more, each once or as often as `counts` says; those with counts are few enough to be held."""
        if counts is not None:
            self._counted.append((prints, counts))
            return
        self._waiting.append(prints)
        self._bytes += prints.nbytes
        if self._bytes > self._limit:
            self._spill()

    def _spill(self) -> None:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix=".tally-", dir=self._parent))
        prints = np.sort(np.concatenate(self._waiting))
        self._waiting, self._bytes = [], 0
        bounds = np.searchsorted(prints >> np.uint64(56), np.arange(_FILES + 1, dtype=np.uint64))
        for number in np.flatnonzero(np.diff(bounds)).tolist():
            with (self._folder / str(number)).open("ab") as file:
                prints[bounds[number] : bounds[number + 1]].tofile(file)

    def count(self) -> Tallied:
        """All that was added; nothing can be added afterwards."""
        total = distinct = squares = heads = several = 0
        for prints, counts in self._pieces():
            sizes = class_sizes(prints, counts)
            total += int(sizes.sum())
            distinct += len(sizes)
            (wide,) = multipliable(int(sizes.sum()), sizes)
            squares += int(wide @ wide)
            tails = class_sizes(np.unique(prints) >> np.uint64(TAIL_BITS))
            heads += len(tails)
            several += int(np.count_nonzero(tails > 1))
        return Tallied(total, distinct, squares, heads, several)

    def _pieces(self) -> Iterator[tuple[Fingerprints, Ints | None]]:
        """All fingerprints, those that are alike in one piece."""
        if self._counted:
            parts = [*self._counted, *((prints, np.ones(len(prints), dtype=np.int64)) for prints in self._waiting)]
            prints, counts = (np.concatenate(column) for column in zip(*parts))
            yield prints, counts
            return
        if self._folder is None:
            if self._waiting:
                yield np.concatenate(self._waiting), None
            return
        if self._waiting:
            self._spill()
        for path in sorted(self._folder.iterdir()):
            yield np.fromfile(path, dtype=np.uint64), None
            path.unlink()
        self._folder.rmdir()
