"""The columns of a table by which records can be put together, remembered while other things are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
import polars as pl
import pyarrow as pa

from polyseme.arrays import Ints
from polyseme.attacks.audit.seen import Reading, Seen, joined, memory_of, quasi_identifiers
from polyseme.release import Release
from polyseme.tables.counting.matching import Fingerprints

__all__ = ["Columns", "Memory", "Prints"]

_HELD = 2_000_000
"""Values of a column that are held (32 MB); of longer tables, the groups of a random share of fingerprints."""
Prints: TypeAlias = Mapping[str, tuple[Ints, Fingerprints]]
"""Of each column, or combination of columns, some rows and the fingerprints of their values."""


class Columns:
    """The values of some columns, and of their combination, batch by batch.

    records  of the release: of many, a random share of fingerprints is held
    """

    def __init__(self, reading: Reading, records: int) -> None:
        share = min(_HELD / max(records, 1), 1.0)
        self._limit = np.uint64(((1 << 64) - 1) if share == 1.0 else int(share * (1 << 64)))
        self._reading, self._first = reading, 0
        self._parts: dict[str, list[tuple[Ints, Fingerprints]]] = {name: [] for name in _named(reading.names)}

    def add(self, columns: pl.DataFrame) -> None:
        """The next records, with the types that they have in the release."""
        texts = self._reading.texts(columns)
        prints = [texts[name].hash().to_numpy() for name in self._reading.names]
        if len(prints) > 1:
            prints.append(pl.DataFrame({str(place): one for place, one in enumerate(prints)}).hash_rows().to_numpy())
        for column, found in zip(self._parts.values(), prints, strict=True):
            kept = np.flatnonzero(found <= self._limit)
            column.append((self._first + kept, found[kept]))
        self._first += columns.height

    def found(self) -> Prints:
        """Rows and fingerprints of each column."""
        return {name: _joined(column) for name, column in self._parts.items()}


class Memory:
    """What is remembered of a release in one reading of its untouched columns."""

    def __init__(self, release: Release) -> None:
        self._release, self._reading = release, Reading.of(release)
        self._links, self._parts = quasi_identifiers(release), list[Seen]()
        self._columns = Columns(self._reading, release.manifest.records)

    @classmethod
    def of(cls, release: Release) -> Memory:
        """Of a whole release."""
        memory = cls(release)
        for batch in release.batches(memory._reading.names) if memory._reading.names else ():
            memory.add(batch)
        return memory

    def add(self, batch: pa.RecordBatch) -> None:
        """The next records, with their untouched columns at least."""
        if self._reading.names:
            columns = self._reading.columns(batch)
            self._parts.append(memory_of(self._reading, columns, self._links, self._release))
            self._columns.add(columns)

    def seen(self) -> Seen:
        """Enough of every record to recognize it."""
        return joined(self._parts, self._release.manifest.records)

    def columns(self) -> Prints:
        """The columns by which records can be put together."""
        return self._columns.found()


def _named(names: Sequence[str]) -> list[str]:
    """The columns, and their combination where there are several."""
    return [*names, f"combination of {', '.join(names)}"] if len(names) > 1 else list(names)


def _joined(parts: Sequence[tuple[Ints, Fingerprints]]) -> tuple[Ints, Fingerprints]:
    nothing = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint64))
    rows, prints = (np.concatenate(column) for column in zip(nothing, *parts, strict=True))
    return rows, prints
