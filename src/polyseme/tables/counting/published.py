"""Published sets of candidates as counts of distinct sets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from polyseme.arrays import Ints
from polyseme.errors import Problem, TableError
from polyseme.spelling import Label
from polyseme.tables.coding.labels import encode, require_columns

__all__ = ["PublishedSets", "published_sets", "ragged_blocks"]

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
    """The distinct sets of a list column, whose members are labels of `domain`, or codes when it is a number.

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
    """Undo the shift by one that kept unknown candidates apart, and drop the mark of the empty set."""
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
