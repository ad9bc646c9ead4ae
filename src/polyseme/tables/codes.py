"""Columns to codes and codes to columns: the only place that knows how values of a table become places in a domain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from polyseme.distances.structure import Floats, Ints
from polyseme.schema import Bins, Domain, Label, Missing, Periods

__all__ = [
    "Coded",
    "as_series",
    "cast_column",
    "code_array",
    "code_type",
    "encode",
    "label_array",
    "numbers",
    "period_labels",
    "set_array",
]

MISSING = -1
UNSEEN = -2
_WHOLE = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32)
_SPAN, _EXACT = 1 << 20, 1 << 53
_CASTS: dict[str, type[pl.DataType] | pl.DataType] = {
    "text": pl.String,
    "integer": pl.Int64,
    "number": pl.Float64,
    "boolean": pl.Boolean,
    "date": pl.Date,
    "datetime": pl.Datetime("us"),
}
_PERIOD_FORMATS = {"year": "%Y", "month": "%Y-%m", "week": "%G-W%V", "day": "%Y-%m-%d"}


@dataclass(frozen=True, eq=False)
class Coded:
    """A column as codes; -1 where the value is missing, -2 where it is not in the domain or not readable."""

    codes: Ints

    @property
    def missing(self) -> int:
        return int(np.count_nonzero(self.codes == MISSING))

    @property
    def unseen(self) -> int:
        return int(np.count_nonzero(self.codes == UNSEEN))


def as_series(column: pa.Array, missing_values: Sequence[str] = ()) -> pl.Series:
    """An Arrow column as a polars series, with the declared words for "missing" as nulls."""
    series = pl.from_arrow(column)
    if not isinstance(series, pl.Series):
        raise TypeError("one column expected")
    if series.dtype in (pl.Categorical, pl.Enum):
        series = series.cast(pl.String)
    if series.dtype == pl.String and missing_values:
        words = pl.Series(missing_values, dtype=pl.String)
        series = series.set(series.is_in(words.implode()), None)
    if series.dtype.is_float():
        series = series.fill_nan(None)
    return series


def cast_column(series: pl.Series, kind: str) -> tuple[pl.Series, int]:
    """A column as the declared type, and how many values could not be read as it."""
    before = series.null_count()
    if kind == "boolean" and series.dtype == pl.String:
        lowered = series.str.to_lowercase()
        result = lowered.replace_strict(
            ["true", "false", "1", "0", "yes", "no"], [True, False] * 3, default=None, return_dtype=pl.Boolean
        )
    elif kind in ("date", "datetime") and series.dtype == pl.String:
        result = series.str.to_date(strict=False) if kind == "date" else series.str.to_datetime(strict=False)
    else:
        source = series.str.strip_chars() if series.dtype == pl.String and kind != "text" else series
        result = source.cast(_CASTS[kind], strict=False)
    return result, result.null_count() - before


def encode(series: pl.Series, domain: Domain) -> Coded:
    """The codes of a column's values in a domain."""
    if isinstance(domain.cut, Bins):
        codes = _encode_bins(series, domain.cut)
    elif isinstance(domain.cut, Periods):
        codes = _encode_labels(period_labels(series, domain.cut.every), domain)
        codes[series.is_not_null().to_numpy() & (codes == MISSING)] = UNSEEN
    else:
        codes = _encode_labels(series, domain)
    if domain.missing.action == "category":
        codes[codes == MISSING] = domain.codes[domain.missing.label]
    return Coded(codes)


def _encode_labels(series: pl.Series, domain: Domain) -> Ints:
    values = list(domain.values)
    if series.dtype == pl.String:
        keys = pl.Series([_as_text(value) for value in values], dtype=pl.String)
    elif series.dtype.is_numeric() and all(_is_number(value) for value in values if value != domain.missing.label):
        return _encode_numbers(series, values)
    else:
        series = series.cast(pl.String)
        keys = pl.Series([_as_text(value) for value in values], dtype=pl.String)
    codes = series.replace_strict(
        keys, pl.Series(range(len(values)), dtype=pl.Int64), default=UNSEEN, return_dtype=pl.Int64
    ).to_numpy()
    codes = np.array(codes, dtype=np.int64)
    codes[series.is_null().to_numpy()] = MISSING
    unseen = np.flatnonzero(codes == UNSEEN)
    if len(unseen) and series.dtype == pl.String and all(_is_number(value) for value in values):
        # One text file writes 1.0, another 1: among numbers what counts is the number.
        read, _ = cast_column(series.gather(unseen), "number")
        codes[unseen] = np.where(read.is_null().to_numpy(), UNSEEN, _encode_labels(read, domain))
    return codes


