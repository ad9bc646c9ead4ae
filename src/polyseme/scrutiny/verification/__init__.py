"""Can these sets have come from that mechanism?

The evidence that `verify` judges and that `estimate` warns of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from polyseme.designs.mechanism import Mechanism
from polyseme.inference.base import Reports
from polyseme.inference.counts import Part, distinct
from polyseme.kernel.arrays import Ints
from polyseme.release import Manifest, Sets
from polyseme.scrutiny.verification.evidence import (
    Evidence,
    Finding,
    contained_evidence,
    impossible,
    listable,
    listed_evidence,
    nothing,
    sampled_evidence,
    thinned,
)

__all__ = [
    "LEVEL",
    "UNKNOWN_REPEATS",
    "Evidence",
    "Finding",
    "doubts",
    "examine",
    "impossible",
    "level_of",
    "nothing",
    "repeats_of",
    "together",
]

LEVEL = 2e-4
"""How often, at most, all tests of an honest release together find something: one release in 5,000 is wrongly doubted.
Chosen by judgment; what it comes to is measured in `benchmarks/evidence.py` (figures: docs/verification.md)."""

UNKNOWN_REPEATS = 100.0
"""How many records a person may have where decoys are sticky and the manifest does not say: chosen by judgment, on the
side of not doubting an honest release."""

_UNEVEN = 3.0
"""People do not have equally many records: this many times the average are taken for one. Chosen by judgment."""
_ROWS = 2_000_000
"""Sets that are looked at, for the sake of memory and time; the level of the test does not depend on it."""


def examine(reports: Reports, mechanism: Mechanism, target: int = 0, repeats: float = 1.0) -> Evidence:
    """The evidence of the reports of one attribute, whatever their cells.

    target   which of the reports' attributes
    repeats  how many records one draw stands for: with sticky decoys people publish the same set again and again
    """
    scale = 1.0 if repeats <= 1.0 else _UNEVEN * repeats
    sets, counts = reports.sets[target], reports.counts
    if not len(counts):
        return nothing(0.0, "there are no records")
    if not reports.paired:
        contained = np.bincount(sets.ravel(), counts.astype(np.float64), mechanism.size)
        return contained_evidence(contained / scale, mechanism)
    sets, counts = _merged(*_fewer(sets, counts), mechanism.size)
    if not listable(mechanism):
        return sampled_evidence(sets, counts, mechanism, scale)
    return listed_evidence(sets, counts / scale, mechanism)


def _fewer(sets: Ints, counts: Ints) -> tuple[Ints, Ints]:
    """Few enough rows to bring together quickly."""
    return thinned(sets, counts, _ROWS) if len(counts) > _ROWS else (sets, counts)


def _merged(sets: Ints, counts: Ints, size: int) -> tuple[Ints, Ints]:
    """Equal sets together."""
    rows, place = distinct(sets, size)
    return rows, np.bincount(place, counts.astype(np.float64), len(rows)).astype(np.int64)


def together(found: Sequence[Evidence]) -> Evidence:
    """The evidence of several groups of records: that of the worst one, and their number."""
    worst = min(found, key=lambda item: item.p_value)
    p_value = min(worst.p_value * len(found), 1.0)
    return replace(worst, p_value=p_value, records=sum(item.records for item in found))


def level_of(manifest: Manifest) -> float:
    """The level at which each protected attribute is tested."""
    return LEVEL / max(len(manifest.sets), 1)


def repeats_of(manifest: Manifest, item: Sets) -> float:
    """How many records one draw stands for: more than one only where decoys are sticky."""
    return UNKNOWN_REPEATS if manifest.uncounted else item.repeats


def doubts(
    manifest: Manifest, targets: Sequence[Sets], parts: Sequence[Part], examined: Mapping[str, float] | None = None
) -> tuple[str, ...]:
    """What an estimate must say of attributes whose sets do not fit their mechanism.

    examined  p-values of attributes, for those who have them examined already
    """
    notes = []
    for target, item in enumerate(targets):
        p_value = (examined or {}).get(item.name)
        if p_value is None:
            repeats = repeats_of(manifest, item)
            found = [examine(part.reports, part.mechanisms[target], target, repeats) for part in parts]
            p_value = together(found).p_value if found else 1.0
        if p_value < level_of(manifest):
            notes.append(
                f"the published sets of {item.name} do not fit the mechanism in the manifest (p-value {p_value:.1e}): "
                "this estimate and its intervals cannot be trusted; see polyseme verify"
            )
    return tuple(notes)
