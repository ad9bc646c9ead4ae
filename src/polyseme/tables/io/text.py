"""Text tables, also compressed, with a check for stray quotes.

Text files have no types: a CSV column is read as text and stays exactly as it stands (leading zeros too), unless the
policy declares its type.

Compressed files are known by their first bytes, read as streams and never unpacked onto the disk.

One quote too many makes a single cell of all that follows, up to the next quote or to the end of the file: names and
secrets of other records, in a column that may be published as it is.
"""

from __future__ import annotations

import csv
import io
import os
import re
import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import BinaryIO, TextIO, cast

import pyarrow as pa
import pyarrow.compute
import pyarrow.csv

from polyseme.kernel.arrays import arrow
from polyseme.kernel.delimited import any_length, first_row, records, sniff_separator
from polyseme.kernel.errors import Problem, TableError
from polyseme.tables.io.locations import Place, first_bytes, open_file, size_of
from polyseme.tables.io.source import Part, Source
from polyseme.tables.io.workbooks import unguarded, unguarded_text

__all__ = [
    "READABLE",
    "CsvSource",
    "ReleasedCsvSource",
    "breaks_line",
    "compression_of",
    "first_problem",
    "holds_records",
    "is_damaged",
    "last_bytes",
    "likely_encoding",
    "open_bytes",
    "open_text",
    "swallows_records",
]

_FIRST_BYTES = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bz2"}
_CHUNK = 1 << 20


def compression_of(path: Place) -> str | None:
    """What a file is compressed with, whatever its name says; None where it is not."""
    first = first_bytes(path, 4)
    return next((name for mark, name in _FIRST_BYTES.items() if first.startswith(mark)), None)


def open_bytes(path: Place, compression: str | None) -> BinaryIO:
    """The content of a file, as a stream."""
    file = open_file(path)
    return cast("BinaryIO", file if compression is None else pa.CompressedInputStream(file, compression))


def open_text(path: Place, compression: str | None, encoding: str, errors: str = "strict") -> TextIO:
    """The content of a file as text; line ends stay as they are."""
    return io.TextIOWrapper(open_bytes(path, compression), encoding, errors, newline="")


def last_bytes(path: Place, compression: str | None, count: int) -> bytes:
    """The end of the content of a file; one that is compressed is read as a whole for it."""
    with open_bytes(path, compression) as file:
        if compression is None:
            file.seek(-min(count, size_of(path)), os.SEEK_END)
            return file.read()
        end = b""
        while chunk := file.read(_CHUNK):
            end = (end + chunk)[-count:]
    return end


def is_damaged(path: Place, compression: str | None) -> bool:
    """Whether a compressed file ends early, or does not match its checksum."""
    if compression is None:
        return False
    try:
        with open_bytes(path, compression) as file:
            while file.read(_CHUNK):
                pass
    except (OSError, pa.ArrowException):
        return True
    return False


def likely_encoding(path: Place, compression: str | None) -> str | None:
    """The most common encoding in which a text that is not UTF-8 can be read as a whole."""
    with open_bytes(path, compression) as file:
        marked = file.read(2) in (b"\xff\xfe", b"\xfe\xff")
    encoding = "utf-16" if marked else "cp1252"
    try:
        with open_text(path, compression, encoding) as text:
            while text.read(_CHUNK):
                pass
    except UnicodeError:
        return None
    return encoding


_LINE_BREAK = re.compile("\r\n|\r|\n")
_HINT = "fix the quotes; if the text is correct as it is, use another separator, or Parquet"


def breaks_line(text: str | bytes) -> bool:
    return ("\n" in text or "\r" in text) if isinstance(text, str) else (b"\n" in text or b"\r" in text)


def holds_records(row: Sequence[str], width: int, separator: str) -> bool:
    """Whether a cell of a row looks as if it held other records of a table with so many columns."""
    return any(_holds_records(cell, place, width, separator) for place, cell in enumerate(row))