def _encode_numbers(series: pl.Series, values: Sequence[Label]) -> Ints:
    """Codes of numbers in a domain of numbers; labels that are not numbers match nothing."""
    places = np.array([code for code, value in enumerate(values) if _is_number(value)], dtype=np.int64)
    keys = np.array([float(values[code]) for code in places])
    if series.dtype in _WHOLE and len(keys) and np.ptp(keys) < _SPAN and np.abs(keys).max() < _EXACT:
        return _look_up(series, keys, places)
    order = np.argsort(keys)
    column = series.cast(pl.Float64).fill_null(np.nan).to_numpy()
    found = np.minimum(np.searchsorted(keys[order], column), len(keys) - 1)
    codes = np.where(keys[order][found] == column, places[order][found], UNSEEN)
    codes[series.is_null().to_numpy()] = MISSING
    return codes


def _look_up(series: pl.Series, keys: Floats, places: Ints) -> Ints:
    """Codes of whole numbers in a domain that spans few: one table with a place for each, and one beyond either end."""
    low, high = int(np.floor(keys.min())) - 1, int(np.ceil(keys.max())) + 1
    table = np.full(high - low + 1, UNSEEN, dtype=np.int64)
    whole = keys == np.floor(keys)
    table[keys[whole].astype(np.int64) - low] = places[whole]
    codes: Ints = table[np.clip(series.cast(pl.Int64).fill_null(low).to_numpy(), low, high) - low]
    if series.null_count():
        codes[series.is_null().to_numpy()] = MISSING
    return codes


def _as_text(value: Label) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _is_number(value: Label) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def numbers(series: pl.Series) -> tuple[np.ndarray[tuple[int], np.dtype[np.float64]], Ints]:
    """A column as floats, and where it is missing (-1) or not a number (-2); 0 elsewhere."""
    read, _ = cast_column(series, "number")
    marks = np.zeros(len(series), dtype=np.int64)
    marks[read.is_null().to_numpy()] = UNSEEN
    marks[series.is_null().to_numpy()] = MISSING
    return read.fill_null(0.0).to_numpy().astype(np.float64), marks


def _encode_bins(series: pl.Series, bins: Bins) -> Ints:
    values, marks = numbers(series)
    edges = np.asarray(bins.edges)
    codes = np.searchsorted(edges, values, side="right").astype(np.int64) - 1
    codes[values == edges[-1]] = len(edges) - 2
    codes[(codes < 0) | (codes > len(edges) - 2)] = UNSEEN
    return np.where(marks < 0, marks, codes)


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


def label_array(values: Sequence[Label]) -> pa.Array:
    """The labels of a domain as an Arrow array; a mixture of types becomes text."""
    kinds = {type(value) for value in values}
    if kinds <= {int, float} and kinds:
        return pa.array(values, type=pa.float64() if float in kinds else pa.int64())
    if kinds == {bool}:
        return pa.array(values)
    return pa.array([_as_text(value) for value in values], type=pa.string())


def set_array(sets: Ints, labels: pa.Array) -> pa.Array:
    """Sets of codes (n, l) as a list column of labels."""
    count, width = sets.shape
    offsets = pa.array(np.arange(0, (count + 1) * width, width, dtype=np.int32))
    return pa.ListArray.from_arrays(offsets, code_array(sets.reshape(-1), labels))


def code_array(codes: Ints, labels: pa.Array) -> pa.Array:
    """Codes as a column of labels; text labels are stored once."""
    places = pa.array(codes)
    return pa.DictionaryArray.from_arrays(places, labels) if pa.types.is_string(labels.type) else labels.take(places)


def code_type(size: int) -> np.dtype[np.signedinteger[Any]]:
    """The smallest integer type for the codes of a domain."""
    return np.min_scalar_type(-size)


def missing_label(missing: Missing) -> tuple[str, ...]:
    """The extra value a domain gets for missing values, if any."""
    return (missing.label,) if missing.action == "category" else ()
