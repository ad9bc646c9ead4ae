"""One run of a job over a table: what every engine is given, and what it fills in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from polyseme.cancellation import Cancellation
from polyseme.engines.batch import Job
from polyseme.engines.conditions import Fulfilled
from polyseme.tables.counting.tally import Tallied
from polyseme.tables.io.source import Source

__all__ = ["Outcome", "Progress", "Run"]

Progress = Callable[[int], None]
"""Told how many more rows were read."""


@dataclass
class Outcome:
    """What happened, counted while the table streams through."""

    records: int = 0
    dropped: int = 0
    rows: int = 0
    fulfilled: Fulfilled = field(default_factory=Fulfilled)
    """Which conditions of impossible combinations some record fulfils."""
    repeated: int = 0
    """Records with the record key of an earlier one; 0 where the policy names none."""
    draws: dict[str, Tallied] = field(default_factory=dict)
    """With sticky decoys, the records of each draw of a protected attribute: same person, same value."""
    changed: dict[str, int] = field(default_factory=dict)
    """Further sets of one person for one value, drawn in other strata; attributes without any are left out."""


@dataclass(frozen=True, eq=False)
class Run:
    """A job, the table it is done for, who watches it, and what came of it."""

    job: Job
    source: Source
    progress: Progress = lambda rows: None
    cancellation: Cancellation = field(default_factory=Cancellation)
    outcome: Outcome = field(default_factory=Outcome)
