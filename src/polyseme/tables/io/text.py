"""Text tables.

Text files have no types: a CSV column is read as text and stays exactly as it stands (leading zeros too), unless the
policy declares its type.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.csv

from polyseme.errors import Problem, TableError
from polyseme.files.delimited import any_length, first_row, records, sniff_separator
from polyseme.tables.io.archives import compression_of, is_damaged, last_bytes, likely_encoding, open_bytes, open_text
from polyseme.tables.io.parts import Part
from polyseme.tables.io.places import Place
from polyseme.tables.io.quotes import breaks_line, first_problem, holds_records, swallows_records
from polyseme.tables.io.source import Source
from polyseme.tables.io.spreadsheets import unguarded, unguarded_text

__all__ = ["READABLE", "CsvSource", "ReleasedCsvSource"]

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
        """The number of line ends, which is not exact where cells have several lines or the file has blank ones."""
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
    """A text table of our own release: names and texts as they were before they were written for spreadsheets."""

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