def _holds_records(cell: str, place: int, width: int, separator: str) -> bool:
    r"""Whether a cell looks like parts of two records, or contains whole ones.

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
    """The same for text columns of a table with these names.

    Only those with a line break somewhere cost time.
    """
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
    """The first record with a quote too many, or with too few or too many fields.

    The place is its first line.
    """
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


READABLE = "text (CSV, TSV; also as .gz, .zst or .bz2), Parquet, Arrow, Excel, Stata, SPSS and SAS are read"

_SNIFF_BYTES = 1 << 16
"""How much of a text table is looked at to find its separator and header."""


class CsvSource(Source):
    """A text table, compressed or not; every column is text, an unquoted empty field is missing.

    well_formed  we wrote it ourselves: a cell that looks like other records is nevertheless one cell
    by_policy    a policy says how it is written
    """

    typed = False

    def __init__(
        self,
        path: Place,
        separator: str | None = None,
        encoding: str = "utf-8",
        well_formed: bool = False,
        by_policy: bool = False,
    ) -> None:
        self.path = path
        self.name = path.name
        self.encoding = encoding
        self.well_formed = well_formed
        self.by_policy = by_policy
        self.compression = compression_of(path)
        head = self._head()
        self.separator = separator or sniff_separator(head)
        header = first_row(head, self.separator)
        if not header:
            raise TableError(f"{path}: the file is empty", "the first line must hold the column names")
        self._schema = pa.schema([(name, pa.string()) for name in header])
        if not well_formed and holds_records(header, len(header), self.separator):
            raise self._unreadable()
        if breaks_line(header[-1]) and head.endswith(header[-1]):
            self._refuse_open_quote()
        self.check()

    def _head(self) -> str:
        try:
            with open_text(self.path, self.compression, self.encoding) as file:
                head = file.read(_SNIFF_BYTES).lstrip("\ufeff").lstrip("\r\n")
        except (pa.ArrowException, UnicodeError, OSError) as error:
            raise self._explain(error) from None
        if "\0" in head:
            raise TableError(f"{self.path}: not a text table: it has bytes that no text has", READABLE)
        return head

    def _bad_encoding(self, error: Exception) -> TableError:
        at = f" (first bad byte at offset {error.start:,})" if isinstance(error, UnicodeDecodeError) else ""
        likely = likely_encoding(self.path, self.compression)
        given = likely or "cp932"
        option = f"table: {{encoding: {given}}} in the policy" if self.by_policy else f"--encoding {given}"
        hint = f"it may well be {likely}: {option}" if likely else f"name the encoding, as in {option}"
        return TableError(f"{self.path}: the text is not valid {self.encoding}{at}", hint)

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    def parts(self) -> list[Part]:
        return [Part(str(self.path))]

    def _read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        # The last column tells whether the file ends inside quotes, whatever is read of it.
        wanted = list(dict.fromkeys([*columns, self._schema.names[-1]])) if columns else []
        try:
            reader = pa.csv.open_csv(
                open_bytes(self.path, self.compression),
                read_options=pa.csv.ReadOptions(encoding=self.encoding, use_threads=False, block_size=1 << 22),
                parse_options=pa.csv.ParseOptions(delimiter=self.separator, newlines_in_values=True),
                convert_options=pa.csv.ConvertOptions(
                    column_types=self._schema,
                    include_columns=wanted,
                    null_values=[""],
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                ),
            )
            last = None
            for batch in reader:
                if not self.well_formed and swallows_records(batch, self._schema.names, self.separator):
                    raise self._unreadable()
                last = batch if batch.num_rows else last
                yield batch.select(list(columns)) if columns else batch
            if last is not None and self._may_end_inside_quotes(last):
                self._refuse_open_quote()
        except (pa.ArrowException, UnicodeError, OSError, KeyError) as error:
            raise self._explain(error) from None

    def _may_end_inside_quotes(self, last: pa.RecordBatch) -> bool:
        """Whether the last cell of the table may be all that follows a quote that is never closed."""
        cell = last.column(self._schema.names[-1])[-1].as_py()
        if self.well_formed or cell is None:
            return False
        before = self.separator if len(self._schema) > 1 else ""
        opened = f'{before}"{cell.replace(chr(34), chr(34) * 2)}'
        data = opened.encode(self.encoding).removeprefix("".encode(self.encoding))
        return breaks_line(cell) or last_bytes(self.path, self.compression, len(data)) == data

    def _refuse_open_quote(self) -> None:
        """Raise if the suspicion holds that a quote is never closed."""
        problem = self._first_problem()
        if problem is not None:
            raise TableError(problem)

    def _explain(self, error: Exception) -> TableError:
        if is_damaged(self.path, self.compression):
            what = f"{self.path}: the {self.compression} archive is damaged, or only a part of it is there"
            return TableError(what, "copy or download it again; nothing of it was used")
        if isinstance(error, UnicodeError) or "UTF8" in str(error):
            return self._bad_encoding(error)
        return self._unreadable()

    def _unreadable(self) -> TableError:
        problem = self._first_problem()
        if problem is not None:
            return TableError(problem)
        return TableError(f"{self.path}: not a readable text table", "check separator, quotes and encoding")

    def about(self) -> int | None:
        """The number of line ends; inexact for cells with several lines or blank lines."""
        return self._line_ends

    @cached_property
    def _line_ends(self) -> int | None:
        if self.compression is not None or not isinstance(self.path, Path) or not self.path.is_file():
            return None
        with self.path.open("rb") as file:
            return max(sum(piece.count(b"\n") for piece in iter(lambda: file.read(1 << 20), b"")) - 1, 0)

    def row_numbers(self, rows: Sequence[int]) -> tuple[str, list[int]]:
        """The lines in which rows begin; a cell may have several, and blank lines are no rows."""
        try:
            lines = self._lines(set(rows))
        except (csv.Error, OSError, UnicodeError):
            lines = []
        # Where another reader sees other rows, lines would be wrong.
        return ("line", lines) if len(lines) == len(rows) else super().row_numbers(rows)

    def _lines(self, rows: set[int]) -> list[int]:
        found: list[int] = []
        with open_text(self.path, self.compression, self.encoding, errors="replace") as file, any_length():
            there = (start for start, cells in records(file, self.separator) if cells)
            next(there, None)
            for row, start in enumerate(there):
                if len(found) == len(rows):
                    break
                if row in rows:
                    found.append(start)
        return found

    def _first_problem(self) -> Problem | None:
        """What is wrong with the table, and in which line.

        Looked for only after reading failed: a callback of the reader may run while Python shuts down, and abort it.
        """
        with open_text(self.path, self.compression, self.encoding, errors="replace") as file:
            first = file.readline().removeprefix("\ufeff")
            problem = first_problem(chain([first], file), len(self._schema), self.separator)
        return problem and replace(problem, where=f"{self.path}, {problem.where}")


class ReleasedCsvSource(Source):
    """A text table of our own release: names and texts as before writing for spreadsheets."""

    typed = False

    def __init__(self, path: Path) -> None:
        self._written = CsvSource(path, ",", well_formed=True)
        self.name = path.name
        self._columns = {unguarded_text(name): name for name in self._written.schema.names}

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([(name, pa.string()) for name in self._columns])

    def parts(self) -> list[Part]:
        return self._written.parts()

    def _read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        names = list(columns) or list(self._columns)
        for batch in self._written._read([self._columns[name] for name in names]):
            yield pa.RecordBatch.from_arrays([unguarded(column) for column in batch.columns], names)
