"""A table that is read once: what was read is kept, to answer later questions.

    known = Profile(table)
    known.hold(["age", "sex"])     # one pass over these columns
    plan(policy, data=known)       # and again for another policy, without a pass

Texts are kept as places in a list of the different ones of each batch. What does not fit the memory that a profile may
have waits in a temporary file, compressed: the table is read once, however large it is. The file has no name on systems
that allow that, can be read by its owner only, and is gone with the profile, also when the work is cancelled. Where the
temporary folder is full, columns are read from the table each time, and a log line says so.

Callers that count get the different rows with their counts, as long as there are far fewer of them than records: then
their memory is bounded by the combinations that occur. These counts are kept as well.

A profile holds values of the original and belongs to the data holder; its text tells none of them.
"""

from __future__ import annotations

import logging
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute

from polyseme.kernel.arrays import Ints
from polyseme.kernel.errors import TableError
from polyseme.kernel.work import check_cancelled
from polyseme.tables.io.columnar import FrameSource
from polyseme.tables.io.source import BATCH_ROWS, CountedRows, Part, Source, Wrapped

__all__ = ["DistinctRows", "Profile"]

_log = logging.getLogger(__name__)

_HELD_BYTES = 1 << 30
"""What is held of a table in memory: some thirty million records of ten columns of short texts."""
_REPEATED = 2
"""Records that a text of a batch must have on average for a list of the different ones to be shorter."""
_FEWER = 4
"""Records that a different row must have on average for callers to get it once, with its count."""
_LOOKED_AT = 1 << 18
"""Different rows before it is judged whether they are too many: the first records of a table may all differ."""
_DIFFERENT = 1 << 20
"""Different rows of some columns that are counted at the most; a table with more is given row by row."""
_OF_COUNTS = 4
"""The part of what may be held in memory that counts may take beside it."""


@dataclass(frozen=True, eq=False)
class _Piece:
    """One column of a batch: its values, or the different ones and the place of each among them."""

    values: pa.Array
    places: pa.Array | None = None

    @classmethod
    def of(cls, column: pa.Array) -> _Piece:
        if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
            return cls(column)
        coded = column.dictionary_encode()
        count = len(coded.dictionary)
        if count * _REPEATED > len(column):
            return cls(column)
        kind = pa.int8() if count < 1 << 7 else pa.int16() if count < 1 << 15 else pa.int32()
        return cls(coded.dictionary, coded.indices.cast(kind))

    @property
    def bytes(self) -> int:
        return int(self.values.nbytes + (0 if self.places is None else self.places.nbytes))

    @property
    def column(self) -> pa.Array:
        return self.values if self.places is None else self.values.take(self.places)

    @property
    def coded(self) -> pa.Array:
        return self.values if self.places is None else pa.DictionaryArray.from_arrays(self.places, self.values)


@dataclass(frozen=True, eq=False)
class _Waiting:
    """The same in the temporary file, from one byte to another."""

    spill: _Spill
    start: int
    length: int
    bytes: int = 0

    @property
    def column(self) -> pa.Array:
        return self.spill.read(self.start, self.length)

    @property
    def coded(self) -> pa.Array:
        return self.column


class _NoRoom(Exception):
    """The temporary folder takes no more; in words without a path."""


@dataclass(eq=False)
class _Spill:
    """A temporary file of columns, which is gone when it is no longer referred to."""

    file: IO[bytes] | None = None
    end: int = 0

    def write(self, column: pa.Array) -> _Waiting:
        """Put a column of a batch at the end."""
        sink = pa.BufferOutputStream()
        batch = pa.RecordBatch.from_arrays([column], names=[""])
        with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression=_compression())) as out:
            out.write_batch(batch)
        written = memoryview(sink.getvalue())
        try:
            file = self._opened()
            file.seek(self.end)
            file.write(written)
            file.flush()
        except OSError as error:
            raise _NoRoom(error.strerror or type(error).__name__) from None
        self.end += len(written)
        return _Waiting(self, self.end - len(written), len(written))

    def _opened(self) -> IO[bytes]:
        if self.file is None:
            self.file = tempfile.TemporaryFile(prefix="polyseme-profile-")  # noqa: SIM115 - open as long as it is read
            weakref.finalize(self, self.file.close)
        return self.file

    def read(self, start: int, length: int) -> pa.Array:
        if self.file is None:
            raise ValueError("nothing was written")
        self.file.seek(start)
        return pa.ipc.open_stream(self.file.read(length)).read_next_batch().column(0)


