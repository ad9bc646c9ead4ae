"""Tables as streams of Arrow record batches, whatever they are stored in.

Text files have no types: a CSV column is read as text and stays exactly as it stands (leading zeros too), unless the
policy declares its type. Messages of the readers underneath are never passed on, because they quote the data.
"""

from __future__ import annotations

import csv
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from copy import copy
from dataclasses import replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet

from polyseme.arrays import Ints
from polyseme.cancellation import Cancellation
from polyseme.errors import Problem, TableError
from polyseme.files.delimited import any_length, first_row, records, sniff_separator
from polyseme.progress import Stage, stage
from polyseme.tables.io.archives import compression_of, is_damaged, last_bytes, likely_encoding, open_bytes, open_text
from polyseme.tables.io.parts import Part
from polyseme.tables.io.places import Place, open_file
from polyseme.tables.io.quotes import breaks_line, first_problem, holds_records, swallows_records
from polyseme.tables.io.spreadsheets import unguarded, unguarded_text
from polyseme.tables.io.workbooks import read_sheet

__all__ = [
    "BATCH_ROWS",
    "READABLE",
    "ArrowSource",
    "CountedFrame",
    "CountedRows",
    "CsvSource",
    "FrameSource",
    "ParquetSource",
    "ReleasedCsvSource",
    "Source",
    "Watched",
    "WorkbookSource",
    "Wrapped",
    "how_many",
]

BATCH_ROWS = 1 << 16
"""Rows to a batch: a column of numbers (512 kB) fits the second-level cache."""
_SNIFF_BYTES = 1 << 16
"""How much of a text table is looked at to find its separator and header."""

_BUFFER_BYTES = 1 << 20
"""How much of a column of a Parquet file is read at a time."""

CountedRows: TypeAlias = tuple[pa.RecordBatch, Ints | None]
"""Rows with how often each of them occurs (at least once); None when each stands for itself."""

READABLE = "text (CSV, TSV; also as .gz, .zst or .bz2), Parquet, Arrow, Excel, Stata, SPSS and SAS are read"


def how_many(rows: CountedRows) -> int:
    """How many records some rows stand for."""
    batch, counts = rows
    return int(batch.num_rows if counts is None else np.sum(counts, dtype=np.int64))


