"""Every promise of a release, or the models a policy lists for any table, checked.

Sets and classes are checked from the definitions. Promises about what an attacker can infer (1/l, closeness, local
differential privacy) follow from the channel that the manifest publishes, and are computed from it; and whether the
published sets can have come from that channel is tested. The headline has two verdicts on each protected attribute:

- `posterior`: from the channel in the manifest, the largest `P(v | R)` under the declared prior, against 1/l;
- `mechanism`: whether the published sets can have come from that channel, whether candidates stand in the order of the
  domain, and rows in random order, see `evidence`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from polyseme.designs.feasibility import heaviest_clique
from polyseme.inference.base import Reports
from polyseme.kernel.arrays import Bools, Ints
from polyseme.kernel.errors import ImpossibleError, InvalidInput, PolicyError, Problem, ReleaseError
from polyseme.kernel.work import tracked
from polyseme.models import MODELS, check_models
from polyseme.models import diversity as set_diversity
from polyseme.models import semantic_diversity as set_semantic_diversity
from polyseme.models.base import SHOWN, Place, Verdict, unchecked
from polyseme.policy import Policy
from polyseme.policy.foreign import ForeignTable, read_foreign
from polyseme.privacy.calibration import UNBALANCED
from polyseme.privacy.promises import Promise
from polyseme.privacy.promises.base import Candidates
from polyseme.release import SEEDED, Grouped, Manifest, Release, Sets
from polyseme.release.classes import counted_frame, verdicts_on
from polyseme.release.release import SetCounts, stratum_column
from polyseme.results.verification import Verification
from polyseme.scrutiny.verification import Evidence, examine, impossible, level_of, nothing, repeats_of, together
from polyseme.scrutiny.verification.claims import claimed, located, names_rows, noted
from polyseme.scrutiny.verification.evidence import order_evidence
from polyseme.strata import Stratum, by_stratum
from polyseme.tables.codes import label_array
from polyseme.tables.equivalence_classes import PublishedSets, published_sets
from polyseme.tables.groups import Grouped as CountedSets
from polyseme.tables.io.source import Source, how_many
from polyseme.tables.published import RowOrder, code_sets

__all__ = ["posterior_verdict", "verify_release", "verify_table"]

_RECORDS = "\0records"
_CHANNEL_ROUNDING = 1e-9
"""Truth probabilities are rounded down when they are chosen; what a channel comes to is recomputed."""
_FITS = "p-value of the published sets and their order under the channel in the manifest"
_MISFIT = "the published sets cannot have come from the mechanism in the manifest"
_ARRANGED = "rows or candidates are in an order that can tell true values"
_REMARK = f"{_ARRANGED}: publish candidates in the domain's order and rows in random order"
_ALMOST_CERTAIN = 1.0 - 1e-5
"""The weights of a least-risk design may be anything, but no set of several candidates may give one of them away."""
_POSTERIOR_ROUNDING = 1e-6
"""Designs are fitted to their inclusion probabilities with an error of 1e-9."""


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
            verdicts.append(_believable_verdict(release, item, _sets_by_stratum(counts, item)))
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
        verdicts.append(_clique_verdict(release.manifest.records, release.manifest.collected.minimum))
    return Verification(tuple(verdicts), bool(release.manifest.seeded))


def _unless_guessed(verdict: Verdict) -> Verdict:
    """The verdict with a note that an attacker with the seed can recompute the decoys."""
    return replace(verdict, note="; ".join(note for note in (verdict.note, SEEDED) if note))


def _column_verdict(release: Release) -> Verdict:
    """The data file has other columns than the manifest says: what they hold is not known."""
    there, named = set(release.source.schema.names), set(release.manifest.names)
    note = f"{len(there - named)} columns that the manifest does not name, {len(named - there)} that are not there"
    differing = float(len(there ^ named))
    return Verdict("columns", None, {}, False, differing, 0.0, -differing, note=note)


def _count_verdict(release: Release) -> Verdict:
    """The data file has as many rows as the manifest says: none was lost or added."""
    rows = release.source.rows
    if rows is None:
        rows = sum(map(how_many, release.counted(release.manifest.names)))
    widths = [item.l for item in release.manifest.sets]
    expected = release.manifest.records * (math.prod(widths) if release.manifest.form == "long" else 1)
    note = "" if rows == expected else f"the data has {rows:,} rows, the manifest says {expected:,}"
    difference = float(abs(rows - expected))
    holds = rows == expected == release.manifest.rows
    return Verdict("record-count", None, {"rows": expected}, holds, difference, 0.0, -difference, note=note)


def _models(manifest: Manifest) -> tuple[Mapping[str, Any], ...]:
    """Those that the manifest lists; a collector that left out rare records says so elsewhere."""
    k = manifest.collected.k if manifest.collected is not None else None
    listed = {name for model in manifest.models for name in model}
    implied = k is not None and bool(manifest.links) and "k-anonymity" not in listed
    return (*manifest.models, {"k-anonymity": {"k": k}}) if implied else manifest.models


def _clique_verdict(records: int, minimum: int) -> Verdict:
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
    """The number of records, of those with an impossible candidate, and their rows if known."""
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
    grouped = _sets_by_stratum(counts, item)
    sets = _distinct_sets(release, item, grouped)
    headline = [posterior_verdict(item), _mechanism_verdict(release, item, grouped, counts)]
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
    """Whether every set has exactly the size that the likelihood assumes."""
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


def _required(promise: Promise, item: Sets) -> Candidates | Verdict:
    """What every published set must offer; a verdict where the manifest alone decides."""
    flaw = promise.flaw(item.attribute.distance is not None)
    if flaw:
        return unchecked(promise.name, item.name, promise.given(), flaw)
    return promise.candidates(item.domain.size) or _channel_verdict(promise, item)


def _check_promise(promise: Promise, item: Sets, sets: PublishedSets) -> Verdict:
    required = _required(promise, item)
    if isinstance(required, Verdict):
        return required
    if required.d is None or item.attribute.distance is None:
        verdict = set_diversity.check(sets, required.l)
    else:
        verdict = set_semantic_diversity.check_sets(sets, item.attribute.distance, required.l, required.d)
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
    """Verdicts of the long form, by classes of equal quasi-identifiers: rows are not linked."""
    counted = {"frequency-diversity": {"l": item.mechanism.l, "attribute": item.name}}
    specs = [(promise, _on_classes(promise, item)) for promise in item.attribute.promises]
    found = iter(verdicts_on(release, [counted, *(spec for _, spec in specs if isinstance(spec, Mapping))]))
    verdicts = [next(found)]
    for promise, spec in specs:
        reported = spec if isinstance(spec, Verdict) else next(found)
        verdicts.append(replace(reported, model=promise.name, parameters=promise.given()))
    verdicts += _unreadable(item)
    grouped = _sets_by_stratum(counts, item)
    return [*verdicts, posterior_verdict(item), _mechanism_verdict(release, item, grouped, counts)]


def _on_classes(promise: Promise, item: Sets) -> Mapping[str, Mapping[str, Any]] | Verdict:
    """What a promise asks of the classes; a verdict where the manifest alone decides."""
    required = _required(promise, item)
    if isinstance(required, Verdict):
        return required
    # A class of many records has more values than its sets: it cannot show that these are smaller than promised.
    made = min(member.mechanism.l for member in item.strata.members)
    if made < required.l:
        return _manifest_verdict(promise, item, made, required.l, "the mechanism draws fewer candidates")
    if required.d is None:
        return {"frequency-diversity": {"l": required.l, "attribute": item.name}}
    apart = item.threshold or 0.0
    if apart < required.d:
        return _manifest_verdict(promise, item, apart, required.d, "the mechanism draws them closer together")
    return {"semantic-diversity": {"l": required.l, "d": required.d, "reading": "exists", "attribute": item.name}}


def _manifest_verdict(promise: Promise, item: Sets, worst: float, bound: float, note: str) -> Verdict:
    margin = float(worst - bound)
    return Verdict(promise.name, item.name, promise.given(), False, float(worst), float(bound), margin, note=note)


def _group_verdict(release: Release, item: Grouped) -> Verdict:
    """Whether all records of a group show the same values, as many as there are records."""
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
    try:
        table = read_foreign(source, policy)
        verdicts = _on_table(table, policy)
        wrong = table.first is not None and names_rows(verdicts)
    except InvalidInput:
        wrong = True
    if wrong:
        # Look again, now row by row, so that what is wrong can name the place.
        table = read_foreign(source, policy, distinct=False)
        verdicts = _on_table(table, policy)
    return located(verdicts, table, source)


def _on_table(table: ForeignTable, policy: Policy) -> tuple[Verdict, ...]:
    return check_models(
        table.frame,
        table.quasi_identifiers,
        [{model.name: model.parameters} for model in policy.models],
        sensitive=table.sensitive,
        background=table.background,
        counts=table.counts,
        people=table.people,
        first=table.first,
    )


def _sets_by_stratum(counts: SetCounts, item: Sets) -> CountedSets | None:
    """The distinct sets of each stratum; None if a cell has a wrong number of candidates."""
    try:
        return counts.of(item)
    except ReleaseError:
        return None


def posterior_verdict(item: Sets) -> Verdict:
    """The highest posterior for an attacker who knows the channel and has the declared prior."""
    members = item.strata.members
    l = max(member.mechanism.l for member in members)
    each = [_worst_posterior(member) for member in members]
    reached = max(each, key=lambda found: (math.isnan(found), found))
    prior = _expected(members)
    bound, parameters = _promised_posterior(item, l), {"l": l}
    if bound is None:
        known = "is too costly to compute" if math.isnan(reached) else f"is {reached:.4g}"
        design = item.strata.members[0].mechanism.design.name
        note = f"1/l = {1 / l:.4g} is not promised by the {design} design: the worst posterior under {prior} {known}"
        worst = None if math.isnan(reached) else reached
        return Verdict("posterior", item.name, parameters, True, worst, None, None, checked=len(members), note=note)
    if math.isnan(reached):
        return unchecked("posterior", item.name, parameters, "the channel in the manifest gives no posterior")
    # Where a balanced design exists, a group whose values are crowded is no excuse for another one.
    limits = [bound if member.mechanism.design.name in UNBALANCED else min(bound, 1.0 / l) for member in members]
    holds = all(found <= limit + _POSTERIOR_ROUNDING for found, limit in zip(each, limits, strict=True))
    margin = max(bound - reached, 0.0) if holds else bound - reached
    note = f"from the channel in the manifest, for {prior}"
    return Verdict("posterior", item.name, parameters, holds, reached, bound, margin, checked=len(members), note=note)


def _expected(members: Sequence[Stratum]) -> str:
    """For whom the posterior is computed."""
    if any(member.distributions.learner_prior is not None for member in members):
        return (
            "an attacker with the prior that the sets are balanced for; not for the declared distribution (see learner)"
        )
    return "a uniform prior" if all(member.prior is None for member in members) else "the declared prior"


def _worst_posterior(member: Stratum) -> float:
    """The largest posterior in a stratum; not a number where it is too costly."""
    try:
        with np.errstate(all="ignore"):
            reached = member.mechanism.worst_posterior(member.prior)
    except ImpossibleError:
        return math.nan
    # A certain value is a certain value, whatever rounding makes of it.
    return min(reached, 1.0) if math.isfinite(reached) else math.nan


def _promised_posterior(item: Sets, l: int) -> float | None:
    """The promised posterior: 1/l, or that of another named design; None without any."""
    designs = {member.mechanism.design.name for member in item.strata.members}
    spacing = item.attribute.promises.spacing
    named = spacing.design if spacing is not None else "balanced"
    posterior = item.posterior
    if named not in UNBALANCED and "least-risk" in designs and item.attribute.conditional and posterior is not None:
        due = designs <= {named, "least-risk"} and all(map(_concentrated, item.strata.members))
        return min(_ALMOST_CERTAIN, posterior) if due else min(1.0 / l, posterior)
    if named not in UNBALANCED or designs != {named}:
        return 1.0 / l if posterior is None else min(1.0 / l, posterior)
    if named == "least-risk":
        return min(_ALMOST_CERTAIN if l > 1 else 1.0, math.inf if posterior is None else posterior)
    # An old manifest says nothing more than the name of the design, and that is open enough: its channel is known.
    return None if posterior is None or not math.isfinite(posterior) else posterior


def _concentrated(member: Stratum) -> bool:
    """Whether a stratum has its correct design: least-risk only where 1/l is impossible."""
    design, prior = member.mechanism.design, member.prior
    if design.name != "least-risk":
        return True
    return (
        prior is not None
        and heaviest_clique(design.structure, prior / prior.sum()).mass * design.l > 1.0 + _POSTERIOR_ROUNDING
    )


def _mechanism_verdict(release: Release, item: Sets, grouped: CountedSets | None, counts: SetCounts) -> Verdict:
    """Whether the published sets fit the channel in the manifest, and stand in random order."""
    level, repeats = level_of(release.manifest), repeats_of(release.manifest, item)
    parameters: dict[str, Any] = {"level": level} | ({"repeats": repeats} if repeats > 1.0 else {})
    if grouped is None:
        return unchecked(
            "mechanism", item.name, parameters, "not every cell holds as many candidates as the mechanism draws"
        )
    with np.errstate(all="ignore"):  # weights may be anything; what is no probability is found
        drawn = together(_evidence(release, item, grouped, repeats))
    arranged = _arranged(release, counts.order(item), level)
    p_value = min(2.0 * min(drawn.p_value, arranged.p_value), 1.0)
    holds = p_value >= level
    wrong = [text for found, text in ((drawn, _MISFIT), (arranged, _ARRANGED)) if 2.0 * found.p_value < level]
    notes = [*(wrong or [_FITS]), drawn.note, arranged.note]
    return Verdict(
        "mechanism",
        item.name,
        {**parameters, **drawn.parameters(), **arranged.parameters()},
        holds,
        p_value,
        level,
        p_value - level,
        checked=round(drawn.records),
        violations=0 if holds else 1,
        note="; ".join(text for text in notes if text),
    )


def _arranged(release: Release, order: RowOrder, level: float) -> Evidence:
    """Evidence about the order of sets and rows; only a remark on a table of another program."""
    found = order_evidence(order)
    if release.manifest.seeded is not None or 2.0 * found.p_value >= level:
        return found
    return nothing(found.records, "; ".join(text for text in (_REMARK, found.note) if text))


def _evidence(release: Release, item: Sets, grouped: CountedSets, repeats: float) -> list[Evidence]:
    """Of each stratum that has records."""
    sets, counts, paired = grouped.sets[0], grouped.counts, release.manifest.form == "set"
    if not paired:
        # A candidate of one attribute stands in a row for every combination of the others' candidates.
        others = [other.l for other in release.manifest.sets if other is not item]
        counts = counts // math.prod(others)
    places = np.zeros_like(grouped.cell)
    if item.stratified:
        places = grouped.cells[stratum_column(item)].to_numpy()[grouped.cell]
    found = []
    for place, rows in by_stratum(places):
        member = item.strata.members[place]
        if member.forbids[sets[rows]].any():
            found.append(impossible(counts[rows].sum(), "some sets hold a value that is impossible for their record"))
            continue
        narrow = member.narrow(sets[rows])
        reports = Reports((narrow,), np.zeros(len(narrow), dtype=np.int64), counts[rows], 1, paired)
        found.append(examine(reports, member.mechanism, repeats=repeats))
    return found or [nothing(0.0, "there are no records")]
