"""Columns of an original made comparable with those of its release, which may have typed what stood there as text."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import pyarrow as pa

from polyseme.tables.codes import as_series, cast_column

__all__ = ["as_published", "plain_text", "published_types"]

_TRUTH = {"True": "true", "TRUE": "true", "False": "false", "FALSE": "false"}


def published_types(schema: pa.Schema) -> dict[str, pl.DataType]:
    """The type that each column of a release has once it is read."""
    return {field.name: as_series(pa.array([], type=field.type)).dtype for field in schema}


def as_published(series: pl.Series, dtype: pl.DataType) -> pl.Series:
    """A column of the original with the type of the same column of the release.

    >>> as_published(pl.Series(["30", " 7.50", "NA"]), pl.Float64()).to_list()
    [30.0, 7.5, None]
    """
    kind = _kind(dtype)
    if series.dtype == dtype or kind is None:
        return series
    return cast_column(series, kind)[0].cast(dtype, strict=False)


def _kind(dtype: pl.DataType) -> str | None:
    """The policy's word for a type."""
    if dtype.is_integer():
        return "integer"
    if dtype.is_float():
        return "number"
    if isinstance(dtype, pl.Datetime):
        return "datetime"
    return {pl.String(): "text", pl.Boolean(): "boolean", pl.Date(): "date"}.get(dtype)


def plain_text(series: pl.Series, missing_values: Sequence[str] = ()) -> pl.Series:
    """A column as text in which equal numbers and truth values are written alike; words for "missing" are nulls.

    >>> plain_text(pl.Series(["30.0", "7.50", "007", "True", "NA"]), ["NA"]).to_list()
    ['30', '7.5', '007', 'true', None]
    >>> plain_text(pl.Series([30.0, 7.5])).to_list(), plain_text(pl.Series([True])).to_list()
    (['30', '7.5'], ['true'])
    """
    text = series.cast(pl.String)
    if missing_values:
        text = text.set(text.is_in(pl.Series(missing_values, dtype=pl.String).implode()), None)
    if text.str.contains(".", literal=True).any():
        text = text.str.replace(r"^(-?\d+\.\d*?)0+$", "$1").str.replace(r"^(-?\d+)\.$", "$1")
    return text.replace(_TRUTH)
