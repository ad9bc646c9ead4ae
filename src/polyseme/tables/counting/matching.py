"""Records recognized by their columns: eight bytes each, so that a table of any length can be matched with another.

A fingerprint is a hash of 64 bits. Two of n different combinations have the same one with a probability below
n^2 / 2^64, one in two thousand for a hundred million; then some person is taken for another, or not found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from polyseme.arrays import Ints, arrow

__all__ = ["Fingerprints", "class_sizes", "fingerprints", "matched", "mixed", "some_rows", "unmatched"]

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
    """How many rows of the left table have no row of their own in the right one that looks the same.

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
