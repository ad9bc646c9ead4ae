"""A table whose numbers and dates are written as its dialect has them, read in the one way that everybody knows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import polars as pl
import pyarrow as pa

from polyseme.tables.io.dialects import WORDS_FOR_MISSING, Dialect
from polyseme.tables.io.source import Source, Wrapped

__all__ = ["Respelled", "respelled"]


class Respelled(Wrapped):
    """A table with plain numbers and dates in the columns that hold such; only text can be written in a dialect."""

    def __init__(
        self, source: Source, dialect: Dialect, numbers: Iterable[str], dates: Iterable[str], words: Collection[str]
    ) -> None:
        super().__init__(source)
        self.dialect, self._words = dialect, tuple(words)
        texts = set(_text_columns(source))
        self.numbers = frozenset(numbers) & texts if dialect.decimal != "point" else frozenset()
        self.dates = frozenset(dates) & texts if dialect.dates is not None else frozenset()

    def without(self, columns: Collection[str]) -> Respelled:
        """The same table with these columns as they stand."""
        kept = (self.numbers.difference(columns), self.dates.difference(columns))
        return Respelled(self.inner, self.dialect, *kept, self._words)

    def _made(self, batch: pa.RecordBatch, columns: Sequence[str]) -> pa.RecordBatch:
        read = [self._column(name, column) for name, column in zip(batch.schema.names, batch.columns)]
        return pa.RecordBatch.from_arrays(read, batch.schema.names)

    def _column(self, name: str, column: pa.Array) -> pa.Array:
        if name not in self.numbers | self.dates:
            return column
        return self._plain(name, pl.Series(pl.from_arrow(column))).to_arrow().cast(column.type)

    def _plain(self, name: str, texts: pl.Series) -> pl.Series:
        plain = self.dialect.plain_numbers if name in self.numbers else self.dialect.plain_dates
        return plain(texts, self._words)

    def changes(self, name: str, texts: pl.Series) -> bool:
        """Whether texts of a column with numbers or dates are in the dialect, and so would be read otherwise."""
        known = self.dialect.are_numbers if name in self.numbers else self.dialect.are_dates
        inside = _values(texts)
        return known(inside) and bool((self._plain(name, inside) != inside).any())


def respelled(source: Source, dialect: Dialect) -> Source:
    """A table of which nothing else is known: a column holds numbers, or dates, if each of its values is one."""
    if not dialect:
        return source
    numbers = dict.fromkeys(_text_columns(source), dialect.decimal != "point")
    dates = dict.fromkeys(numbers, dialect.dates is not None)
    for batch, _ in source.counted(list(numbers)):
        for name in batch.schema.names:
            texts = _values(pl.Series(pl.from_arrow(batch.column(name))))
            numbers[name] = numbers[name] and dialect.are_numbers(texts)
            dates[name] = dates[name] and dialect.are_dates(texts)
    of_numbers, of_dates = ([name for name, holds in kind.items() if holds] for kind in (numbers, dates))
    return Respelled(source, dialect, of_numbers, of_dates, WORDS_FOR_MISSING)


def _values(texts: pl.Series) -> pl.Series:
    """What stands in a column, without what many tables write where there is nothing."""
    texts = texts.drop_nulls()
    stripped = texts.str.strip_chars()
    return texts.filter(~stripped.is_in(pl.Series(["", *WORDS_FOR_MISSING]).implode()))


def _text_columns(source: Source) -> list[str]:
    return [
        field.name for field in source.schema if pa.types.is_string(field.type) or pa.types.is_large_string(field.type)
    ]
