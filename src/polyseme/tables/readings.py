"""The original as its release shows it.

A policy may have texts read as numbers, dates, truth values or missing values, and a text file shows every type as
text. So the same value can look different in the two tables.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import pyarrow as pa

from polyseme.errors import Problem, TableError
from polyseme.tables.codes import CASTS, as_series, cast, cast_column, without_words

__all__ = ["alike", "plain_text", "published_types", "read_as", "with_text"]

_TRUTH = {"True": "true", "TRUE": "true", "False": "false", "FALSE": "false"}


def published_types(schema: pa.Schema) -> dict[str, pl.DataType]:
    """The type that each column of a release has once it is read."""
    return {field.name: as_series(pa.array([], type=field.type)).dtype for field in schema}


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


def with_text(series: pl.Series) -> pl.Series:
    """A column as it is, or as text where its values have none of their own: lists, structures, durations, bytes."""
    if not (series.dtype.is_nested() or series.dtype in (pl.Duration, pl.Binary)):
        return series
    shown = [None if value is None else str(value) for value in series.to_list()]
    return pl.Series(series.name, shown, dtype=pl.String)


def plain_text(series: pl.Series, missing_values: Sequence[str] = ()) -> pl.Series:
    """A column as text in which equal numbers and truth values are written alike; words for "missing" are nulls.

    >>> plain_text(pl.Series(["30.0", "7.50", "007", "True", "NA"]), ["NA"]).to_list()
    ['30', '7.5', '007', 'true', None]
    >>> plain_text(pl.Series([30.0, 7.5])).to_list(), plain_text(pl.Series([True])).to_list()
    (['30', '7.5'], ['true'])
    """
    series = with_text(series)
    text = without_words(series.cast(pl.String), missing_values)
    if series.dtype != pl.String:
        return text.str.strip_suffix(".0") if series.dtype.is_float() else text
    if text.str.contains(".", literal=True).any():
        text = text.str.replace(r"^(-?\d+\.\d*?)0+$", "$1").str.replace(r"^(-?\d+)\.$", "$1")
    return text.replace(_TRUTH)
