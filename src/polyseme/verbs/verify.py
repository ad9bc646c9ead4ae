"""`verify`: the promises of a release, or the models a policy lists for any table.

Sets and classes are checked from the definitions. Promises about what an attacker can infer (1/l, closeness, local
differential privacy) follow from the channel that the manifest publishes, and are computed from it; and whether the
published sets can have come from that channel is tested.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from polyseme.kernel.arrays import Bools, Ints
from polyseme.kernel.errors import PolicyError, Problem
from polyseme.kernel.work import tracked, verb
from polyseme.models import MODELS, Verdict, check_models
from polyseme.models import diversity as set_diversity
from polyseme.models import semantic_diversity as set_semantic_diversity
from polyseme.models.base import SHOWN, Place, unchecked
from polyseme.policy import Policy
from polyseme.policy.foreign import read_foreign
from polyseme.privacy.promises import Promise
from polyseme.privacy.promises.base import Candidates
from polyseme.publishing.inputs import (
    compared_with,
    policy_given,
    release_given,
    source_given,
    table_given,
    with_population,
)
from polyseme.release import SEEDED, Grouped, Manifest, Release, Sets
from polyseme.release.classes import counted_frame, verdicts_on
from polyseme.release.data import MANIFEST
from polyseme.release.release import SetCounts, stratum_column
from polyseme.results.verification import Verification
from polyseme.scrutiny.knowledge import from_release, looks_at_all
from polyseme.scrutiny.learners import with_learners
from polyseme.scrutiny.verification.claims import claimed, compared, located, noted
from polyseme.scrutiny.verification.verdicts import mechanism_verdict, posterior_verdict, sets_by_stratum
from polyseme.tables.codes import label_array
from polyseme.tables.equivalence_classes import PublishedSets, published_sets
from polyseme.tables.groups import Grouped as CountedSets
from polyseme.tables.io.locations import is_address, is_pattern
from polyseme.tables.io.source import Source, how_many
from polyseme.tables.set_codes import code_sets

__all__ = ["verify", "verify_release", "verify_table"]

_log = logging.getLogger(__name__)

_RECORDS = "\0records"
_CHANNEL_ROUNDING = 1e-9
"""Truth probabilities are rounded down when they are chosen; what a channel comes to is recomputed."""


@verb(read=1, promises=1, adversaries=4, guesses=8)
def verify(
    subject: Release | str | Path | Any,
    policy: Policy | str | Path | None = None,
    *,
    original: Any = None,
    person: str | None = None,
    population: Any = None,
) -> Verification:
    """Check every promise of a release, or the models that a policy lists on any table.

    original  the table that a release was made of: with it the people are counted whom the release claims to hide
    person    the column of the original that says whose each record is; may be left out where only one can
    population  people with the same quasi-identifiers as a table, for k-map
    """
    if policy is not None:
        _require_table(subject)
        _require_no_original(original)
        rules = with_population(policy_given(policy), population)
        return _counted(verify_table(source_given(subject, rules), rules))
    if hasattr(subject, "columns") or (isinstance(subject, str | Path) and _names_files(subject)):
        name = f"{subject}: " if isinstance(subject, str | Path) else ""
        raise PolicyError(
            f"{name}a table needs a policy that lists the models to check", "polyseme verify TABLE --policy POLICY"
        )
    release = release_given(subject)
    found = verify_release(release, population=None if population is None else _people(release, population))
    whole = tuple(release.source.schema.names) == release.manifest.names
    if whole and original is not None:
        told = compared(release, compared_with(original, release), person)
        found = replace(found, verdicts=(*(item for item in found.verdicts if item.model != "people"), *told))
    if whole:
        found = _read_as_learners(release, found)
    return _counted(found)


def _read_as_learners(release: Release, found: Verification) -> Verification:
    """What readers learn from a release, and what else is to be said of its sets where these can be read at all.

    Attackers who learn use the first records. Where these are all, every other attack uses them in the same reading.
    """
    if not found.holds or release.manifest.form != "set":
        return with_learners(found, release)
    # A hundred modules that are not needed to check a table.
    from polyseme.publishing.review import singled_out
    from polyseme.scrutiny.attacks.audit.seen import Memory
    from polyseme.scrutiny.attacks.audit.shared_values import shared_remarks

    memory = Memory(release) if looks_at_all(release) else None
    looked = from_release(release, None if memory is None else memory.add)
    whole = memory is not None and all(item.name in looked.values for item in release.manifest.sets)
    drawn = (lambda item, rows: looked.values[item.name][rows]) if whole else None
    alone = singled_out(release.manifest.columns, release.source, release.manifest.missing_values)
    told = (problem.what for problem in alone.refused)
    remarks = (*shared_remarks(release, None, memory, drawn), *told, *alone.told)
    return replace(with_learners(found, release, looked), remarks=remarks)


def _people(release: Release, population: Any) -> pl.DataFrame:
    # Attackers cost a second to import: only those who bring a population pay.
    from polyseme.scrutiny.attacks.audit.records import population_of_release

    return population_of_release(release, table_given(population))


def _require_no_original(original: Any) -> None:
    if original is not None:
        what = "a table is checked by its policy, whose record-key says whose the records are"
        raise PolicyError(Problem("original", what, "leave --original out"))


def _names_files(subject: str | Path) -> bool:
    if isinstance(subject, str) and is_address(subject):
        return True
    path = Path(subject)
    return path.is_file() or (not path.exists() and is_pattern(str(path)))


def _require_table(subject: Any) -> None:
    """Raise for a release: it is checked for what it promises itself, and a policy is for tables of other tools."""
    folder = subject.folder if isinstance(subject, Release) else subject
    if isinstance(subject, Release) or (isinstance(subject, str | Path) and (Path(subject) / MANIFEST).is_file()):
        raise PolicyError(
            f"{folder or 'this'}: a release, which is checked for its own promises; --policy is for a table",
            "polyseme verify RELEASE, or polyseme verify TABLE --policy POLICY",
        )


def _counted(verification: Verification) -> Verification:
    broken = sum(not verdict.holds for verdict in verification.verdicts)
    _log.info("verify: %d checks, %d of them fail", len(verification.verdicts), broken)
    return verification


def verify_release(
    release: Release, counts: SetCounts | None = None, population: pl.DataFrame | None = None
) -> Verification:
    """Every promise of the manifest, checked on the published data.

    counts      the distinct sets, for those who have them counted already
    population  the quasi-identifiers of people, for k-map
    """
    if tuple(release.source.schema.names) != release.manifest.names:
        return Verification((_column_verdict(release),))
    verdicts: list[Verdict] = []
    counts = counts or SetCounts(release)
    for item in tracked(release.manifest.sets, "promises", "Checking promises"):
        found = (_set_verdicts if release.manifest.form == "set" else _long_verdicts)(release, item, counts)
        verdicts += map(_unless_guessed, found) if release.manifest.seeded else found
        if item.stratified:
            verdicts.append(_believable_verdict(release, item, sets_by_stratum(counts, item)))
    verdicts += [_group_verdict(release, item) for item in release.manifest.grouped]
    models = _models(release.manifest)
    if models:
        verdicts += noted(verdicts_on(release, models, population), release.manifest.people)
    if not verdicts:
        verdicts.append(unchecked("promises", None, {}, "the manifest promises nothing"))
    verdicts.append(_count_verdict(release))
    claim = claimed(release)
    if claim is not None:
        verdicts.append(claim)
    if release.manifest.collected is not None:
        verdicts.append(_crowd_verdict(release.manifest.records, release.manifest.collected.minimum))
    return Verification(tuple(verdicts), bool(release.manifest.seeded))


def _unless_guessed(verdict: Verdict) -> Verdict:
    """The candidates are as promised, but an attacker who has the seed can tell which of them are decoys."""
    return replace(verdict, note="; ".join(note for note in (verdict.note, SEEDED) if note))


def _column_verdict(release: Release) -> Verdict:
    """The data file has other columns than the manifest says: what they hold is not known."""
    there, stated = set(release.source.schema.names), set(release.manifest.names)
    note = f"{len(there - stated)} columns that the manifest does not name, {len(stated - there)} that are not there"
    differing = float(len(there ^ stated))
    return Verdict("columns", None, {}, False, differing, 0.0, -differing, note=note)


def _count_verdict(release: Release) -> Verdict:
    """The data file has as many rows as the manifest says: none was lost or added."""
    rows = release.source.rows
    if rows is None:
        rows = sum(map(how_many, release.counted(release.manifest.names)))
    widths = [item.l for item in release.manifest.sets]
    stated = release.manifest.records * (math.prod(widths) if release.manifest.form == "long" else 1)
    note = "" if rows == stated else f"the data has {rows:,} rows, the manifest says {stated:,}"
    difference = float(abs(rows - stated))
    holds = rows == stated == release.manifest.rows
    return Verdict("record-count", None, {"rows": stated}, holds, difference, 0.0, -difference, note=note)


def _models(manifest: Manifest) -> tuple[Mapping[str, Any], ...]:
    """Those that the manifest lists; a collector that left out rare records says so elsewhere."""
    k = manifest.collected.k if manifest.collected is not None else None
    listed = {name for model in manifest.models for name in model}
    stated = k is not None and bool(manifest.links) and "k-anonymity" not in listed
    return (*manifest.models, {"k-anonymity": {"k": k}}) if stated else manifest.models


def _crowd_verdict(records: int, minimum: int) -> Verdict:
    """No fewer reports are released than the campaign promised to its respondents."""
    distance = float(records - minimum)
    note = "what the campaign promised to those who answered"
    parameters = {"reports": minimum}
    return Verdict("minimum", None, parameters, distance >= 0, float(records), float(minimum), distance, note=note)


def _believable_verdict(release: Release, item: Sets, grouped: CountedSets | None) -> Verdict:
    """No record shows a candidate that is declared impossible for it."""
    if grouped is not None and not _holds_impossible(item, grouped):
        checked, wrong, rows = int(grouped.counts.sum()), 0, np.zeros(0, dtype=np.int64)
    else:
        # Row by row, so that the verdict can name the place.
        checked, wrong, rows = _impossible_rows(release, item)
    return Verdict(
        "believable",
        item.name,
        {"impossible": len(item.attribute.constraints)},
        holds=not wrong,
        worst=float(wrong),
        bound=0.0,
        margin=-float(wrong),
        worst_classes=tuple(Place(row, 1, row) for row in rows[:SHOWN].tolist()),
        checked=checked,
        violations=wrong,
        note="a candidate is declared impossible for its record" if wrong else "",
    )


def _holds_impossible(item: Sets, grouped: CountedSets) -> bool:
    """Whether any of the distinct sets holds a value that is impossible in its stratum."""
    places = grouped.cells[stratum_column(item)].to_numpy()[grouped.cell]
    return bool(_forbidden(item)[places[:, None], grouped.sets[0]].any())


def _forbidden(item: Sets) -> Bools:
    """Whether each value is impossible in each stratum."""
    return np.array([member.forbids for member in item.strata.members])


def _impossible_rows(release: Release, item: Sets) -> tuple[int, int, Ints]:
    """How many records there are, how many of them show an impossible candidate, and in which rows where known."""
    strata, forbidden = item.strata, _forbidden(item)
    checked, wrong, bad = 0, 0, []
    for batch, counts in release.counted([*strata.columns, item.name]):
        columns = {name: batch.column(name) for name in strata.columns}
        places = strata.places(columns, batch.num_rows)
        sets = code_sets(batch.column(item.name), item.domain)
        record = np.repeat(np.arange(batch.num_rows), sets.lengths)
        # A candidate that is not in the domain is for the other verdicts.
        found = (sets.members >= 0) & forbidden[places[record], sets.members]
        rows = np.unique(record[found])
        wrong += len(rows) if counts is None else int(counts[rows].sum())
        bad.append(checked + rows if counts is None else rows[:0])
        checked += how_many((batch, counts))
    return checked, wrong, np.concatenate([np.zeros(0, dtype=np.int64), *bad])


def _set_verdicts(release: Release, item: Sets, counts: SetCounts) -> list[Verdict]:
    grouped = sets_by_stratum(counts, item)
    sets = _distinct_sets(release, item, grouped)
    headline = [posterior_verdict(item), mechanism_verdict(release, item, grouped, counts)]
    verdicts = _on_sets(item, sets)
    if all(verdict.holds for verdict in verdicts) or not len(sets.counts):
        return [*verdicts, *headline]
    # Something is wrong: look again, now row by row, so that the verdict can name the place.
    return [*_on_sets(item, _row_sets(release, item)), *headline]


def _on_sets(item: Sets, sets: PublishedSets) -> list[Verdict]:
    verdicts = [_check_promise(promise, item, sets) for promise in item.attribute.promises]
    return [*verdicts, *_unreadable(item), _candidates_verdict(sets, item.l)]


def _unreadable(item: Sets) -> list[Verdict]:
    """What a manifest promises and this program cannot check does not hold."""
    return [unchecked(found.name, item.name, found.values, found.flaw) for found in item.attribute.promises.unreadable]


def _candidates_verdict(sets: PublishedSets, l: int) -> Verdict:
    """Whatever was promised in words, every set must have the size that the likelihood counts on: no less, no more."""
    verdict = replace(set_diversity.check(sets, l), model="candidates")
    larger = int(sets.counts[np.diff(sets.starts) > l].sum()) if verdict.holds else 0
    if not larger:
        return verdict
    return replace(verdict, holds=False, violations=larger, note=f"{larger:,} sets have more candidates than {l}")


def _distinct_sets(release: Release, item: Sets, grouped: CountedSets | None) -> PublishedSets:
    if grouped is None:
        return _row_sets(release, item)
    return PublishedSets.from_codes(grouped.sets[0], item.domain.size, item.name, counts=grouped.counts)


def _row_sets(release: Release, item: Sets) -> PublishedSets:
    rows, counts = counted_frame(release, [item.name])
    # Of no rows it is not known that they hold lists.
    rows = rows if rows.height else pl.DataFrame(schema={item.name: pl.List(pl.String)})
    return published_sets(rows, item.name, label_array(item.domain.values).to_pylist(), counts)


def _asked(promise: Promise, item: Sets) -> Candidates | Verdict:
    """What every published set must offer; a verdict where the manifest alone decides."""
    flaw = promise.flaw(item.attribute.distance is not None)
    if flaw:
        return unchecked(promise.name, item.name, promise.given(), flaw)
    return promise.candidates(item.domain.size) or _channel_verdict(promise, item)


def _check_promise(promise: Promise, item: Sets, sets: PublishedSets) -> Verdict:
    asked = _asked(promise, item)
    if isinstance(asked, Verdict):
        return asked
    if asked.d is None or item.attribute.distance is None:
        verdict = set_diversity.check(sets, asked.l)
    else:
        verdict = set_semantic_diversity.check_sets(sets, item.attribute.distance, asked.l, asked.d)
    return replace(verdict, model=promise.name, parameters=promise.given())


def _channel_verdict(promise: Promise, item: Sets) -> Verdict:
    """From the channels in the manifest alone; the worst stratum counts."""
    reached = [promise.reached(channel) for channel in item.channels]
    worst, bound = max(found.value for found in reached), float(promise.limit)
    known = all(found.for_reference for found in reached)
    note = f"from the channel in the manifest, for {'the reference distribution' if known else 'every prior'}"
    holds = worst <= bound + _CHANNEL_ROUNDING
    margin = max(bound - worst, 0.0) if holds else bound - worst
    return Verdict(promise.name, item.name, promise.given(), holds, worst, bound, margin, note=note)


def _long_verdicts(release: Release, item: Sets, counts: SetCounts) -> list[Verdict]:
    """In the long form it is not known which rows belong together: classes of equal quasi-identifiers are checked."""
    counted = {"frequency-diversity": {"l": item.mechanism.l, "attribute": item.name}}
    asked = [(promise, _on_classes(promise, item)) for promise in item.attribute.promises]
    found = iter(verdicts_on(release, [counted, *(spec for _, spec in asked if isinstance(spec, Mapping))]))
    verdicts = [next(found)]
    for promise, spec in asked:
        told = spec if isinstance(spec, Verdict) else next(found)
        verdicts.append(replace(told, model=promise.name, parameters=promise.given()))
    verdicts += _unreadable(item)
    grouped = sets_by_stratum(counts, item)
    return [*verdicts, posterior_verdict(item), mechanism_verdict(release, item, grouped, counts)]


def _on_classes(promise: Promise, item: Sets) -> Mapping[str, Mapping[str, Any]] | Verdict:
    """What a promise asks of the classes; a verdict where the manifest alone decides."""
    asked = _asked(promise, item)
    if isinstance(asked, Verdict):
        return asked
    # A class of many records has more values than its sets: it cannot show that these are smaller than promised.
    made = min(member.mechanism.l for member in item.strata.members)
    if made < asked.l:
        return _manifest_verdict(promise, item, made, asked.l, "the mechanism draws fewer candidates")
    if asked.d is None:
        return {"frequency-diversity": {"l": asked.l, "attribute": item.name}}
    apart = item.threshold or 0.0
    if apart < asked.d:
        return _manifest_verdict(promise, item, apart, asked.d, "the mechanism draws them closer together")
    return {"semantic-diversity": {"l": asked.l, "d": asked.d, "reading": "exists", "attribute": item.name}}


def _manifest_verdict(promise: Promise, item: Sets, worst: float, bound: float, note: str) -> Verdict:
    margin = float(worst - bound)
    return Verdict(promise.name, item.name, promise.given(), False, float(worst), float(bound), margin, note=note)


def _group_verdict(release: Release, item: Grouped) -> Verdict:
    """All records of a group show the same values, as many as there are records: each has one of them."""
    rows, counts = counted_frame(release, (item.group, item.name))
    if not isinstance(rows.schema[item.name], pl.List):
        return unchecked("groups", item.name, {}, "the cells are not lists of values")
    number = pl.repeat(1, pl.len(), dtype=pl.Int64) if counts is None else pl.Series(counts)
    groups = (
        rows.with_columns(number.alias(_RECORDS))
        .group_by(item.group)
        .agg(pl.col(_RECORDS).sum(), pl.col(item.name).n_unique().alias("lists"), pl.col(item.name).first().list.len())
    )
    alike = (pl.col("lists") == 1) & (pl.col(_RECORDS) == pl.col(item.name)).fill_null(False)
    wrong = groups.filter(~alike | pl.col(item.group).is_null()).height
    note = "" if not wrong else "records of a group show different values, or more or fewer than the group has records"
    return Verdict(
        "groups", item.name, {}, not wrong, float(wrong), 0.0, -float(wrong), (), groups.height, wrong, note=note
    )


def verify_table(source: Source, policy: Policy) -> Verification:
    """The policy's models on any table, made by whatever tool."""
    if not policy.models:
        hint = f"models: [{{k-anonymity: {{k: 5}}}}]; known: {', '.join(MODELS)}"
        raise PolicyError(Problem("$.models", "the policy lists no models to check", hint))
    table = read_foreign(source, policy)
    verdicts = check_models(
        table.frame,
        table.quasi_identifiers,
        [{model.name: model.parameters} for model in policy.models],
        sensitive=table.sensitive,
        background=table.background,
        counts=table.counts,
        people=table.people,
    )
    return located(verdicts, table, source)
