"""Attacking a release as an outsider would, with the original as the judge where it is at hand.

Releases are shuffled, so nobody knows which row is whose. Rows are matched by their untouched columns, where a
combination stands exactly once on both sides: that is also how an attacker would do it. When hardly anyone can be
matched, success against the truth is measured on fresh sets that the release's own mechanism draws for the original.

Where some values are impossible for some records, an attribute has several mechanisms; adversaries against its sets
are then shown for the largest stratum, and say so.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from polyseme.attacks.base import Finding
from polyseme.attacks.battery import attack_classes, attack_sets
from polyseme.distances.structure import Ints
from polyseme.errors import QuestionError, ReleaseError, TableError
from polyseme.mechanism import Mechanism
from polyseme.randomness import SystemStream
from polyseme.release import PublishedAttribute, Release
from polyseme.schema import Role
from polyseme.strata import Stratum
from polyseme.tables.classes import classes_of
from polyseme.tables.codes import as_series, encode
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

_ROW, _ORIGINAL_ROW, _OTHER_ROW = "\0row", "\0original", "\0other"


def attack_release(
    release: Release, original: Source | None = None, other: Release | None = None
) -> tuple[Finding, ...]:
    """Every adversary that applies.

    original  the truth to measure success against
    other     a second release of the same people, for the intersection attack
    """
    if release.manifest.form != "set":
        raise QuestionError("attacks need the set form", "publish with --form set, which carries the same risk")
    frame = _untouched(release)
    findings = list(_linkage(release, frame))
    truth = _Truth(release, original, frame) if original is not None else None
    for item in release.manifest.protected:
        findings += _attack_attribute(release, item, frame, truth, other)
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


def _untouched(release: Release) -> pl.DataFrame:
    """The untouched columns of a release, as text so that they can be matched with any other table."""
    names = _names(release)
    batches = [_text(batch, names) for batch in release.batches(names)] if names else []
    return pl.concat(batches) if batches else pl.DataFrame()


def _text(batch: Any, names: Sequence[str]) -> pl.DataFrame:
    return pl.DataFrame({name: as_series(batch.column(name)).cast(pl.String) for name in names})


def _linkage(release: Release, frame: pl.DataFrame) -> tuple[Finding, ...]:
    names = [item.name for item in release.manifest.attributes if item.attribute.role is Role.QUASI_IDENTIFIER]
    if not names:
        return ()
    bounds = [next(iter(model.values())).get("k") for model in release.manifest.models if "k-anonymity" in model]
    return attack_classes(classes_of(frame, names), k=bounds[0] if bounds else None)


def _sets(release: Release, item: PublishedAttribute, width: int, rows: Ints) -> Ints:
    """The sets of some rows, which are ascending: nobody needs those of all rows at once."""
    parts, start = [np.zeros((0, width), dtype=np.int64)], 0
    for batch in release.batches([item.name]):
        begin, end = np.searchsorted(rows, [start, start + batch.num_rows])
        column = batch.column(0).take(pa.array(rows[begin:end] - start))
        part = code_sets(column, item.domain).regular(width)
        if part is None:
            raise ReleaseError(f"column '{item.name}': not every cell is a valid set", "run polyseme verify")
        parts.append(part)
        start += batch.num_rows
    return np.concatenate(parts)


def _matched(left: pl.DataFrame, right: pl.DataFrame, names: Sequence[str]) -> tuple[Ints, Ints]:
    """Rows of two tables that belong to the same person: combinations that stand exactly once on both sides.

    Ascending in the first table.
    """
    if not names:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    once = pl.len().over(list(names)) == 1
    first = left.select(names).with_row_index(_ROW).filter(once)
    second = right.select(names).with_row_index(_OTHER_ROW).filter(once)
    joined = first.join(second, on=list(names), how="inner", nulls_equal=True).sort(_ROW)
    return joined[_ROW].to_numpy().astype(np.int64), joined[_OTHER_ROW].to_numpy().astype(np.int64)


class _Truth:
    """The original: true codes of every protected attribute, and which rows of the release are whose."""

    def __init__(self, release: Release, original: Source, frame: pl.DataFrame) -> None:
        names = _names(release)
        protected = release.manifest.protected
        absent = [name for name in (*names, *(item.name for item in protected)) if name not in original.schema.names]
        if absent:
            raise TableError(f"{original.name}: no column '{absent[0]}'", "is this the table that was released?")
        words = release.manifest.missing_values
        columns: list[pl.DataFrame] = []
        codes: dict[str, list[Ints]] = {item.name: [] for item in protected}
        for batch in original.batches([*names, *codes]):
            columns.append(_text(batch, names))
            for item in protected:
                found = encode(as_series(batch.column(item.name), words), item.domain).codes
                codes[item.name].append(found.astype(np.int32))
        self.codes = {name: np.concatenate(parts) for name, parts in codes.items()}
        kept = np.all([column >= 0 for column in self.codes.values()], axis=0)
        self.codes = {name: column[kept] for name, column in self.codes.items()}
        if not kept.any():
            raise TableError(f"{original.name}: no record fits the release", "is this the table that was released?")
        table = pl.concat(columns).filter(pl.Series(kept)) if names else pl.DataFrame()
        self.table = table
        self.rows, self.originals = _matched(frame, table, names)

    def within(self, name: str, codes: Ints, rows: Ints, originals: Ints) -> _Truth:
        """The truth about one attribute of some rows of the release and of the original, counted among these."""
        part = copy(self)
        part.codes, part.table = {name: codes}, self.table[originals]
        both = np.isin(self.rows, rows) & np.isin(self.originals, originals)
        part.rows = np.searchsorted(rows, self.rows[both])
        part.originals = np.searchsorted(originals, self.originals[both])
        return part


def _attack_attribute(
    release: Release, item: PublishedAttribute, frame: pl.DataFrame, truth: _Truth | None, other: Release | None
) -> list[Finding]:
    if item.mechanism is None or item.attribute.protection is None:
        return []
    mechanism, whole, stratum = item.mechanism, frame, None
    everybody: Ints = np.arange(release.manifest.records)
    if item.restricted:
        stratum, everybody, truth = _largest_stratum(item, frame, truth)
        mechanism, frame = stratum.mechanism, frame[everybody]
    promises = item.attribute.protection.models
    common: dict[str, Any] = {
        "attribute": item.name,
        # Priors and distances are over the whole domain, codes those of the stratum.
        "prior": item.domain.prior if mechanism is item.mechanism else None,
        "distance": item.attribute.distance if mechanism is item.mechanism else None,
        "d": promises.get("semantic-diversity", {}).get("d"),
        "t": promises.get("closeness", {}).get("t"),
        "bound": _bound(promises, mechanism),
    }
    rows = _some(len(everybody))
    codes, sets, measured, features = None, None, {}, None
    if truth is not None and len(truth.rows) >= ENOUGH:
        rows, codes = truth.rows[:SAMPLE], truth.codes[item.name][truth.originals[:SAMPLE]].astype(np.int64)
        measured = {"matched_records": float(len(rows))}
        features = _features(frame[rows]) if frame.width else None
    elif truth is not None:
        people = _some(len(truth.codes[item.name]))
        codes = truth.codes[item.name][people].astype(np.int64)
        sets = mechanism.sample(codes, SystemStream())
        measured = {"fresh_sets": float(len(people))}
        features = _features(truth.table[people]) if truth.table.width else None
    elif frame.width:
        features = _features(frame[rows])
    if sets is None:
        sets = _published(release, item, everybody[rows], stratum)
    found = list(attack_sets(sets, mechanism, truth=codes, features=features, **common))
    found = [replace(item, bound=None, exceeded=False) if item.attack in LEARNERS else item for item in found]
    shown = "; shown for the largest stratum" if item.restricted else ""
    measured |= {"stratum_records": float(len(everybody))} if item.restricted else {}
    found = [replace(entry, knows=entry.knows + shown, detail={**entry.detail, **measured}) for entry in found]
    if other is not None:
        found += _repetition(release, item, whole, other, item.mechanism, common)
    return found


def _largest_stratum(
    item: PublishedAttribute, frame: pl.DataFrame, truth: _Truth | None
) -> tuple[Stratum, Ints, _Truth | None]:
    """The stratum with most records, its rows in the release, and the truth of these records."""
    strata = item.strata
    places = strata.places(frame.to_dict(), frame.height)
    largest = int(np.bincount(places).argmax())
    stratum, rows = strata.members[largest], np.flatnonzero(places == largest)
    if truth is not None:
        codes = truth.codes[item.name]
        here = (strata.places(truth.table.to_dict(), truth.table.height) == largest) & ~stratum.forbids[codes]
        truth = truth.within(item.name, stratum.narrow(codes[here]), rows, np.flatnonzero(here))
    return stratum, rows, truth


def _published(release: Release, item: PublishedAttribute, rows: Ints, stratum: Stratum | None) -> Ints:
    """The sets of some rows, in the codes of their stratum if there is one."""
    if item.mechanism is None:
        raise QuestionError(f"'{item.name}' is published as it is")
    sets = _sets(release, item, item.mechanism.l, rows)
    if stratum is None:
        return sets
    if stratum.forbids[sets].any():
        raise ReleaseError(f"column '{item.name}': some sets hold impossible values", "run polyseme verify")
    return stratum.narrow(sets)


def _bound(promises: Any, mechanism: Mechanism) -> float | None:
    """What the attribute's sets promise about a guess: 1/l where a diversity was promised."""
    sizes = [
        promises[name]["l"] for name in ("semantic-diversity", "diversity", "entropy-diversity") if name in promises
    ]
    return 1.0 / max(sizes) if sizes else mechanism.worst_posterior()


def _some(count: int) -> Ints:
    return np.arange(min(count, SAMPLE))


def _features(frame: pl.DataFrame) -> Ints:
    """Untouched columns as codes."""
    return np.column_stack([series.rank("dense").fill_null(0).to_numpy().astype(np.int64) for series in frame])


def _repetition(
    release: Release,
    item: PublishedAttribute,
    frame: pl.DataFrame,
    other: Release,
    mechanism: Mechanism,
    common: dict[str, Any],
) -> list[Finding]:
    from polyseme.attacks import repetition

    again = other.manifest[item.name]
    if again.mechanism is None or again.domain.values != item.domain.values:
        raise ReleaseError(f"'{item.name}' is not published over the same domain in both releases")
    rows, others = _matched(frame, _untouched(other), _names(release))
    if not len(rows):
        return []
    first = _sets(release, item, mechanism.l, rows)
    order = np.argsort(others)
    second = np.empty((len(rows), again.mechanism.l), dtype=np.int64)
    second[order] = _sets(other, again, again.mechanism.l, others[order])
    finding = repetition.attack(first, second, size=mechanism.size, attribute=item.name, bound=common["bound"])
    return [replace(finding, detail={**finding.detail, "matched_records": float(len(rows))})]
