"""What one pass over a column finds: enough to guess what it is, in bounded memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from polyseme.kernel.arrays import Floats, period_labels
from polyseme.tables.codes import as_series, cast_column
from polyseme.tables.distinct import Different
from polyseme.tables.io.source import Source

__all__ = ["Looked", "look"]

TRACKED = 2_000
"""Different values that are remembered of a column: enough to tell a list of codes from free text."""
_SAMPLED = 20_000
"""Numbers of a column that are kept to see where most of them lie."""
_NARROW = 1e-9
"""A range that is a smaller share than this of its numbers cannot be cut by edges of twelve digits."""
_SENTENCE = 4
"""Words from which on a text reads as a sentence; a judgment."""


@dataclass
class Looked:
    """What one pass over a column found.

    values     different values, up to a limit
    opaque     whether it holds lists, records or bytes
    numeric    whether every value is a number; `integer`, one that is read back as it was written
    dates      whether every value is a date as a hierarchy reads it
    finite     whether every number is one
    shortest, longest  characters of its texts
    sentences  rows with a text of several words
    """

    name: str
    rows: int = 0
    missing: int = 0
    values: set[Any] = field(default_factory=set)
    opaque: bool = False
    numeric: bool = True
    integer: bool = True
    dates: bool = True
    finite: bool = True
    low: float = np.inf
    high: float = -np.inf
    low_day: str = ""
    high_day: str = ""
    shortest: int = 1 << 62
    longest: int = 0
    sentences: int = 0
    numbers: Floats = field(default_factory=lambda: np.zeros(0))
    different: Different = field(default_factory=Different, repr=False)

    @property
    def many(self) -> bool:
        return len(self.values) > TRACKED

    @property
    def wide(self) -> bool:
        """Whether edges of twelve digits can cut the range."""
        largest = max(abs(self.low), abs(self.high))
        return bool(np.isfinite(self.high - self.low) and self.high - self.low > max(_NARROW * largest, 1e-300))

    @property
    def present(self) -> int:
        return self.rows - self.missing

    @property
    def text(self) -> bool:
        return not self.numeric and not self.dates and not self.opaque

    @property
    def counted(self) -> bool:
        """Whether the different values were counted, not estimated."""
        return self.different.exact

    @property
    def distinct(self) -> int:
        """How many different values there are: exact up to a million, an estimate beyond."""
        return min(self.different.count, self.present)

    @property
    def own(self) -> float:
        """Different values for each row that has one: near 1, almost all people have their own."""
        return self.distinct / max(self.present, 1)


def look(source: Source, words: Sequence[str]) -> list[Looked]:
    """All columns of a table.

    words  those that stand for "no value"
    """
    columns = [Looked(name) for name in source.schema.names]
    for batch in source.batches():
        for index, column in enumerate(columns):
            _note(column, as_series(batch.column(index), words))
    return columns


def _note(column: Looked, series: pl.Series) -> None:
    column.rows += len(series)
    column.missing += series.null_count()
    present = series.drop_nulls()
    column.opaque = series.dtype.is_nested() or series.dtype == pl.Binary
    if column.opaque or not len(present):
        return
    found = present.unique()
    if not column.many:
        column.values.update(found.head(TRACKED + 1).to_list())
    column.different.add(found)
    _note_numbers(column, present)
    _note_dates(column, present)
    if present.dtype in (pl.String, pl.Categorical, pl.Enum):
        _note_texts(column, present.cast(pl.String))


def _note_numbers(column: Looked, present: pl.Series) -> None:
    if not column.numeric or present.dtype == pl.Boolean or present.dtype.is_temporal():
        column.numeric = False
        return
    numbers, failures = cast_column(present, "number")
    column.numeric = failures == 0
    if not column.numeric:
        return
    found = numbers.to_numpy()
    column.low, column.high = min(column.low, float(found.min())), max(column.high, float(found.max()))
    column.finite = column.finite and bool(np.isfinite(found).all())
    column.numbers = _thinned(np.concatenate([column.numbers, _thinned(found)]))
    # "007" and "1.0" would come back as 7 and 1: such columns stay text.
    whole, failures = cast_column(present, "integer")
    same = present.dtype != pl.String or bool((whole.cast(pl.String) == present).all())
    column.integer = column.integer and failures == 0 and same and not present.dtype.is_float()


def _thinned(numbers: Floats) -> Floats:
    return numbers[:: -(-len(numbers) // _SAMPLED)] if len(numbers) > _SAMPLED else numbers


def _note_dates(column: Looked, present: pl.Series) -> None:
    if column.dates:
        days = period_labels(present, "day")
        column.dates = days.null_count() == 0
        low, high = str(days.min()), str(days.max())
        column.low_day, column.high_day = min(column.low_day or low, low), max(column.high_day, high)


def _note_texts(column: Looked, texts: pl.Series) -> None:
    texts = texts.str.strip_chars()
    lengths = texts.str.len_chars()
    column.shortest = min(column.shortest, int(lengths.to_numpy().min()))
    column.longest = max(column.longest, int(lengths.to_numpy().max()))
    column.sentences += int((texts.str.count_matches(r"\S\s+\S") >= _SENTENCE - 1).sum())
