"""The local engine: a table streams through, record batch by record batch, in bounded memory.

A loop around `publish_batch`: read ahead, publish, shuffle, write. Problems in the data are counted to the end of the
table, so that one run tells all of them; nothing is published when there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from polyseme.engines import Target, Watch
from polyseme.engines.batch import Job, check_batch, publish_batch
from polyseme.engines.rows import expanded, labelled
from polyseme.engines.run import Run, fill, stream_keys
from polyseme.engines.tallies import BatchTally, Print, Problems
from polyseme.progress import stage
from polyseme.randomness import StreamKey
from polyseme.release import Release
from polyseme.tables.counting.matching import Fingerprints
from polyseme.tables.counting.tally import HELD_BYTES, Tallied, Tally
from polyseme.tables.io.prefetch import ahead
from polyseme.tables.io.shuffle import MEMORY_BYTES, Shuffler
from polyseme.tables.io.source import Source

__all__ = ["publish", "published_tables"]

PIECE = 1 << 17
"""Rows that are expanded, labelled and written at a time."""


def publish(run: Run, target: Target, watch: Watch) -> Callable[[Release], Release]:
    """Publish a run on this machine."""
    for table in published_tables(run, target.folder, run.memory):
        run.cancellation.check()
        watch.seen(table)
        target.write(table)
    return lambda release: release


def published_tables(run: Run, folder: Path, memory: int = MEMORY_BYTES) -> Iterator[pa.Table]:
    """The published rows in random order; the run's outcome is filled on the way. Temporary files are in the folder."""
    job, source = run.job, run.source
    decoys, order = stream_keys(job.seed)
    total, people = BatchTally(), _People.begin(job, folder)
    rows = source.rows * job.rows_per_record if source.rows is not None else None
    with Shuffler(order.derive(0), folder, memory, rows=rows) as shuffler:
        done = 0
        with stage("Drawing sets", source.about) as told:
            for batch, tally, read in ahead(_published(job, source, decoys)):
                run.cancellation.check()
                total += tally.counts.moved(done)
                done += read
                people.add(tally.prints)
                for part in expanded(job, batch, PIECE) if batch is not None else ():
                    run.cancellation.check()
                    shuffler.add(part)
                run.progress(read)
                told.advance(read)
        Problems(total.problems, total.seen).raise_any(source)
        fill(run.outcome, job, total, people.counted())
        pieces = (table.slice(start, PIECE) for table in shuffler.tables() for start in range(0, table.num_rows, PIECE))
        with stage("Writing", run.outcome.rows) as told:
            for piece in ahead(labelled(job, piece, total.levels) for piece in pieces):
                yield piece
                told.advance(piece.num_rows)


def _published(job: Job, source: Source, decoys: StreamKey) -> Iterator[tuple[pa.RecordBatch | None, BatchTally, int]]:
    """Batches as they are published, what each adds, and how many rows were read for it.

    Once something is wrong nothing is drawn any more: the other batches are only searched for further problems.
    """
    wrong, read = False, 0
    for batch in source.batches(job.needed):
        if wrong:
            yield None, check_batch(job, batch), batch.num_rows
        else:
            rows = np.arange(read, read + batch.num_rows)
            published, tally = publish_batch(job, batch, decoys.records(rows))
            wrong = bool(tally.problems)
            yield published, tally, batch.num_rows
        read += batch.num_rows


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
