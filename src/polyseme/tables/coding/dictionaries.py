"""Columns stored as dictionaries: the list of categories must not tell more than the rows that are published.

It may hold values of records that were left out, and its order may be that of the rows. So values are written out
before rows are dropped and shuffled, and lists of categories are rebuilt from what is left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute

from polyseme.arrays import arrow

__all__ = ["Levels", "is_ordered", "plain"]

_NONE: frozenset[Any] = frozenset()


def plain(column: pa.Array) -> pa.Array:
    """A column with values in place of dictionaries, at any depth."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = _plain_type(column.type)
    return column if kind == column.type else column.cast(kind)


def _plain_type(kind: pa.DataType) -> pa.DataType:
    """
    >>> str(_plain_type(pa.list_(pa.struct([("a", pa.dictionary(pa.int8(), pa.string()))]))))
    'list<item: struct<a: string>>'
    """
    if pa.types.is_dictionary(kind):
        return _plain_type(kind.value_type)
    if pa.types.is_struct(kind):
        return pa.struct([_plain_field(field) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_plain_field(kind.key_field), _plain_field(kind.item_field), kind.keys_sorted)
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_plain_field(kind.value_field), kind.list_size)
    if pa.types.is_large_list(kind):
        return pa.large_list(_plain_field(kind.value_field))
    return pa.list_(_plain_field(kind.value_field)) if pa.types.is_list(kind) else kind


def _plain_field(field: pa.Field) -> pa.Field:
    return field.with_type(_plain_type(field.type))


def is_ordered(kind: pa.DataType) -> bool:
    return bool(pa.types.is_dictionary(kind) and kind.ordered)


@dataclass(frozen=True)
class Levels:
    """The categories of ordered columns: their order is kept, but only those that are published. Levels add up.

    order  the categories of each column, in their order
    met    those of them that are published
    """

    order: Mapping[str, tuple[Any, ...]] = field(default_factory=dict, repr=False)
    met: Mapping[str, frozenset[Any]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, name: str, categories: pa.Array, published: pa.Array) -> Levels:
        """The categories of a column in one batch, in their order, and those of its values that are published."""
        return cls({name: tuple(categories.to_pylist())}, {name: frozenset(published.unique().to_pylist())})

    def __contains__(self, name: str) -> bool:
        return name in self.order

    def __add__(self, other: Levels) -> Levels:
        return Levels(
            {
                name: tuple(dict.fromkeys([*self.order.get(name, ()), *other.order.get(name, ())]))
                for name in {**self.order, **other.order}
            },
            {name: self.met.get(name, _NONE) | other.met.get(name, _NONE) for name in {**self.met, **other.met}},
        )

    def encode(self, name: str, column: pa.Array) -> pa.DictionaryArray:
        """A column of values as a dictionary again."""
        met = self.met[name] - {None}
        levels = arrow([value for value in self.order[name] if value in met], column.type)
        codes = pa.compute.index_in(column, value_set=levels)
        return pa.DictionaryArray.from_arrays(codes, levels, ordered=True)
