"""Attacks on sensitive values in classes or groups, and on records that are left out.

A class has equal quasi-identifiers.

Suppressed records, which show `*` in every quasi-identifier, are a class of their own here: an attacker who knows that
a person is in the table, and that no class fits, has found it.

Who is left out of a release, and what that reveals, is known from how the method works, and from the original where it
is given.

A record finds no place in groups only if none of them could take it:

    clusters  every group has a record of its cluster: no cluster is published more often
    line      every group has a record that is too near, on the side from which values are taken
    others    no published group is compatible with its value

Where fewer than l such kinds exist, records of others were left out as well, one of each that was missing. In classes a
record is suppressed because its class breaks a model, for which the class may be too small: all values are possible,
unless the policy has rules only. Then every record of the class is under one of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from polyseme.kernel.arrays import Bools, Floats, Ints
from polyseme.kernel.errors import ReleaseError
from polyseme.kernel.randomness import experiment
from polyseme.methods.bucketization import dissimilar, distinct
from polyseme.methods.bucketization.compositions import compatible_pairs
from polyseme.models import background_of
from polyseme.models.semantic_rules import OUTCOMES, Rule, outcomes, read_rules
from polyseme.release import Applied, AsIs, Grouped, Release
from polyseme.results.attackers import Finding
from polyseme.scrutiny.attacks.audit.scenes import ENOUGH, Levels, Truth, sample
from polyseme.scrutiny.attacks.audit.seen import Reading, quasi_identifiers
from polyseme.scrutiny.attacks.class_limits import promised_in_classes
from polyseme.scrutiny.attacks.registry import attack
from polyseme.scrutiny.attacks.scene import Absent, Promised, Scene, Within
from polyseme.semantics.distances.base import Clusters, Line, Structure
from polyseme.tables.codes import as_series, label_array
from polyseme.tables.distinct import Fingerprints, fingerprints, some_rows
from polyseme.tables.equivalence_classes import Counts
from polyseme.tables.io.source import Source
from polyseme.tables.labels import encode
from polyseme.tables.published import code_sets

__all__ = ["absent_from_classes", "absent_from_groups", "attack_classes", "promised_size"]

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
    expected, by_method = weights / weights.sum(), under is not None
    return Absent(column.name, applied.suppressed, expected, whole, by_method, 1.0, truth)


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
    """All kinds that occur with equal weight; within a kind, values as often as published."""
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
    """Values of a line whose window of close values before them has a record in every group."""
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
    """The values that rules allow a suppressed record; None where all are possible."""
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


def attack_classes(release: Release, truth: Truth | None, original: Source | None = None) -> list[Finding]:
    """All attacks on the values of a class or group, for each sensitive column that has them."""
    findings: list[Finding] = []
    secret = [column for column in release.manifest.columns if column.attribute.role.is_secret]
    plain = [column for column in secret if isinstance(column, AsIs)]
    classes = _numbered(_prints(release, quasi_identifiers(release))) if plain else None
    for column in secret:
        if isinstance(column, Grouped):
            findings += _attack_groups(release, column, truth, original)
        elif isinstance(column, AsIs) and classes is not None:
            counts = _counts(release, column, classes)
            scene = _scene(release, column, counts, "class")
            findings += attack(replace(scene, absent=absent_from_classes(release, column, counts, original)))
    return findings


def _scene(release: Release, column: AsIs | Grouped, counts: Counts, unit: str) -> Scene:
    background = background_of([item.attribute for item in release.manifest.columns])
    promised = promised_in_classes(release.manifest.models, counts, background)
    return Scene(within=Within(counts, unit, column.attribute.distance), promised=promised)


def _prints(release: Release, names: list[str]) -> Fingerprints:
    """Fingerprints of some columns of each record; all alike where there are none."""
    if not names:
        return np.zeros(release.manifest.records, dtype=np.uint64)
    reading = Reading.by(release, names)
    parts = [fingerprints(reading.texts(reading.columns(batch))) for batch in release.batches(names)]
    return np.concatenate([np.zeros(0, dtype=np.uint64), *parts])


def _numbered(codes: Fingerprints | Ints) -> Ints:
    """Equal ones with one number, from 0 on."""
    return np.unique(codes, return_inverse=True)[1].astype(np.int64)


def _refused(column: AsIs | Grouped) -> ReleaseError:
    return ReleaseError(f"column '{column.name}': not every cell has values of its domain", "run polyseme verify")


def _counts(release: Release, column: AsIs, classes: Ints) -> Counts:
    """How often each value occurs in each class, in codes of the domain or of occurring values."""
    domain = column.attribute.domain
    values = pl.concat([as_series(batch.column(0)) for batch in release.batches([column.name])])
    once = pl.repeat(1, len(values), eager=True)
    codes, labels, flaw = encode(values, once, None if domain is None else domain.values, "refuse")
    if flaw or not len(codes):
        raise _refused(column)
    return Counts.from_codes(classes, codes, len(labels), column.name)


# -- groups -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Groups:
    """The groups of a column.

    members  the group of each record: (n,)
    owner    the group of each value that a group shows
    codes    those values
    """

    members: Ints
    owner: Ints
    codes: Ints

    def some(self) -> Ints:
        """Rows of whole groups, of as many as are attacked at the most."""
        sizes = np.bincount(self.members)
        shown = sample(np.arange(len(sizes)), max(1, int(np.ceil(sizes.mean()))))
        return np.flatnonzero(np.isin(self.members, shown))

    def of(self, rows: Ints) -> _Groups:
        """The groups of these rows, renumbered."""
        inside = np.isin(self.owner, self.members[rows])
        return _Groups(_numbered(self.members[rows]), _numbered(self.owner[inside]), self.codes[inside])

    @property
    def matched(self) -> bool:
        """Whether each group shows as many values as it has records."""
        return np.array_equal(np.bincount(self.members), np.bincount(self.owner))


def _attack_groups(release: Release, column: Grouped, truth: Truth | None, original: Source | None) -> list[Finding]:
    groups = _groups_of(release, column)
    size = column.domain.size
    counts = Counts.from_codes(groups.owner, groups.codes, size, column.name)
    findings = list(attack(_scene(release, column, counts, "group")))
    if groups.matched:
        rows = groups.some()
        members = _members(release, column, rows, groups.of(rows), truth)
        found = attack(members.scene(column), ["definetti"])
        findings += [replace(one, detail={**one.detail, **members.measured}) for one in found]
    return [*findings, *_attack_absent(release, column, counts, original)]


def _attack_absent(release: Release, column: Grouped, counts: Counts, original: Source | None) -> tuple[Finding, ...]:
    """The attacker who misses a person in the release; groups promise 1/l."""
    absent = absent_from_groups(release, column, counts, original)
    applied = release.manifest.applied
    if absent is None or applied is None:
        return ()
    return attack(Scene(absent=absent, promised=Promised(guess=1.0 / promised_size(applied, counts))))


@dataclass(frozen=True, eq=False)
class _Members:
    """Records of some groups, beside the values that the groups show.

    groups    as many records as values
    features  untouched columns of the records: (n, q)
    truth     their values, -1 for those who were not recognized; None without the original
    measured  how many records of which kind
    """

    groups: _Groups
    features: Ints | None
    truth: Ints | None
    measured: Mapping[str, float]

    def scene(self, column: Grouped) -> Scene:
        counts = Counts.from_codes(self.groups.owner, self.groups.codes, column.domain.size, column.name)
        return Scene(
            within=Within(counts, "group", members=self.groups.members), features=self.features, truth=self.truth
        )


def _members(release: Release, column: Grouped, rows: Ints, groups: _Groups, truth: Truth | None) -> _Members:
    """Records as published, with the truth for recognizable ones; or others in their places."""
    if truth is None:
        return _Members(groups, _features(release, rows), None, {})
    true = truth.of_rows(column.name, rows)
    known = int((true >= 0).sum())
    if known >= min(ENOUGH, len(true)):
        return _Members(groups, _features(release, rows), true, {"matched_records": float(known)})
    people = _in_their_places(groups, truth.codes[column.name])
    if people is None:
        return _Members(groups, _features(release, rows), None, {})
    fresh = _Groups(groups.owner, groups.owner, groups.codes)
    return _Members(
        fresh, _features_of(truth, people), groups.codes, {"fresh_groups": float(len(np.unique(groups.owner)))}
    )


def _features_of(truth: Truth, people: Ints) -> Ints | None:
    """Untouched columns of people in any order; they are read in the order of the table."""
    levels = truth.features(np.sort(people))
    return None if levels is None else levels[np.argsort(np.argsort(people))]


def _in_their_places(groups: _Groups, codes: Ints) -> Ints | None:
    """For each value of each group, an original record that has it; None where too few have.

    Groups are made from sensitive values alone: who of those with a value is in which group is left to chance.
    """
    order = experiment(0).permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    starts = np.searchsorted(codes[order], np.arange(groups.codes.max() + 2))
    slots = np.argsort(groups.codes, kind="stable")
    wanted = groups.codes[slots]
    place = np.arange(len(slots)) - np.searchsorted(wanted, wanted)
    if np.any(starts[wanted] + place >= starts[wanted + 1]):
        return None
    people = np.empty(len(slots), dtype=np.int64)
    people[slots] = order[starts[wanted] + place]
    return people


def _groups_of(release: Release, column: Grouped) -> _Groups:
    """The values of each group as its first record shows them."""
    _, first, members = np.unique(_prints(release, [column.group]), return_index=True, return_inverse=True)
    order = np.argsort(first)
    batches = [batch.column(0) for batch in some_rows(release.batches([column.name]), first[order])]
    lists = [code_sets(batch, column.domain) for batch in batches]
    lengths, codes = (np.concatenate(parts) for parts in zip(*((one.lengths, one.members) for one in lists)))
    if not len(codes) or codes.min() < 0 or lengths.min() < 1:
        raise _refused(column)
    return _Groups(members.astype(np.int64), np.repeat(order, lengths), codes)


def _features(release: Release, rows: Ints) -> Ints | None:
    """The untouched columns of some rows as codes; None where there are none."""
    reading = Reading.of(release)
    if not reading.names:
        return None
    levels = Levels(reading, rows)
    for batch in release.batches(list(reading.names)):
        levels.add(batch)
    return levels.codes()