def _compression() -> str | None:
    return "lz4" if pa.Codec.is_available("lz4") else None


@dataclass(eq=False)
class _Held:
    """What is kept of a table: the pieces of each column, in memory or in the file.

    most   bytes that are held in memory
    sizes  rows of each batch; None before the first pass
    """

    most: int
    pieces: dict[str, list[_Piece | _Waiting]] = field(default_factory=dict)
    sizes: list[int] | None = None
    bytes: int = 0
    spill: _Spill = field(default_factory=_Spill)

    def kept(self, column: pa.Array) -> _Piece | _Waiting:
        piece = _Piece.of(column)
        if self.bytes + piece.bytes <= self.most:
            self.bytes += piece.bytes
            return piece
        if not self.spill.end:
            _log.info("profile: more than %d MiB; the rest waits in a temporary file", self.most >> 20)
        return self.spill.write(column)

    def let_go(self, pieces: Iterable[_Piece | _Waiting]) -> None:
        self.bytes -= sum(piece.bytes for piece in pieces)

    def batch(self, place: int, columns: Sequence[str]) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([self.pieces[name][place].column for name in columns], names=list(columns))


class Profile(Wrapped):
    """A table of which every column is read at most once.

    most  bytes that are held in memory; with 0 nothing is kept, and the table is read each time
    """

    def __init__(self, source: Source, most: int = _HELD_BYTES) -> None:
        super().__init__(source)
        self._held = _Held(most)
        self._rows: int | None = None
        self._read_again: set[str] = set()
        self._heads: dict[tuple[str, ...], pa.RecordBatch | None] = {}
        self._counted: dict[tuple[str, ...], CountedRows | None] = {}

    def __repr__(self) -> str:
        return f"<Profile of {self.name}, {len(self._held.pieces)} of {len(self.schema.names)} columns held>"

    def over(self, inner: Source) -> Source:
        made = super().over(inner)
        return Profile(made.inner, self._held.most) if isinstance(made, Profile) else made

    @property
    def rows(self) -> int | None:
        there = self.inner.rows
        return self._rows if there is None else there

    def count(self) -> int:
        if self.rows is None:
            self.hold(self.lightest)
        if self.rows is None:
            self._rows = self.inner.count()
        return self.rows or 0

    @property
    def lightest(self) -> list[str]:
        return next(([name] for name in self._held.pieces), self.inner.lightest)

    @property
    def holds(self) -> bool:
        """Whether anything is held: not for a table in memory, or counted where it is kept."""
        return self._held.most > 0 and not isinstance(self.inner, FrameSource) and not self.inner.aggregates

    @property
    def spilled(self) -> int:
        """Bytes of the table that wait in a temporary file."""
        return self._held.spill.end

    def hold(self, names: Sequence[str]) -> None:
        """Read these columns, in one pass over those that were not read before."""
        known = self._held.pieces.keys() | self._read_again
        new = [name for name in dict.fromkeys(names) if name not in known]
        if not new or not self.holds:
            return
        found: dict[str, list[_Piece | _Waiting]] = {name: [] for name in new}
        sizes = []
        try:
            for batch in self._alike(self.inner.batches(new)):
                sizes.append(batch.num_rows)
                for place, name in enumerate(new):
                    found[name].append(self._held.kept(batch.column(place)))
        except _NoRoom as error:
            self._held.let_go(piece for pieces in found.values() for piece in pieces)
            self._read_again |= found.keys()
            _log.warning(
                "profile: %d columns are read from the table each time, because the temporary folder cannot take them "
                "(%s); set TMPDIR to a folder with more room",
                len(new),
                error,
            )
            return
        self._held.pieces |= found
        self._held.sizes, self._rows = sizes, sum(sizes)

    def _alike(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Batches of as many rows as those of the columns that are held."""
        if self._held.sizes is None:
            yield from batches
            return
        rows = _Cut(iter(batches))
        for size in self._held.sizes:
            yield rows.next(size)
        rows.require_end(self.name)

    def _is_held(self, columns: Sequence[str]) -> bool:
        return self._held.sizes is not None and bool(columns) and self._held.pieces.keys() >= set(columns)

    def _read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        self.hold(columns)
        if not self._is_held(columns):
            yield from self.inner.batches(columns)
            return
        for place in range(len(self._held.sizes or ())):
            check_cancelled()
            yield self._held.batch(place, columns)

    def counted(self, columns: Sequence[str] | None = None) -> Iterator[CountedRows]:
        names = list(self.schema.names if columns is None else columns)
        if not self.holds:
            yield from self.inner.counted(names)
            return
        rows = self._different(tuple(names))
        if rows is None:
            for batch in self.batches(names):
                yield batch, None
            return
        batch, counts = rows
        for start in range(0, batch.num_rows, BATCH_ROWS):
            yield batch.slice(start, BATCH_ROWS), None if counts is None else counts[start : start + BATCH_ROWS]

    def distinct(self, columns: Sequence[str]) -> Iterator[DistinctRows]:
        """The distinct rows with their counts and first rows; too many come row by row at the end.

        Nothing is held beside them: for those who go through a table once.
        """
        names = list(columns)
        if self._is_held(names):
            yield from _streamed(self._coded(names), names, self.schema)
        elif self.inner.rows is not None and self.inner.rows <= BATCH_ROWS:
            done = 0
            for batch in self.inner.batches(names):
                yield DistinctRows.plain(batch, done)
                done += batch.num_rows
        else:
            yield from _streamed(self.inner.coded(names), names, self.schema)

    def _coded(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Columns that are held, texts as dictionaries where they are held so."""
        for place in range(len(self._held.sizes or ())):
            check_cancelled()
            pieces = [self._held.pieces[name][place] for name in columns]
            yield pa.RecordBatch.from_arrays([piece.coded for piece in pieces], names=list(columns))

    def _different(self, names: tuple[str, ...]) -> CountedRows | None:
        """The distinct rows of some columns with counts; None if not much fewer than the records."""
        if names not in self._counted:
            self.hold(names)
            batches = self._coded(names) if self._is_held(names) else self.batches(names)
            self._counted[names] = _counted_rows(batches, names, self.schema)
            self._forget()
        return self._counted[names]

    def _forget(self) -> None:
        """Let go of the oldest counts where they take more memory than a part of what may be held."""
        sizes = {names: 0 if rows is None else int(rows[0].nbytes) for names, rows in self._counted.items()}
        for names in list(self._counted)[:-1]:
            if sum(sizes.values()) <= self._held.most // _OF_COUNTS:
                return
            del self._counted[names], sizes[names]

    def head(self, columns: Sequence[str]) -> pa.RecordBatch | None:
        if self._is_held(columns):
            return next(self.batches(columns), None)
        names = tuple(columns)
        if names not in self._heads:
            self._heads[names] = self.inner.head(columns)
        return self._heads[names]

    def _read_part(self, part: Part, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return self.inner.read_part(part, columns)


class _Cut:
    """Batches in other sizes: a reader may cut other columns into other batches."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches, self._rest = batches, list[pa.RecordBatch]()

    def next(self, rows: int) -> pa.RecordBatch:
        """The next rows, fewer where the table ends."""
        there = sum(batch.num_rows for batch in self._rest)
        while there < rows and (batch := next(self._batches, None)) is not None:
            self._rest.append(batch)
            there += batch.num_rows
        if len(self._rest) == 1 and there == rows:
            return self._rest.pop()
        whole = pa.Table.from_batches(self._rest).combine_chunks()
        self._rest = whole.slice(rows).to_batches()
        return next(iter(whole.slice(0, rows).to_batches()))

    def require_end(self, name: str) -> None:
        if self._rest or next(self._batches, None) is not None:
            raise TableError(f"{name}: the table changed while it was read", "read it again")


# -- different rows and their counts -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class DistinctRows:
    """Rows of a table, each once with its count, in the order in which they first occur.

    counts  how many records each stands for; None for one
    first   the row of the table in which each occurs first, from 0
    """

    rows: pa.RecordBatch
    counts: Ints | None
    first: Ints

    @classmethod
    def plain(cls, batch: pa.RecordBatch, start: int) -> DistinctRows:
        """Rows that stand for themselves, the first of which is row `start` of the table."""
        return cls(batch, None, np.arange(start, start + batch.num_rows))


def _counted_rows(batches: Iterable[pa.RecordBatch], names: Sequence[str], schema: pa.Schema) -> CountedRows | None:
    """The distinct rows by first occurrence; None if they are too many or cannot be compared."""
    if not _all_comparable(names, schema):
        return None
    counting = _Counting(names, schema)
    for batch in batches:
        if not counting.add(batch):
            return None
    found = counting.found()
    if not counting.records or len(found.first) > min(_DIFFERENT, counting.records // _FEWER):
        return None
    return found.rows, found.counts


def _streamed(batches: Iterable[pa.RecordBatch], names: Sequence[str], schema: pa.Schema) -> Iterator[DistinctRows]:
    """The distinct rows; from where they are too many to be counted, the rest row by row."""
    counting = _Counting(names, schema) if _all_comparable(names, schema) else None
    records = 0
    for batch in batches:
        if counting is None:
            yield DistinctRows.plain(_decoded(batch, names, schema), records)
        elif not counting.add(batch):
            yield counting.found()
            counting = None
        records += batch.num_rows
    if counting is not None and records:
        yield counting.found()


def _decoded(batch: pa.RecordBatch, names: Sequence[str], schema: pa.Schema) -> pa.RecordBatch:
    """A batch with the types of its table."""
    columns = [batch.column(place).cast(schema.field(name).type) for place, name in enumerate(names)]
    return pa.RecordBatch.from_arrays(columns, names=list(names))


def _all_comparable(names: Sequence[str], schema: pa.Schema) -> bool:
    return 0 < len(set(names)) == len(names) and all(_comparable(schema.field(name).type) for name in names)


def _comparable(kind: pa.DataType) -> bool:
    types = pa.types
    unlike = types.is_nested(kind) or types.is_dictionary(kind) or types.is_float16(kind) or types.is_null(kind)
    return not (unlike or isinstance(kind, pa.BaseExtensionType))


class _Counting:
    """Distinct rows of batches: each value is a number of few bits, a row some words of them.

    Rows are the same where they have the same bits: the counts of 0.0 and -0.0 are apart.
    """

    def __init__(self, names: Sequence[str], schema: pa.Schema) -> None:
        self.names = list(names)
        self.records = 0
        self._columns = [_Numbers(schema.field(name).type) for name in names]
        self._words = _Words([column.bits for column in self._columns])
        self._found: pl.DataFrame | None = None
        self._waiting: list[pl.DataFrame] = []

    def add(self, batch: pa.RecordBatch) -> bool:
        """Count the rows of a batch; False where the different ones have become too many to go on."""
        numbers = [column.add(batch.column(place)) for place, column in enumerate(self._columns)]
        self._widen()
        self._waiting.append(self._words.distinct(numbers, self.records))
        self.records += batch.num_rows
        there = 0 if self._found is None else self._found.height
        if sum(frame.height for frame in self._waiting) <= max(BATCH_ROWS, there):
            return True
        most = min(_DIFFERENT, max(self.records // _REPEATED, _LOOKED_AT))
        return self._merge().height <= most

    def _widen(self) -> None:
        """Make room for the numbers of values that were not seen before."""
        words = _Words([column.bits for column in self._columns])
        if words.bits != self._words.bits:
            if self._waiting or self._found is not None:
                self._found = words.moved(self._merge(), self._words)
            self._words = words

    def _merge(self) -> pl.DataFrame:
        parts = [*([] if self._found is None else [self._found]), *self._waiting]
        if len(parts) > 1:
            whole = pl.concat(parts).group_by(self._words.names)
            parts = [whole.agg(pl.col(_NUMBER).sum(), pl.col(_FIRST).min())]
        self._found, self._waiting = parts[0], []
        return parts[0]

    def found(self) -> DistinctRows:
        """What was counted."""
        if not self._waiting and self._found is None:
            empty = [column.values_of(np.zeros(0, dtype=np.int64)) for column in self._columns]
            return DistinctRows.plain(pa.RecordBatch.from_arrays(empty, names=self.names), 0)
        whole = self._merge().sort(_FIRST)
        numbers = self._words.split(whole)
        rows = [column.values_of(which) for column, which in zip(self._columns, numbers)]
        counts, first = (whole[name].to_numpy().astype(np.int64) for name in (_NUMBER, _FIRST))
        return DistinctRows(pa.RecordBatch.from_arrays(rows, names=self.names), counts, first)


_NUMBER, _FIRST = "number", "first"
_WORD_BITS = 62
_DENSE_BITS = 19
"""Combinations, as a power of two, up to which those of a batch are counted in an array."""


class _Words:
    """Numbers of `bits` each, one after the other in words of 62 bits."""

    def __init__(self, bits: Sequence[int]) -> None:
        self.bits = list(bits)
        self._places: list[tuple[int, int]] = []
        word = room = 0
        for width in bits:
            if width > room:
                word, room = word + 1, _WORD_BITS
            room -= width
            self._places.append((word - 1, room))
        self.names = [f"word {index}" for index in range(word)]

    def join(self, numbers: Sequence[Ints]) -> list[Ints]:
        words: list[Ints] = [np.zeros(0, dtype=np.int64)] * len(self.names)
        for (word, shift), number in zip(self._places, numbers):
            words[word] = words[word] | number << shift if len(words[word]) else number << shift
        return words

    def split(self, frame: pl.DataFrame) -> list[Ints]:
        words = [frame[name].to_numpy() for name in self.names]
        return [words[word] >> shift & (1 << width) - 1 for (word, shift), width in zip(self._places, self.bits)]

    def moved(self, frame: pl.DataFrame, before: _Words) -> pl.DataFrame:
        """Rows of another layout in this one."""
        words = self.join(before.split(frame))
        return pl.DataFrame([*map(pl.Series, self.names, words), frame[_NUMBER], frame[_FIRST]])

    def distinct(self, numbers: Sequence[Ints], start: int) -> pl.DataFrame:
        """The distinct rows of a batch whose first is row `start` of the table."""
        if sum(self.bits) <= _DENSE_BITS:
            return self._in_array(numbers, start)
        words = self.join(numbers)
        rows = pl.DataFrame([*map(pl.Series, self.names, words)])
        rows = rows.with_columns(pl.int_range(start, start + pl.len(), dtype=pl.Int64).alias(_FIRST))
        return rows.group_by(self.names).agg(pl.len().cast(pl.Int64).alias(_NUMBER), pl.col(_FIRST).min())

    def _in_array(self, numbers: Sequence[Ints], start: int) -> pl.DataFrame:
        key = numbers[0]
        for width, number in zip(self.bits[1:], numbers[1:]):
            key = key << width | number
        counts = np.bincount(key, minlength=1)
        there = np.flatnonzero(counts)
        first = np.zeros(len(counts), dtype=np.int64)
        # Of several that are written to one place the last one stays.
        first[key[::-1]] = np.arange(start + len(key) - 1, start - 1, -1)
        apart, rest = list[Ints](), there
        for width in reversed(self.bits):
            apart.append(rest & (1 << width) - 1)
            rest = rest >> width
        words = self.join(apart[::-1])
        return pl.DataFrame(
            [
                *map(pl.Series, self.names, words),
                pl.Series(_NUMBER, counts[there].astype(np.int64)),
                pl.Series(_FIRST, first[there]),
            ]
        )


class _Numbers:
    """A number for each value of a column, from 1 in the order in which they come; 0 is missing."""

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind
        self._stored = (pa.int64() if kind.bit_width == 64 else pa.int32()) if pa.types.is_floating(kind) else kind
        self._values = pa.nulls(0, self._stored)
        self._last: tuple[pa.Array, Ints] | None = None

    @property
    def bits(self) -> int:
        return max(1, len(self._values).bit_length())

    def add(self, column: pa.Array) -> Ints:
        """The numbers of some more values: (n,)."""
        if not isinstance(column, pa.DictionaryArray):
            column = (column.view(self._stored) if self._stored != self._kind else column).dictionary_encode()
        places = column.indices
        if places.null_count:
            places = places.fill_null(len(column.dictionary))
        found: Ints = self._numbers(column.dictionary)[pl.Series(places).to_numpy()]
        return found

    def _numbers(self, dictionary: pa.Array) -> Ints:
        """The number of each value of a dictionary, and 0 at the end."""
        if self._last is not None and len(self._last[0]) == len(dictionary) and self._last[0].equals(dictionary):
            return self._last[1]
        values = dictionary.cast(self._stored)
        places = pa.compute.index_in(values, value_set=self._values)
        if places.null_count:
            new = values.filter(places.is_null()).unique()
            self._values = pa.concat_arrays([self._values, new])
            places = pa.compute.index_in(values, value_set=self._values)
        numbers = np.append(pl.Series(places).to_numpy().astype(np.int64) + 1, 0)
        self._last = dictionary, numbers
        return numbers

    def values_of(self, numbers: Ints) -> pa.Array:
        """The values with these numbers, of the column's own type."""
        values = self._values.view(self._kind) if self._stored != self._kind else self._values
        places = pl.Series(numbers)
        return values.take((places - 1).set(places == 0, None).to_arrow())
