"""A uniform random order for a table of any size, in bounded memory.

Rows wait in memory; when they become too many, each goes to one of many temporary files, chosen at random. At the end
each file is read back and put in random order. Independent uniform choices of a file, then a uniform order within each,
make every order of the whole table equally likely.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc

from polyseme.randomness import SystemStream

__all__ = ["Shuffler"]

MEMORY_BYTES = 64 << 20
"""What may wait in memory; a larger table waits in files."""
FILES = 256
"""Temporary files at the most; as many are used as make each of them half the memory, when the size is known."""


class Shuffler:
    """Takes batches in any order, gives them back shuffled."""

    def __init__(
        self,
        stream: SystemStream,
        folder: Path,
        memory: int = MEMORY_BYTES,
        files: int = FILES,
        rows: int | None = None,
    ) -> None:
        self._stream = stream
        self._parent = folder
        self._memory = memory
        self._files = files
        self._rows = rows
        self._waiting: list[pa.RecordBatch] = []
        self._bytes = 0
        self._folder: Path | None = None
        self._writers: dict[int, Any] = {}

    def __enter__(self) -> Shuffler:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for writer in self._writers.values():
            writer.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def add(self, batch: pa.RecordBatch) -> None:
        """Take a batch."""
        self._waiting.append(batch)
        self._bytes += batch.nbytes
        if self._bytes > self._memory:
            self._spill()

    def _table(self) -> pa.Table:
        table = pa.Table.from_batches(self._waiting).combine_chunks()
        self._waiting, self._bytes = [], 0
        return table

    def _spill(self) -> None:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix=".shuffle-", dir=self._parent))
            waiting = sum(batch.num_rows for batch in self._waiting)
            expected = self._bytes * (self._rows or 0) / max(waiting, 1)
            self._files = min(self._files, max(2, int(2 * expected / self._memory) + 1)) if expected else self._files
        table = self._table()
        # Small integers are sorted by counting, in one pass.
        place = self._stream.integers(self._files, table.num_rows).astype(np.uint16)
        order = np.argsort(place, kind="stable")
        bounds = np.searchsorted(place[order], np.arange(self._files + 1))
        table = table.take(order).combine_chunks()
        for index in range(self._files):
            if bounds[index + 1] > bounds[index]:
                part = table.slice(bounds[index], bounds[index + 1] - bounds[index])
                self._writer(index, table.schema).write_table(part)

    def _writer(self, index: int, schema: pa.Schema) -> Any:
        if index not in self._writers:
            self._writers[index] = pa.ipc.new_stream(self._file(index), schema)
        return self._writers[index]

    def _file(self, index: int) -> Path:
        if self._folder is None:
            raise RuntimeError("nothing was spilled")
        return self._folder / f"{index}.arrow"

    def tables(self) -> Iterator[pa.Table]:
        """Everything that was added, in a uniform random order, in a few large pieces."""
        if self._folder is None:
            if self._waiting:
                yield self._ordered(self._table())
            return
        if self._waiting:
            self._spill()
        for index, writer in sorted(self._writers.items()):
            writer.close()
            with pa.ipc.open_stream(self._file(index)) as reader:
                table = reader.read_all()
            self._file(index).unlink()
            yield self._ordered(table)
        self._writers = {}

    def _ordered(self, table: pa.Table) -> pa.Table:
        return table.unify_dictionaries().combine_chunks().take(self._stream.permutation(table.num_rows))
