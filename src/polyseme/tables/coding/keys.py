"""Record keys as texts that are the same wherever the table is stored.

A key that changes between two releases gives a person new decoys, and what both sets have in common is the truth. One
file holds 5, another 5.0 (a column with a gap becomes floats), a third "5 " or 005: all of them are the same person
(`polyseme.spelling.spelled_key`).
"""

from __future__ import annotations

import polars as pl

from polyseme.errors import Problem, TableError
from polyseme.spelling import spelled_key

__all__ = ["key_texts"]

_EXACT = 1 << 53
"""Beyond this not every whole number is a double: two keys could become one."""
_KINDS = (pl.String, pl.Boolean, pl.Date, pl.Datetime, pl.Null)


def key_texts(series: pl.Series) -> pl.Series:
    """The key of each record; none where it is missing, or a float that does not tell persons apart.

    >>> key_texts(pl.Series([5.0, 0.5, None])).to_list(), key_texts(pl.Series([" 5", "005", "5.0", "A5 "])).to_list()
    (['5', None, None], ['5', '5', '5', 'A5'])
    """
    if not (series.dtype.is_numeric() or series.dtype in _KINDS):
        kind = str(series.dtype).lower()
        hint = "take a column of texts or whole numbers"
        raise TableError(Problem(f"column '{series.name}'", f"a column of type {kind} cannot be the record key", hint))
    if series.dtype.is_float():
        whole = (series == series.round()) & (series.abs() < _EXACT)
        series = series.set(~whole.fill_null(False), None).cast(pl.Int64)
    return series.cast(pl.String) if series.dtype.is_integer() else spelled_key(series)