class Source(ABC):
    """A table that can be read more than once, batch by batch."""

    name: str
    typed: bool = True
    """False for text files, whose columns have no types of their own."""
    wraps: bool = False
    """Whether another table is read underneath, which says how far it is."""

    @property
    @abstractmethod
    def schema(self) -> pa.Schema: ...

    @property
    def rows(self) -> int | None:
        """The number of rows where it is known without reading them all."""
        return None

    @abstractmethod
    def _read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]: ...

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """All rows in batches of at most `BATCH_ROWS`, with the named columns in the given order."""
        names = list(self.schema.names if columns is None else columns)
        with nullcontext(Stage()) if self.wraps else stage(f"Reading {self.name}", self.about) as told:
            for batch in self._read(names):
                for start in range(0, batch.num_rows, BATCH_ROWS):
                    yield batch.slice(start, BATCH_ROWS)
                told.advance(batch.num_rows)

    def counted(self, columns: Sequence[str] | None = None) -> Iterator[CountedRows]:
        """The same rows for those who only count them, in any order: an engine that counts elsewhere hands over few.

        A row may come more than once; its counts add up.
        """
        for batch in self.batches(columns):
            yield batch, None

    def head(self, columns: Sequence[str]) -> pa.RecordBatch | None:
        """The first rows, for a quick look; None where there is none."""
        return next(self.batches(columns), None)

    def parts(self) -> list[Part]:
        """The pieces that can be read one without the others; their rows, in this order, are those of the table."""
        return [Part(self.name, None, self.rows)]

    def read_part(self, part: Part, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows of one piece in batches, as `batches` gives them; nobody is told how far it is."""
        names = list(self.schema.names if columns is None else columns)
        for batch in self._read_part(part, names):
            for start in range(0, batch.num_rows, BATCH_ROWS):
                yield batch.slice(start, BATCH_ROWS)

    def _read_part(self, part: Part, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return self._read(columns)

    def about(self) -> int | None:
        """The number of rows, or nearly that, where it can be found out quickly: for those who wait."""
        return self.rows

    def row_numbers(self, rows: Sequence[int]) -> tuple[str, list[int]]:
        """Rows (from 0, ascending) as people count them: what a number is called, and the numbers."""
        return "row", [row + 1 for row in rows]

    def count(self) -> int:
        """The number of rows, read where it is not known."""
        if self.rows is not None:
            return self.rows
        return sum(map(how_many, self.counted(self.schema.names[:1])))

    def check(self) -> None:
        """A table without columns, or with two of the same name, cannot be used."""
        if not self.schema.names:
            raise TableError(f"{self.name}: a table without columns")
        names = self.schema.names
        double = [name for name, count in Counter(names).items() if count > 1]
        if double:
            # The first line of a text may be a record, or anything: it is not quoted.
            places = [str(place) for place, name in enumerate(names, 1) if name == double[0]]
            named = ", ".join(f"'{name}'" for name in double) if self.typed else f"columns {' and '.join(places)}"
            raise TableError(f"{self.name}: the same column name more than once: {named}", "rename the columns")


class FrameSource(Source):
    """A table in memory."""

    def __init__(self, table: pa.Table, name: str = "table") -> None:
        self.table = table.cast(_without_views(table.schema))
        self.name = name
        self.check()

    @property
    def schema(self) -> pa.Schema:
        return self.table.schema

    @property
    def rows(self) -> int | None:
        return int(self.table.num_rows)

    def _read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        yield from self.table.select(columns).to_batches(max_chunksize=BATCH_ROWS)


class CountedFrame(FrameSource):
    """Rows in memory with how often each occurs: a table that another engine has counted.

    counts  None where each row stands for itself
    """

    def __init__(self, table: pa.Table, counts: Ints | None, name: str = "table") -> None:
        super().__init__(table, name)
        self.counts = counts

    @property
    def rows(self) -> int | None:
        return int(self.table.num_rows if self.counts is None else np.sum(self.counts, dtype=np.int64))

    def _read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        if self.counts is None:
            yield from super()._read(columns)
            return
        ends, rows = np.cumsum(self.counts), self.table.select(columns)
        for start in range(0, self.rows or 0, BATCH_ROWS):
            records = np.arange(start, min(start + BATCH_ROWS, int(ends[-1])))
            some = rows.take(pa.array(np.searchsorted(ends, records, side="right")))
            yield from some.combine_chunks().to_batches()

    def counted(self, columns: Sequence[str] | None = None) -> Iterator[CountedRows]:
        if self.counts is None:
            yield from super().counted(columns)
            return
        done = 0
        for batch in super()._read(self.schema.names if columns is None else columns):
            yield batch, self.counts[done : done + batch.num_rows]
            done += batch.num_rows


class WorkbookSource(FrameSource):
    """A sheet of a workbook; `sheet` is None for the first one."""

    def __init__(self, path: Path, sheet: str | None = None, by_policy: bool = False) -> None:
        self.sheet = sheet
        super().__init__(read_sheet(path, sheet, by_policy), path.name)


def _without_views(schema: pa.Schema) -> pa.Schema:
    """View types, which many Arrow functions do not know yet, as their plain counterparts."""
    return pa.schema([field.with_type(_without_view(field.type)) for field in schema])


def _without_view(kind: pa.DataType) -> pa.DataType:
    if kind == pa.string_view():
        return pa.large_string()
    if kind == pa.binary_view():
        return pa.large_binary()
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, _without_view(kind.value_type), kind.ordered)
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_without_view(field.type)) for field in kind])
    if pa.types.is_large_list(kind):
        return pa.large_list(_without_view(kind.value_type))
    return pa.list_(_without_view(kind.value_type)) if pa.types.is_list(kind) else kind


class ParquetSource(Source):
    """A Parquet file; `labels` are text columns, or lists of text, with few different values, read as dictionaries."""

    def __init__(self, path: Place, labels: Sequence[str] = ()) -> None:
        self.path = path
        self.name = path.name
        try:
            with _parquet_file(path) as file:
                self._schema = file.schema_arrow
                self._groups = [file.metadata.row_group(index).num_rows for index in range(file.num_row_groups)]
                leaves = [file.schema.column(index) for index in range(len(file.schema.names))]
        except (pa.ArrowException, OSError):
            raise TableError(f"{path}: not a readable Parquet file") from None
        text = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
        self._dictionaries = [leaf for leaf in text for name in labels if leaf == name or leaf.startswith(f"{name}.")]
        self.check()

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    @property
    def rows(self) -> int | None:
        return int(sum(self._groups))

    def parts(self) -> list[Part]:
        """Each row group; of a file without any, the file."""
        groups = [Part(str(self.path), (index, index + 1), rows) for index, rows in enumerate(self._groups)]
        return groups or [Part(str(self.path), (0, 0), 0)]

    def _read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return self._read_groups(range(len(self._groups)), columns)

    def _read_part(self, part: Part, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return self._read_groups(range(*(part.groups or (0, len(self._groups)))), columns)

    def _read_groups(self, groups: Iterable[int], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        try:
            with _parquet_file(self.path, self._dictionaries) as file:
                # One row group at a time: each has dictionaries of its own, and lists of them cannot be joined.
                for group in groups:
                    for batch in file.iter_batches(BATCH_ROWS, [group], list(columns), use_threads=False):
                        yield batch.select(list(columns))
        except (pa.ArrowException, OSError):
            raise TableError(f"{self.path}: damaged Parquet file") from None


def _parquet_file(place: Place, dictionaries: Sequence[str] = ()) -> pa.parquet.ParquetFile:
    if isinstance(place, Path):
        # Not mapped into memory: all that was read would count as ours, and column by column in one piece.
        return pa.parquet.ParquetFile(
            place, read_dictionary=list(dictionaries), buffer_size=_BUFFER_BYTES, pre_buffer=False
        )
    # Over a network, what is needed of a row group is asked for at once.
    return pa.parquet.ParquetFile(open_file(place), read_dictionary=list(dictionaries), pre_buffer=True)


class ArrowSource(Source):
    """An Arrow IPC (Feather) file or stream."""

    def __init__(self, path: Place) -> None:
        self.path = path
        self.name = path.name
        with self._open() as reader:
            self._schema = _without_views(reader.schema)
        self.check()

    def _open(self) -> Any:
        try:
            return pa.ipc.open_file(open_file(self.path))
        except (pa.ArrowException, OSError):
            try:
                return pa.ipc.open_stream(open_file(self.path))
            except (pa.ArrowException, OSError):
                raise TableError(f"{self.path}: not a readable Arrow file") from None

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    def parts(self) -> list[Part]:
        return [Part(str(self.path))]

    def _read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        try:
            with self._open() as reader:
                batches = (
                    (reader.get_batch(index) for index in range(reader.num_record_batches))
                    if hasattr(reader, "get_batch")
                    else iter(reader)
                )
                for batch in batches:
                    chosen = batch.select(list(columns))
                    yield chosen.cast(_without_views(chosen.schema))
        except (pa.ArrowException, OSError):
            raise TableError(f"{self.path}: damaged Arrow file") from None


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


class Wrapped(Source):
    """A table that is made of another one, batch by batch, without knowing where a batch is in it.

    inner  the table that is read underneath
    """

    wraps = True

    def __init__(self, inner: Source) -> None:
        self.inner = inner
        self.name, self.typed = inner.name, inner.typed

    def over(self, inner: Source) -> Source:
        """The same with another table underneath."""
        made = copy(self)
        made.inner = self.inner.over(inner) if isinstance(self.inner, Wrapped) else inner
        return made

    @property
    def schema(self) -> pa.Schema:
        return self.inner.schema

    @property
    def rows(self) -> int | None:
        return self.inner.rows

    def about(self) -> int | None:
        return self.inner.about()

    def row_numbers(self, rows: Sequence[int]) -> tuple[str, list[int]]:
        return self.inner.row_numbers(rows)

    def parts(self) -> list[Part]:
        return self.inner.parts()

    def head(self, columns: Sequence[str]) -> pa.RecordBatch | None:
        batch = self.inner.head(self._needed(columns))
        return None if batch is None else self._made(batch, columns)

    def _needed(self, columns: Sequence[str]) -> Sequence[str]:
        """The columns of the table underneath that are read for these."""
        return columns

    def _made(self, batch: pa.RecordBatch, columns: Sequence[str]) -> pa.RecordBatch:
        """These columns, of a batch of those that they need."""
        return batch

    def _read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for batch in self.inner.batches(self._needed(columns)):
            yield self._made(batch, columns)

    def _read_part(self, part: Part, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for batch in self.inner.read_part(part, self._needed(columns)):
            yield self._made(batch, columns)

    def counted(self, columns: Sequence[str] | None = None) -> Iterator[CountedRows]:
        names = list(self.schema.names if columns is None else columns)
        for batch, counts in self.inner.counted(self._needed(names)):
            yield self._made(batch, names), counts


class Watched(Wrapped):
    """A table whose reading ends with `Cancelled` when somebody asks for that, whoever reads it."""

    def __init__(self, source: Source, cancellation: Cancellation) -> None:
        super().__init__(source)
        self._cancellation = cancellation

    def _made(self, batch: pa.RecordBatch, columns: Sequence[str]) -> pa.RecordBatch:
        self._cancellation.check()
        return batch
