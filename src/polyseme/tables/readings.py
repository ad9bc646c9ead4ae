"""Columns of the original as a release shows them: keys, weights, types and strangers.

A policy may have texts read as numbers, dates, truth values or missing values, and a text file shows every type as
text. So the same value can look different in the two tables.

*Record keys* become texts that are the same wherever the table is stored.

A key that changes between two releases gives a person new decoys, and what both sets have in common is the truth. One
file holds 5, another 5.0 (a column with a gap becomes floats), a third "5 " or 005: all of them are the same person
(`polyseme.kernel.spelling.spelled_key`).

*Survey weights* are numbers: how many people of a population each record stands for. *Strangers* are values without a
place in a domain: no numbers, infinite, no dates, or merely outside; sightings say where they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
import pyarrow as pa

from polyseme.kernel.arrays import UNSEEN, Bools, Floats, Ints, period_labels
from polyseme.kernel.errors import Problem, TableError, numbered
from polyseme.kernel.randomness import SystemStream
from polyseme.kernel.sightings import Sightings
from polyseme.kernel.spelling import spelled, spelled_key
from polyseme.schema import Bins, Domain, Periods
from polyseme.tables.codes import CASTS, Coded, as_series, cast, cast_column, without_words
from polyseme.tables.io.dialects import dialect_hint

__all__ = [
    "WIDEN",
    "KeyReader",
    "alike",
    "key_texts",
    "numbered_people",
    "plain_text",
    "published_types",
    "read_as",
    "read_weights",
    "record_keys",
    "sighted",
    "strangers",
]

_EXACT = 1 << 53
"""Beyond this not every whole number is a double: two keys could become one."""
_KINDS = (pl.String, pl.Boolean, pl.Date, pl.Datetime, pl.Null)


def key_texts(series: pl.Series) -> pl.Series:
    """The key of each record.

    Null where it is missing, or a float that does not distinguish persons.

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


def record_keys(column: pa.Array, name: str, missing_values: Sequence[str]) -> pl.Series:
    """The person of each record as a text; none where it is missing."""
    return without_words(key_texts(as_series(column, missing_values).alias(name)), missing_values)


class KeyReader:
    """Record keys as numbers that only say whether two are the same, to count people.

    A number is a fingerprint of 64 bits under a seed of its own: two people have the same one with a probability of
    n^2 / 2^65, and then count as one.
    """

    def __init__(self, name: str, missing_values: Sequence[str]) -> None:
        self.name, self._words = name, missing_values
        self._seed = int(SystemStream().words(1)[0])
        self._missing = 0

    def read(self, column: pa.Array, kept: Bools | None = None, counts: Ints | None = None) -> Ints:
        """The fingerprint of each row; rows without a key are counted where they are kept."""
        keys = record_keys(column, self.name, self._words)
        missing = keys.is_null().to_numpy() & (True if kept is None else kept)
        self._missing += int(missing.sum() if counts is None else counts[missing].sum())
        return keys.hash(self._seed).reinterpret(signed=True).to_numpy()

    def refuse(self) -> None:
        """Raise where rows have no key: how many people they are is not known."""
        if self._missing:
            what = numbered(self._missing, "records have no record key, so that their people cannot be counted")
            hint = "give each record the key of its person, or remove record-key to count records"
            raise TableError(Problem(f"column '{self.name}'", what, hint))


def numbered_people(prints: Ints) -> Ints:
    """People numbered from 0, from a fingerprint for each row."""
    return np.unique(prints, return_inverse=True)[1].reshape(-1).astype(np.int64)


_MISSING = ("weights are missing", "give a record without a weight 0, or remove it")
_NEGATIVE = ("weights are negative or infinite", "a weight says how many people a record stands for")


