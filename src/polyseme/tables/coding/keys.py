"""Record keys as texts that are the same wherever the table is stored.

A key that changes between two releases gives a person new decoys, and what both sets have in common is the truth. One
file holds 5, another 5.0 (a column with a gap becomes floats), a third "5 " or 005: all of them are the same person
(`polyseme.spelling.spelled_key`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
import pyarrow as pa

from polyseme.arrays import Bools, Ints
from polyseme.errors import Problem, TableError, numbered
from polyseme.randomness import SystemStream
from polyseme.spelling import spelled_key
from polyseme.tables.coding.codes import as_series, without_words

__all__ = ["KeyReader", "key_texts", "numbered_people", "record_keys"]

_EXACT = 1 << 53
"""Beyond this not every whole number is a double: two keys could become one."""
_KINDS = (pl.String, pl.Boolean, pl.Date, pl.Datetime, pl.Null)


def key_texts(series: pl.Series) -> pl.Series:
    """The key of each record; none where it is missing, or a float that does not tell persons apart.

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
    """Record keys as numbers that say nothing but whether two are the same, for those who count people.

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
