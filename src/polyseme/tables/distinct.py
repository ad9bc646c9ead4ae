"""Distinct rows with counts, fingerprints of records, and tallies in bounded memory.

Rows come one by one or counted already. As many columns as memory allows are counted in one reading.

Records are recognized by fingerprints: eight bytes each, so that a table of any length can be matched with another. A
fingerprint is a hash of 64 bits. Two of n different combinations have the same one with a probability below n^2 / 2^64,
one in two thousand for a hundred million; then some person is taken for another, or not found.

Beyond a limit fingerprints wait in files, apart by their value. No more than `HELD_BYTES` of them are in memory; on
counting, one file at a time is read, which is a 256th of all of them: 31 MB for a thousand million records.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeAlias, TypeVar

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from polyseme.kernel.arrays import Ints, arrow, multipliable
from polyseme.tables.codes import as_series
from polyseme.tables.io.source import CountedRows

__all__ = [
    "HELD_BYTES",
    "TAIL_BITS",
    "Blocks",
    "Different",
    "Fingerprints",
    "Tallied",
    "Tally",
    "all_counts",
    "class_sizes",
    "distinct_rows",
    "fingerprints",
    "frame_of",
    "headed",
    "matched",
    "merged_rows",
    "mixed",
    "some_rows",
    "unmatched",
]

Fingerprints: TypeAlias = NDArray[np.uint64]

_PART = 2_000_000
"""Fingerprints that are sorted at a time (16 MB)."""
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
"""2^64 divided by the golden ratio: neighboring codes end up far apart (Knuth's multiplicative hashing)."""


def fingerprints(frame: pl.DataFrame, seed: int = 0) -> Fingerprints:
    """The fingerprint of each row: (n,). Missing values are alike."""
    return frame.hash_rows(seed).to_numpy()


def mixed(prints: Fingerprints, codes: Ints) -> Fingerprints:
    """Fingerprints of (what `prints` stand for, a row of `codes`): (n,)."""
    result = prints.copy()
    for column in codes.T:
        # A step of splitmix64 for each code: one-to-one in the fingerprint, so that different ones stay different.
        result += column.astype(np.uint64) * _SPREAD + np.uint64(1)
        result ^= result >> np.uint64(30)
        result *= np.uint64(0xBF58476D1CE4E5B9)
        result ^= result >> np.uint64(27)
    return result


def matched(left: Fingerprints, right: Fingerprints) -> tuple[Ints, Ints]:
    """Rows of two tables that belong to the same person: what stands exactly once on both sides.

    Ascending in the left table.

    >>> matched(np.array([7, 5, 9, 5], np.uint64), np.array([9, 7, 8], np.uint64))
    (array([0, 2]), array([1, 0]))
    """
    # Part by part of the fingerprints, so that sorting needs little more memory than they do themselves.
    count = np.uint64(1 + max(len(left), len(right)) // _PART)
    parts = [_matched_part(left, right, count, np.uint64(part)) for part in range(int(count))]
    rows, others = (np.concatenate(column) for column in zip(*parts))
    order = np.argsort(rows)
    return rows[order], others[order]


def _matched_part(left: Fingerprints, right: Fingerprints, count: np.uint64, part: np.uint64) -> tuple[Ints, Ints]:
    (mine, rows), (theirs, others) = (_once(prints, np.flatnonzero(prints % count == part)) for prints in (left, right))
    if not len(theirs):
        return rows[:0], others
    place = np.minimum(np.searchsorted(theirs, mine), len(theirs) - 1)
    same = theirs[place] == mine
    return rows[same], others[place[same]]


def _once(prints: Fingerprints, rows: Ints) -> tuple[Fingerprints, Ints]:
    """Of these rows, the fingerprints that stand once, ascending, and where."""
    order = rows[np.argsort(prints[rows])]
    ordered = prints[order]
    begins = np.ones(len(order) + 1, dtype=np.bool_)
    begins[1:-1] = ordered[1:] != ordered[:-1]
    alone = begins[1:] & begins[:-1]
    return ordered[alone], order[alone]


def unmatched(left: Fingerprints, right: Fingerprints) -> int:
    """How many rows of the left table have no matching row of their own in the right one.

    >>> unmatched(np.array([7, 5, 9, 5], np.uint64), np.array([9, 5, 8], np.uint64))
    2
    """
    (mine, here), (theirs, there) = (np.unique(prints, return_counts=True) for prints in (left, right))
    place = np.minimum(np.searchsorted(theirs, mine), max(len(theirs) - 1, 0))
    found = np.where(theirs[place] == mine, there[place], 0) if len(theirs) else np.zeros_like(here)
    return int(np.maximum(here - found, 0).sum())


def class_sizes(prints: Fingerprints, counts: Ints | None = None) -> Ints:
    """How many records share each fingerprint.

    counts  how many each of them stands for; None for one

    >>> class_sizes(np.array([7, 5, 7], np.uint64), np.array([1, 4, 2]))
    array([4, 3])
    """
    if counts is None:
        return np.unique(prints, return_counts=True)[1].astype(np.int64)
    different, place = np.unique(prints, return_inverse=True)
    sizes = np.zeros(len(different), dtype=np.int64)
    np.add.at(sizes, place, counts)
    return sizes


def some_rows(batches: Iterable[pa.RecordBatch], rows: Ints) -> Iterator[pa.RecordBatch]:
    """The given rows, which are ascending, of a table that comes batch by batch."""
    start = 0
    for batch in batches:
        begin, end = np.searchsorted(rows, [start, start + batch.num_rows])
        yield batch.take(arrow(rows[begin:end] - start))
        start += batch.num_rows


HELD_BYTES = 64 << 20
"""Fingerprints of 8 million records; larger tables wait in files."""
TAIL_BITS = 24
"""Of a fingerprint with a head: the bits for what tells members of a group apart. Two groups of a million have the
same head with a probability of about one half; two different members the same tail with one of 6e-8."""
_FILES = 256
"""One for each value of the leading byte; each is small enough to be read whole."""


@dataclass(frozen=True)
class Tallied:
    """The number of fingerprints, of different ones, and the sum of their squared counts.

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
        """How often a fingerprint taken at random occurs on average: 1 when all differ."""
        return self.squares / self.total if self.total else 1.0


def headed(heads: Fingerprints, tails: Fingerprints) -> Fingerprints:
    """Fingerprints whose leading bits say which group a record is of, the others which member."""
    bits = np.uint64(TAIL_BITS)
    return heads >> bits << bits | tails >> (np.uint64(64) - bits)


class Tally:
    """Fingerprints to be counted.

    Its files are in a folder of their own below `parent` and go with it.
    """

    def __init__(self, parent: Path, held: int = HELD_BYTES) -> None:
        self._parent, self._limit = parent, held
        self._waiting: list[Fingerprints] = []
        self._bytes = 0
        self._folder: Path | None = None
        self._counted: list[tuple[Fingerprints, Ints]] = []

    def add(self, prints: Fingerprints, counts: Ints | None = None) -> None:
        """Some more, each once or as often as `counts` says.

        Those with counts are few enough to be held.
        """
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


COUNTED = 1_000_000
"""Different values up to which a column's are counted exactly (8 MB)."""
_MERGED = 1 << 17
"""Fingerprints that wait at the least before they are sorted in among the others."""


class Different:
    """How many different values a column has: exact up to `most`, an estimate beyond.

    They are counted by fingerprints, of which the smallest are kept. A million values have two with the same
    fingerprint with a probability of 3e-8. Beyond `most` the count is (most - 1) / u, where u in (0, 1) is the
    largest one kept: its relative standard error is 1 / sqrt(most), 0.1% for a million (Bar-Yossef et al. 2002).

    >>> seen = Different()
    >>> seen.add(pl.Series(["Ulm", "Ulm ", "Ulm"]))
    >>> seen.add(pl.Series(["Ulm", None]))
    >>> seen.count, seen.exact
    (2, True)
    """

    def __init__(self, most: int = COUNTED) -> None:
        self._most = most
        self._kept: Fingerprints = np.zeros(0, dtype=np.uint64)
        self._waiting: list[Fingerprints] = []

    def add(self, values: pl.Series) -> None:
        """Some more values; missing ones are not counted."""
        prints = values.drop_nulls().unique().hash().to_numpy()
        self._waiting.append(prints if len(self._kept) <= self._most else prints[prints < self._kept[-1]])
        if sum(map(len, self._waiting)) > max(_MERGED, len(self._kept)):
            self._merge()

    def _merge(self) -> Fingerprints:
        if self._waiting:
            self._kept = np.unique(np.concatenate([self._kept, *self._waiting]))[: self._most + 1]
            self._waiting = []
        return self._kept

    @property
    def exact(self) -> bool:
        """Whether the values were counted, not estimated."""
        return len(self._merge()) <= self._most

    @property
    def count(self) -> int:
        if self.exact:
            return len(self._kept)
        return int(self._most / (float(self._kept[-1]) / 2.0**64))


def distinct_rows(frame: pl.DataFrame, counts: Ints | None, name: str) -> pl.DataFrame:
    """The distinct rows of a frame, and in the column `name` how many records have each.

    counts  how many each row of the frame stands for; None for one

    >>> rows = pl.DataFrame({"city": ["Oslo", "Rome", "Oslo"]})
    >>> distinct_rows(rows, np.array([1, 4, 2]), "people").sort("city")["people"].to_list()
    [3, 4]
    """
    if counts is None:
        return frame.group_by(pl.all()).agg(pl.len().cast(pl.Int64).alias(name))
    return merged_rows([frame.with_columns(pl.Series(name, counts, dtype=pl.Int64))], name)


def merged_rows(frames: Sequence[pl.DataFrame], name: str) -> pl.DataFrame:
    """What several frames of distinct rows have in all."""
    whole = pl.concat(frames, how="vertical_relaxed")
    return whole.group_by(pl.exclude(name)).agg(pl.col(name).sum())


def frame_of(
    rows: Iterable[CountedRows], names: Sequence[str], missing_values: Sequence[str] = ()
) -> tuple[pl.DataFrame, Ints | None]:
    """All rows as one frame, and how many records each stands for; None for one.

    missing_values  words that stand for a missing value
    """
    frames, numbers = [], []
    for batch, counts in rows:
        frames.append(
            pl.DataFrame({name: as_series(batch.column(place), missing_values) for place, name in enumerate(names)})
        )
        numbers.append((batch.num_rows, counts))
    whole = pl.concat(frames) if frames else pl.DataFrame(schema=dict.fromkeys(names, pl.String))
    return whole, all_counts(numbers)


def all_counts(parts: Sequence[tuple[int, Ints | None]]) -> Ints | None:
    """The counts of several batches one after the other, given with their numbers of rows.

    None if there are none.
    """
    if all(counts is None for _, counts in parts):
        return None
    known = [np.ones(rows, dtype=np.int64) if counts is None else counts for rows, counts in parts]
    return np.concatenate(known).astype(np.int64)


Found = TypeVar("Found")


@dataclass(eq=False)
class Blocks(Generic[Found]):
    """Columns that are read together, and what was found out about those of the last reading.

    names  the columns, in the order in which they will be read
    cost   how much is held of a column, at the most
    read   finds out about some columns in one reading
    most   how much may be held; a single column may need more

    A caller that asks out of order gets the column from a separate reading.

    >>> def read(names):
    ...     return dict.fromkeys(names, f"read with {''.join(names)}")
    >>> blocks = Blocks("abcde", lambda name: 2, read, 5)
    >>> [blocks[name] for name in "abce"]
    ['read with ab', 'read with ab', 'read with cd', 'read with e']
    >>> blocks["b"]
    'read with b'
    """

    names: Sequence[str]
    cost: Callable[[str], int]
    read: Callable[[Sequence[str]], Mapping[str, Found]]
    most: int
    _blocks: dict[str, list[str]] = field(init=False, repr=False)
    _held: Mapping[str, Found] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        self._blocks = {block[0]: block for block in self._split()}

    def _split(self) -> Iterator[list[str]]:
        block: list[str] = []
        room = self.most
        for name in self.names:
            room -= self.cost(name)
            if block and room < 0:
                yield block
                block, room = [], self.most - self.cost(name)
            block.append(name)
        if block:
            yield block

    def __getitem__(self, name: str) -> Found:
        if name in self._held:
            return self._held[name]
        if name not in self._blocks:
            return self.read([name])[name]
        self._held = {}  # let go before more is read
        self._held = self.read(self._blocks[name])
        return self._held[name]
