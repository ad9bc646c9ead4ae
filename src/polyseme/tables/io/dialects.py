"""Numbers and dates as people of some countries write them: 1,5 and 31.01.2024.

They are read as what they mean in the columns that hold numbers or dates, before anything else sees the table, so bins,
periods, hierarchies and types need to know one way of writing only. All other columns stay text as it stands.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import polars as pl
import pyarrow as pa

from polyseme.kernel.errors import TableError
from polyseme.tables.io.source import Source, Wrapped

__all__ = ["DECIMALS", "WORDS_FOR_MISSING", "Dialect", "Respelled", "dialect_hint", "respelled"]

DECIMALS = ("point", "comma")
"""What can stand before the fraction of a number."""
WORDS_FOR_MISSING = ("?", "NA", "N/A", "NULL", "null", "NaN", "nan", "-", "unknown")
"""Words that stand for "no value" in many tables."""
_COMMA_NUMBER = r"^\s*[+-]?(\d+(,\d*)?|,\d+)([eE][+-]?\d+)?\s*$"
_NUMBER_OF_EITHER = r"^\s*[+-]?[.,]?\d[\d.,]*([eE][+-]?\d+)?\s*$"
_WITH_COMMA = r"^\s*[+-]?\d*,\d+\s*$"
_DAY_OR_MONTH_FIRST = r"^\s*\d{1,2}[./-]\d{1,2}[./-](\d{4}|\d{2})(\s.*)?$"
_NO_POINT = "\N{MIDDLE DOT}"
"""What a point becomes where commas are decimal: values stay apart, and none is a number by mistake."""
_PART = re.compile("dd|mm|yyyy")
_PARTS = {"dd": ("%d", r"\d{1,2}"), "mm": ("%m", r"\d{1,2}"), "yyyy": ("%Y", r"\d{4}")}


@dataclass(frozen=True)
class Dialect:
    """How numbers and dates are written in a table.

    decimal  point or comma
    dates    the order of day, month and year and what separates them, such as dd.mm.yyyy; None is ISO 8601 only
    """

    decimal: str = "point"
    dates: str | None = None

    def __post_init__(self) -> None:
        if self.decimal not in DECIMALS:
            raise TableError(f"a decimal mark '{self.decimal}' is not known", f"one of: {', '.join(DECIMALS)}")
        if self.dates is not None:
            parts, rest = _PART.findall(self.dates), _PART.sub("", self.dates)
            if sorted(parts) != sorted(_PARTS) or not re.fullmatch("[./-]{2}", rest):
                hint = "dd, mm and yyyy in their order, with . / or - between them: dd.mm.yyyy, mm/dd/yyyy"
                raise TableError(f"'{self.dates}' does not say how dates are written", hint)

    def __bool__(self) -> bool:
        return self.decimal != "point" or self.dates is not None

    @cached_property
    def _date(self) -> tuple[str, str]:
        """The format of a date, and the pattern of a cell: a date, perhaps with a time after it."""
        form, pattern = re.escape(self.dates or ""), re.escape(self.dates or "")
        for part, (code, digits) in _PARTS.items():
            form, pattern = form.replace(part, code), pattern.replace(part, digits)
        return form.replace("\\", ""), rf"^\s*({pattern})(\s+\d.*)?$"

    def plain_numbers(self, texts: pl.Series, words: Collection[str] = ()) -> pl.Series:
        """Numbers with a point.

        One that has a point already is none of this dialect, and must not be read as one.

        >>> Dialect("comma").plain_numbers(pl.Series(["1,5", "-2", "1.5", "n.a."])).to_list()
        ['1.5', '-2', '1·5', 'n.a.']
        """
        numbers = texts.str.contains(_NUMBER_OF_EITHER) & ~texts.is_in(pl.Series(words, dtype=pl.String).implode())
        plain = texts.str.replace_all(".", _NO_POINT, literal=True).str.replace_all(",", ".", literal=True)
        return plain.zip_with(numbers.fill_null(False), texts)

    def plain_dates(self, texts: pl.Series, words: Collection[str] = ()) -> pl.Series:
        """Dates in ISO 8601; whatever is no date of this dialect stays.

        >>> Dialect(dates="dd.mm.yyyy").plain_dates(pl.Series(["1.2.2024", "31.01.2024 12:30", "31.02.2024"])).to_list()
        ['2024-02-01', '2024-01-31 12:30', '31.02.2024']
        """
        form, pattern = self._date
        days = texts.str.extract(pattern, 1).str.to_date(form, strict=False).dt.strftime("%Y-%m-%d")
        known = days.is_not_null() & ~texts.is_in(pl.Series(words, dtype=pl.String).implode())
        return (days + texts.str.extract(pattern, 2).fill_null("")).zip_with(known.fill_null(False), texts)

    def are_numbers(self, texts: pl.Series) -> bool:
        """Whether all of the texts are numbers of this dialect."""
        return self.decimal == "comma" and bool(texts.str.contains(_COMMA_NUMBER).all())

    def are_dates(self, texts: pl.Series) -> bool:
        """Whether all of the texts are dates of this dialect."""
        if self.dates is None:
            return False
        form, pattern = self._date
        return not texts.str.extract(pattern, 1).str.to_date(form, strict=False).null_count()


def dialect_hint(texts: pl.Series, by_policy: bool = True) -> str:
    """What to try when texts cannot be read as numbers or dates.

    Nothing where they do not look like a dialect.

    >>> dialect_hint(pl.Series(["1,5"]), by_policy=False)
    'if the commas are decimal ones: --decimal comma'
    """
    if texts.dtype != pl.String:
        return ""
    if texts.str.contains(_WITH_COMMA).any():
        option = "table: {decimal: comma} in the policy" if by_policy else "--decimal comma"
        return f"if the commas are decimal ones: {option}"
    if texts.str.contains(_DAY_OR_MONTH_FIRST).any():
        option = "table: {dates: dd.mm.yyyy} in the policy" if by_policy else "--dates dd.mm.yyyy"
        return f"if they are dates, and exist, say how they are written, as in {option}"
    return ""


class Respelled(Wrapped):
    """A table with plain numbers and dates in the columns that hold such.

    Only text can be written in a dialect.
    """

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
