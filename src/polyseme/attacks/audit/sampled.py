"""The records that adversaries are shown, read together: sets of many attributes, and untouched columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TypeAlias

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from polyseme.arrays import Ints, arrow
from polyseme.attacks.audit.seen import Reading
from polyseme.errors import ReleaseError
from polyseme.release import Release, Sets
from polyseme.tables.blocks import Blocks
from polyseme.tables.coding.sets import code_sets
from polyseme.tables.counting.matching import Fingerprints

__all__ = ["Levels", "Sample"]

Held: TypeAlias = NDArray[np.int32] | None
"""Sets as they are kept, in half the room; None where not all of them are valid."""

_MOST = 64_000_000
"""Candidates that are held at a time (256 MB): three each of 200,000 records for a hundred attributes."""


class Levels:
    """Untouched columns of some records as codes, batch by batch: eight bytes a cell, whatever they hold."""

    def __init__(self, reading: Reading, rows: Ints) -> None:
        self._reading, self._rows, self._start = reading, rows, 0
        self._parts: list[Fingerprints] = []

    def add(self, batch: pa.RecordBatch) -> None:
        """The next records; only those of `rows` are looked at."""
        chosen = _chosen(self._rows, self._start, batch.num_rows)
        self._start += batch.num_rows
        texts = self._reading.texts(self._reading.columns(_taken(batch.select(list(self._reading.names)), chosen)))
        self._parts.append(_hashes(texts))

    def codes(self) -> Ints:
        """Equal values of a column have equal codes: (n, q)."""
        prints = np.concatenate([_hashes(pl.DataFrame({name: [] for name in self._reading.names})), *self._parts])
        return np.column_stack([np.unique(column, return_inverse=True)[1] for column in prints.T])


def _hashes(texts: pl.DataFrame) -> Fingerprints:
    return np.column_stack([series.hash().to_numpy() for series in texts])


class Sample:
    """Some records of a release.

    rows       for each attribute, the rows whose sets are shown, ascending
    described  the rows whose untouched columns are shown, ascending
    """

    def __init__(self, release: Release, rows: Mapping[str, Ints], described: Ints | None = None) -> None:
        self.release, self._rows = release, rows
        self._items = {item.name: item for item in release.manifest.sets if item.name in rows}
        self._blocks = Blocks(list(self._items), self._cost, self._read, _MOST)
        self._described = described if Reading.of(release).names else None
        self._levels: Ints | None = None

    def sets(self, item: Sets, rows: Ints) -> Ints:
        """The sets of some rows."""
        found = self._blocks[item.name]
        if found is None:
            raise ReleaseError(f"column '{item.name}': not every cell is a valid set", "run polyseme verify")
        return found[np.searchsorted(self._rows[item.name], rows)].astype(np.int64)

    def features(self, rows: Ints) -> Ints | None:
        """The untouched columns of some rows as codes; None where there are none."""
        if self._described is None:
            return None
        if self._levels is None:
            self._read([])
        levels = self._levels
        if levels is None or len(rows) == len(self._described):
            return levels
        return levels[np.searchsorted(self._described, rows)]

    @cached_property
    def _reading(self) -> Reading:
        return Reading.of(self.release)

    def _cost(self, name: str) -> int:
        return len(self._rows[name]) * self._items[name].l

    def _read(self, names: Sequence[str]) -> dict[str, Held]:
        """The sets of some attributes; the first reading also looks at the untouched columns."""
        first = self._levels is None and self._described is not None
        levels = Levels(self._reading, self._described) if first and self._described is not None else None
        parts: dict[str, list[Held]] = {name: [] for name in names}
        start = 0
        columns = [*names, *(self._reading.names if levels is not None else ())]
        for batch in self.release.batches(columns):
            for name in names:
                parts[name].append(self._coded(batch, name, start))
            if levels is not None:
                levels.add(batch)
            start += batch.num_rows
        if levels is not None:
            self._levels = levels.codes()
        return {name: _joined(found, self._items[name].l, len(self._rows[name])) for name, found in parts.items()}

    def _coded(self, batch: pa.RecordBatch, name: str, start: int) -> Held:
        item, chosen = self._items[name], _chosen(self._rows[name], start, batch.num_rows)
        sets = code_sets(_taken(batch.select([name]), chosen).column(0), item.domain).regular(item.l)
        return None if sets is None else sets.astype(np.int32)


def _chosen(rows: Ints, start: int, count: int) -> Ints:
    """Which of the next `count` records are among the rows."""
    begin, end = np.searchsorted(rows, [start, start + count])
    return rows[begin:end] - start


def _taken(batch: pa.RecordBatch, chosen: Ints) -> pa.RecordBatch:
    return batch if len(chosen) == batch.num_rows else batch.take(arrow(chosen))


def _joined(parts: Sequence[Held], width: int, rows: int) -> Held:
    """The sets of all batches; None when some are not valid, or missing."""
    none = np.zeros((0, width), dtype=np.int32)
    sets = np.concatenate([none, *(part for part in parts if part is not None)])
    return sets if len(sets) == rows else None
