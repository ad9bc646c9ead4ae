"""One run of a job over a table: what every engine is given, and what it fills in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from polyseme.engines.batch import Job
from polyseme.engines.conditions import Fulfilled, require_fulfilled
from polyseme.engines.people import CHANGED, CHANGED_HINT, require_agreement, too_few_people
from polyseme.engines.tallies import DRAWS, GROUPS, PEOPLE, SETS, BatchTally, Print, Problems
from polyseme.kernel.work import Cancellation, current_cancellation
from polyseme.randomness import StreamKey
from polyseme.tables.counting.tally import Tallied
from polyseme.tables.io.shuffle import MEMORY_BYTES
from polyseme.tables.io.source import Source

__all__ = ["Outcome", "Progress", "Run", "fill", "stream_keys"]

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
    """The outcome of a run; refuses sets that would reveal values, and conditions that match no record.

    total   the tally of the whole table
    prints  how often fingerprints of each kind occur
    """
    people = prints[PEOPLE, ""]
    drawn, sets, groups = (
        {name: found for (kind, name), found in prints.items() if kind == asked} for asked in (DRAWS, SETS, GROUPS)
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
