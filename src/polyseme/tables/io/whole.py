"""Whole numbers from files that know only floating-point ones."""

from __future__ import annotations

import polars as pl

__all__ = ["whole_where_possible"]

_EXACT = float(1 << 53)
"""Beyond this, a floating-point number does not tell all whole ones apart."""


def whole_where_possible(column: pl.Series) -> pl.Series:
    """A column of numbers as whole ones, if each of them is.

    >>> whole_where_possible(pl.Series([1.0, None])).dtype, whole_where_possible(pl.Series([1.0, 0.5])).dtype
    (Int64, Float64)
    """
    if not column.dtype.is_float() or not column.count():
        return column
    whole = bool(((column == column.round()) & (column.abs() < _EXACT)).all())
    return column.cast(pl.Int64) if whole else column
