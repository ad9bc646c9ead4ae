"""The codes of a set as they travel: several in one number, as many as fit.

A row of Spark takes eight bytes for each of its columns, however small what is in them, and is copied several times on
its way to its place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from polyseme.arrays import Ints

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["FEW", "Packing"]

FEW = 64
"""Values up to which sets travel as codes, and Spark looks up their labels in a constant; labels of others travel
themselves. Sail 0.7 makes a copy of the constant for every row: 20,000 rows took five times as long with 10,000 values
as with 1,000, and failed with 70,000."""
_BITS = 63
"""Of a number that is not negative."""


@dataclass(frozen=True)
class Packing:
    """How the codes of so many candidates, each below `size`, share columns."""

    size: int
    candidates: int

    @property
    def columns(self) -> int:
        return -(-self.candidates // self._together)

    @property
    def type(self) -> pa.DataType:
        return pa.from_numpy_dtype(self._type)

    def packed(self, codes: Ints) -> list[pa.Array]:
        """The columns of some sets: (sets, candidates)."""
        numbers = np.zeros((self.columns, len(codes)), dtype=self._type)
        for candidate in range(self.candidates):
            number, place = divmod(candidate, self._together)
            numbers[number] |= codes[:, candidate].astype(self._type) << (place * self._bits)
        return [pa.array(column) for column in numbers]

    def code(self, names: list[str], candidate: int) -> Column:
        """The code of a candidate in columns with these names."""
        from pyspark.sql import functions as sql

        number, place = divmod(candidate, self._together)
        shifted = sql.shiftright(sql.col(names[number]), place * self._bits)
        return shifted.bitwiseAND(sql.lit((1 << self._bits) - 1)).cast("int")

    @property
    def _bits(self) -> int:
        return max((self.size - 1).bit_length(), 1)

    @property
    def _together(self) -> int:
        """How many codes share a column."""
        return _BITS // self._bits

    @property
    def _type(self) -> Any:
        return np.dtype(np.int32 if min(self.candidates, self._together) * self._bits < 32 else np.int64)
