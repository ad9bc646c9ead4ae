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

from polyseme.kernel.arrays import Ints, arrow
from polyseme.kernel.errors import TableError
from polyseme.kernel.work import check_cancelled
from polyseme.tables.io.columnar import FrameSource
from polyseme.tables.io.source import BATCH_ROWS, CountedRows, Part, Source, Wrapped

__all__ = ["Profile"]

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

    def _different(self, names: tuple[str, ...]) -> CountedRows | None:
        """The distinct rows of some columns with counts; None if not much fewer than the records."""
        if names not in self._counted:
            self._counted[names] = _counted_rows(self.batches(names), names, self.schema)
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
    """Batches cut anew: a reader may cut other columns into other batches."""

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


def _counted_rows(batches: Iterable[pa.RecordBatch], names: Sequence[str], schema: pa.Schema) -> CountedRows | None:
    """The distinct rows by first occurrence; None if they are too many or cannot be compared.

    Rows are the same where they have the same bits: the counts of 0.0 and -0.0 are apart.
    """
    if len(set(names)) < len(names) or not all(_comparable(schema.field(name).type) for name in names):
        return None
    found: tuple[pa.Table, Ints] | None = None
    waiting, records = list[tuple[pa.Table, Ints]](), 0
    for batch in batches:
        records += batch.num_rows
        waiting.append(_merged([(pa.Table.from_batches([batch]), np.ones(batch.num_rows, dtype=np.int64))]))
        if sum(len(counts) for _, counts in waiting) > max(BATCH_ROWS, 0 if found is None else len(found[1])):
            found, waiting = _merged([*([] if found is None else [found]), *waiting]), []
            if len(found[1]) > min(_DIFFERENT, max(records // _REPEATED, _LOOKED_AT)):
                return None
    if found is None and not waiting:
        return None
    rows, counts = _merged([*([] if found is None else [found]), *waiting])
    if len(counts) > min(_DIFFERENT, records // _FEWER):
        return None
    return rows.combine_chunks().to_batches()[0], counts


def _comparable(kind: pa.DataType) -> bool:
    types = pa.types
    return not (types.is_nested(kind) or types.is_dictionary(kind) or types.is_float16(kind) or types.is_null(kind))


def _merged(parts: Sequence[tuple[pa.Table, Ints]]) -> tuple[pa.Table, Ints]:
    """The different rows of several tables, with the sums of their counts."""
    table = pa.concat_tables([part for part, _ in parts]).combine_chunks()
    counts = np.concatenate([counts for _, counts in parts])
    keys = pl.DataFrame([_key(table.column(place), place) for place in range(table.num_columns)])
    keys = keys.with_columns(pl.Series("rows", np.arange(len(counts))), pl.Series("counts", counts))
    each = keys.group_by(pl.exclude("rows", "counts"), maintain_order=True)
    found = each.agg(pl.col("rows").first(), pl.col("counts").sum())
    return table.take(arrow(found["rows"].to_numpy())), found["counts"].to_numpy().astype(np.int64)


def _key(column: pa.ChunkedArray, place: int) -> pl.Series:
    """A column to compare; numbers with a fraction by their bits."""
    if pa.types.is_floating(column.type):
        kind = pa.int64() if column.type.bit_width == 64 else pa.int32()
        column = pa.chunked_array([chunk.view(kind) for chunk in column.chunks], kind)
    return pl.Series(str(place), pl.from_arrow(column))
