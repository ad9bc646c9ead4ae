"""The original as its release shows it.

A policy may have texts read as numbers, dates, truth values or missing values, and a text file shows every type as
text. So the same value can look different in the two tables.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from polyseme.errors import Problem, TableError
from polyseme.tables.codes import CASTS, cast, cast_column, without_words

__all__ = ["alike", "read_as"]


def read_as(series: pl.Series, dtype: pl.DataType, missing_values: Sequence[str] = ()) -> tuple[pl.Series, int]:
    """A column in the type of a released one, read as it was for the release, and how many values are not readable.

    >>> read_as(pl.Series(["30", " 31.5", "?"]), pl.Float64(), ["?"])[0].to_list()
    [30.0, 31.5, None]
    """
    series = without_words(series, missing_values)
    kind = next((kind for kind, declared in CASTS.items() if declared.base_type() == dtype.base_type()), None)
    read = cast(cast_column(series, kind)[0] if kind else series, dtype)
    unreadable = read.null_count() - series.null_count()
    return read.fill_nan(None) if read.dtype.is_float() else read, unreadable


def alike(original: pl.Series, shown: pl.Series, missing_values: Sequence[str] = ()) -> tuple[pl.Series, pl.Series]:
    """Columns of the original and of its release in one type, so that values that are the same compare as the same.

    Where the release shows text, nothing says how it was read: it is the first way in which the release has every
    value of the original. When there is none, it is not quite the same table, and both are given as text.
    """
    if original.dtype == shown.dtype and _holds(shown, original):
        return original, shown
    for dtype in (original.dtype, *CASTS.values()) if shown.dtype == pl.String else (shown.dtype,):
        read, unreadable = read_as(original, dtype, missing_values)
        seen, unseen = read_as(shown, dtype)
        if not (unreadable or unseen) and seen.n_unique() == shown.n_unique() and _holds(seen, read):
            return read, seen
    (read, unreadable), (seen, unseen) = (read_as(column, pl.String()) for column in (original, shown))
    if unreadable or unseen:
        raise TableError(Problem(f"column '{shown.name}'", "the original and the release do not have the same type"))
    return read, seen


def _holds(shown: pl.Series, values: pl.Series) -> bool:
    return bool(values.is_in(shown.implode(), nulls_equal=True).all())
