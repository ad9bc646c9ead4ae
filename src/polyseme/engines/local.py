"""The local engine: a table streams through, record batch by record batch, in bounded memory.

A loop around `publish_batch`: read ahead, publish in several threads, shuffle, write. Problems in the data are counted
to the end of the table, so that one run tells all of them; nothing is published when there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from polyseme.engines import Engine, Target, Watch
from polyseme.engines.batch import Job, check_batch, publish_batch
from polyseme.engines.rows import expanded, labelled
from polyseme.engines.run import Run, fill, stream_keys
from polyseme.engines.tallies import BatchTally, Print, Problems
from polyseme.kernel.work import stage
from polyseme.randomness import StreamKey
from polyseme.release import Release
from polyseme.tables.counting.matching import Fingerprints
from polyseme.tables.counting.tally import HELD_BYTES, Tallied, Tally
from polyseme.tables.io.prefetch import ahead, in_parallel
from polyseme.tables.io.shuffle import MEMORY_BYTES, Shuffler

__all__ = ["LocalEngine", "publish", "published_tables"]

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
    total, people = BatchTally(), _People.begin(job, folder)
    rows = source.rows * job.rows_per_record if source.rows is not None else None
    drawing = _Drawing(job, decoys)
    with Shuffler(order.partitions(), folder, memory, rows) as shuffler:
        with stage("draw", "Drawing sets", source.about) as told:
            for done in in_parallel(drawing.publish, ahead(_numbered(source.batches(job.needed)))):
                run.cancellation.check()
                total += done.tally.counts.moved(done.first)
                people.add(done.tally.prints)
                for part in expanded(job, done.batch, PIECE) if done.batch is not None else ():
                    run.cancellation.check()
                    shuffler.add(part)
                run.progress(done.rows)
                told.advance(done.rows)
        Problems(total.problems, total.seen).raise_any(source)
        fill(run.outcome, job, total, people.counted())
        with stage("write", "Writing", run.outcome.rows) as told:
            # One thread is enough: encoding the rows, in another one, takes longer.
            for table in ahead(labelled(job, piece(), total.levels) for piece in shuffler.pieces()):
                yield table
                told.advance(table.num_rows)


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

    wrong  whether a problem was found. Nothing is drawn from then on: other batches are only searched for further ones
    """

    job: Job
    decoys: StreamKey
    wrong: bool = False

    def publish(self, numbered: tuple[int, pa.RecordBatch]) -> _Done:
        first, batch = numbered
        if self.wrong:
            return _Done(None, check_batch(self.job, batch), first, batch.num_rows)
        rows = np.arange(first, first + batch.num_rows)
        published, tally = publish_batch(self.job, batch, self.decoys.records(rows))
        if tally.problems:
            self.wrong = True
        return _Done(published, tally, first, batch.num_rows)


@dataclass(frozen=True)
class _People:
    """The fingerprints of all records, counted in bounded memory."""

    counters: Mapping[Print, Tally]

    @classmethod
    def begin(cls, job: Job, folder: Path) -> _People:
        held = HELD_BYTES // len(job.prints)
        return cls({name: Tally(folder, held) for name in job.prints})

    def add(self, prints: Mapping[Print, Fingerprints]) -> None:
        for name, found in prints.items():
            self.counters[name].add(found)

    def counted(self) -> dict[Print, Tallied]:
        """How often fingerprints of each kind occur."""
        return {name: counter.count() for name, counter in self.counters.items()}
