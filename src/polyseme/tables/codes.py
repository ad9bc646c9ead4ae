"""Columns to codes and back: the only place that knows how values become codes of a domain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeGuard

import numpy as np
import polars as pl
import pyarrow as pa

from polyseme.kernel.arrays import MISSING, UNSEEN, Ints, arrow, period_labels
from polyseme.kernel.errors import Problem, TableError
from polyseme.kernel.spelling import Label, spelled, spellings, written
from polyseme.schema import Bins, Domain, Missing, Periods

__all__ = [
    "CASTS",
    "Coded",
    "as_series",
    "cast",
    "cast_column",
    "code_array",
    "code_type",
    "encode",
    "label_array",
    "numbers",
    "require_labels",
    "set_array",
    "without_words",
]

_SPAN = 1 << 20
"""Between the least and the largest value, up to which whole numbers are looked up in an array (8 MB)."""
_EXACT = 1 << 53
"""Beyond this not every whole number is a double."""
_INT64 = 1 << 63
"""The first whole number that a signed 64-bit number does not hold."""
CASTS: dict[str, pl.DataType] = {
    "text": pl.String(),
    "integer": pl.Int64(),
    "number": pl.Float64(),
    "boolean": pl.Boolean(),
    "date": pl.Date(),
    "datetime": pl.Datetime("us"),
}
"""The types that a policy can declare."""
_YEAR_FIRST = r"^\s*\d{4}\D"


@dataclass(frozen=True, eq=False)
class Coded:
    """A column as codes; -1 where missing, -2 where not in the domain or not readable."""

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
    if series.dtype.is_float():
        series = series.fill_nan(None)
    return without_words(series, missing_values)


def without_words(series: pl.Series, missing_values: Sequence[str]) -> pl.Series:
    """A column with the declared words for "missing" as nulls."""
    if series.dtype != pl.String or not missing_values:
        return series
    return series.set(series.is_in(pl.Series(missing_values, dtype=pl.String).implode()), None)


def cast_column(series: pl.Series, kind: str) -> tuple[pl.Series, int]:
    """A column as the declared type, and how many values could not be read as it."""
    before = series.null_count()
    if kind == "boolean" and series.dtype == pl.String:
        lowered = series.str.to_lowercase()
        result = lowered.replace_strict(
            ["true", "false", "1", "0", "yes", "no"], [True, False] * 3, default=None, return_dtype=pl.Boolean
        )
    elif kind in ("date", "datetime") and series.dtype == pl.String:
        result = _dates(series, CASTS[kind])
    else:
        source = series.str.strip_chars() if series.dtype == pl.String and kind != "text" else series
        result = cast(source, CASTS[kind])
    return result, result.null_count() - before


def cast(series: pl.Series, dtype: pl.DataType) -> pl.Series:
    """A column in another type, with nulls for values without a counterpart there."""
    try:
        return series.cast(dtype, strict=False)
    except pl.exceptions.InvalidOperationError:
        return _nothing(series, dtype)


def _dates(texts: pl.Series, dtype: pl.DataType) -> pl.Series:
    # 01/02/2020 may be in January or in February: the policy has to say it, see `Dialect`.
    texts = texts.set(~texts.str.contains(_YEAR_FIRST).fill_null(True), None)
    try:
        return texts.str.to_date(strict=False) if dtype == pl.Date else texts.str.to_datetime(strict=False)
    except pl.exceptions.ComputeError:  # no text looks like a date
        return _nothing(texts, dtype)


def _nothing(series: pl.Series, dtype: pl.DataType) -> pl.Series:
    return pl.Series(series.name, [None] * len(series), dtype=dtype)


def encode(series: pl.Series, domain: Domain) -> Coded:
    """The codes of a column's values in a domain."""
    require_labels(series)
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


def require_labels(series: pl.Series) -> None:
    """Raise unless a column's values can be labels: texts, numbers, truth values, dates, times."""
    kind = series.dtype
    if kind.is_nested() or kind in (pl.Duration, pl.Binary, pl.Object):
        raise TableError(
            Problem(
                f"column '{series.name}'" if series.name else "",
                f"values of type {kind.base_type().__name__.lower()} cannot be in a domain",
                "store the column as text or as numbers",
            )
        )


def _encode_labels(series: pl.Series, domain: Domain) -> Ints:
    values = domain.values
    number_like = series.dtype.is_integer() or series.dtype.is_float()
    if number_like and all(_is_number(value) for value in values if value != domain.missing.label):
        return _encode_whole(series, values) if series.dtype.is_integer() else _encode_floats(series, values)
    texts = series.cast(pl.String)
    # Most columns are written as the domain is; whatever is not is compared by its spelling.
    codes = _encode_texts(texts, [written(value) for value in values])
    unseen = np.flatnonzero(codes == UNSEEN)
    if len(unseen):
        codes[unseen] = _encode_texts(spelled(series.gather(unseen)), spellings(values))
        unseen = unseen[codes[unseen] == UNSEEN]
    if len(unseen) and any(_is_number(value) for value in values):
        codes[unseen] = _encode_written(texts.gather(unseen), values)
    return codes


def _encode_texts(texts: pl.Series, labels: Sequence[str]) -> Ints:
    places = {label: code for code, label in reversed(list(enumerate(labels)))}
    codes = texts.replace_strict(
        pl.Series(places.keys(), dtype=pl.String),
        pl.Series(places.values(), dtype=pl.Int64),
        default=UNSEEN,
        return_dtype=pl.Int64,
    )
    found = np.array(codes.to_numpy(), dtype=np.int64)
    if texts.null_count():
        found[texts.is_null().to_numpy()] = MISSING
    return found


