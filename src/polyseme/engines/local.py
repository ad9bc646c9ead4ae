"""The local engine: a table streams through in record batches, in bounded memory.

A loop around `publish_batch`: read ahead, publish in several threads, shuffle, write. Problems in the data are counted
to the end of the table, so that one run reports all of them; nothing is published when there is one.

A share of the memory that the engine may take is for rows that wait for their turn.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from polyseme.engines import Engine, Target, Watch
from polyseme.engines.batch import Job, check_batch, publish_batch, publish_some
from polyseme.engines.checks import BatchTally, Print, Problems
from polyseme.engines.run import Run, expanded, fill, labeled, stream_keys
from polyseme.kernel.arrays import Ints
from polyseme.kernel.errors import Problem, QuestionError
from polyseme.kernel.randomness import StreamKey
from polyseme.kernel.work import stage
from polyseme.release import Release
from polyseme.tables.distinct import HELD_BYTES, Tally
from polyseme.tables.io.shuffle import MEMORY_BYTES, Shuffler, ahead, in_parallel

__all__ = ["LocalEngine", "bytes_of", "publish", "published_records", "published_tables", "shuffling_memory"]

_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12} | {
    "KIB": 1 << 10,
    "MIB": 1 << 20,
    "GIB": 1 << 30,
    "TIB": 1 << 40,
}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?i?B)\s*", re.IGNORECASE)

FIXED = 448 << 20
"""What is taken whatever the table: Python and its libraries (160 MB), batches in several hands, fingerprints."""
COPIES = 2
"""Rows that wait are copied once when they are put in order."""
LEAST = 16 << 20
"""Less would mean very many small pieces."""


def bytes_of(size: str | int) -> int:
    """A size in bytes, given as such or as people write it.

    >>> bytes_of("2GB"), bytes_of("1.5 GiB"), bytes_of(1 << 30)
    (2000000000, 1610612736, 1073741824)
    """
    if isinstance(size, int) and not isinstance(size, bool):
        return size
    found = _SIZE.fullmatch(size) if isinstance(size, str) else None
    if found is None:
        raise QuestionError(
            Problem("memory", f"expected a size, got '{size}'", "a number with its unit, such as 2GB or 512MB")
        )
    return int(float(found[1]) * _UNITS[found[2].upper()])


def shuffling_memory(size: str | int) -> int:
    """What rows may take while they wait, so that the whole process stays below a size."""
    room = (bytes_of(size) - FIXED) // COPIES
    if room < LEAST:
        least = -(-(FIXED + COPIES * LEAST) // 10**6)
        raise QuestionError(
            Problem("memory", f"{size} is too little: the program itself needs {least} MB", f"--memory {least}MB")
        )
    return room


Some: TypeAlias = Callable[[pa.RecordBatch], Ints]
"""The places of some records of a batch."""
PIECE = 1 << 17
"""Rows of the long form that are made at a time."""


class LocalEngine(Engine):
    """Publishes on this machine."""

    def __call__(self, run: Run, target: Target, watch: Watch) -> Callable[[Release], Release]:
        for table in published_tables(run, target.folder, run.memory):
            run.cancellation.check()
            watch.seen(table)
            target.write(table)
        return lambda release: release


publish = LocalEngine()
"""Publishes a run on this machine."""


def published_tables(run: Run, folder: Path, memory: int = MEMORY_BYTES) -> Iterator[pa.Table]:
    """The published rows in random order; the run's outcome is filled on the way.

    Temporary files are in the folder.
    """
    job, source = run.job, run.source
    decoys, order = stream_keys(job.seed)
    whole = _Whole.begin(job, folder)
    rows = source.rows * job.rows_per_record if source.rows is not None else None
    with Shuffler(order.partitions(), folder, memory, rows) as shuffler:
        with closing(_drawn(run, _Drawing(job, decoys), whole)) as batches:
            for part in (part for batch in batches for part in expanded(job, batch, PIECE)):
                run.cancellation.check()
                shuffler.add(part)
        whole.fill(run)
        with stage("write", "Writing", run.outcome.rows) as progress:
            # One thread is enough: encoding the rows, in another one, takes longer.
            for table in ahead(labeled(job, piece(), whole.total.levels) for piece in shuffler.pieces()):
                yield table
                progress.advance(table.num_rows)


def published_records(run: Run, folder: Path, some: Some) -> Iterator[pa.Table]:
    """Some records as they are published, in the order of the table.

    Sets are drawn for no others.

    The whole table is read, and refused for what it would be refused for, but for sets that differ between strata.
    """
    whole = _Whole.begin(run.job, folder)
    batches = list(_drawn(run, _Drawing(run.job, stream_keys(run.job.seed)[0], some), whole))
    whole.fill(run)
    return (labeled(run.job, pa.Table.from_batches([batch]), whole.total.levels) for batch in batches)


def _drawn(run: Run, drawing: _Drawing, whole: _Whole) -> Generator[pa.RecordBatch]:
    """The batches of a table as published, in its order; nothing when something is wrong."""
    with stage("draw", "Drawing sets", run.source.about) as progress:
        for done in in_parallel(drawing.publish, ahead(_numbered(run.source.batches(run.job.needed)))):
            run.cancellation.check()
            whole.add(done)
            if done.batch is not None:
                yield done.batch
            run.progress(done.rows)
            progress.advance(done.rows)


def _numbered(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Batches with the row of the table at which each begins."""
    first = 0
    for batch in batches:
        yield first, batch
        first += batch.num_rows


@dataclass(frozen=True, eq=False)
class _Done:
    """A batch as it is published, or None where it was only searched for problems.

    tally        what it adds
    first, rows  where it begins in the table, and how many rows were read for it
    """

    batch: pa.RecordBatch | None
    tally: BatchTally
    first: int
    rows: int


@dataclass(eq=False)
class _Drawing:
    """Publishes batches, from several threads.

    some   the places of the records of a batch that are needed; None where all are
    wrong  whether a problem was found. Nothing is drawn from then on: other batches are only searched for further ones
    """

    job: Job
    decoys: StreamKey
    some: Some | None = None
    wrong: bool = False

    def publish(self, numbered: tuple[int, pa.RecordBatch]) -> _Done:
        first, batch = numbered
        if self.wrong:
            return _Done(None, check_batch(self.job, batch), first, batch.num_rows)
        published, tally = self._drawn(first, batch)
        if tally.problems:
            self.wrong = True
        return _Done(published, tally, first, batch.num_rows)

    def _drawn(self, first: int, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, BatchTally]:
        if self.some is None:
            rows = np.arange(first, first + batch.num_rows)
            return publish_batch(self.job, batch, self.decoys.records(rows))
        places = self.some(batch)
        return publish_some(self.job, batch, places, self.decoys.records(first + places))


@dataclass(eq=False)
class _Whole:
    """The state of the whole table: its tally, and fingerprint counts in bounded memory."""

    counters: Mapping[Print, Tally]
    total: BatchTally = field(default_factory=BatchTally)

    @classmethod
    def begin(cls, job: Job, folder: Path) -> _Whole:
        held = HELD_BYTES // len(job.prints)
        return cls({name: Tally(folder, held) for name in job.prints})

    def add(self, done: _Done) -> None:
        self.total += done.tally.counts.moved(done.first)
        for name, found in done.tally.prints.items():
            self.counters[name].add(found)

    def fill(self, run: Run) -> None:
        """Fill the outcome of a run; refuses what is wrong with the table."""
        Problems(self.total.problems, self.total.seen).raise_any(run.source)
        fill(run.outcome, run.job, self.total, {name: counter.count() for name, counter in self.counters.items()})
