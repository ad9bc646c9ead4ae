"""Checking promises: those of a release, or the models a policy lists for any table.

Sets and classes are checked from the definitions. Promises about what an attacker can infer (1/l, closeness, local
differential privacy) follow from the channel that the manifest publishes, and are computed from it; and whether the
published sets can have come from that channel is tested.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from polyseme.errors import PolicyError
from polyseme.facts.summary import epsilon
from polyseme.models import MODELS, Background, Verdict, check_models
from polyseme.models import diversity as set_diversity
from polyseme.models import semantic_diversity as set_semantic_diversity
from polyseme.models.base import SHOWN, TOLERANCE, Place, unchecked
from polyseme.policy import Policy
from polyseme.policy.foreign import read_foreign
from polyseme.recipes import closeness_of_epsilon, closeness_reached, ground_from
from polyseme.recipes.ground import Equal, Ground
from polyseme.release import SEEDED, PublishedAttribute, Release
from polyseme.schema import Attribute, Role
from polyseme.strata import Stratum
from polyseme.tables.classes import PublishedSets, published_sets
from polyseme.tables.codes import as_series, label_array
from polyseme.tables.counting import Grouped
from polyseme.tables.sets import code_sets
from polyseme.tables.source import Source
from polyseme.verification.headline import mechanism_verdict, posterior_verdict, sets_by_stratum

__all__ = ["Verification", "verify_release", "verify_table"]


@dataclass(frozen=True)
class Verification:
    """The verdicts on everything that was promised.

    seeded  whether the release was made with a seed, so that nothing holds against those who guess it
    """

    verdicts: tuple[Verdict, ...]
    seeded: bool = False

    @property
    def holds(self) -> bool:
        """Whether there was something to check and all of it holds."""
        return bool(self.verdicts) and all(verdict.holds for verdict in self.verdicts)

    def to_dict(self) -> dict[str, Any]:
        verdicts = [_verdict_dict(verdict) for verdict in self.verdicts]
        return {"holds": self.holds, "seeded": self.seeded, "verdicts": verdicts}

    def __repr__(self) -> str:
        bad = sum(not verdict.holds for verdict in self.verdicts)
        mark = f", {SEEDED}" if self.seeded else ""
        found = "all hold" if self.holds else f"{bad} violated"
        return f"<Verification of {len(self.verdicts)} promises: {found}{mark}>"

    def _repr_html_(self) -> str:
        from polyseme.reports.html import verdict_table

        return verdict_table(self.verdicts)


def _verdict_dict(verdict: Verdict) -> dict[str, Any]:
    document = asdict(verdict)
    for key in ("worst", "bound", "margin"):
        if document[key] is not None and not math.isfinite(document[key]):
            document[key] = None
    return document


def verify_release(release: Release) -> Verification:
    """Every promise of the manifest, checked on the published data."""
    if tuple(release.source.schema.names) != release.manifest.names:
        return Verification((_column_verdict(release),))
    verdicts: list[Verdict] = []
    for item in release.manifest.protected:
        found = _set_verdicts(release, item) if release.manifest.form == "set" else _long_verdicts(release, item)
        verdicts += map(_if_nobody_guesses, found) if release.manifest.seeded else found
        if item.restricted:
            verdicts.append(_believable_verdict(release, item))
    if release.manifest.models:
        verdicts += _model_verdicts(release)
    if not verdicts:
        verdicts.append(unchecked("promises", None, {}, "the manifest promises nothing"))
    verdicts.append(_count_verdict(release))
    return Verification(tuple(verdicts), bool(release.manifest.seeded))


def _if_nobody_guesses(verdict: Verdict) -> Verdict:
    """The candidates are as promised, but whoever has the seed can tell which of them are decoys."""
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
        rows = sum(batch.num_rows for batch in release.batches(release.manifest.names))
    widths = [item.mechanism.l for item in release.manifest.protected if item.mechanism is not None]
    stated = release.manifest.records * (math.prod(widths) if release.manifest.form == "long" else 1)
    note = "" if rows == stated else f"the data has {rows:,} rows, the manifest says {stated:,}"
    difference = float(abs(rows - stated))
    holds = rows == stated == release.manifest.rows
    return Verdict("record-count", None, {"rows": stated}, holds, difference, 0.0, -difference, note=note)


def _believable_verdict(release: Release, item: PublishedAttribute) -> Verdict:
    """No record shows a candidate that is declared impossible for it."""
    strata = item.strata
    forbidden = np.array([member.forbids for member in strata.members])
    checked, bad = 0, []
    for batch in release.batches([*strata.columns, item.name]):
        columns = {name: batch.column(name) for name in strata.columns}
        places = strata.places(columns, batch.num_rows)
        sets = code_sets(batch.column(item.name), item.domain)
        record = np.repeat(np.arange(batch.num_rows), sets.lengths)
        # A candidate that is not in the domain is for the other verdicts.
        found = (sets.members >= 0) & forbidden[places[record], sets.members]
        bad.append(checked + np.unique(record[found]))
        checked += batch.num_rows
    rows = np.concatenate([np.zeros(0, dtype=np.int64), *bad])
    return Verdict(
        "believable",
        item.name,
        {"impossible": len(item.attribute.constraints)},
        holds=not len(rows),
        worst=float(len(rows)),
        bound=0.0,
        margin=-float(len(rows)),
        worst_classes=tuple(Place(row, 1, row) for row in rows[:SHOWN].tolist()),
        checked=checked,
        violations=len(rows),
        note="a candidate is declared impossible for its record" if len(rows) else "",
    )


def _set_verdicts(release: Release, item: PublishedAttribute) -> list[Verdict]:
    mechanism = item.mechanism
    if mechanism is None or item.attribute.protection is None:
        return []
    grouped = sets_by_stratum(release, item, mechanism.l)
    sets = _distinct_sets(release, item, grouped)
    headline = [posterior_verdict(item), mechanism_verdict(release, item, grouped)]
    verdicts = [_check_promise(name, promise, item, sets) for name, promise in item.attribute.protection.models.items()]
    verdicts.append(_candidates_verdict(sets, mechanism.l))
    if all(verdict.holds for verdict in verdicts) or not len(sets.counts):
        return [*verdicts, *headline]
    # Something is wrong: look again, now row by row, so that the verdict can name the place.
    sets = _row_sets(release, item)
    verdicts = [_check_promise(name, promise, item, sets) for name, promise in item.attribute.protection.models.items()]
    return [*verdicts, _candidates_verdict(sets, mechanism.l), *headline]


def _candidates_verdict(sets: PublishedSets, l: int) -> Verdict:
    """Whatever was promised in words, every set must have the size that the likelihood counts on: no less, no more."""
    verdict = replace(set_diversity.check(sets, l), model="candidates")
    larger = int(sets.counts[np.diff(sets.starts) > l].sum()) if verdict.holds else 0
    if not larger:
        return verdict
    return replace(verdict, holds=False, violations=larger, note=f"{larger:,} sets have more candidates than {l}")


def _distinct_sets(release: Release, item: PublishedAttribute, grouped: Grouped | None) -> PublishedSets:
    if grouped is None:
        return _row_sets(release, item)
    return PublishedSets.from_codes(grouped.sets[0], item.domain.size, item.name, counts=grouped.counts)


def _row_sets(release: Release, item: PublishedAttribute) -> PublishedSets:
    batches = [as_series(batch.column(0)) for batch in release.batches([item.name])]
    column = pl.concat(batches) if batches else pl.Series(dtype=pl.List(pl.String))
    return published_sets(pl.DataFrame({item.name: column}), item.name, label_array(item.domain.values).to_pylist())


_NUMBERS = {
    "semantic-diversity": ("l", "d"),
    "diversity": ("l",),
    "entropy-diversity": ("l",),
    "closeness": ("t",),
    "ldp": ("epsilon",),
}
"""What each promise must name to be checked."""


def _flaw(name: str, promise: Mapping[str, Any], item: PublishedAttribute) -> Verdict | None:
    """The verdict on a promise that cannot be checked, whatever the data say; None for the others."""
    if name not in _NUMBERS:
        return unchecked(name, item.name, promise, "this promise is not known to the verifier")
    if not all(_is_number(promise.get(key)) for key in _NUMBERS[name]):
        return unchecked(name, item.name, promise, "the promise lacks a number")
    if name == "semantic-diversity" and item.attribute.distance is None:
        return unchecked(name, item.name, promise, "the manifest gives no distance")
    return None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _check_promise(name: str, promise: Mapping[str, Any], item: PublishedAttribute, sets: PublishedSets) -> Verdict:
    flaw = _flaw(name, promise, item)
    if flaw is not None:
        return flaw
    if name == "semantic-diversity" and item.attribute.distance is not None:
        return set_semantic_diversity.check_sets(sets, item.attribute.distance, promise["l"], promise["d"])
    if name in ("diversity", "entropy-diversity"):
        # Members of a set are equally represented in its expansion, so entropy is the logarithm of their number.
        return replace(
            set_diversity.check(sets, _least_size(promise, item.domain.size)), model=name, parameters=dict(promise)
        )
    return _check_channel(name, promise, item)


def _check_channel(name: str, promise: Mapping[str, Any], item: PublishedAttribute) -> Verdict:
    if name == "closeness":
        worst, known = _closeness_reached(item, promise)
        return _channel_verdict(name, item, promise, promise["t"], worst, known)
    return _channel_verdict(name, item, promise, promise["epsilon"], _epsilon(item))


def _least_size(promise: Mapping[str, Any], size: int) -> int:
    """How many candidates a diversity promise asks for; `adapt` lets it give way to one less than the domain has."""
    asked = math.ceil(float(promise["l"]) - TOLERANCE)
    return min(asked, max(size - 1, 1)) if promise.get("adapt") else asked


def _epsilon(item: PublishedAttribute) -> float:
    """What the published channel gives; infinite where it could not be computed, so that the check fails closed."""
    return max(_stratum_epsilon(member) for member in item.strata.members)


def _stratum_epsilon(member: Stratum) -> float:
    reached = epsilon(member.mechanism)
    return math.inf if reached is None else reached


def _closeness_reached(item: PublishedAttribute, promise: Mapping[str, Any]) -> tuple[float, bool]:
    """How far a set can move the reference, or any prior where there is none; and whether it was the reference."""
    ground = ground_from(promise.get("ground", "equal"), item.attribute.distance)
    worst, known = 0.0, True
    for member in item.strata.members:
        # Among the values that are left the equal ground is at least as dear as any other.
        exact = _from_reference(item, member, ground if not member.excluded else Equal())
        known = known and exact is not None
        worst = max(worst, closeness_of_epsilon(_stratum_epsilon(member)) if exact is None else exact)
    return worst, known


def _from_reference(item: PublishedAttribute, member: Stratum, ground: Ground) -> float | None:
    if item.domain.reference is None:
        return None
    shares = np.asarray(item.domain.reference)[member.allowed]
    return closeness_reached(member.mechanism, shares / shares.sum(), ground) if shares.sum() > 0.0 else None


def _channel_verdict(
    name: str, item: PublishedAttribute, promise: Mapping[str, Any], bound: float, worst: float, known: bool = False
) -> Verdict:
    holds = worst <= bound + 1e-9
    note = f"from the channel in the manifest, for {'the reference distribution' if known else 'every prior'}"
    return Verdict(name, item.name, dict(promise), holds, worst, bound, bound - worst, note=note)


def _long_verdicts(release: Release, item: PublishedAttribute) -> list[Verdict]:
    """In the long form it is not known which rows belong together: classes of equal quasi-identifiers are checked."""
    if item.mechanism is None or item.attribute.protection is None:
        return []
    promises = item.attribute.protection.models
    counted = {"frequency-diversity": {"l": item.mechanism.l, "attribute": item.name}}
    asked = {name: _on_classes(name, promise, item) for name, promise in promises.items()}
    found = iter(_check_on_table(release, [counted, *(spec for spec in asked.values() if isinstance(spec, Mapping))]))
    verdicts = [next(found)]
    for name, spec in asked.items():
        told = spec if isinstance(spec, Verdict) else next(found)
        verdicts.append(replace(told, model=name, parameters=dict(promises[name])))
    return [*verdicts, posterior_verdict(item), mechanism_verdict(release, item, sets_by_stratum(release, item, 1))]


def _on_classes(
    name: str, promise: Mapping[str, Any], item: PublishedAttribute
) -> Mapping[str, Mapping[str, Any]] | Verdict:
    """What a promise asks of the classes; a verdict where the manifest alone decides."""
    flaw = _flaw(name, promise, item)
    if flaw is not None:
        return flaw
    if name in ("closeness", "ldp"):
        return _check_channel(name, promise, item)
    # A class of many records has more values than its sets: it cannot show that these are smaller than promised.
    made = min(member.mechanism.l for member in item.strata.members)
    least = math.ceil(promise["l"]) if name == "semantic-diversity" else _least_size(promise, item.domain.size)
    if made < least:
        return _manifest_verdict(name, item, promise, made, least, "the mechanism draws fewer candidates")
    if name != "semantic-diversity":
        return {"frequency-diversity": {"l": least, "attribute": item.name}}
    apart = item.threshold or 0.0
    if apart < promise["d"]:
        return _manifest_verdict(name, item, promise, apart, promise["d"], "the mechanism draws them less far apart")
    return {"semantic-diversity": {"l": least, "d": promise["d"], "reading": "exists", "attribute": item.name}}


def _manifest_verdict(
    name: str, item: PublishedAttribute, promise: Mapping[str, Any], worst: float, bound: float, note: str
) -> Verdict:
    return Verdict(name, item.name, dict(promise), False, float(worst), float(bound), float(worst - bound), note=note)


def _model_verdicts(release: Release) -> tuple[Verdict, ...]:
    return _check_on_table(release, list(release.manifest.models))


def _check_on_table(release: Release, specs: list[Mapping[str, Mapping[str, Any]]]) -> tuple[Verdict, ...]:
    names = release.manifest.names
    frame = pl.concat([_frame(batch, names) for batch in release.batches(names)])
    attributes = release.manifest.schema.attributes
    return check_models(
        frame,
        [attribute.name for attribute in attributes if attribute.role is Role.QUASI_IDENTIFIER],
        specs,
        sensitive=[attribute.name for attribute in attributes if attribute.protected],
        background=_background(attributes),
    )


def _frame(batch: Any, names: tuple[str, ...]) -> pl.DataFrame:
    return pl.DataFrame({name: as_series(batch.column(name)) for name in names})


def _background(attributes: tuple[Attribute, ...]) -> Background:
    known = [attribute for attribute in attributes if attribute.domain is not None]
    return Background(
        domains={item.name: label_array(item.domain.values).to_pylist() for item in known if item.domain},
        distances={item.name: item.distance for item in known if item.distance is not None},
    )


def verify_table(source: Source, policy: Policy) -> Verification:
    """The policy's models on any table, made by whatever tool."""
    if not policy.models:
        raise PolicyError(
            "the policy lists no models to check", f"models: [{{k-anonymity: {{k: 5}}}}]; known: {', '.join(MODELS)}"
        )
    table = read_foreign(source, policy)
    verdicts = check_models(
        table.frame,
        table.quasi_identifiers,
        [{model.name: model.parameters} for model in policy.models],
        sensitive=table.sensitive,
        background=table.background,
    )
    return Verification(verdicts)
