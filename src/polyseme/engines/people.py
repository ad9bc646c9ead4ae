"""Whether a record key names persons, and what is refused when records of one person give away what they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from polyseme.errors import Problem, RiskError
from polyseme.randomness import SystemStream
from polyseme.tables.coding.keys import record_keys
from polyseme.tables.counting.matching import fingerprints
from polyseme.tables.counting.tally import Tallied, Tally
from polyseme.tables.io.source import Source

__all__ = [
    "AGREEMENT_HINT",
    "CHANGED",
    "CHANGED_HINT",
    "MOST_DIFFERING",
    "differing",
    "fingerprint_seed",
    "people_of",
    "require_agreement",
    "too_few_people",
]

CHANGED = (
    "sets can be intersected within this release: these people have the same value in several strata, where other "
    "decoys are possible"
)
MOST_DIFFERING = 0.01
"""The share of groups whose members may differ in what a group is to share, before that is refused."""
AGREEMENT_HINT = (
    f"at most {MOST_DIFFERING:.0%} may differ: name a column whose groups share the value, or correct the table; "
    "--accept-risk publishes all the same: members who agree share a set, the others have sets of their own"
)
CHANGED_HINT = (
    "declare impossible values by columns that do not change between the records of a person, publish one record for "
    "each person and value, or accept it: --allow-changed-strata"
)
FEW_RECORDS, MANY_RECORDS = 10, 100
"""Records a person, on average, that are nothing unusual in a small table, and in any table."""


def too_few_people(records: int, people: int, limit: float | None = None) -> tuple[str, str]:
    """What is wrong with a record key that names so few people, and what to do; empty when nothing is.

    People with sticky decoys are drawn for once, however many records they have. Up to 10 records a person are
    ordinary; up to 100 where there are at least as many people as records for each of them. Beyond that the column is
    more likely a group than a person: everybody in the group would share one set, and who knows one knows all.

    >>> too_few_people(30, 10), too_few_people(1, 1), too_few_people(50_000, 1_000)
    (('', ''), ('', ''), ('', ''))
    >>> too_few_people(1_000, 2)[0]
    'records of only 2 people: such a column does not identify people'
    """
    most = limit if limit is not None else min(max(FEW_RECORDS, people), MANY_RECORDS)
    if records <= most * people:
        return "", ""
    hint = (
        f"name the column that identifies people as record-key; if they do have {records / people:,.0f} records each, "
        f"say so: --records-per-person {-(-records // people)}"
    )
    return f"records of only {people:,} people: such a column does not identify people", hint


def differing(column: str, found: Tallied) -> str:
    """How many groups do not share what they are to share, in words; empty where all do.

    >>> differing("household", Tallied(heads=200, several=3))
    "3 of 200 groups of 'household' have members with different values, or under different conditions"
    """
    if not found.several:
        return ""
    return (
        f"{found.several:,} of {found.heads:,} groups of '{column}' have members with different values, or under "
        "different conditions"
    )


def require_agreement(columns: Mapping[str, str], found: Mapping[str, Tallied]) -> None:
    """Refuse groups that are to share a set where more than a few have members that differ.

    columns  of each attribute, the column that tells groups
    found    what was counted of these groups
    """
    problems = [
        Problem(f"$.attributes.{name}.shared-by", differing(columns[name], groups), AGREEMENT_HINT)
        for name, groups in found.items()
        if groups.several > MOST_DIFFERING * groups.heads
    ]
    if problems:
        raise RiskError(problems)


def people_of(source: Source, name: str, missing_values: Sequence[str], folder: Path) -> Tallied:
    """How many records and people there are."""
    tally, seed = Tally(folder), fingerprint_seed()
    for batch, counts in source.counted([name]):
        keys = record_keys(batch.column(name), name, missing_values)
        prints, known = fingerprints(keys.to_frame(), seed), keys.is_not_null().to_numpy()
        tally.add(prints[known], None if counts is None else counts[known])
    return tally.count()


def fingerprint_seed() -> int:
    """A seed for the fingerprints of one run, so that record keys cannot be found by trying them."""
    return int(SystemStream().words(1)[0])