def _encode_written(texts: pl.Series, values: Sequence[Label]) -> Ints:
    """Codes of texts among a domain's numbers, where 01 and 1e0 may mean 1."""
    whole, _ = cast_column(texts.str.strip_chars().str.replace(r"\.0*$", ""), "integer")
    codes = _encode_whole(whole, values)
    rest = np.flatnonzero(whole.is_null().to_numpy())
    read, _ = cast_column(texts.gather(rest), "number")
    codes[rest] = _find(read.fill_null(np.nan).to_numpy(), *_keys(values, _distinguished, np.float64))
    return codes


def _encode_whole(series: pl.Series, values: Sequence[Label]) -> Ints:
    """Codes of whole numbers compared as integers: floats from 2^53 on are not distinct."""
    kind = np.uint64 if series.dtype == pl.UInt64 else np.int64
    least, most = int(np.iinfo(kind).min), int(np.iinfo(kind).max)
    keys, places = _keys(values, lambda value: value == value // 1 and least <= value <= most, kind)
    low, high = (int(keys.min()) - 1, int(keys.max()) + 1) if len(keys) else (0, 0)
    if kind is np.int64 and high - low < _SPAN and -_EXACT < low < high < _EXACT:
        codes = _look_up(series.cast(pl.Int64).fill_null(low).to_numpy(), keys, places, low, high)
    else:
        codes = _find(series.fill_null(0).to_numpy().astype(kind), keys, places)
    if series.null_count():
        codes[series.is_null().to_numpy()] = MISSING
    return codes


def _encode_floats(series: pl.Series, values: Sequence[Label]) -> Ints:
    if not all(_distinguished(value) for value in values if _is_number(value)):
        raise TableError(
            Problem(
                f"column '{series.name}'" if series.name else "",
                "floats cannot represent all whole numbers from 2^53 on, and the domain has such values",
                "store the column as integers or as text",
            )
        )
    codes = _find(series.cast(pl.Float64).fill_null(np.nan).to_numpy(), *_keys(values, _distinguished, np.float64))
    codes[series.is_null().to_numpy()] = MISSING
    return codes


def _distinguished(value: float) -> bool:
    """Whether no other declared number is the same float."""
    return isinstance(value, float) or abs(value) < _EXACT


def _keys(
    values: Sequence[Label], wanted: Callable[[float], bool], kind: type[np.generic]
) -> tuple[np.ndarray[Any, Any], Ints]:
    """The wanted numbers among the values, ascending, and their codes."""
    places = [code for code, value in enumerate(values) if _is_number(value) and wanted(value)]
    keys = np.array([values[code] for code in places], dtype=kind)
    order = np.argsort(keys)
    return keys[order], np.array(places, dtype=np.int64)[order]


def _find(column: np.ndarray[Any, Any], keys: np.ndarray[Any, Any], places: Ints) -> Ints:
    """The place of each element of the column among ascending keys."""
    if not len(keys):
        return np.full(len(column), UNSEEN, dtype=np.int64)
    found = np.minimum(np.searchsorted(keys, column), len(keys) - 1)
    return np.where(keys[found] == column, places[found], UNSEEN)


def _look_up(column: Ints, keys: Ints, places: Ints, low: int, high: int) -> Ints:
    """Codes in a narrow domain by one table: a place for each number, and one beyond either end."""
    table = np.full(high - low + 1, UNSEEN, dtype=np.int64)
    table[keys - low] = places
    return table[np.clip(column, low, high) - low]


def _is_number(value: Label) -> TypeGuard[int | float]:
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


def label_array(values: Sequence[Label]) -> pa.Array:
    """The labels of a domain as an Arrow array; a mixture of types becomes text."""
    kinds = {type(value) for value in values}
    if kinds == {bool}:
        return arrow(values)
    if kinds == {int} and all(-_INT64 <= value < _INT64 for value in values if _is_number(value)):
        return arrow(np.array(values, dtype=np.int64))
    if float in kinds and all(_is_number(value) and _distinguished(value) for value in values):
        return arrow(np.array(values, dtype=np.float64))
    return arrow([written(value) for value in values], pa.string())


def set_array(sets: Ints, labels: pa.Array) -> pa.Array:
    """Sets of codes (n, l) as a list column of labels."""
    return pa.ListArray.from_arrays(_offsets(*sets.shape), code_array(sets.reshape(-1), labels))


@lru_cache(maxsize=2)
def _offsets(count: int, width: int) -> pa.Array:
    """Where each of so many lists begins; the columns of a wide table share it."""
    return arrow(np.arange(0, (count + 1) * width, width, dtype=np.int32))


def code_array(codes: Ints, labels: pa.Array) -> pa.Array:
    """Codes as a column of labels; text labels are stored once."""
    places = arrow(codes)
    return pa.DictionaryArray.from_arrays(places, labels) if pa.types.is_string(labels.type) else labels.take(places)


def code_type(size: int) -> np.dtype[np.signedinteger[Any]]:
    """The smallest integer type for the codes of a domain."""
    return np.min_scalar_type(-size)


def missing_label(missing: Missing) -> tuple[str, ...]:
    """The extra value a domain gets for missing values, if any."""
    return (missing.label,) if missing.action == "category" else ()