def read_weights(column: pl.Series) -> tuple[Floats, Mapping[tuple[str, str], int]]:
    """The weights of a column, 0 where unusable, and how many have which flaw, with a hint.

    >>> read_weights(pl.Series(["1.5", None, "-2", "many"]))[0]
    array([1.5, 0. , 0. , 0. ])
    """
    column = column.cast(pl.Int64) if column.dtype == pl.Boolean else column
    numbers, unread = cast_column(column, "number")
    hint = dialect_hint(column.filter(numbers.is_null())) or "the weight column holds numbers only"
    weights = numbers.fill_null(np.nan).to_numpy().astype(np.float64)
    usable = np.isfinite(weights) & (weights >= 0.0)
    missing = column.null_count() + int(np.isnan(numbers.drop_nulls().to_numpy()).sum())
    wrong = int((~usable).sum()) - missing - unread
    flaws = {("weights cannot be read as a number", hint): unread, _MISSING: missing, _NEGATIVE: wrong}
    return np.where(usable, weights, 0.0), {flaw: count for flaw, count in flaws.items() if count}


def published_types(schema: pa.Schema) -> dict[str, pl.DataType]:
    """The type that each column of a release has once it is read."""
    return {field.name: as_series(pa.nulls(0, field.type)).dtype for field in schema}


def read_as(series: pl.Series, dtype: pl.DataType, missing_values: Sequence[str] = ()) -> tuple[pl.Series, int]:
    """A column in the type of a released one, and how many values are not readable.

    >>> read_as(pl.Series(["30", " 31.5", "?"]), pl.Float64(), ["?"])[0].to_list()
    [30.0, 31.5, None]
    """
    series = without_words(series, missing_values)
    kind = next((kind for kind, declared in CASTS.items() if declared.base_type() == dtype.base_type()), None)
    read = cast(cast_column(series, kind)[0] if kind else series, dtype)
    unreadable = read.null_count() - series.null_count()
    return read.fill_nan(None) if read.dtype.is_float() else read, unreadable


def alike(original: pl.Series, shown: pl.Series, missing_values: Sequence[str] = ()) -> tuple[pl.Series, pl.Series]:
    """Columns of the original and its release in one type, so that equal values compare equal.

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
    """A column as text in which whatever is the same is written alike.

    Words for "missing" are nulls.

    >>> plain_text(pl.Series(["30.0", "7.50", "007", "True", "NA"]), ["NA"]).to_list()
    ['30', '7.5', '007', 'true', None]
    >>> plain_text(pl.Series([30.0, 7.5])).to_list(), plain_text(pl.Series([True])).to_list()
    (['30', '7.5'], ['true'])
    """
    return without_words(spelled(without_words(series, missing_values)), missing_values)


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


WIDEN = "widen the domain, or correct the table"
_NAN = "nan in a column of numbers counts as missing: add 'nan', as it is written there, to table: missing-values"
_NUMBERS = "correct the table; words for missing values are listed under table: missing-values"
_DATES = "write dates as 2024-03-31, and leave those out that no calendar has"


def strangers(series: pl.Series, coded: Coded, domain: Domain) -> dict[tuple[str, str], Ints]:
    """Values outside the domain by reason: places, what they are and what would help."""
    if not coded.unseen:
        return {}
    places = np.flatnonzero(coded.codes == UNSEEN)
    odd = series.gather(places)
    outside = f"values fall outside the declared range of {domain.size:,} values"
    if isinstance(domain.cut, Bins):
        found = _no_numbers(odd)
    elif isinstance(domain.cut, Periods):
        found = {("values are not a possible date", _DATES): period_labels(odd, domain.cut.every).is_null().to_numpy()}
    else:
        outside, found = f"values are not in the declared domain of {domain.size:,} values", {}
    found[outside, WIDEN] = ~np.any([np.zeros(len(odd), dtype=np.bool_), *found.values()], axis=0)
    return {reason: places[which] for reason, which in found.items() if which.any()}


def _no_numbers(odd: pl.Series) -> dict[tuple[str, str], Bools]:
    read = cast_column(odd, "number")[0]
    known, absent = read.fill_null(0.0).to_numpy(), read.is_null().to_numpy()
    return {
        ("values are not a number", _NUMBERS): absent,
        ("values are written as nan, which is not a number", _NAN): np.isnan(known),
        ("values are infinite", "correct the table, or open the ends of the bins with -.inf and .inf"): np.isinf(known),
    }
