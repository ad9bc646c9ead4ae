"""Sets as numbers: the place of an ascending set among all sets of its size, in lexicographic order.

    number(c_1 < ... < c_l)  =  C(F, l) - 1 - sum_i C(F - 1 - c_i, l - i + 1)

where
    C(n, k)  the binomial coefficient

This is the combinatorial number system: every number from 0 to C(F, l) - 1 is one set, so a number holds a set in as
few bits as possible.
"""

from __future__ import annotations

from math import comb

import numpy as np

from polyseme.arrays import Ints

__all__ = ["SetNumbers"]


class SetNumbers:
    """The numbers of all sets of `width` codes below `size`; `count` of them, which must fit 62 bits."""

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
