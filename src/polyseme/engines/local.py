"""The local engine: a table streams through, record batch by record batch, in bounded memory.

A loop around `publish_batch`: read ahead, publish, shuffle, write. Problems in the data are counted to the end of the
table, so that one run tells all of them; nothing is published when there is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from polyseme.engines.batch import Job, check_batch, publish_batch
from polyseme.engines.conditions import require_fulfilled
from polyseme.engines.people import CHANGED, CHANGED_HINT, too_few_people
from polyseme.engines.rows import expanded, labelled
from polyseme.engines.run import Outcome, Run
from polyseme.engines.tallies import DRAWS, PEOPLE, SETS, BatchTally, Print, Problems
from polyseme.progress import stage
from polyseme.randomness import StreamKey
from polyseme.tables.counting.matching import Fingerprints
from polyseme.tables.counting.tally import HELD_BYTES, Tallied, Tally
from polyseme.tables.io.prefetch import ahead
from polyseme.tables.io.shuffle import MEMORY_BYTES, Shuffler
from polyseme.tables.io.source import Source

__all__ = ["published_tables"]

PIECE = 1 << 17
"""Rows that are expanded, labelled and written at a time."""


def published_tables(run: Run, folder: Path, memory: int = MEMORY_BYTES) -> Iterator[pa.Table]:
    """The published rows in random order; the run's outcome is filled on the way. Temporary files are in the folder."""
    job, source = run.job, run.source
    decoys, order = _stream_keys(job.seed)
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
        _report(job, total, people, run.outcome)
        pieces = (table.slice(start, PIECE) for table in shuffler.tables() for start in range(0, table.num_rows, PIECE))
        with stage("Writing", run.outcome.rows) as told:
            for piece in ahead(labelled(job, piece, total.levels) for piece in pieces):
                yield piece
                told.advance(piece.num_rows)


def _stream_keys(seed: int | None) -> tuple[StreamKey, StreamKey]:
    """One for decoys and one for the order of rows."""
    if seed is None:
        return StreamKey.fresh(), StreamKey.fresh()
    return StreamKey.seeded(f"{seed} decoys"), StreamKey.seeded(f"{seed} order")


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

    def count(self, kind: str) -> dict[str, Tallied]:
        """How often fingerprints of a kind occur, by attribute."""
        return {name: counter.count() for (found, name), counter in self.counters.items() if found == kind}


def _report(job: Job, total: BatchTally, seen: _People, outcome: Outcome) -> None:
    """Fill the outcome; refuses sets that would give people away, and conditions that are about nobody."""
    people, sets = seen.count(PEOPLE)[""], seen.count(SETS)
    outcome.records, outcome.dropped = total.records, total.dropped
    outcome.rows, outcome.fulfilled = total.records * job.rows_per_record, total.fulfilled
    outcome.repeated = people.total - people.distinct
    outcome.draws = seen.count(DRAWS)
    changed = {name: found.distinct - outcome.draws[name].distinct for name, found in sets.items()}
    outcome.changed = {name: count for name, count in changed.items() if count}
    problems = Problems()
    if job.key is not None and job.record_key is not None and people.total:
        what, hint = too_few_people(people.total, people.distinct, job.records_per_person)
        problems.add(job.record_key, people.total if what else 0, what, hint)
    if not job.allow_changed_strata:
        for name, count in outcome.changed.items():
            problems.add(name, count, CHANGED, CHANGED_HINT)
    problems.raise_any()
    if total.records:
        require_fulfilled((item.attribute for item in job.sets), total.fulfilled)
