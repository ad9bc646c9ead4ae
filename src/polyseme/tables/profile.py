"""A table that is read once: what was read is held, to answer later questions.

    known = Profile(table)
    known.hold(["age", "sex"])     # one pass over these columns
    plan(policy, data=known)       # and again for another policy, without a pass

Texts are held as places in a list of the different ones of each batch. Columns that take more memory than a profile may
have are not held, the largest first: they are read from the table each time. A profile holds values of the original and
belongs to the data holder; its text tells none of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from polyseme.tables.io.columnar import FrameSource
from polyseme.tables.io.source import CountedRows, Part, Source, Wrapped

__all__ = ["Profile"]

_HELD_BYTES = 1 << 30
"""What is held of a table at the most: some thirty million records of ten columns of short texts."""
_REPEATED = 2
"""Records that a text of a batch must have on average for a list of the different ones to be shorter."""


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


class Profile(Wrapped):
    """A table of which every column is read at most once.

    most  bytes that are held
    """

    def __init__(self, source: Source, most: int = _HELD_BYTES) -> None:
        super().__init__(source)
        self._most = most
        self._pieces: dict[str, list[_Piece]] = {}
        self._sizes: list[int] | None = None
        self._rows: int | None = None
        self._bytes: dict[str, int] = {}
        self._large: set[str] = set()
        self._heads: dict[tuple[str, ...], pa.RecordBatch | None] = {}

    def __repr__(self) -> str:
        return f"<Profile of {self.name}, {len(self._pieces)} of {len(self.schema.names)} columns held>"

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
        return next(([name] for name in self._pieces), self.inner.lightest)

    def hold(self, names: Sequence[str]) -> None:
        """Read these columns, in one pass over those that were not read before."""
        new = [name for name in dict.fromkeys(names) if name not in self._pieces and name not in self._large]
        if not new or not self.holds:
            return
        found: dict[str, list[_Piece]] = {name: [] for name in new}
        sizes = []
        for batch in self.inner.batches(new):
            sizes.append(batch.num_rows)
            for name in list(found):
                piece = _Piece.of(batch.column(new.index(name)))
                found[name].append(piece)
                self._bytes[name] = self._bytes.get(name, 0) + piece.bytes
            self._give_up(found)
            if not found:
                return
        if self._sizes in (None, sizes):
            self._pieces, self._sizes, self._rows = self._pieces | found, sizes, sum(sizes)
        else:
            # A reader that cuts other columns into other batches: these are read each time.
            self._large |= found.keys()

    @property
    def holds(self) -> bool:
        """Whether anything is held: not for a table in memory, or counted where it is kept."""
        return self._most > 0 and not isinstance(self.inner, FrameSource) and not self.inner.aggregates

    def _give_up(self, found: dict[str, list[_Piece]]) -> None:
        """Let go of the largest columns where too much is held."""
        while sum(self._bytes.values()) > self._most:
            name = max(self._bytes, key=lambda name: self._bytes[name])
            self._large.add(name)
            del self._bytes[name]
            for held in (found, self._pieces):
                held.pop(name, None)

    def _is_held(self, columns: Sequence[str]) -> bool:
        return self._sizes is not None and bool(columns) and self._pieces.keys() >= set(columns)

    def _read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        self.hold(columns)
        if not self._is_held(columns):
            yield from self.inner.batches(columns)
            return
        for place in range(len(self._sizes or ())):
            yield self._batch(place, columns)

    def _batch(self, place: int, columns: Sequence[str]) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([self._pieces[name][place].column for name in columns], names=list(columns))

    def counted(self, columns: Sequence[str] | None = None) -> Iterator[CountedRows]:
        names = list(self.schema.names if columns is None else columns)
        if not self.holds:
            yield from self.inner.counted(names)
            return
        for batch in self.batches(names):
            yield batch, None

    def head(self, columns: Sequence[str]) -> pa.RecordBatch | None:
        if self._is_held(columns):
            return next(self.batches(columns), None)
        names = tuple(columns)
        if names not in self._heads:
            self._heads[names] = self.inner.head(columns)
        return self._heads[names]

    def _read_part(self, part: Part, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return self.inner.read_part(part, columns)
