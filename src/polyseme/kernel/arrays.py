"""The array types of all signatures, marks of values, and labels of periods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import polars as pl

__all__ = ["MISSING", "UNSEEN", "Bools", "Floats", "Ints", "arrow", "multipliable", "period_labels"]

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]

MISSING = -1
"""The code of a value that is missing."""
UNSEEN = -2
"""The code of a value that is not in the domain."""

_PERIOD_FORMATS = {"year": "%Y", "month": "%Y-%m", "week": "%G-W%V", "day": "%Y-%m-%d"}
_FITTING = 3_000_000_000
"""Numbers up to which the product of two fits 64 bits."""


def multipliable(largest: int, *counts: Ints) -> tuple[Ints, ...]:
    """Counts of which any two can be multiplied, as long numbers where 64 bits are too few.

    >>> multipliable(10**10, np.array([10**10]))[0] * 10**10
    array([100000000000000000000], dtype=object)
    """
    return counts if largest <= _FITTING else tuple(count.astype(object) for count in counts)


def arrow(values: NDArray[Any] | Sequence[Any], kind: Any = None) -> Any:
    """An Arrow array of numbers, truth values or texts; of the type `kind`, where given.

    `pa.array` does the same, but imports pandas first where that is installed, to see whether it was handed one of its
    columns: half a second of each run.

    >>> arrow(np.array([True, False])).to_pylist(), arrow(["a", None]).to_pylist()
    ([True, False], ['a', None])
    """
    import polars as pl
    import pyarrow as pa

    if isinstance(values, np.ndarray) and values.dtype.kind in "iuf":
        # Both have the same numbers in memory.
        found = pa.from_numpy_dtype(values.dtype)
        made = pa.Array.from_buffers(found, len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])
    else:
        made = pl.Series(values).to_arrow()
        kind = pa.string() if kind is None and pa.types.is_large_string(made.type) else kind
    return made if kind is None or made.type == kind else made.cast(kind)


def period_labels(series: pl.Series, every: str) -> pl.Series:
    """A date or time column as calendar periods: 2024, 2024-Q1, 2024-01, 2024-W05, 2024-01-31."""
    import polars as pl

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
