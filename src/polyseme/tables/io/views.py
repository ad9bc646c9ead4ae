"""Columns of view types, which many Arrow functions do not know yet, as columns of plain ones."""

from __future__ import annotations

import pyarrow as pa

__all__ = ["without_views"]


def without_views(schema: pa.Schema) -> pa.Schema:
    """A schema with the plain counterparts of its view types."""
    return pa.schema([field.with_type(_without_view(field.type)) for field in schema])


def _without_view(kind: pa.DataType) -> pa.DataType:
    if kind == pa.string_view():
        return pa.large_string()
    if kind == pa.binary_view():
        return pa.large_binary()
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, _without_view(kind.value_type), kind.ordered)
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_without_view(field.type)) for field in kind])
    if pa.types.is_large_list(kind):
        return pa.large_list(_without_view(kind.value_type))
    return pa.list_(_without_view(kind.value_type)) if pa.types.is_list(kind) else kind
