"""A page from a manifest and from what was found out about the release."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from polyseme.models import MODELS, is_about
from polyseme.models.base import Verdict
from polyseme.release import AsIs, Column, Grouped, Manifest, Sets
from polyseme.reports.contents import AttributeLine, Distribution, FactLine, FindingLine, Page, PromiseLine, Treatment
from polyseme.reports.risks import Reidentification, provenance_of
from polyseme.reports.words import model_sentence
from polyseme.results.attackers import Guessers
from polyseme.results.views.formats import count, parameters, quantity
from polyseme.results.views.tables import KnownFacts, Reached

__all__ = ["attribute_line", "class_promises", "fact_line", "promise_line", "reidentification_of", "release_page"]


def release_page(
    manifest: Manifest,
    *,
    title: str = "",
    publisher: str | None = None,
    original: bool = False,
    verdicts: Sequence[Verdict] = (),
    facts: Mapping[str, KnownFacts] | None = None,
    distributions: Sequence[Distribution] = (),
    metrics: Mapping[str, Mapping[str, float]] | None = None,
    findings: Sequence[Reached] | None = None,
    notes: Sequence[str] = (),
    learners: Mapping[str, Guessers] | None = None,
    treatment: Treatment | None = None,
) -> Page:
    """Everything on the page of a release; `facts` are by attribute, `metrics` by question.

    original  whether the original table was looked at
    """
    groups = {column.group for column in manifest.grouped}
    origin = provenance_of(manifest, title, publisher)
    return Page(
        title=origin.title or f"Release of {count(manifest.records)} records",
        records=manifest.records,
        dropped=manifest.dropped,
        form=manifest.form,
        for_publication=not manifest.seeded,
        sticky=manifest.sticky,
        promises=(*class_promises(manifest), *(promise_line(item) for item in manifest.sets)),
        attributes=tuple(attribute_line(item, groups) for item in manifest.columns),
        checks=tuple(verdicts),
        facts=tuple(fact_line(item, facts[item.name]) for item in manifest.sets if facts and item.name in facts),
        distributions=tuple(distributions),
        metrics=metrics,
        findings=None if findings is None else tuple(map(_finding_line, findings)),
        notes=tuple(notes),
        learners=learners or {},
        sets=bool(manifest.sets),
        treatment=treatment,
        provenance=origin,
        reidentification=reidentification_of(manifest, findings),
        original=original,
        accepted=manifest.accepted,
        drawn_here=manifest.seeded is not None,
        collected=manifest.collected,
    )


def reidentification_of(manifest: Manifest, findings: Sequence[Reached] | None) -> Reidentification:
    """What the linkage attack found, by the quasi-identifiers that the release shows."""
    columns = [manifest[name] for name in manifest.links]
    promised = [next(iter(model.values())).get("k") for model in manifest.models if "k-anonymity" in model]
    linked = next((one for one in findings or () if one.attack == "linkage-prosecutor"), None)
    return Reidentification(
        tuple(column.name for column in columns),
        tuple(column.name for column in columns if isinstance(column, AsIs)),
        None if linked is None else round(1.0 / linked.success),
        None if linked is None else getattr(linked, "detail", {}).get("unique"),
        promised[0] if promised else None,
        manifest.people is not None,
        _others(manifest),
    )


def _others(manifest: Manifest) -> tuple[str, ...]:
    """Columns that are called insensitive; the numbers of groups are not known to others."""
    groups = {column.group for column in manifest.grouped}
    return tuple(
        name for name in manifest.shown if name not in groups and not manifest[name].attribute.role.tells_apart
    )


def _promised(published: Sets) -> float | None:
    """The bound on a guess that was promised: 1/l."""
    return published.attribute.promises.bounds(published.channels[0]).guess


def _apart(published: Sets) -> str:
    return f", at least {quantity(published.threshold)} apart" if published.threshold else ""


def _truth(published: Sets) -> tuple[float, float]:
    """The lowest and the highest truth probability of its strata."""
    found = [member.mechanism.p for member in published.strata.members]
    return min(found), max(found)


def promise_line(published: Sets) -> PromiseLine:
    """What was promised for a protected attribute, in plain words."""
    name, mechanism, promises = published.name, published.mechanism, published.attribute.promises
    candidates = "1 candidate" if mechanism.l == 1 else f"{mechanism.l} candidates"
    sentences = [f"Each record shows {candidates} for {name}{_apart(published)}."]
    low, high = _truth(published)
    if low < 1.0:
        chance = quantity(low) if low == high else f"{quantity(low)} to {quantity(high)}, by group,"
        sentences.append(
            f"With probability {chance} they are drawn around the true value, otherwise independently of it"
            + (", so an attacker cannot be sure that the true value is among them." if high < 1.0 else ".")
        )
    rules = len(published.attribute.constraints)
    if rules:
        declared = "1 combination is" if rules == 1 else f"{rules} combinations are"
        sentences.append(f"{declared} declared impossible; no record shows a candidate that is impossible for it.")
    if published.shared_by:
        sentences.append(f"All records of one group of {published.shared_by} show the same set.")
    sentences += promises.sentences(name, published.channels, quantity)
    if published.attribute.conditional:
        by = dict.fromkeys(column for item in published.attribute.conditional for column in item.condition.when)
        sentences.append(f"The prior was declared by {' and '.join(by)}.")
    sentences += [f"It also promises {item.name}, which this program cannot read." for item in promises.unreadable]
    given = (f"{model} ({parameters(values)})" for model, values in promises.given().items())
    return PromiseLine(name, " ".join(sentences), tuple(given))


def class_promises(manifest: Manifest) -> tuple[PromiseLine, ...]:
    """What the models promise about classes or groups: for all of them, then by attribute."""
    if manifest.applied is None:
        return ()
    unit = "group" if manifest.grouped else "class"
    everybody = [model for model in manifest.models if not MODELS[next(iter(model))].about]
    lines = [_model_line("", everybody, "class")] if everybody else []
    for column in manifest.columns:
        if column.attribute.role.is_secret and not isinstance(column, Sets):
            about = [model for model in manifest.models if model not in everybody and is_about(model, column.name)]
            lines.append(_model_line(column.name, about, unit if isinstance(column, Grouped) else "class"))
    return tuple(lines)


def _model_line(attribute: str, models: Sequence[Mapping[str, Mapping[str, Any]]], unit: str) -> PromiseLine:
    sentences = [model_sentence(model, unit) for model in models]
    if attribute:
        shown = "by group" if unit == "group" else "as it is, in classes of records that look alike"
        sentences.insert(0, f"{attribute} is published {shown}.")
    given = [(name, asked) for model in models for name, asked in model.items()]
    named = (f"{name} ({parameters({k: v for k, v in asked.items() if k != 'attribute'})})" for name, asked in given)
    return PromiseLine(attribute or "quasi-identifiers", " ".join(sentences), tuple(named))


def attribute_line(published: Column, groups: Collection[str] = ()) -> AttributeLine:
    """How a column is published.

    `groups` are the columns that tell which records belong together.
    """
    role = published.attribute.role.value
    if not isinstance(published, Sets):
        secret = published.attribute.role.is_secret
        tells_groups = published.name in groups
        words = "the number of its group" if tells_groups else published.in_words
        if secret and isinstance(published, AsIs):
            words = "as it is, protected by its class"
        known = isinstance(published, AsIs) and not secret and not tells_groups
        return AttributeLine(published.name, role, words, protected=secret, known=known)
    shown = f"{published.in_words}{_apart(published)}"
    return AttributeLine(published.name, role, shown, protected=True, domain_from_data=published.domain_from_data)


def fact_line(published: Sets, known: KnownFacts) -> FactLine:
    """How a protected attribute was made, and what follows from that."""
    mechanism, (low, high) = published.mechanism, _truth(published)
    return FactLine(
        attribute=published.name,
        design=mechanism.design.name,
        size=mechanism.size,
        l=mechanism.l,
        d=published.threshold,
        p=low,
        promised=_promised(published),
        worst_posterior=known.worst_posterior,
        epsilon=known.epsilon,
        identifiable=known.identifiable,
        expected_mse=known.expected_mse,
        p_most=high if high > low else None,
    )


def _finding_line(found: Reached) -> FindingLine:
    return FindingLine(
        found.attack,
        found.attribute,
        found.success,
        found.bound,
        found.exceeded,
        baseline=getattr(found, "baseline", None),
        knows=getattr(found, "knows", ""),
        helps=getattr(found, "helps", ""),
    )
