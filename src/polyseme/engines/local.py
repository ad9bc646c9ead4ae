"""The local engine: a table streams through, record batch by record batch, in bounded memory.

A loop around `publish_batch`: read ahead, publish in several threads, shuffle, write. Problems in the data are counted
to the end of the table, so that one run tells all of them; nothing is published when there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from polyseme.arrays import Ints
from polyseme.engines import Engine, Target, Watch
from polyseme.engines.batch import Job, check_batch, publish_batch, publish_some
from polyseme.engines.rows import expanded, labelled
from polyseme.engines.run import Run, fill, stream_keys
from polyseme.engines.tallies import BatchTally, Print, Problems
from polyseme.kernel.work import stage
from polyseme.randomness import StreamKey
from polyseme.release import Release
from polyseme.tables.counting.tally import HELD_BYTES, Tally
from polyseme.tables.io.prefetch import ahead, in_parallel
from polyseme.tables.io.shuffle import MEMORY_BYTES, Shuffler

__all__ = ["LocalEngine", "publish", "published_records", "published_tables"]

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
    """The published rows in random order; the run's outcome is filled on the way. Temporary files are in the folder."""
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
        with stage("write", "Writing", run.outcome.rows) as told:
            # One thread is enough: encoding the rows, in another one, takes longer.
            for table in ahead(labelled(job, piece(), whole.total.levels) for piece in shuffler.pieces()):
                yield table
                told.advance(table.num_rows)


def published_records(run: Run, folder: Path, some: Some) -> Iterator[pa.Table]:
    """Some records as they are published, in the order of the table; sets are drawn for no others.

    The whole table is read, and refused for what it would be refused for, but for sets that differ between strata.
    """
    whole = _Whole.begin(run.job, folder)
    batches = list(_drawn(run, _Drawing(run.job, stream_keys(run.job.seed)[0], some), whole))
    whole.fill(run)
    return (labelled(run.job, pa.Table.from_batches([batch]), whole.total.levels) for batch in batches)


def _drawn(run: Run, drawing: _Drawing, whole: _Whole) -> Generator[pa.RecordBatch]:
    """The batches of a table as they are published, in its order; nothing when something is wrong."""
    with stage("draw", "Drawing sets", run.source.about) as told:
        for done in in_parallel(drawing.publish, ahead(_numbered(run.source.batches(run.job.needed)))):
            run.cancellation.check()
            whole.add(done)
            if done.batch is not None:
                yield done.batch
            run.progress(done.rows)
            told.advance(done.rows)


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

    some   the places of the records of a batch that are asked for; None where all are
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
    """What is known of the whole table: its tally, and the fingerprints of all records, counted in bounded memory."""

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
