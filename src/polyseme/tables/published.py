"""Published sets of candidates: codes and numbers, counts, and the order of sets and rows.

A set in another order than the domain's can reveal which candidate is true, and so can the order of the rows. Rows are
looked at while they are counted: how often each value occurs in each block of neighboring rows, and how many candidates
the rows of a pair of neighbors share.

List columns of candidate labels become codes, or single numbers. The number of an ascending set is its place among all
sets of its size, in lexicographic order:

    number(c_1 < ... < c_l)  =  C(F, l) - 1 - sum_i C(F - 1 - c_i, l - i + 1)

where
    C(n, k)  the binomial coefficient

This is the combinatorial number system: every number from 0 to C(F, l) - 1 is one set, so a number holds a set in as
few bits as possible.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import comb

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute

from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.errors import Problem, TableError
from polyseme.kernel.spelling import Label
from polyseme.schema import Domain
from polyseme.tables.codes import encode as encode_column
from polyseme.tables.labels import encode, require_columns

__all__ = [
    "Neighbors",
    "PublishedSets",
    "RowOrder",
    "SetColumn",
    "SetNumbers",
    "code_labels",
    "code_sets",
    "published_sets",
    "ragged_blocks",
]


class SetNumbers:
    """The numbers of all sets of `width` codes below `size`.

    `count` of them, which must fit 62 bits.
    """

    def __init__(self, size: int, width: int) -> None:
        self.size, self.width = size, width
        self.count = comb(size, width)
        # Row i: C(u, width - i) for u = 0 ... size - 1, ascending.
        self._above = np.array([_binomials(size, width - place) for place in range(width)], dtype=np.int64)

    def number(self, sets: Ints) -> Ints:
        """The numbers of ascending sets (n, width)."""
        out = np.full(len(sets), self.count - 1, dtype=np.int64)
        for place, above in enumerate(self._above):
            out -= above[::-1][sets[:, place]]
        return out

    def members(self, numbers: Ints) -> Ints:
        """The sets (n, width) with these numbers."""
        rest = self.count - 1 - numbers
        sets = np.empty((len(numbers), self.width), dtype=np.int64)
        for place, above in enumerate(self._above):
            found = np.searchsorted(above, rest, side="right") - 1
            sets[:, place] = self.size - 1 - found
            rest = rest - above[found]
        return sets


def _binomials(size: int, chosen: int) -> list[int]:
    """C(u, chosen) for u = 0 ... size - 1."""
    row = [0] * size
    for u in range(chosen, size):
        row[u] = 1 if u == chosen else row[u - 1] * u // (u - chosen)
    return row


@dataclass(frozen=True, eq=False)
class SetColumn:
    """Published sets: sizes, and the codes of all members (negative if not in the domain)."""

    lengths: Ints
    members: Ints

    def regular(self, width: int) -> Ints | None:
        """The sets as (n, width), rows ascending; None unless each has `width` different members."""
        if len(self.members) and self.members.min() < 0:
            return None
        if not np.all(self.lengths == width):
            return None
        sets = self.members.reshape(-1, width)
        if width > 1 and not np.all(sets[:, 1:] > sets[:, :-1]):
            sets = np.sort(sets, axis=1)
            if np.any(sets[:, 1:] == sets[:, :-1]):
                return None
        return sets


def code_sets(column: pa.Array, domain: Domain) -> SetColumn:
    """The codes of a list column; a missing list counts as an empty one."""
    if not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)):
        # Not a list: one label for each record, as in the long form.
        return SetColumn(np.ones(len(column), dtype=np.int64), code_labels(column, domain))
    lengths = pl.Series(pa.compute.list_value_length(column)).fill_null(0).to_numpy().astype(np.int64)
    return SetColumn(lengths, code_labels(column.flatten(), domain))


def code_labels(labels: pa.Array, domain: Domain) -> Ints:
    """The codes of published labels."""
    plain = Domain(domain.values)
    if pa.types.is_dictionary(labels.type):
        # Look each distinct label up once; the indices then only need to be taken.
        series = pl.Series(labels.dictionary)
        table: Ints = np.append(encode_column(series, plain).codes, -1)
        # The place of a missing label comes after all others: it may be one more than the type of indices can hold.
        indices: Ints = pl.Series(labels.indices.cast(pa.int64())).fill_null(len(table) - 1).to_numpy()
        return table[indices]
    return encode_column(pl.Series(labels), plain).codes


_ROW, _VALUE = "\0row", "\0value"


@dataclass(frozen=True, eq=False)
class PublishedSets:
    """The distinct sets of candidates that were published for one attribute.

    attribute  its name
    starts     where each set begins in `value`: (sets + 1,)
    value      codes of the candidates, ascending within a set, no repeats; -1 for a candidate outside the domain
    counts     how many records published this set: (sets,)
    first      a row that published it, -1 where rows were only counted: (sets,)
    size       F, the number of values of the domain
    """

    attribute: str
    starts: Ints
    value: Ints
    counts: Ints
    first: Ints
    size: int

    @property
    def records(self) -> int:
        return int(self.counts.sum())

    @property
    def flaw(self) -> str:
        return "" if self.records else "there are no published sets"

    @cached_property
    def distinct(self) -> Ints:
        """How many different candidates of the domain each set has."""
        owner = np.repeat(np.arange(len(self.counts)), np.diff(self.starts))
        return np.bincount(owner[self.value >= 0], minlength=len(self.counts))

    def blocks(self) -> Iterator[tuple[Ints, Ints, Ints]]:
        """Sets with equally many candidates together: set numbers (m,), candidates (m, k) twice."""
        return ragged_blocks(self.starts, self.value, self.value)

    @classmethod
    def from_codes(cls, sets: Ints, size: int, attribute: str = "", counts: Ints | None = None) -> PublishedSets:
        """From one row of l candidate codes for each record, or for `counts` records each.

        >>> PublishedSets.from_codes(np.array([[0, 2], [2, 0], [1, 1]]), 3).distinct
        array([2, 1])
        """
        sets = np.asarray(sets, dtype=np.int64)
        sets = np.where((sets >= 0) & (sets < size), sets, -1)
        ordered = np.sort(sets, axis=1)
        repeated = ordered[:, 1:] == ordered[:, :-1]
        if repeated.any():
            # The same set in one way only: whatever is repeated, the smallest member takes its place.
            ordered[:, 1:] = np.where(repeated, ordered[:, :1], ordered[:, 1:])
            ordered.sort(axis=1)
        order = np.lexsort(ordered.T[::-1]) if ordered.size else np.arange(len(ordered))
        ordered = ordered[order]
        new = np.ones(len(ordered), dtype=bool)
        new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
        heads = np.flatnonzero(new)
        records = np.ones(len(sets), dtype=np.int64) if counts is None else counts
        held = np.add.reduceat(records[order], heads) if len(heads) else heads
        unique = ordered[heads]
        fresh = np.ones(unique.shape, dtype=bool)
        fresh[:, 1:] = unique[:, 1:] != unique[:, :-1]
        starts = np.concatenate(([0], np.cumsum(fresh.sum(axis=1)))).astype(np.int64)
        first = np.minimum.reduceat(order, heads) if len(heads) else heads
        first = first if counts is None else np.full(len(heads), -1)
        return cls(attribute, starts, unique[fresh], held, first, size)


def published_sets(
    frame: pl.DataFrame, column: str, domain: Sequence[Label] | int, counts: Ints | None = None
) -> PublishedSets:
    """The distinct sets of a list column, of labels of `domain`, or of codes if it is a number.

    `counts` says how many records each row stands for; without it, one.
    Sets may have any length, repeated or unknown members, or be missing: what is wrong with them is for a model to say.
    """
    require_columns(frame, [column])
    lists = frame[column]
    if not isinstance(lists.dtype, (pl.List, pl.Array)):
        raise TableError(Problem(column, f"published sets are lists, not {lists.dtype}", "write one list for each row"))
    lists = lists.cast(pl.List(lists.dtype.inner)) if isinstance(lists.dtype, pl.Array) else lists
    table = pl.DataFrame({_ROW: np.arange(frame.height), _VALUE: lists}).explode(_VALUE)
    members, rows = table[_VALUE], table[_ROW].to_numpy()
    # An empty or missing list explodes to one null; a null inside a list is an unknown candidate.
    void = (lists.is_null() | (lists.list.len() == 0)).to_numpy()
    if isinstance(domain, int):
        size, codes = domain, members.cast(pl.Int64, strict=False).fill_null(-1).to_numpy()
    else:
        size = len(domain)
        codes = encode(members, pl.repeat(1, len(members), eager=True), domain, "refuse")[0]
    codes = np.where((codes >= 0) & (codes < size), codes, -1)
    lengths = np.where(void, 0, lists.list.len().fill_null(0).to_numpy()).astype(np.int64)
    width = int(lengths.max(initial=0))
    # Short sets are filled up with their own first member (repeats do not count), empty ones with a mark beyond F.
    offset = np.arange(len(rows)) - np.searchsorted(rows, rows)
    padded = np.full((frame.height, max(width, 1)), size, dtype=np.int64)
    padded[rows, offset] = np.where(void[rows], size, codes)
    short = np.arange(max(width, 1))[None, :] >= lengths[:, None]
    padded = np.where(short, padded[:, :1], padded)
    result = PublishedSets.from_codes(padded + 1, size + 2, column, counts)
    return _without_empty_mark(result, size)


def _without_empty_mark(sets: PublishedSets, size: int) -> PublishedSets:
    """Undo the shift that separated unknown candidates, and drop the mark of the empty set."""
    owner = np.repeat(np.arange(len(sets.counts)), np.diff(sets.starts))
    value = sets.value - 1
    real = value < size
    starts = np.searchsorted(owner[real], np.arange(len(sets.counts) + 1)).astype(np.int64)
    return PublishedSets(sets.attribute, starts, value[real], sets.counts, sets.first, size)


def ragged_blocks(starts: Ints, value: Ints, other: Ints) -> Iterator[tuple[Ints, Ints, Ints]]:
    """Rows of a ragged array grouped by their length, so that each group is a rectangle."""
    lengths = np.diff(starts)
    for length in np.unique(lengths):
        rows = np.flatnonzero(lengths == length)
        places = starts[rows][:, None] + np.arange(length)
        yield rows, value[places], other[places]


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
        """The next rows as they are published, (n, width).

        `counts` where rows were counted, in whatever order.
        """
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
        """Rows of each block, of all scales from two blocks up: (blocks,).

        How often each holds each value.
        """
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
