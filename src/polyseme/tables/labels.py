"""Labels of a column as codes of a domain, and dictionary columns that reveal nothing else.

A verifier cannot count on types: a domain declared as 1, 2, 3 may come back from a file as '1' or 1.0.

A dictionary's list of categories must not reveal more than the rows that are published.

It may hold values of records that were left out, and its order may be that of the rows. So values are written out
before rows are dropped and shuffled, and lists of categories are rebuilt from what is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute

from polyseme.kernel.arrays import Ints, arrow
from polyseme.kernel.errors import Problem, TableError, nearest, numbered
from polyseme.kernel.spelling import Label, spelled
from polyseme.schema import Domain
from polyseme.tables.codes import encode as encode_column

__all__ = ["Levels", "MissingAs", "encode", "is_ordered", "plain", "require_columns"]

MissingAs: TypeAlias = Literal["refuse", "category"]

_CODE, _VALUE = "\0code", "\0value"


def require_columns(frame: pl.DataFrame, names: Iterable[str]) -> None:
    """Raise, naming every column that the table lacks."""
    absent = [name for name in names if name not in frame.columns]
    if absent:
        raise TableError(Problem(name, "the table has no such column", nearest(name, frame.columns)) for name in absent)


def encode(
    values: pl.Series, counts: pl.Series, domain: Sequence[Label] | None, missing: MissingAs
) -> tuple[Ints, tuple[Label | None, ...], str]:
    """Codes (-1 for what has none), labels in order of codes, and the flaw if there is one.

    Without a domain the values are those that occur: texts by their spelling, so that True and true are not two.
    """
    labels: tuple[Label | None, ...]
    if domain is None:
        values = spelled(values) if values.dtype == pl.String else values
        present = values.drop_nulls().unique().sort()
        labels = tuple(present.to_list())
        table = pl.DataFrame({_VALUE: present}).with_row_index(_CODE)
        joined = pl.DataFrame({_VALUE: values}).join(table, on=_VALUE, how="left", maintain_order="left")
        codes = joined[_CODE].cast(pl.Int64).fill_null(-1).to_numpy().copy()
    else:
        labels = tuple(domain)
        codes = np.maximum(encode_column(values, Domain(tuple(domain))).codes, -1)
    null = values.is_null().to_numpy()
    weight = counts.to_numpy()
    unknown = int(weight[(codes < 0) & ~null].sum())
    absent = int(weight[null].sum())
    if absent and missing == "category":
        codes[null] = len(labels)
        labels, absent = (*labels, None), 0
    flaws = []
    if absent:
        flaws.append(numbered(absent, "records have no value, and missing values were not declared to be a category"))
    if unknown:
        flaws.append(numbered(unknown, "records have a value outside the declared domain"))
    return codes, labels, "; ".join(flaws)


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
    """The categories of ordered columns: their order is kept, but only those that are published.

    Levels add up.

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
