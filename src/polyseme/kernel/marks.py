"""Marks of values that are missing or outside a domain, and labels of calendar periods."""

from __future__ import annotations

import polars as pl

__all__ = ["MISSING", "UNSEEN", "period_labels"]

MISSING = -1
"""The code of a value that is missing."""
UNSEEN = -2
"""The code of a value that is not in the domain."""

_PERIOD_FORMATS = {"year": "%Y", "month": "%Y-%m", "week": "%G-W%V", "day": "%Y-%m-%d"}


def period_labels(series: pl.Series, every: str) -> pl.Series:
    """A date or time column as calendar periods: 2024, 2024-Q1, 2024-01, 2024-W05, 2024-01-31."""
    if series.dtype == pl.String:
        # The first ten characters of ISO 8601 are the date, whatever time follows.
        series = series.str.slice(0, 10).str.to_date("%Y-%m-%d", strict=False)
    if series.dtype != pl.Date and not isinstance(series.dtype, pl.Datetime):
        # Numbers, truth values, times of day: not in any calendar period.
        return pl.Series(series.name, [None] * len(series), dtype=pl.String)
    if every == "quarter":
        year, quarter = series.dt.year().cast(pl.String), series.dt.quarter().cast(pl.String)
        return year + "-Q" + quarter
    return series.dt.strftime(_PERIOD_FORMATS[every])
