"""A uniform random order for a table of any size, in bounded memory, and prefetching.

Rows wait in memory. When they become too many they go to a temporary file, in runs: the rows of a run are put together
by the *part* of the table that each is drawn into, independently and uniformly. At the end the rows of one part are
fetched from all runs and put in random order, part after part. Independent uniform choices of a part, then a uniform
order within each, make every order of the whole table equally likely.

A part is small enough for its rows to be in the cache while they change places. The file has no name where the system
allows that: even a process that is killed leaves no row behind.

Batches are prefetched in background threads. Arrow, polars, numpy and the cipher work outside the interpreter's lock
most of the time, so threads fill the cores. In each case only a few pieces wait, however many there are.
"""

from __future__ import annotations

import os
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from itertools import islice
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import IO, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.ipc

from polyseme.kernel.arrays import Ints, arrow
from polyseme.kernel.randomness import SystemStream

__all__ = ["MEMORY_BYTES", "Shuffler", "ahead", "in_parallel"]

Item = TypeVar("Item")
Result = TypeVar("Result")

_MOST_THREADS = 8
"""Beyond that, the consumer of the pieces is the slowest, and memory would grow for nothing."""


def ahead(items: Iterable[Item]) -> Iterator[Item]:
    """The same items in the same order, each made in a thread while the previous is used.

    >>> list(ahead(range(3)))
    [0, 1, 2]
    """
    source = iter(items)

    def following() -> list[Item]:
        return list(islice(source, 1))

    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(following)
        while item := coming.result():
            coming = pool.submit(following)
            yield item[0]


def in_parallel(work: Callable[[Item], Result], items: Iterable[Item], threads: int | None = None) -> Iterator[Result]:
    """What `work` makes of each item, in order, in several threads (default: all cores).

    The items themselves are made by the consumer of the results.

    >>> list(in_parallel(str, range(3)))
    ['0', '1', '2']
    """
    threads = threads or min(_cores(), _MOST_THREADS)
    coming: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for item in items:
                coming.append(pool.submit(work, item))
                if len(coming) > threads:
                    yield coming.popleft().result()
            while coming:
                yield coming.popleft().result()
        finally:
            for future in coming:
                future.cancel()


def _cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


MEMORY_BYTES = 64 << 20
"""What may wait in memory; a larger table waits in a file."""
_PARTS = 256
"""Parts of a table whose size is not known; those that turn out too large are shuffled like tables of their own."""
_MOST_PARTS = 1_024
"""More would make pieces so small that describing them takes longer than writing them."""
_PART_ROWS = 1 << 18
"""Rows to a part at the most: a column of numbers then is two megabytes. Measured on ten million rows of four columns,
the last step takes 0.3 s like this, and 1.5 s with parts of two million rows."""
_RUNS = 4
"""Runs to what may wait in memory: one is filled while another one is put in order and written."""


