"""The one reader of CSV: separators, quotes and line breaks mean the same everywhere.

Trees, matrices and distributions are read whole with `read_rows`. Tables of records are too large for that: they take
their separator and their header from here, and Arrow streams the rest.
"""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from polyseme.kernel.documents import content
from polyseme.kernel.errors import PolicyError

__all__ = [
    "Row",
    "any_length",
    "first_row",
    "names_in",
    "read_rows",
    "records",
    "sniff_separator",
    "text_rows",
    "without_remarks",
    "written_rows",
]

Row: TypeAlias = tuple[int, list[str]]
"""The number of the line in which a record begins, and its cells."""

SEPARATORS = ",;\t|"
_LOOKED_AT = 20
"""Records that are looked at to find the separator: enough to tell it from a mark inside some values, and cheap."""


def records(lines: Iterable[str], separator: str = ",", skip_blanks: bool = False) -> Iterator[Row]:
    r"""The records of a text, empty ones too.

    skip_blanks  whether blanks after a separator are no part of the cell

    >>> list(records(['a;"b\n', 'c"\n', "\n", "d;e\n"], ";"))
    [(1, ['a', 'b\nc']), (3, []), (4, ['d', 'e'])]
    """
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=skip_blanks)
    start = 1
    for cells in reader:
        yield start, cells
        start = reader.line_num + 1


def read_rows(file: Path) -> list[Row]:
    """The records of a CSV file that are not empty. No message quotes the file."""
    try:
        return text_rows(content(file).decode("utf-8-sig"))
    except (OSError, UnicodeDecodeError):
        raise PolicyError(f"{file.name} cannot be read as UTF-8 text") from None
    except csv.Error:
        raise PolicyError(f"{file.name} cannot be read as CSV", "check its quotes") from None


def without_remarks(rows: Iterable[Row]) -> list[Row]:
    """The records of a file of statistics: lines that begin with `#` are remarks."""
    return [(line, cells) for line, cells in rows if not cells[0].startswith("#")]


def text_rows(text: str) -> list[Row]:
    """The records of the text of a CSV file that are not empty."""
    return [row for row in records(_lines(text), sniff_separator(text)) if any(cell.strip() for cell in row[1])]


def written_rows(rows: Iterable[Sequence[str]], separator: str) -> str:
    r"""Rows as the text of a CSV file.

    Cells that hold a separator, a quote or a line break are quoted.

    >>> written_rows([("a;b", "*")], ";")
    '"a;b";*\n'
    """
    text = io.StringIO()
    csv.writer(text, delimiter=separator, lineterminator="\n").writerows(rows)
    return text.getvalue()


def first_row(text: str, separator: str) -> list[str]:
    """The first record of a text: the header of a table."""
    return next((cells for _, cells in records(_lines(text), separator)), [])


def sniff_separator(text: str) -> str:
    r"""The separator that splits the first record into the most fields.

    One that splits all the first records alike goes before one that does not; between equals, the comma wins.

    >>> sniff_separator("sex;age;'a,b'\nM;31;x\n")
    ';'
    >>> sniff_separator("a, b;lung\nflu;lung\n")
    ';'
    """
    widths = {mark: _widths(text, mark) for mark in SEPARATORS}
    steady = [mark for mark in SEPARATORS if len(set(widths[mark])) == 1 and widths[mark][0] > 1]
    return max(steady or SEPARATORS, key=lambda mark: widths[mark][0] if widths[mark] else 0)


def _widths(text: str, separator: str) -> list[int]:
    """How many fields the first records have; empty ones do not count."""
    try:
        return [len(cells) for _, cells in islice(records(_lines(text), separator), _LOOKED_AT) if cells]
    except csv.Error:  # a field without end: it is not this separator, or the file is no CSV
        return []


def _lines(text: str) -> Iterable[str]:
    """Lines as CSV ends them: `str.splitlines` would also cut at Unicode line separators."""
    return io.StringIO(text, newline="")


def names_in(texts: Iterable[str]) -> tuple[str, ...]:
    """Names separated by commas; one that holds a comma is written in double quotes.

    >>> names_in(['a, b,"c, d"', "e"])
    ('a', 'b', 'c, d', 'e')
    """
    return tuple(name for _, names in records(texts, skip_blanks=True) for name in names if name.strip())


@contextmanager
def any_length() -> Iterator[None]:
    """Within this, a cell may have any length: a stray quote makes one of all that follows it."""
    limit = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(limit)
