"""Grouping rows of codes by sorting integers: one key a row, one sort, one sum for each group.

Columns are digits of one number (mixed radix), the last the least significant. Where the numbers would not fit into 63
bits, what there is so far is renumbered without gaps first. Few possible keys are counted in a table; otherwise keys
are sorted with the row number in their low bits, which is several times faster than sorting row numbers by their keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from polyseme.arrays import Ints

__all__ = ["Groups", "Known", "grouped", "packed"]

_DENSE = 4
"""Possible keys for each row up to which a table of all keys is quicker than sorting."""
_BITS = 62


@dataclass(frozen=True, eq=False)
class Groups:
    """Rows with the same key, in the order of keys.

    keys  of each group
    sums  of each kind of weight of its rows
    row   one row of each group
    """

    keys: Ints
    sums: tuple[Ints, ...]
    row: Ints


def packed(columns: Iterable[tuple[Ints, int]], rows: int) -> tuple[Ints, int]:
    """One key a row from columns of codes with their numbers of codes; and how many keys are possible.

    >>> packed([(np.array([0, 1, 1]), 2), (np.array([2, 0, 2]), 3)], 3)
    (array([2, 3, 5]), 6)
    """
    keys, space = np.zeros(rows, dtype=np.int64), 1
    for codes, size in columns:
        if space * size > 1 << _BITS:
            found, keys = np.unique(keys, return_inverse=True)
            space = max(len(found), 1)
        if size != 1:
            keys = keys * size + codes if space > 1 else codes.astype(np.int64)
        space *= size
    return keys, space


def grouped(keys: Ints, space: int, weights: Sequence[Ints]) -> Groups:
    """The groups of rows with the same key."""
    if space <= _DENSE * len(keys):
        return _counted(keys, space, weights)
    bits = max(len(keys) - 1, 1).bit_length()
    if space.bit_length() + bits > _BITS + 1:
        order = np.argsort(keys, kind="stable")
        ordered = keys[order]
    else:
        both = (keys << bits) | np.arange(len(keys))
        both.sort()
        ordered, order = both >> bits, both & ((1 << bits) - 1)
    heads = np.flatnonzero(np.concatenate((np.ones(min(len(keys), 1), dtype=bool), ordered[1:] != ordered[:-1])))
    sums = tuple(np.add.reduceat(weight[order], heads) if len(heads) else heads for weight in weights)
    return Groups(ordered[heads], sums, order[heads])


def _counted(keys: Ints, space: int, weights: Sequence[Ints]) -> Groups:
    rows = np.full(space, -1)
    rows[keys] = np.arange(len(keys))
    found = np.flatnonzero(rows >= 0)
    sums = tuple(np.bincount(keys, weight, space)[found].astype(np.int64) for weight in weights)
    return Groups(found, sums, rows[found])


@dataclass(frozen=True, eq=False)
class Known:
    """Different combinations of codes, among which those of other rows are looked up.

    sizes  the number of codes of each column
    steps  up to which column codes are digits of one number, and the numbers that there are; then their places go on

    >>> Known.of(np.array([[1, 2], [0, 0]]), [2, 3]).find(np.array([[0, 0], [0, 1], [1, 2]]))
    array([ 0, -1,  1])
    """

    sizes: tuple[int, ...]
    steps: tuple[tuple[int, Ints], ...] = field(repr=False)

    @classmethod
    def of(cls, rows: Ints, sizes: Sequence[int]) -> Known:
        keys, space, steps = np.zeros(len(rows), dtype=np.int64), 1, []
        for place, size in enumerate(sizes):
            if space * size > 1 << _BITS:
                found, keys = np.unique(keys, return_inverse=True)
                steps.append((place, found))
                space = max(len(found), 1)
            keys, space = keys * size + rows[:, place], space * size
        return cls(tuple(sizes), (*steps, (len(sizes), np.unique(keys))))

    def find(self, rows: Ints) -> Ints:
        """The place of each row among the combinations in their order; -1 for one that is not known."""
        keys, known, first = np.zeros(len(rows), dtype=np.int64), np.ones(len(rows), dtype=bool), 0
        for last, found in self.steps:
            if not len(found):
                return np.full(len(rows), -1, dtype=np.int64)
            for place in range(first, last):
                keys = keys * self.sizes[place] + rows[:, place]
            places = np.minimum(np.searchsorted(found, keys), len(found) - 1)
            known &= found[places] == keys
            keys, first = places, last
        return np.where(known, keys, -1)
