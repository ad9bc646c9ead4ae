"""The original as its release shows it.

A policy may have texts read as numbers, dates, truth values or missing values, and a text file shows every type as
text. So the same value can look different in the two tables.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import pyarrow as pa

from polyseme.errors import Problem, TableError
from polyseme.spelling import spelled
from polyseme.tables.coding.codes import CASTS, as_series, cast, cast_column, without_words

__all__ = ["alike", "plain_text", "published_types", "read_as"]


def published_types(schema: pa.Schema) -> dict[str, pl.DataType]:
    """The type that each column of a release has once it is read."""
    return {field.name: as_series(pa.nulls(0, field.type)).dtype for field in schema}


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
    value of the original. When there is none, it is not quite the same table, and texts are given by their spelling.
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
    plain = spelled(seen)
    # Values that the release keeps apart stay apart; of numbers it is known that they do not fit.
    apart = shown.dtype != pl.String or plain.n_unique() < seen.n_unique()
    return (read, seen) if apart else (spelled(read), plain)


def _holds(shown: pl.Series, values: pl.Series) -> bool:
    return bool(values.is_in(shown.implode(), nulls_equal=True).all())


def plain_text(series: pl.Series, missing_values: Sequence[str] = ()) -> pl.Series:
    """A column as text in which whatever is the same is written alike; words for "missing" are nulls.

    >>> plain_text(pl.Series(["30.0", "7.50", "007", "True", "NA"]), ["NA"]).to_list()
    ['30', '7.5', '007', 'true', None]
    >>> plain_text(pl.Series([30.0, 7.5])).to_list(), plain_text(pl.Series([True])).to_list()
    (['30', '7.5'], ['true'])
    """
    return without_words(spelled(without_words(series, missing_values)), missing_values)
