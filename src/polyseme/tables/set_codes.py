"""Sets as codes: list columns of candidate labels, and sets as single numbers.

The number of an ascending set is its place among all sets of its size, in lexicographic order:

    number(c_1 < ... < c_l)  =  C(F, l) - 1 - sum_i C(F - 1 - c_i, l - i + 1)

where
    C(n, k)  the binomial coefficient

This is the combinatorial number system: every number from 0 to C(F, l) - 1 is one set, so a number holds a set in as
few bits as possible.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute

from polyseme.kernel.arrays import Ints
from polyseme.schema import Domain
from polyseme.tables.codes import encode

__all__ = ["SetColumn", "SetNumbers", "code_labels", "code_sets"]


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
        table: Ints = np.append(encode(series, plain).codes, -1)
        # The place of a missing label comes after all others: it may be one more than the type of indices can hold.
        indices: Ints = pl.Series(labels.indices.cast(pa.int64())).fill_null(len(table) - 1).to_numpy()
        return table[indices]
    return encode(pl.Series(labels), plain).codes
