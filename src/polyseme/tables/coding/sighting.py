"""Where some values of a column are: the way from a series to sightings."""

from __future__ import annotations

import numpy as np
import polars as pl

from polyseme.arrays import Ints
from polyseme.sightings import Sightings

__all__ = ["sighted"]


def sighted(series: pl.Series, places: Ints, rows: Ints | None = None) -> Sightings:
    """The values at some places of a series.

    rows  of the table in which each element stands; its place when omitted

    >>> sighted(pl.Series(["a", "x", "x"]), np.array([1, 2])).values
    {'x': (2, 1)}
    """
    if not len(places):
        return Sightings()
    there = places if rows is None else rows[places]
    table = pl.DataFrame({"value": _texts(series.gather(places)), "row": there})
    grouped = table.group_by("value", maintain_order=True).agg(pl.len().alias("count"), pl.col("row").min())
    values = {value: (count, row) for value, count, row in grouped.head(_MOST).iter_rows()}
    return Sightings.of(values, np.sort(there)[:_FIRST].tolist(), len(places))


_MOST, _FIRST = 1_000, 5
"""Values and rows that a sighting remembers; no more are taken out of a column."""


def _texts(series: pl.Series) -> pl.Series:
    """Values as they are shown; a type that has no text is only counted."""
    try:
        return series.cast(pl.String)
    except pl.exceptions.PolarsError:
        return pl.Series([f"({series.dtype})"] * len(series), dtype=pl.String)
