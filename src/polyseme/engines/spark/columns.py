"""Columns on their way through Spark: packed codes of sets, and wider types.

Several codes of a set travel in one number, as many as fit. A row of Spark takes eight bytes for each of its columns,
however small what is in them, and is copied several times on its way to its place.

Spark has fewer types than Arrow. Values stay what they are: a type becomes a wider one, and what would be cut off or
has no counterpart is refused before anything is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from polyseme.kernel.arrays import Ints
from polyseme.kernel.errors import Problem, TableError

__all__ = ["FEW", "Packing", "carried", "carried_type", "refuse_uncarried", "spark_type"]

if TYPE_CHECKING:
    from pyspark.sql import Column


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


if TYPE_CHECKING:
    from pyspark.sql.types import DataType


_HINT = "cast the column before, for example to text, or leave it out: role: identifier"
_WIDER: Mapping[pa.DataType, pa.DataType] = {
    pa.null(): pa.string(),
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.int64(),
    pa.float16(): pa.float32(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
    pa.date64(): pa.date32(),
}
_PLAIN = ("Boolean", "Byte", "Short", "Integer", "Long", "Float", "Double", "String", "Binary", "Date")
_ARROW = (
    pa.bool_(),
    pa.int8(),
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.string(),
    pa.binary(),
    pa.date32(),
)
_NAMES = dict(zip(_ARROW, _PLAIN))


def carried_type(kind: pa.DataType) -> pa.DataType | None:
    """The Arrow type under which values go through Spark; None where there is none."""
    kind = _WIDER.get(kind, kind)
    if kind in _NAMES:
        return kind
    if pa.types.is_dictionary(kind):
        return carried_type(kind.value_type)
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if pa.types.is_decimal(kind):
        return pa.decimal128(kind.precision, kind.scale) if kind.precision <= 38 else None
    if pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        inner = carried_type(kind.value_type)
        return None if inner is None else pa.list_(inner)
    return None


def spark_type(kind: pa.DataType) -> DataType:
    """Spark's own type for a type that goes through it."""
    from pyspark.sql import types

    if kind in _NAMES:
        made: DataType = getattr(types, f"{_NAMES[kind]}Type")()
        return made
    if pa.types.is_timestamp(kind):
        return types.TimestampNTZType() if kind.tz is None else types.TimestampType()
    if pa.types.is_decimal(kind):
        return types.DecimalType(kind.precision, kind.scale)
    return types.ArrayType(spark_type(kind.value_type))


def refuse_uncarried(schema: pa.Schema, names: Sequence[str]) -> None:
    """Raise, naming every column whose type Spark does not have."""
    unknown = [name for name in names if carried_type(schema.field(name).type) is None]
    if unknown:
        raise TableError(
            Problem(f"column '{name}'", f"Spark has no type for {schema.field(name).type}", _HINT) for name in unknown
        )


def carried(column: pa.Array, name: str) -> pa.Array:
    """A column under the type with which it goes through Spark.

    `TableError` where a value would be cut off.
    """
    kind = carried_type(column.type)
    if kind is None:
        raise TableError(Problem(f"column '{name}'", f"Spark has no type for {column.type}", _HINT))
    if column.type == kind:
        return column
    try:
        plain = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        return plain.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        # The reader's own message quotes a value.
        what = f"values of type {column.type} do not fit {kind}, the nearest type that Spark has"
        raise TableError(Problem(f"column '{name}'", what, _HINT)) from None
