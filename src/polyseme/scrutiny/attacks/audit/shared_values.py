"""Groups of records that may share a value, and the attacker who combines their sets.

A group is given by a column that is published, by the combination of all of them, or by a column of the original whose
people are recognized in the release: an attacker may know from elsewhere who lives together.

The finding says whether records that share a value share a set, and how far that links them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from polyseme.kernel.arrays import Floats, Ints
from polyseme.release import Release, Sets
from polyseme.results.attackers import Finding
from polyseme.results.views.formats import percent
from polyseme.scrutiny.attacks.agreement import agreement, grouping
from polyseme.scrutiny.attacks.audit.records import united
from polyseme.scrutiny.attacks.audit.scenes import Sample, Truth, largest_part, promised_for
from polyseme.scrutiny.attacks.audit.seen import Memory, Part, Prints, Seen
from polyseme.scrutiny.attacks.registry import attack
from polyseme.scrutiny.attacks.scene import Gathered, Scene, uniform
from polyseme.tables.codes import as_series
from polyseme.tables.distinct import Fingerprints, Tally, mixed
from polyseme.tables.published import code_sets
from polyseme.tables.readings import plain_text

__all__ = ["Drawn", "SharedValues", "linked_pairs", "shared_remarks"]

_ROWS = 200_000
"""Records that are gathered at the most; of more, the groups of a random share of fingerprints."""
_TRIED = 3
"""Columns of the original by which records of one attribute are put together: those whose members agree most."""
_COLUMNS = 200
"""Columns of the original that are looked at."""
Drawn: TypeAlias = Callable[[Sets, Ints], Ints]
"""The sets of an attribute in some rows of a release."""


@dataclass(frozen=True, eq=False)
class _Grouped:
    """Rows of the release in groups.

    by      what members have in common, in words
    rows    of the release; `group`, of each of them
    labels  the fingerprints of the groups, ascending; None of groups that are known from elsewhere
    """

    by: str
    rows: Ints
    group: Ints
    labels: Fingerprints | None = None

    def fewer(self) -> _Grouped:
        """Without groups of one record; of too many, whole groups at random."""
        members = np.bincount(self.group)
        kept = members[self.group] > 1
        if (count := int(kept.sum())) > _ROWS:
            # Groups are numbered in the order of their fingerprints, which is random.
            kept &= self.group < len(members) * _ROWS // count
        return replace(self, rows=self.rows[kept], group=self.group[kept])


class SharedValues:
    """The attacker who puts the sets of a group together.

    By which columns is decided before any set is read, so that sets can be read for all attributes at once, and
    together with those that others ask for.
    """

    def __init__(self, release: Release, seen: Seen, shown: Prints, truth: Truth | None = None) -> None:
        self._release, self._seen = release, seen
        self._known = _Known(release, shown, truth)

    def rows(self) -> Iterator[tuple[str, Ints]]:
        """Every attribute whose sets are looked at, with rows of the release."""
        for item in self._release.manifest.sets:
            several = [grouped.rows for grouped in self._known.groups(item)]
            if several:
                yield item.name, np.unique(np.concatenate(several))

    def worst(self, item: Sets, sets: Drawn) -> Finding | None:
        """The groups by which most is learned about an attribute."""
        found: list[Finding] = []
        for grouped in self._known.groups(item):
            if len(grouped.rows):
                gathered = self._gathered(item, grouped, self._known.truth_of(item, grouped), sets)
                scene = Scene(promised=promised_for(largest_part(item, self._seen)), gathered=gathered)
                found += attack(scene, ["shared-value"])
        return max(found, key=lambda one: (one.exceeded, one.success), default=None)

    def _gathered(self, item: Sets, grouped: _Grouped, truth: Ints | None, drawn: Drawn) -> Gathered:
        order = np.argsort(grouped.rows, kind="stable")
        rows = grouped.rows[order]
        sets = drawn(item, rows)
        inside, outside = _weights(item, self._seen, rows, sets)
        return Gathered(
            item.name,
            np.unique(grouped.group[order], return_inverse=True)[1],
            sets,
            inside,
            outside,
            _prior(item),
            grouped.by,
            None if truth is None else truth[order],
            bool(item.shared_by) or self._release.manifest.sticky,
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

    Groups of a column are the same for all attributes, and held once.
    """

    def __init__(self, release: Release, shown: Prints, truth: Truth | None) -> None:
        self.release, self.truth, self._shown = release, truth, shown
        self._tried: dict[str, list[str]] = {}
        self._recognized: dict[str, _Grouped] = {}

    def groups(self, item: Sets) -> list[_Grouped]:
        """Groups of the published columns, then of those of the original."""
        elsewhere = () if self.truth is None else self._elsewhere(item, self.truth)
        return [*self._published, *elsewhere]

    def truth_of(self, item: Sets, grouped: _Grouped) -> Ints | None:
        """True codes of the rows of groups; -1 where no person is recognized and members differ.

        None without the original.
        """
        if self.truth is None:
            return None
        own = self.truth.of_rows(item.name, grouped.rows)
        if grouped.labels is None:
            return own
        people, original = self._original[grouped.by]
        agreed = _of_groups(grouped.labels, original, self.truth.codes[item.name][people])[grouped.group]
        return np.where(own >= 0, own, agreed)

    @cached_property
    def _published(self) -> list[_Grouped]:
        found = []
        for name, (rows, prints) in self._shown.items():
            labels, group = np.unique(prints, return_inverse=True)
            if grouping(group) and (self.truth is None or name in self._original):
                found.append(_Grouped(name, rows, group, labels).fewer())
        return found

    def _elsewhere(self, item: Sets, truth: Truth) -> Iterator[_Grouped]:
        if item.name not in self._tried:
            codes = truth.codes[item.name].astype(np.int64)
            agreements = {name: agreement(group, codes) for name, group in self._others.items()}
            found = {name: one.kappa for name, one in agreements.items() if one.telling}
            self._tried[item.name] = sorted(found, key=found.__getitem__, reverse=True)[:_TRIED]
        for name in self._tried[item.name]:
            if name not in self._recognized:
                group = np.unique(self._others[name][truth.originals], return_inverse=True)[1]
                by = f"{name} (known from elsewhere; recognized by the published columns)"
                self._recognized[name] = _Grouped(by, truth.rows, group).fewer()
            yield self._recognized[name]

    @property
    def _original(self) -> Prints:
        """The published columns in the original, where they show the same; rows are people."""
        return {} if self.truth is None else self.truth.columns

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


def _of_groups(labels: Fingerprints, original: Fingerprints, codes: Ints) -> Ints:
    """The value shared by all members of a group in the original; -1 where they differ.

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


_RECORDS = 5_000_000
"""Records up to which `verify` looks for groups that share a value; `attack` looks at any number."""


def shared_remarks(
    release: Release,
    findings: Sequence[Finding] | None = None,
    memory: Memory | None = None,
    drawn: Drawn | None = None,
) -> tuple[str, ...]:
    """Remarks on sets that groups share, and on shared values with a set for each record.

    findings  of the attacks, where these were run
    memory    of the untouched columns, and `drawn`, the sets of rows, for those who have read them
    """
    manifest = release.manifest
    if manifest.form != "set" or not manifest.sets:
        return ()
    columns = dict.fromkeys(item.shared_by for item in manifest.sets if item.shared_by)
    remarks = [_linked(release, column) for column in columns]
    if findings is None and manifest.records <= _RECORDS:
        findings = _put_together(release, Memory.of(release) if memory is None else memory, drawn)
    return (*remarks, *(_shared(one) for one in findings or () if one.attack == "shared-value" and one.exceeded))


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
