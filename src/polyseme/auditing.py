"""Attacking a release as an outsider would, with the original as the judge where it is at hand.

Releases are shuffled, so nobody knows which row is whose. Rows are matched by their untouched columns, where a
combination stands exactly once on both sides: that is also how an attacker would do it. When hardly anyone can be
matched, success against the truth is measured on fresh sets that the release's own mechanism draws for the original.

Where some values are impossible for some records, an attribute has several mechanisms; adversaries against its sets
are then shown for the largest stratum, and say so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from polyseme.attacks.base import Finding
from polyseme.attacks.battery import attack_classes, attack_sets
from polyseme.distances.structure import Bools, Ints
from polyseme.errors import Problem, QuestionError, ReleaseError, TableError
from polyseme.mechanism import Mechanism
from polyseme.randomness import SystemStream
from polyseme.release import PublishedAttribute, Release
from polyseme.schema import Role
from polyseme.tables.classes import SUPPRESSED, Classes
from polyseme.tables.codes import as_series, encode
from polyseme.tables.matching import Fingerprints, class_sizes, fingerprints, matched, some_rows
from polyseme.tables.sets import code_sets
from polyseme.tables.source import Source

__all__ = ["attack_release", "finding_dict"]

ENOUGH = 1_000
"""Matched records that are enough to measure success on the release itself."""

LEARNERS = ("definetti", "correlation")
"""Adversaries who learn from the release how values go together. The bound of a set holds for those who share the
public prior; nobody can be kept from knowing more, so these are shown beside their baseline, without a bound."""

SAMPLE = 200_000
"""Records that are attacked at the most; the rest would only repeat the answer."""


def attack_release(
    release: Release, original: Source | None = None, other: Release | None = None
) -> tuple[Finding, ...]:
    """Every adversary that applies.

    original  the truth to measure success against
    other     a second release of the same people, for the intersection attack
    """
    if release.manifest.form != "set":
        raise QuestionError("attacks need the set form", "publish with --form set, which carries the same risk")
    seen = _seen(release)
    findings = list(_linkage(release, seen))
    truth = _Truth(release, original, seen) if original is not None else None
    twice = matched(seen.prints, _prints(other, _names(release))) if other is not None and _names(release) else None
    for item in release.manifest.protected:
        findings += _attack_attribute(release, item, seen, truth)
        if other is not None and twice is not None and len(twice[0]):
            findings += _repetition(release, item, other, twice)
    return tuple(findings)


def finding_dict(finding: Finding) -> dict[str, Any]:
    """A finding as JSON objects."""
    return {
        "attack": finding.attack,
        "attribute": finding.attribute,
        "success": finding.success,
        "bound": finding.bound,
        "baseline": finding.baseline,
        "exceeded": finding.exceeded,
        "knows": finding.knows,
        "gains": finding.gains,
        "helps": finding.helps,
        "detail": dict(finding.detail),
    }


def _names(release: Release) -> list[str]:
    return [item.name for item in release.manifest.attributes if item.mechanism is None]


def _text(batch: pa.RecordBatch, names: Sequence[str]) -> pl.DataFrame:
    """Columns as text, so that they can be matched with any other table."""
    return pl.DataFrame({name: as_series(batch.column(name)).cast(pl.String) for name in names})


@dataclass(frozen=True, eq=False)
class _Seen:
    """What is remembered of every record of a table.

    prints      fingerprints of its untouched columns; all alike when there are none
    quasi       fingerprints of its quasi-identifiers, without the records where all of them are suppressed
    suppressed  how many those are
    places      for each attribute with several strata, which one the record belongs to
    """

    prints: Fingerprints
    quasi: Fingerprints
    suppressed: int
    places: Mapping[str, Ints]

    def inside(self, attribute: str, stratum: int) -> Bools:
        """Whether each record belongs to a stratum of an attribute; everybody does where it has only one."""
        if attribute in self.places:
            return np.asarray(self.places[attribute] == stratum, dtype=np.bool_)
        return np.ones(len(self.prints), dtype=np.bool_)


def _seen(release: Release) -> _Seen:
    names = _names(release)
    links = [item.name for item in release.manifest.attributes if item.attribute.role is Role.QUASI_IDENTIFIER]
    parts = [_memory(_text(batch, names), links, release) for batch in release.batches(names)] if names else []
    return _joined(parts, release.manifest.records)


def _joined(parts: Sequence[_Seen], records: int) -> _Seen:
    """The memory of a table from those of its batches; of so many records without untouched columns there is none."""
    if not parts:
        none = np.zeros(records, dtype=np.uint64)
        return _Seen(none, none[:0], 0, {})
    return _Seen(
        np.concatenate([part.prints for part in parts]),
        np.concatenate([part.quasi for part in parts]),
        sum(part.suppressed for part in parts),
        {name: np.concatenate([part.places[name] for part in parts]) for name in parts[0].places},
    )


def _prints(other: Release, names: Sequence[str]) -> Fingerprints:
    """Fingerprints of the same columns in another release, whatever else it has and in whatever order."""
    untouched = _names(other)
    absent = [name for name in names if name not in untouched]
    if absent:
        raise ReleaseError(
            Problem(name, "published as it is in one release, but not in the other", "compare releases of one table")
            for name in absent
        )
    return np.concatenate([fingerprints(_text(batch, names)) for batch in other.batches(names)])


def _memory(frame: pl.DataFrame, links: Sequence[str], release: Release) -> _Seen:
    """What is remembered of the untouched columns of some records."""
    shown = frame.select(links)
    if links:
        shown = shown.filter(~pl.all_horizontal((pl.col(name) == SUPPRESSED).fill_null(False) for name in links))
    return _Seen(
        fingerprints(frame),
        fingerprints(shown) if links else np.zeros(0, dtype=np.uint64),
        frame.height - shown.height if links else 0,
        {
            item.name: item.strata.places(frame.to_dict(), frame.height).astype(np.int16)
            for item in release.manifest.protected
            if item.restricted
        },
    )


def _linkage(release: Release, seen: _Seen) -> tuple[Finding, ...]:
    if not any(item.attribute.role is Role.QUASI_IDENTIFIER for item in release.manifest.attributes):
        return ()
    bounds = [next(iter(model.values())).get("k") for model in release.manifest.models if "k-anonymity" in model]
    # A table of which everything is suppressed is one class.
    sizes = class_sizes(seen.quasi) if len(seen.quasi) else np.array([seen.suppressed])
    classes = Classes(sizes, np.zeros_like(sizes), int(sizes.sum()), seen.suppressed)
    return attack_classes(classes, k=bounds[0] if bounds else None)


def _sets(release: Release, item: PublishedAttribute, rows: Ints) -> Ints:
    """The sets of some rows, ascending ones."""
    if item.mechanism is None:
        raise QuestionError(f"'{item.name}' is published as it is")
    parts = [
        code_sets(batch.column(0), item.domain).regular(item.mechanism.l)
        for batch in some_rows(release.batches([item.name]), rows)
    ]
    sets = np.concatenate(
        [np.zeros((0, item.mechanism.l), dtype=np.int64), *(part for part in parts if part is not None)]
    )
    if len(sets) != len(rows):
        raise ReleaseError(f"column '{item.name}': not every cell is a valid set", "run polyseme verify")
    return sets


def _features(batches: Iterable[pa.RecordBatch], names: Sequence[str], rows: Ints) -> Ints | None:
    """Untouched columns of some rows as codes."""
    if not names:
        return None
    frame = pl.concat([_text(batch, names) for batch in some_rows(batches, rows)])
    return np.column_stack([series.rank("dense").fill_null(0).to_numpy().astype(np.int64) for series in frame])


class _Truth:
    """The original: true codes of every protected attribute, and which rows of the release are whose.

    Records that do not fit the release are not counted, and not numbered.
    """

    def __init__(self, release: Release, original: Source, seen: _Seen) -> None:
        self.original, self.names = original, _names(release)
        protected = release.manifest.protected
        needed = [*self.names, *(item.name for item in protected)]
        absent = [name for name in needed if name not in original.schema.names]
        if absent:
            raise TableError(f"{original.name}: no column '{absent[0]}'", "is this the table that was released?")
        words, parts, kept = release.manifest.missing_values, [], []
        codes: dict[str, list[Ints]] = {item.name: [] for item in protected}
        for batch in original.batches(needed):
            found = {
                item.name: encode(as_series(batch.column(item.name), words), item.domain).codes for item in protected
            }
            fits = np.all([column >= 0 for column in found.values()], axis=0)
            for name, column in found.items():
                codes[name].append(column[fits].astype(np.int32))
            if self.names:
                parts.append(_memory(_text(batch, self.names).filter(pl.Series(fits)), (), release))
            kept.append(fits)
        if not any(fits.any() for fits in kept):
            raise TableError(f"{original.name}: no record fits the release", "is this the table that was released?")
        self.codes = {name: np.concatenate(column) for name, column in codes.items()}
        self.kept = np.concatenate(kept)
        self.seen = _joined(parts, int(self.kept.sum()))
        nobody = np.zeros(0, dtype=np.int64)
        self.rows, self.originals = matched(seen.prints, self.seen.prints) if self.names else (nobody, nobody)

    def features(self, people: Ints) -> Ints | None:
        """Untouched columns of some people as codes."""
        return _features(self.original.batches(self.names), self.names, np.flatnonzero(self.kept)[people])


@dataclass(frozen=True, eq=False)
class _Scene:
    """What an adversary against the sets of one attribute is shown, and the truth where it is known."""

    sets: Ints
    codes: Ints | None
    features: Ints | None
    measured: dict[str, float]


def _scene(release: Release, item: PublishedAttribute, largest: int, seen: _Seen, truth: _Truth | None) -> _Scene:
    """Some records of a stratum: those matched with the original, or people of it with fresh sets, or any.

    largest  the number of the stratum; an attribute without constraints has one
    """
    names, stratum = _names(release), item.strata.members[largest]
    inside = seen.inside(item.name, largest)
    counted = {"stratum_records": float(inside.sum())} if item.restricted else {}

    def published(rows: Ints) -> tuple[Ints, Ints | None]:
        sets = _sets(release, item, rows)
        if stratum.forbids[sets].any():
            raise ReleaseError(f"column '{item.name}': some sets hold impossible values", "run polyseme verify")
        return stratum.narrow(sets), _features(release.batches(names), names, rows)

    if truth is None:
        sets, features = published(np.flatnonzero(inside)[:SAMPLE])
        return _Scene(sets, None, features, counted)
    codes = truth.codes[item.name]
    possible = truth.seen.inside(item.name, largest) & ~stratum.forbids[codes]
    both = inside[truth.rows] & possible[truth.originals]
    if both.sum() >= ENOUGH:
        people = truth.originals[both][:SAMPLE]
        sets, features = published(truth.rows[both][:SAMPLE])
        true = stratum.narrow(codes[people].astype(np.int64))
        return _Scene(sets, true, features, {**counted, "matched_records": float(len(people))})
    people = np.flatnonzero(possible)[:SAMPLE]
    true = stratum.narrow(codes[people].astype(np.int64))
    sets = stratum.mechanism.sample(true, SystemStream())
    return _Scene(sets, true, truth.features(people), {**counted, "fresh_sets": float(len(people))})


def _attack_attribute(release: Release, item: PublishedAttribute, seen: _Seen, truth: _Truth | None) -> list[Finding]:
    if item.mechanism is None or item.attribute.protection is None:
        return []
    largest = int(np.bincount(seen.places[item.name]).argmax()) if item.restricted else 0
    stratum = item.strata.members[largest]
    whole = stratum.mechanism is item.mechanism
    promises = item.attribute.protection.models
    scene = _scene(release, item, largest, seen, truth)
    found = attack_sets(
        scene.sets,
        stratum.mechanism,
        truth=scene.codes,
        features=scene.features,
        attribute=item.name,
        # Priors and distances are over the whole domain, codes those of the stratum.
        prior=item.domain.prior if whole else None,
        distance=item.attribute.distance if whole else None,
        d=promises.get("semantic-diversity", {}).get("d"),
        t=promises.get("closeness", {}).get("t"),
        bound=_bound(promises, stratum.mechanism),
    )
    shown = "; shown for the largest stratum" if item.restricted else ""
    findings = [replace(entry, knows=entry.knows + shown, detail={**entry.detail, **scene.measured}) for entry in found]
    return [replace(entry, bound=None, exceeded=False) if entry.attack in LEARNERS else entry for entry in findings]


def _bound(promises: Any, mechanism: Mechanism) -> float | None:
    """What the attribute's sets promise about a guess: 1/l where a diversity was promised."""
    sizes = [
        promises[name]["l"] for name in ("semantic-diversity", "diversity", "entropy-diversity") if name in promises
    ]
    return 1.0 / max(sizes) if sizes else mechanism.worst_posterior()


def _repetition(release: Release, item: PublishedAttribute, other: Release, twice: tuple[Ints, Ints]) -> list[Finding]:
    """The intersection of two releases, for people who stand in both.

    twice  their rows in either release
    """
    from polyseme.attacks import repetition

    again = other.manifest[item.name]
    if item.mechanism is None or item.attribute.protection is None:
        return []
    if again.mechanism is None or again.domain.values != item.domain.values:
        raise ReleaseError(f"'{item.name}' is not published over the same domain in both releases")
    rows, others = twice[0][:SAMPLE], twice[1][:SAMPLE]
    order = np.argsort(others)
    second = np.empty((len(rows), again.mechanism.l), dtype=np.int64)
    second[order] = _sets(other, again, others[order])
    bound = _bound(item.attribute.protection.models, item.mechanism)
    first = _sets(release, item, rows)
    finding = repetition.attack(first, second, size=item.mechanism.size, attribute=item.name, bound=bound)
    return [replace(finding, detail={**finding.detail, "matched_records": float(len(rows))})]
