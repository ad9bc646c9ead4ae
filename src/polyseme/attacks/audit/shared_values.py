"""Groups of records of a release that may share a value, and the adversary who puts their sets together.

A group is told by a column that is published, by the combination of all of them, or by a column of the original whose
people are recognized in the release: somebody may know from elsewhere who lives together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import polars as pl
import pyarrow as pa

from polyseme.arrays import Floats, Ints
from polyseme.attacks.agreement import agreement, grouping
from polyseme.attacks.audit.promised import promised_for
from polyseme.attacks.audit.sampled import Sample
from polyseme.attacks.audit.scenes import Truth, largest_part
from polyseme.attacks.audit.seen import Part, Reading, Seen, as_original, untouched
from polyseme.attacks.posterior import uniform
from polyseme.attacks.registry import attack
from polyseme.attacks.scene import Gathered, Scene
from polyseme.release import Release, Sets
from polyseme.results.findings import Finding
from polyseme.tables.coding.codes import as_series
from polyseme.tables.coding.readings import plain_text
from polyseme.tables.counting.matching import Fingerprints

__all__ = ["attack_groups"]

_ROWS = 200_000
"""Records that are gathered at the most; of more, the groups of a random share of fingerprints."""
_HELD = 2_000_000
"""Values of a column that are held (32 MB); of longer tables, the groups of a random share of fingerprints."""
_TRIED = 3
"""Columns of the original by which records of one attribute are put together: those whose members agree most."""
_COLUMNS = 200
"""Columns of the original that are looked at."""
_Columns: TypeAlias = Mapping[str, tuple[Ints, Fingerprints]]
"""Of each column, or combination of columns, some rows and the fingerprints of their values."""


@dataclass(frozen=True, eq=False)
class _Grouped:
    """Rows of the release in groups.

    by     what members have in common, in words
    rows   of the release; `group`, of each of them
    truth  true codes of the attribute, -1 where they are not known: nobody is recognized, and members differ. None
           without the original
    """

    by: str
    rows: Ints
    group: Ints
    truth: Ints | None

    def fewer(self) -> _Grouped:
        """Without groups of one record; of too many, whole groups at random."""
        members = np.bincount(self.group)
        kept = members[self.group] > 1
        if (count := int(kept.sum())) > _ROWS:
            # Groups are numbered in the order of their fingerprints, which is random.
            kept &= self.group < len(members) * _ROWS // count
        return _Grouped(self.by, self.rows[kept], self.group[kept], None if self.truth is None else self.truth[kept])


def attack_groups(release: Release, seen: Seen, truth: Truth | None) -> tuple[Finding, ...]:
    """For each attribute the groups by which most is learned."""
    if not release.manifest.sets:
        return ()
    known = _Known(release, truth)
    return tuple(found for item in release.manifest.sets if (found := _worst(release, item, seen, known)) is not None)


def _worst(release: Release, item: Sets, seen: Seen, known: _Known) -> Finding | None:
    found: list[Finding] = []
    for grouped in known.of(item):
        gathered = _gathered(release, item, seen, grouped.fewer())
        if gathered is not None:
            scene = Scene(promised=promised_for(largest_part(item, seen)), gathered=gathered)
            found += attack(scene, ["shared-value"])
    return max(found, key=lambda one: (one.exceeded, one.success), default=None)


def _gathered(release: Release, item: Sets, seen: Seen, grouped: _Grouped) -> Gathered | None:
    if not len(grouped.rows):
        return None
    order = np.argsort(grouped.rows, kind="stable")
    rows = grouped.rows[order]
    sets = Sample(release, {item.name: np.unique(rows)}).sets(item, rows)
    inside, outside = _weights(item, seen, rows, sets)
    return Gathered(
        item.name,
        np.unique(grouped.group[order], return_inverse=True)[1],
        sets,
        inside,
        outside,
        _prior(item),
        grouped.by,
        None if grouped.truth is None else grouped.truth[order],
        bool(item.shared_by) or release.manifest.sticky,
    )


def _weights(item: Sets, seen: Seen, rows: Ints, sets: Ints) -> tuple[Floats, Floats]:
    """How readily candidates, and all other values, draw the sets of their strata."""
    inside, outside = np.empty(sets.shape), np.empty(len(sets))
    for number, member in enumerate(item.strata.members):
        here = np.flatnonzero(seen.inside(Part(item, number))[rows])
        inside[here], outside[here] = member.mechanism.weights(member.narrow(sets[here]))
    return inside, outside


def _prior(item: Sets) -> Floats:
    """The prior of the promise, over the whole domain."""
    prior = item.attribute.distributions.prior
    return uniform(item.domain.size) if prior is None else np.asarray(prior / prior.sum())


class _Known:
    """By what records of a release can be put together.

    Everything is read once, whatever the number of attributes.
    """

    def __init__(self, release: Release, truth: Truth | None) -> None:
        self.release, self.truth = release, truth

    def of(self, item: Sets) -> Iterator[_Grouped]:
        """Groups of the published columns, then of those of the original."""
        yield from self._published(item)
        if self.truth is not None:
            yield from self._elsewhere(item, self.truth)

    def _published(self, item: Sets) -> Iterator[_Grouped]:
        for name, (rows, prints) in self._shown.items():
            labels, group = np.unique(prints, return_inverse=True)
            if not grouping(group):
                continue
            truth = None
            if self.truth is not None:
                if name not in self._original:
                    continue
                people, original = self._original[name]
                agreed = _of_groups(labels, original, self.truth.codes[item.name][people])[group]
                own = self.truth.of_rows(item.name, rows)
                truth = np.where(own >= 0, own, agreed)
            yield _Grouped(name, rows, group, truth)

    def _elsewhere(self, item: Sets, truth: Truth) -> Iterator[_Grouped]:
        codes = truth.codes[item.name].astype(np.int64)
        found = {}
        for name, group in self._others.items():
            one = agreement(group, codes)
            if one.telling:
                found[name] = one.kappa
        for name in sorted(found, key=found.__getitem__, reverse=True)[:_TRIED]:
            group = np.unique(self._others[name][truth.originals], return_inverse=True)[1]
            if np.count_nonzero(np.bincount(group) > 1):
                by = f"{name} (known from elsewhere; recognized by the published columns)"
                yield _Grouped(by, truth.rows, group, codes[truth.originals])

    @cached_property
    def _shown(self) -> _Columns:
        """Fingerprints of the published columns, and of their combination."""
        reading = Reading.of(self.release)
        return _columns(reading, self.release.batches(reading.names), self._limit) if reading.names else {}

    @cached_property
    def _original(self) -> _Columns:
        """The same of the original, for the columns that show what it shows; rows are numbers of people."""
        if self.truth is None or as_original(self.release) != untouched(self.release):
            return {}
        reading, number = self.truth.reading, np.cumsum(self.truth.kept) - 1
        found = _columns(reading, self.truth.original.batches(reading.names), self._limit)
        kept = {name: self.truth.kept[rows] for name, (rows, _) in found.items()}
        return {name: (number[rows[kept[name]]], prints[kept[name]]) for name, (rows, prints) in found.items()}

    @property
    def _limit(self) -> np.uint64:
        """The largest fingerprint of the groups that are looked at."""
        share = min(_HELD / max(self.release.manifest.records, 1), 1.0)
        return np.uint64(((1 << 64) - 1) if share == 1.0 else int(share * (1 << 64)))

    @cached_property
    def _others(self) -> Mapping[str, Ints]:
        """Columns that only the original has, as numbers of groups; those that could be groups."""
        if self.truth is None:
            return {}
        manifest, schema = self.release.manifest, self.truth.original.schema
        hidden = {*manifest.names, *(part.name for item in manifest.sets for part in item.attribute.members)}
        names = [item.name for item in schema if item.name not in hidden and not pa.types.is_nested(item.type)]
        parts: dict[str, list[Fingerprints]] = {name: [] for name in names[:_COLUMNS]}
        for batch in self.truth.original.batches(list(parts)) if parts else ():
            for name, column in parts.items():
                texts = plain_text(as_series(batch.column(name)), manifest.missing_values)
                column.append(texts.hash().to_numpy())
        groups = {
            name: np.unique(np.concatenate(prints)[self.truth.kept], return_inverse=True)[1]
            for name, prints in parts.items()
        }
        return {name: group for name, group in groups.items() if grouping(group)}


def _columns(reading: Reading, batches: Iterator[pa.RecordBatch], limit: np.uint64) -> _Columns:
    """The values of some columns, and of their combination, with a fingerprint up to the limit."""
    parts: dict[str, list[tuple[Ints, Fingerprints]]] = {name: [] for name in _named(reading.names)}
    first = 0
    for batch in batches:
        texts = reading.texts(reading.columns(batch))
        prints = [texts[name].hash().to_numpy() for name in reading.names]
        if len(prints) > 1:
            prints.append(pl.DataFrame({str(place): one for place, one in enumerate(prints)}).hash_rows().to_numpy())
        for column, found in zip(parts.values(), prints, strict=True):
            kept = np.flatnonzero(found <= limit)
            column.append((first + kept, found[kept]))
        first += batch.num_rows
    return {name: _joined(column) for name, column in parts.items()}


def _named(names: Sequence[str]) -> list[str]:
    """The columns, and their combination where there are several."""
    return [*names, f"combination of {', '.join(names)}"] if len(names) > 1 else list(names)


def _joined(parts: Sequence[tuple[Ints, Fingerprints]]) -> tuple[Ints, Fingerprints]:
    nothing = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint64))
    rows, prints = (np.concatenate(column) for column in zip(nothing, *parts, strict=True))
    return rows, prints


def _of_groups(labels: Fingerprints, original: Fingerprints, codes: Ints) -> Ints:
    """The value that all members of each group have in the original; -1 where they differ, or there is no such group.

    labels  of the groups, ascending
    """
    if not len(original):
        return np.full(len(labels), -1)
    order = np.argsort(original, kind="stable")
    values, starts = np.unique(original[order], return_index=True)
    lowest, highest = (each.reduceat(codes[order].astype(np.int64), starts) for each in (np.minimum, np.maximum))
    agreed = np.where(lowest == highest, lowest, -1)
    place = np.minimum(np.searchsorted(values, labels), len(values) - 1)
    return np.where(values[place] == labels, agreed[place], -1)
