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

__all__ = ["HELD_BYTES", "Tallied", "Tally"]

HELD_BYTES = 64 << 20
"""Fingerprints of 8 million records; larger tables wait in files."""
_FILES = 256
"""One for each value of the leading byte; each is small enough to be read whole."""


@dataclass(frozen=True)
class Tallied:
    """What was counted: all fingerprints, different ones, and the sum of the squares of how often each occurs."""

    total: int = 0
    distinct: int = 0
    squares: int = 0

    @property
    def repeats(self) -> float:
        """How many alike there are for a fingerprint taken at random, itself included: 1 when all differ."""
        return self.squares / self.total if self.total else 1.0


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
        total = distinct = squares = 0
        for sizes in self._sizes():
            total += int(sizes.sum())
            distinct += len(sizes)
            (wide,) = multipliable(int(sizes.sum()), sizes)
            squares += int(wide @ wide)
        return Tallied(total, distinct, squares)

    def _sizes(self) -> Iterator[Ints]:
        if self._counted:
            parts = [*self._counted, *((prints, np.ones(len(prints), dtype=np.int64)) for prints in self._waiting)]
            yield class_sizes(*(np.concatenate(column) for column in zip(*parts)))
            return
        if self._folder is None:
            if self._waiting:
                yield class_sizes(np.concatenate(self._waiting))
            return
        if self._waiting:
            self._spill()
        for path in sorted(self._folder.iterdir()):
            yield class_sizes(np.fromfile(path, dtype=np.uint64))
            path.unlink()
        self._folder.rmdir()
