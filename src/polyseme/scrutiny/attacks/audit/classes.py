"""Attacks on sensitive values that are published with their records, in classes or groups.

A class has equal quasi-identifiers.

Suppressed records, which show `*` in every quasi-identifier, are a class of their own here: an attacker who knows that
a person is in the table, and that no class fits, has found it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from polyseme.kernel.arrays import Ints
from polyseme.kernel.errors import ReleaseError
from polyseme.kernel.randomness import experiment
from polyseme.models import background_of
from polyseme.release import AsIs, Grouped, Release
from polyseme.results.attackers import Finding
from polyseme.scrutiny.attacks.audit.absent import absent_from_classes, absent_from_groups, promised_size
from polyseme.scrutiny.attacks.audit.scenes import ENOUGH, Levels, Truth, sample
from polyseme.scrutiny.attacks.audit.seen import Reading, quasi_identifiers
from polyseme.scrutiny.attacks.class_limits import promised_in_classes
from polyseme.scrutiny.attacks.registry import attack
from polyseme.scrutiny.attacks.scene import Promised, Scene, Within
from polyseme.tables.codes import as_series
from polyseme.tables.distinct import Fingerprints, fingerprints, some_rows
from polyseme.tables.equivalence_classes import Counts
from polyseme.tables.io.source import Source
from polyseme.tables.labels import encode
from polyseme.tables.set_codes import code_sets

__all__ = ["attack_classes"]


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
    """How often each value occurs in each class, in codes of the domain, or of the values that occur."""
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
        told = _members(release, column, rows, groups.of(rows), truth)
        found = attack(told.scene(column), ["definetti"])
        findings += [replace(one, detail={**one.detail, **told.measured}) for one in found]
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
    """The records as they were published, those who can be recognized with the truth; or others in their places."""
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
    """For each value of each group, a record of the original that has it; None where too few have.

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