class Shuffler:
    """Takes batches in any order, gives them back shuffled.

    Values stand in place of dictionaries.

    streams  as many as it asks for, one after the other
    memory   bytes that may wait
    rows     how many there will be, if that is known
    """

    def __init__(
        self, streams: Iterator[SystemStream], folder: Path, memory: int = MEMORY_BYTES, rows: int | None = None
    ) -> None:
        self._streams, self._folder, self._memory, self._rows = streams, folder, memory, rows
        self._waiting: list[pa.RecordBatch] = []
        self._bytes = 0
        self._spill: _Spill | None = None
        self._open = ExitStack()

    def __enter__(self) -> Shuffler:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._waiting = []
        self._open.close()

    def add(self, batch: pa.RecordBatch) -> None:
        """Take a batch."""
        self._waiting.append(_without_dictionaries(batch))
        self._bytes += batch.nbytes
        if self._bytes > (self._memory if self._may_fit else self._memory // _RUNS):
            self._write_waiting()

    @property
    def _may_fit(self) -> bool:
        """Whether all rows may find room in memory, as far as is known."""
        return self._spill is None and (self._rows is None or self._expected_bytes(self._rows) <= self._memory)

    def _expected_bytes(self, rows: int) -> float:
        """How much so many rows will take if they are like those that wait."""
        return self._bytes * rows / max(sum(int(batch.num_rows) for batch in self._waiting), 1)

    def _write_waiting(self) -> None:
        if self._spill is None:
            self._spill = self._open.enter_context(_Spill(self._folder, self._parts_expected()))
        waiting, self._waiting, self._bytes = self._waiting, [], 0
        for run in _runs(waiting, self._memory // _RUNS):
            self._spill.write(run, next(self._streams))

    def _parts_expected(self) -> int:
        if self._rows is None:
            return _PARTS
        return _parts(self._rows, self._expected_bytes(self._rows), self._memory)

    def tables(self) -> Iterator[pa.Table]:
        """Everything that was added, in a uniform random order, in many pieces."""
        return in_parallel(lambda piece: piece(), self.pieces())

    def pieces(self) -> Iterator[Callable[[], pa.Table]]:
        """The same before it is done: each piece can be made in its own thread within the block."""
        if self._spill is None:
            yield from self._pieces_in_memory()
            return
        if self._waiting:
            self._write_waiting()
        self._spill.finish()
        for part, (rows, size) in enumerate(self._spill.sizes()):
            if size > self._memory and rows > 1:
                yield from self._smaller(part, rows)
            elif rows:
                yield partial(_ordered, partial(self._spill.read, part), next(self._streams))

    def _pieces_in_memory(self) -> Iterator[Callable[[], pa.Table]]:
        waiting, self._waiting = self._waiting, []
        parts = _parts(sum(batch.num_rows for batch in waiting), self._bytes, self._memory, least=1)
        runs = [_by_part(run, parts, next(self._streams)) for run in _runs(waiting, self._memory // _RUNS)]
        for part in range(parts):
            if any(bounds[part + 1] > bounds[part] for _, bounds in runs):
                yield partial(_ordered, partial(_joined, runs, part), next(self._streams))

    def _smaller(self, part: int, rows: int) -> Iterator[Callable[[], pa.Table]]:
        """The pieces of a part that is too large: a table of its own."""
        inner = self._open.enter_context(Shuffler(self._streams, self._folder, self._memory, rows))
        if self._spill is not None:
            for batch in self._spill.batches(part):
                inner.add(batch)
        yield from inner.pieces()


class _Spill:
    """The temporary file: for each run a record batch for each part, in the order of the parts.

    Runs are put in order and written in another thread, one at a time.
    """

    def __init__(self, folder: Path, parts: int) -> None:
        self._parts, self._schema = parts, pa.schema([])
        self._file: IO[bytes] = tempfile.TemporaryFile(prefix=".shuffle-", dir=folder)  # noqa: SIM115 - closed below
        self._pool = ThreadPoolExecutor(1)
        self._writing: Future[None] | None = None
        self._reading = Lock()
        self._ends: list[Ints] = []
        self._counts: list[Ints] = []
        self._bytes = 0

    def __enter__(self) -> _Spill:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown()
        self._file.close()

    def write(self, run: Sequence[pa.RecordBatch], stream: SystemStream) -> None:
        """Take a run; waits until the one before it is written."""
        self.finish()
        self._writing = self._pool.submit(self._write, run, stream)

    def finish(self) -> None:
        """Wait until everything is written; raises what went wrong."""
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.result()

    def _write(self, run: Sequence[pa.RecordBatch], stream: SystemStream) -> None:
        batch, bounds = _by_part(run, self._parts, stream)
        self._schema = batch.schema
        ends, end = np.empty(self._parts, dtype=np.int64), self._end
        for part in range(self._parts):
            start, stop = bounds[part], bounds[part + 1]
            if stop > start:
                end += self._file.write(batch.slice(start, stop - start).serialize())
            ends[part] = end
        self._ends.append(ends)
        self._counts.append(np.diff(bounds))
        self._bytes += batch.nbytes

    @property
    def _end(self) -> int:
        return int(self._ends[-1][-1]) if self._ends else 0

    def sizes(self) -> list[tuple[int, int]]:
        """How many rows and, about, bytes each part has."""
        counts = np.sum(self._counts, axis=0)
        average = self._bytes / max(int(counts.sum()), 1)
        return [(rows, int(rows * average)) for rows in counts.tolist()]

    def batches(self, part: int) -> Iterator[pa.RecordBatch]:
        """The rows of a part, run by run."""
        before = 0
        for ends, counts in zip(self._ends, self._counts):
            start = int(ends[part - 1]) if part else before
            before = int(ends[-1])
            if counts[part]:
                yield pa.ipc.read_record_batch(self._bytes_between(start, int(ends[part])), self._schema)

    def read(self, part: int) -> pa.Table:
        """The rows of a part."""
        return pa.Table.from_batches(self.batches(part), self._schema)

    def _bytes_between(self, start: int, stop: int) -> pa.Buffer:
        with self._reading:
            self._file.seek(start)
            return pa.py_buffer(self._file.read(stop - start))


def _without_dictionaries(batch: pa.RecordBatch) -> pa.RecordBatch:
    columns = [
        column.dictionary_decode() if pa.types.is_dictionary(column.type) else column for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _runs(waiting: list[pa.RecordBatch], size: int) -> Iterator[list[pa.RecordBatch]]:
    """The waiting rows in runs of about that size, removed so that no row is long held twice."""
    waiting.reverse()
    while waiting:
        run = [waiting.pop()]
        total = run[0].nbytes
        while waiting and total < size:
            run.append(waiting.pop())
            total += run[-1].nbytes
        yield run


def _parts(rows: int, size: float, memory: int, least: int = 2) -> int:
    """Into how many parts a table is divided: a power of two, for which random bits are enough."""
    wanted = max(rows / _PART_ROWS, _RUNS * size / memory if least > 1 else 0)
    most = _MOST_PARTS
    return next((1 << bits for bits in range(least - 1, most.bit_length()) if 1 << bits >= wanted), most)


def _by_part(batches: Sequence[pa.RecordBatch], parts: int, stream: SystemStream) -> tuple[pa.RecordBatch, Ints]:
    """The rows by the part each is drawn into, and the boundaries of the parts."""
    table = pa.Table.from_batches(batches)
    if parts > 1:
        drawn = stream.bits(parts.bit_length() - 1, table.num_rows)
        bounds = np.append(0, np.cumsum(np.bincount(drawn, minlength=parts)))
        # Small integers are sorted by counting, in one pass.
        return _whole(_whole(table).take(arrow(np.argsort(drawn, kind="stable")))), bounds
    return _whole(table), np.array([0, table.num_rows])


def _whole(table: pa.Table | pa.RecordBatch) -> pa.RecordBatch:
    """A table in one batch."""
    if isinstance(table, pa.RecordBatch):
        return table
    columns = [column.combine_chunks() for column in table.columns]
    return pa.RecordBatch.from_arrays(columns, schema=table.schema)


def _joined(runs: Sequence[tuple[pa.RecordBatch, Ints]], part: int) -> pa.Table:
    """The rows of a part from all runs."""
    slices = [batch.slice(bounds[part], bounds[part + 1] - bounds[part]) for batch, bounds in runs]
    return pa.Table.from_batches(slices)


def _ordered(read: Callable[[], pa.Table], stream: SystemStream) -> pa.Table:
    """The rows of a part in a uniform random order."""
    table = read().combine_chunks()
    return table.take(arrow(stream.permutation(table.num_rows)))
