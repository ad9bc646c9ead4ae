"""What a reader should hear about records that share a value: whether they share a set, and how far that links them."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from polyseme.attacks.audit.casting import united
from polyseme.attacks.audit.columns import Memory
from polyseme.attacks.audit.sampled import Sample
from polyseme.attacks.audit.shared_values import Drawn, SharedValues
from polyseme.release import Release, Sets
from polyseme.results.findings import Finding
from polyseme.results.views.formats import percent
from polyseme.tables.coding.sets import code_sets
from polyseme.tables.counting.matching import mixed
from polyseme.tables.counting.tally import Tally

__all__ = ["linked_pairs", "shared_remarks"]

_RECORDS = 5_000_000
"""Records up to which `verify` looks for groups that share a value; `attack` looks at any number."""


def shared_remarks(
    release: Release,
    findings: Sequence[Finding] | None = None,
    memory: Memory | None = None,
    drawn: Drawn | None = None,
) -> tuple[str, ...]:
    """Remarks on sets that groups share, and on values that groups share although each record has its own set.

    findings  of the adversaries, for those who have asked them
    memory    of the untouched columns, and `drawn`, the sets of rows, for those who have read them
    """
    manifest = release.manifest
    if manifest.form != "set" or not manifest.sets:
        return ()
    columns = dict.fromkeys(item.shared_by for item in manifest.sets if item.shared_by)
    told = [_linked(release, column) for column in columns]
    if findings is None and manifest.records <= _RECORDS:
        findings = _put_together(release, Memory.of(release) if memory is None else memory, drawn)
    return (*told, *(_shared(one) for one in findings or () if one.attack == "shared-value" and one.exceeded))


def _put_together(release: Release, memory: Memory, drawn: Drawn | None) -> list[Finding]:
    """For each attribute the groups by which most is learned."""
    shared = SharedValues(release, memory.seen(), memory.columns())
    sets = Sample(release, united(shared.rows())).sets if drawn is None else drawn
    found = (shared.worst(item, sets) for item in release.manifest.sets)
    return [one for one in found if one is not None]


def _shared(found: Finding) -> str:
    groups, resolved = int(found.detail["groups"]), int(found.detail["groups_resolved"])
    return (
        f"{found.attribute}: a reader knows {found.knows}. By intersecting their sets the reader is right about "
        f"{percent(found.success)} of these records; {resolved:,} of {groups:,} groups are left with one candidate. "
        "What is promised for one set does not cover that: publish one set for each group (shared-by)"
    )


def _linked(release: Release, column: str) -> str:
    items = [item for item in release.manifest.sets if item.shared_by == column]
    names = ", ".join(item.name for item in items)
    share, differing = linked_pairs(release, items), max(item.differing for item in items)
    apart = f", but for at most {percent(differing)} of the groups, whose members differ" if differing else ""
    return (
        f"{names}: all records of one group of '{column}' show one set{apart}. Equal sets link members: of all pairs "
        f"of records with equal sets, {percent(share)} belong to one group. Columns that a group shares narrow that "
        "further"
    )


def linked_pairs(release: Release, items: Sequence[Sets]) -> float:
    """The share of pairs of records with equal sets that belong to one group, at the most.

    The sum over groups of n (n - 1) follows from the stated records to a draw; that over equal sets is counted.
    """
    with tempfile.TemporaryDirectory(prefix="polyseme-") as folder:
        tally = Tally(Path(folder))
        for batch in release.batches([item.name for item in items]):
            prints = np.zeros(batch.num_rows, dtype=np.uint64)
            for item in items:
                sets = code_sets(batch.column(item.name), item.domain).regular(item.l)
                if sets is None:
                    return 1.0
                prints = mixed(prints, sets)
            tally.add(prints)
        found = tally.count()
    alike = found.squares - found.total
    same = found.total * (min(item.repeats for item in items) - 1.0)
    return min(same / alike, 1.0) if alike else 0.0
