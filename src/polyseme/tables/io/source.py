"""Tables as streams of Arrow record batches, however stored, and tables made of others.

Messages of the readers underneath are never passed on, because they quote the data.

Options say what must be known about a file before it can be read. A part of a table can be read without the others, by
another thread, process or machine.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from copy import copy
from dataclasses import dataclass
from typing import TypeAlias, TypedDict

import numpy as np
import pyarrow as pa

from polyseme.kernel.arrays import Ints
from polyseme.kernel.errors import TableError
from polyseme.kernel.work import Cancellation, Stage, stage

__all__ = ["BATCH_ROWS", "CountedRows", "Monitored", "Part", "RowIn", "Source", "TableOptions", "Wrapped", "how_many"]


class TableOptions(TypedDict, total=False):
    """How a table is stored.

    separator  what separates the fields of a text table; found out when it is None
    encoding   how the characters of a text table are written
    sheet      which sheet of a workbook is the table; the first one when it is None
    decimal    what stands before the fraction of a number in a text: point or comma
    dates      how dates are written in a text, such as dd.mm.yyyy; ISO 8601 when it is None
    """

    separator: str | None
    encoding: str
    sheet: str | None
    decimal: str
    dates: str | None


@dataclass(frozen=True)
class Part:
    """A piece of a table.

    file    where it is stored; the name of the table where that is no file
    groups  the row groups of a Parquet file, from the first to before the last; None for all there is
    rows    how many it has, where that is known without reading them
    """

    file: str
    groups: tuple[int, int] | None = None
    rows: int | None = None


class RowIn(int):
    """The number of a row, or of a line, in one of several files: people must know which.

    >>> print(RowIn(3, "b.csv"), RowIn(3, "b.csv") == 3)
    3 of b.csv True
    """

    file: str

    def __new__(cls, number: int, file: str) -> RowIn:
        made = super().__new__(cls, number)
        made.file = file
        return made

    def __str__(self) -> str:
        return f"{int(self)} of {self.file}"

    def __format__(self, spec: str) -> str:
        return f"{int(self):{spec}} of {self.file}"

    def __reduce__(self) -> tuple[type[RowIn], tuple[int, str]]:
        return RowIn, (int(self), self.file)


BATCH_ROWS = 1 << 16
"""Rows to a batch: a column of numbers (512 kB) fits the second-level cache."""

CountedRows: TypeAlias = tuple[pa.RecordBatch, Ints | None]
"""Rows with how often each of them occurs (at least once); None when each stands for itself."""


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

    @property
    def lightest(self) -> list[str]:
        """A column to read where only the rows matter, so that they come in batches."""
        return list(self.schema.names[:1])

    @property
    def aggregates(self) -> bool:
        """Whether rows are counted where they are kept, so that few of them come here."""
        return type(self).counted is not Source.counted

    @abstractmethod
    def _read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]: ...

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """All rows in batches of at most `BATCH_ROWS`, with the named columns in the given order."""
        names = list(self.schema.names if columns is None else columns)
        with nullcontext(Stage()) if self.wraps else stage("read", f"Reading {self.name}", self.about) as progress:
            for batch in self._read(names):
                for start in range(0, batch.num_rows, BATCH_ROWS):
                    yield batch.slice(start, BATCH_ROWS)
                progress.advance(batch.num_rows)

    def counted(self, columns: Sequence[str] | None = None) -> Iterator[CountedRows]:
        """The same rows for callers that count them, in any order; counted already, they are few.

        A row may come more than once; its counts add up.
        """
        for batch in self.batches(columns):
            yield batch, None

    def coded(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """All rows in batches; a column of texts may come as a dictionary, where it is kept as one."""
        return self.batches(columns)

    def head(self, columns: Sequence[str]) -> pa.RecordBatch | None:
        """The first rows, for a quick look; None where there is none."""
        return next(self.batches(columns), None)

    def parts(self) -> list[Part]:
        """The pieces that can be read one without the others.

        Their rows, in this order, are those of the table.
        """
        return [Part(self.name, None, self.rows)]

    def read_part(self, part: Part, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows of one piece in batches, as `batches` gives them, without progress."""
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
        return sum(map(how_many, self.counted(self.lightest)))

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


class Wrapped(Source):
    """A table made of another one, batch by batch, without the place of a batch in it.

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

    @property
    def lightest(self) -> list[str]:
        return self.inner.lightest

    @property
    def aggregates(self) -> bool:
        return type(self).counted is not Wrapped.counted or self.inner.aggregates

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


class Monitored(Wrapped):
    """A table whose reading ends with `Cancelled` when the work is cancelled."""

    def __init__(self, source: Source, cancellation: Cancellation) -> None:
        super().__init__(source)
        self._cancellation = cancellation

    def _made(self, batch: pa.RecordBatch, columns: Sequence[str]) -> pa.RecordBatch:
        self._cancellation.check()
        return batch
