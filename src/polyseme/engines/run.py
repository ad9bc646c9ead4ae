"""One run of a job over a table: what every engine gets, what it fills in, published rows.

Records with sets of codes become published rows: the long form, and labels in place of codes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import polars as pl
import pyarrow as pa

from polyseme.engines.batch import Job
from polyseme.engines.checks import (
    DRAWS,
    GROUPS,
    PEOPLE,
    SETS,
    BatchTally,
    Fulfilled,
    Print,
    Problems,
    require_fulfilled,
)
from polyseme.kernel.arrays import Ints, arrow
from polyseme.kernel.randomness import StreamKey
from polyseme.kernel.work import Cancellation, current_cancellation
from polyseme.release import Sets
from polyseme.tables.codes import code_array, set_array
from polyseme.tables.distinct import Tallied
from polyseme.tables.io.shuffle import MEMORY_BYTES
from polyseme.tables.io.source import Source
from polyseme.tables.labels import Levels
from polyseme.tables.people import CHANGED, CHANGED_HINT, require_agreement, too_few_people

__all__ = ["Outcome", "Progress", "Run", "expanded", "fill", "labeled", "stream_keys"]

Progress = Callable[[int], None]
"""Told how many more rows were read."""


@dataclass
class Outcome:
    """What happened, counted while the table streams through."""

    records: int = 0
    dropped: int = 0
    rows: int = 0
    fulfilled: Fulfilled = field(default_factory=Fulfilled)
    """Which conditions of impossible combinations some record fulfills."""
    repeated: int = 0
    """Records with the record key of an earlier one; 0 where the policy names none."""
    draws: dict[str, Tallied] = field(default_factory=dict)
    """With sticky decoys, the records of each draw of a protected attribute: same person, same value."""
    changed: dict[str, int] = field(default_factory=dict)
    """Further sets of one person for one value, drawn in other strata; attributes without any are left out."""
    shared: dict[str, Tallied] = field(default_factory=dict)
    """The groups that share sets of an attribute (`heads`), and those whose members differ (`several`)."""


@dataclass(frozen=True, eq=False)
class Run:
    """A job, the table it is done for, who watches it, and what came of it.

    memory  bytes that rows may take while they wait to be put in order, on this machine
    """

    job: Job
    source: Source
    progress: Progress = lambda rows: None
    cancellation: Cancellation = field(default_factory=current_cancellation)
    outcome: Outcome = field(default_factory=Outcome)
    memory: int = MEMORY_BYTES


def fill(outcome: Outcome, job: Job, total: BatchTally, prints: Mapping[Print, Tallied]) -> None:
    """The outcome of a run.

    Refuses sets that would reveal values, and conditions that match no record.

    total   the tally of the whole table
    prints  how often fingerprints of each kind occur
    """
    people = prints[PEOPLE, ""]
    drawn, sets, groups = (
        {name: found for (kind, name), found in prints.items() if kind == wanted} for wanted in (DRAWS, SETS, GROUPS)
    )
    outcome.records, outcome.dropped = total.records, total.dropped
    outcome.rows, outcome.fulfilled = total.records * job.rows_per_record, total.fulfilled
    outcome.repeated = people.total - people.distinct
    outcome.draws = drawn
    changed = {name: found.distinct - drawn[name].distinct for name, found in sets.items()}
    outcome.changed = {name: count for name, count in changed.items() if count}
    outcome.shared = groups
    problems = Problems()
    if job.key is not None and job.record_key is not None and people.total:
        what, hint = too_few_people(people.total, people.distinct, job.records_per_person)
        problems.add(job.record_key, people.total if what else 0, what, hint)
    if not job.allow_changed_strata:
        for name, count in outcome.changed.items():
            problems.add(name, count, CHANGED, CHANGED_HINT)
    problems.raise_any()
    if not job.accept_differing:
        require_agreement({item.name: item.shared_by for item in job.shared}, groups)
    if total.records:
        require_fulfilled((item.attribute for item in job.sets), total.fulfilled)


def stream_keys(seed: int | None) -> tuple[StreamKey, StreamKey]:
    """One for decoys and one for the order of rows."""
    if seed is None:
        return StreamKey.fresh(), StreamKey.fresh()
    return StreamKey.seeded(f"{seed} decoys"), StreamKey.seeded(f"{seed} order")


def expanded(job: Job, batch: pa.RecordBatch, rows: int) -> Iterator[pa.RecordBatch]:
    """A published batch itself.

    In the long form, all combinations of candidates, so many rows at a time.
    """
    if job.form == "set":
        yield batch
        return
    widths = {item.name: item.l for item in job.sets}
    total = batch.num_rows * job.rows_per_record
    for start in range(0, total, rows):
        record, place = np.divmod(np.arange(start, min(start + rows, total)), job.rows_per_record)
        picks = dict(zip(widths, np.unravel_index(place, tuple(widths.values()))))
        yield _rows(job, batch, record, picks)


def _rows(job: Job, batch: pa.RecordBatch, record: Ints, picks: Mapping[str, Ints]) -> pa.RecordBatch:
    """The given records, with one candidate of each set."""
    columns = [
        arrow(_members(column, item.l)[record, picks[item.name]])
        if isinstance(item, Sets)
        else column.take(arrow(record))
        for item, column in zip(job.columns, batch.columns)
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _members(column: pa.Array, l: int) -> Ints:
    """Sets of codes: (n, l)."""
    members: Ints = pl.Series(column.flatten()).to_numpy()
    return members.reshape(-1, l)


def labeled(job: Job, table: pa.Table, levels: Levels) -> pa.Table:
    """Published rows with the labels of the domain in place of codes, and categories rebuilt.

    levels  of the whole table
    """
    for index, item in enumerate(job.columns):
        if item.name in job.labels or item.name in job.categories:
            column = table.column(index).combine_chunks()
            table = table.set_column(index, item.name, _column(job, item.name, column, levels))
    return table


def _column(job: Job, name: str, column: pa.Array, levels: Levels) -> pa.Array:
    if name not in job.labels:
        return levels.encode(name, column) if name in levels else column.dictionary_encode()
    if pa.types.is_fixed_size_list(column.type):
        return set_array(_members(column, column.type.list_size), job.labels[name])
    return code_array(pl.Series(column).to_numpy(), job.labels[name])
