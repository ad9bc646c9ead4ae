"""Who is left out of a release, and what that reveals.

From how the method works, and from the original where it is given.

A record finds no place in groups only if none of them could take it:

    clusters  every group has a record of its cluster: no cluster is published more often
    line      every group has a record that is too near, on the side from which values are taken
    others    no published group is compatible with its value

Where fewer than l such kinds exist, records of others were left out as well, one of each that was missing. In classes a
record is suppressed because its class breaks a model, for which the class may be too small: all values are possible,
unless rules are all that was asked for. Then every record of the class is under one of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from polyseme.kernel.arrays import Bools, Floats, Ints
from polyseme.methods.bucketization import dissimilar, distinct
from polyseme.methods.bucketization.compositions import compatible_pairs
from polyseme.models.semantic_rules import OUTCOMES, Rule, outcomes, read_rules
from polyseme.release import Applied, AsIs, Grouped, Release
from polyseme.scrutiny.attacks.scene import Absent
from polyseme.semantics.distances.base import Clusters, Line, Structure
from polyseme.tables.codes import as_series, label_array
from polyseme.tables.equivalence_classes import Counts
from polyseme.tables.io.source import Source
from polyseme.tables.labels import encode

__all__ = ["absent_from_classes", "absent_from_groups", "promised_size"]

_REPLACING = ("change-values", "suppress-values")
"""Actions after which published values are not those of the records."""


def absent_from_groups(release: Release, column: Grouped, counts: Counts, original: Source | None) -> Absent | None:
    """What it reveals to be in no group; None where no record is left out."""
    applied = _withheld(release)
    if applied is None:
        return None
    structure = _structure(column, applied)
    expected = _expected(counts, structure, applied)
    share, truth = _share(applied), _left(release, column, counts, original)
    return Absent(column.name, applied.suppressed, expected, _whole(counts, truth), True, share, truth)


def absent_from_classes(release: Release, column: AsIs, counts: Counts, original: Source | None) -> Absent | None:
    """What it reveals to be in no class; None if no record is left out or values were replaced."""
    applied = _withheld(release)
    if applied is None or any(action in applied.actions for action in _REPLACING):
        return None
    under = _under_rules(release.manifest.models, column, counts)
    truth = _left(release, column, counts, original)
    whole = _whole(counts, truth)
    # A value that no published record has may be one that was left out: it counts as if one record had it.
    weights = counts.total if under is None else np.where(under, counts.total + 1.0, 0.0)
    expected, told = weights / weights.sum(), under is not None
    return Absent(column.name, applied.suppressed, expected, whole, told, 1.0, truth)


def _withheld(release: Release) -> Applied | None:
    applied = release.manifest.applied
    return applied if applied is not None and applied.suppressed and applied.withheld else None


def _whole(counts: Counts, left: Ints | None) -> Floats:
    """The share of each value in the table, as far as it is known."""
    whole = counts.total if left is None else counts.total + left
    return np.asarray(whole / whole.sum(), dtype=np.float64)


def _left(release: Release, column: AsIs | Grouped, counts: Counts, original: Source | None) -> Ints | None:
    """How many people with each value are in the original and not in the release."""
    if original is None or column.name not in original.schema.names:
        return None
    words, whole = release.manifest.missing_values, np.zeros(len(counts.labels) or len(counts.total), dtype=np.int64)
    domain = column.attribute.domain
    labels = [label for label in counts.labels if label is not None] if domain is None else domain.values
    for batch in original.batches([column.name]):
        values = as_series(batch.column(0), words).drop_nulls()
        once = pl.repeat(1, len(values), eager=True)
        codes, _, flaw = encode(values, once, labels, "refuse")
        if flaw:
            return None
        whole += np.bincount(codes, minlength=len(whole))
    left = whole - counts.total
    return left if (left >= 0).all() and left.any() else None


# -- groups --------------------------------------------------------------------------------------------------------


def _structure(column: Grouped, applied: Applied) -> Structure:
    """Which values may share a group."""
    e, d = (_number(applied, name) for name in ("e", "d"))
    distance = column.attribute.distance
    if distance is None or (e is None and d is None):
        return distinct(column.domain.size)
    return dissimilar(distance, e) if e is not None else distance.structure(d or 0.0)


def promised_size(applied: Applied, counts: Counts) -> int:
    """The least size of a group, as the manifest says it or as the groups are."""
    l = _number(applied, "l")
    return int(l) if l is not None and l >= 1 else int(counts.sizes.min())


def _share(applied: Applied) -> float:
    """The largest share of one value among what is left out."""
    share = _number(applied, "left-out")
    return share if share is not None and 0 < share <= 1 else 1.0


def _number(applied: Applied, name: str) -> float | None:
    """A parameter of the method; None where the manifest has no number for it."""
    value = applied.parameters.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _expected(counts: Counts, structure: Structure, applied: Applied) -> Floats:
    """How likely each value is for a person who is left out, to a reader who knows the method."""
    full = _full(counts, structure, applied.parameters.get("algorithm") == "mbf")
    kinds = structure.labels if isinstance(structure, Clusters) else np.arange(structure.size)
    number, l = len(np.unique(kinds[full])), promised_size(applied, counts)
    mixed = "left-out" in applied.parameters and applied.parameters.get("algorithm") != "mbf"
    others = max(0, l - number) if mixed else 0
    weight = 1.0 - min(others / applied.suppressed, 1.0)
    if mixed:
        weight = min(weight, number * _share(applied))
    inside, outside = (_evenly(kinds, counts.total, there) for there in (full, ~full & (counts.total > 0)))
    if not inside.any() or not outside.any():
        return inside if inside.any() else outside
    return weight * inside + (1.0 - weight) * outside


def _evenly(kinds: Ints, total: Ints, there: Bools) -> Floats:
    """All kinds that are there with one weight; within a kind, values as often as they are published."""
    seen = np.where(there, np.maximum(total, 0), 0).astype(np.float64)
    sums = np.bincount(kinds, seen, int(kinds.max(initial=-1)) + 1)
    lone = np.bincount(kinds, there, len(sums))
    seen = np.where(there & (sums[kinds] == 0), 1.0 / np.maximum(lone[kinds], 1), seen / np.maximum(sums[kinds], 1.0))
    return np.asarray(seen / max(float(seen.sum()), 1e-300), dtype=np.float64)


def _full(counts: Counts, structure: Structure, literal: bool) -> Bools:
    """Whether no group could take one more record of each value."""
    if isinstance(structure, Clusters):
        held = np.bincount(structure.labels, counts.total, structure.count)
        return np.asarray((held == held.max())[structure.labels])
    if isinstance(structure, Line) and not literal:
        return _full_windows(counts.total, structure, len(counts.sizes))
    return _incompatible(counts, structure)


def _full_windows(total: Ints, line: Line, groups: int) -> Bools:
    """On a line, values are taken from one end: those before a value, and itself, have a record in every group."""
    along = np.concatenate(([0], np.cumsum(total[line.order])))
    place = np.arange(line.size)
    first = np.searchsorted(line.ahead, place, side="right")
    full = np.zeros(line.size, dtype=np.bool_)
    full[line.order] = along[place + 1] - along[first] == groups
    return full


def _incompatible(counts: Counts, structure: Structure) -> Bools:
    """Whether each value is too near to some value of every group."""
    pairs = compatible_pairs(structure, np.arange(structure.size))
    held = np.zeros((len(counts.sizes), structure.size), dtype=np.bool_)
    held[counts.owner, counts.value] = True
    return np.asarray((np.unique(held, axis=0).astype(np.int32) @ ~pairs > 0).all(axis=0))


# -- classes -------------------------------------------------------------------------------------------------------


def _under_rules(models: Sequence[Mapping[str, Any]], column: AsIs, counts: Counts) -> Bools | None:
    """The values that a suppressed record can have where only rules were asked for; None where all are possible."""
    if not models or any(set(model) != {"semantic-rules"} for model in models):
        return None
    rules = [rule for model in models for rule in read_rules(list(model["semantic-rules"]["rules"]))]
    effective = [rule for rule in rules if rule.form == "never-all"]
    if not effective or any(column.name not in rule.condition for rule in effective):
        return None
    domain = column.attribute.domain
    labels = list(counts.labels) if domain is None else label_array(domain.values).to_pylist()
    frame = pl.DataFrame({column.name: pl.Series(column.name, labels, strict=False)})
    met = [outcomes(frame, _alone(rule, column.name)) == OUTCOMES.index("met") for rule in effective]
    return np.asarray(np.logical_or.reduce(met))


def _alone(rule: Rule, name: str) -> Rule:
    return Rule(rule.form, {name: rule.condition[name]}, {}, rule.name)
