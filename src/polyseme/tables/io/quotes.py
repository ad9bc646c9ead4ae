"""Stray quotes in text tables.

One quote too many makes a single cell of all that follows, up to the next quote or to the end of the file: names and
secrets of other records, in a column that may be published as it is.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Sequence
from itertools import chain

import pyarrow as pa
import pyarrow.compute

from polyseme.arrays import arrow
from polyseme.errors import Problem
from polyseme.files.delimited import any_length, records

__all__ = ["breaks_line", "first_problem", "holds_records", "swallows_records"]

_LINE_BREAK = re.compile("\r\n|\r|\n")
_HINT = "fix the quotes; if the text is correct as it is, use another separator, or Parquet"


def breaks_line(text: str | bytes) -> bool:
    return ("\n" in text or "\r" in text) if isinstance(text, str) else (b"\n" in text or b"\r" in text)


def holds_records(row: Sequence[str], width: int, separator: str) -> bool:
    """Whether a cell of a row looks as if it held other records of a table with so many columns."""
    return any(_holds_records(cell, place, width, separator) for place, cell in enumerate(row))


def _holds_records(cell: str, place: int, width: int, separator: str) -> bool:
    r"""Whether a cell looks like the end of one record and the beginning of another, or like whole ones between.

    A quote that opens in one column and is closed in the same column of another record leaves the right number of
    fields: the first line then goes on to the last column, and the last line comes from the first one.

    >>> _holds_records("tall\nCarol,hiv,6", 2, 3, ","), _holds_records("tall, they say\nand kind", 2, 3, ",")
    (True, False)
    """
    if width == 1 or not breaks_line(cell):
        return False
    first, *between, last = (line.count(separator) + 1 for line in _LINE_BREAK.split(cell))
    return width in between or (first >= width - place and last == place + 1)


def swallows_records(batch: pa.RecordBatch, names: Sequence[str], separator: str) -> bool:
    """The same for text columns of a table with these names; only those with a line break somewhere cost time."""
    for name, column in zip(batch.schema.names, batch.columns):
        text = column.buffers()[2]
        if text is None or not breaks_line(text.to_pybytes()):
            continue
        place = names.index(name)
        enough = pa.compute.greater_equal(pa.compute.count_substring(column, separator), arrow([len(names) - 1])[0])
        cells = column.filter(enough).to_pylist()
        if any(_holds_records(cell, place, len(names), separator) for cell in cells):
            return True
    return False


def first_problem(lines: Iterable[str], width: int, separator: str) -> Problem | None:
    """The first record with a quote too many, or with too few or too many fields; the place is its first line."""
    end = secrets.token_hex(16)
    with any_length():
        for start, row in records(chain(lines, ["\n", end]), separator):
            if row == [end]:
                break
            if row and row[-1].endswith(f"\n{end}"):
                return Problem(f"line {start}", "a quotation mark is never closed", _HINT)
            if holds_records(row, width, separator):
                return Problem(f"line {start}", "a quoted cell seems to contain other records", _HINT)
            if len(row) not in (0, width):
                what = f"expected {width} fields, found {len(row)}"
                return Problem(f"line {start}", what, "is the separator right?")
    return None
