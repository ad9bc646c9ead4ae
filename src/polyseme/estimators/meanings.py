"""What the labels of a generalized column stand for, in codes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from polyseme.arrays import Bools, Ints

__all__ = ["Meanings"]


@dataclass(frozen=True, eq=False)
class Meanings:
    """What each label of an attribute may stand for.

    starts  where the values of each label begin in `codes`, and at last where they end: (labels + 1,)
    codes   of the values, label by label
    size    how many values there are
    numbers how many of them, the first ones, are numbers in ascending order
    """

    starts: Ints
    codes: Ints
    size: int
    numbers: int = 0

    @classmethod
    def of(cls, sets: Sequence[Sequence[int]], size: int, numbers: int = 0) -> Meanings:
        """From the values of each label."""
        starts = np.cumsum([0, *(len(values) for values in sets)])
        codes = np.concatenate([np.zeros(0, dtype=np.int64), *(np.asarray(values, dtype=np.int64) for values in sets)])
        return cls(starts, codes, size, numbers)

    @classmethod
    def themselves(cls, size: int) -> Meanings:
        """Of a column as it is: each label is one value."""
        return cls(np.arange(size + 1), np.arange(size), size)

    @property
    def lengths(self) -> Ints:
        """How many values each label may stand for."""
        return np.diff(self.starts)

    def merged(self, labels: Ints) -> Meanings:
        """With values as one that these labels, all that occur, do not tell apart."""
        alike = np.unique(self.matrix(labels).T, axis=0, return_inverse=True)[1].ravel()
        sets = [np.unique(alike[self.codes[a:b]]).tolist() for a, b in zip(self.starts[:-1], self.starts[1:])]
        return Meanings.of(sets, int(alike.max(initial=-1)) + 1)

    @property
    def stands_for(self) -> csr_array:
        """Whether each label may stand for each value, as 1 and 0: (labels, size)."""
        ones = np.ones(len(self.codes))
        return csr_array((ones, self.codes, self.starts), shape=(len(self.starts) - 1, self.size))

    def matrix(self, labels: Ints) -> Bools:
        """Whether each of these labels may stand for each value: (labels, size)."""
        found = np.zeros((len(labels), self.size), dtype=np.bool_)
        for row, label in enumerate(labels):
            found[row, self.codes[self.starts[label] : self.starts[label + 1]]] = True
        return found
