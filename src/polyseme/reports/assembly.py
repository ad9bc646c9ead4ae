"""A page from a manifest and from what was found out about the release.

The treatment is what was done to the table as a whole: what the manifest says, and what the rows show. Every reader of
the release can see everything here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from polyseme.kernel.arrays import Ints
from polyseme.kernel.errors import people_words
from polyseme.models import MODELS, is_about
from polyseme.models.base import Verdict
from polyseme.release import Applied, AsIs, Column, Generalized, Grouped, Manifest, People, Release, Sets
from polyseme.reports.contents import (
    AttributeLine,
    ClassSizes,
    Distribution,
    FactLine,
    FindingLine,
    Page,
    PromiseLine,
    RecodedLine,
    Reidentification,
    Treatment,
    provenance_of,
)
from polyseme.results.attackers import Guessers
from polyseme.results.views.formats import count, parameters, quantity
from polyseme.results.views.tables import KnownFacts, Reached
from polyseme.results.views.words import model_sentence
from polyseme.schema import Role
from polyseme.tables.codes import as_series
from polyseme.tables.distinct import all_counts, class_sizes, distinct_rows, fingerprints, merged_rows
from polyseme.tables.equivalence_classes import SUPPRESSED
from polyseme.tables.readings import plain_text

__all__ = [
    "attribute_line",
    "class_promises",
    "class_size_table",
    "fact_line",
    "promise_line",
    "reidentification_of",
    "release_page",
    "treatment_of",
]

_EXAMPLES = 3
"""Labels of a quasi-identifier that are shown."""
_SIZES = 20
"""Up to so many different sizes of classes are listed; more are put into ranges."""
_HUGE = 4
"""Times as large as half of the classes: where the largest is larger, ranges double."""

_GROUPED = (
    "Quasi-identifiers are published as they are. The records were put into groups, and each record shows the "
    "sensitive values of its whole group, without saying which is its own."
)
_METHODS: Mapping[str, str] = {
    "full-domain": "Each quasi-identifier is shown at one level of its hierarchy, the same for all records.",
    "mondrian": "The records were cut in two again and again, as long as every part kept the promises. Each class "
    "shows what its records have in common.",
    "anatomy": f"{_GROUPED} No value is twice in a group.",
    "buckets": f"{_GROUPED} No two values of a group are alike.",
    "rules": "Classes that would have given something away by the rules were merged, generalized or suppressed.",
}


_LOSS_UNITS: Mapping[str, str] = {
    "entropy": " bits",
    "loss": " of 1",
    "precision": " of 1",
    "discernibility": " pairs of records",
    "average-class-size": " records",
}


def treatment_of(release: Release) -> Treatment | None:
    """What a method that looks at the whole table did; None where none was used."""
    manifest = release.manifest
    applied = manifest.applied
    if applied is None:
        return None
    unit = "group" if manifest.grouped else "class"
    keys = [manifest.grouped[0].group] if manifest.grouped else list(manifest.links)
    sizes = _sizes(release, keys)
    return Treatment(
        applied.name,
        _METHODS.get(applied.name, "The records were put into classes before they were published."),
        unit,
        (
            *_size_facts(sizes, unit),
            *_people_facts(manifest.people, unit),
            ("Suppressed", _suppressed(applied, manifest.records)),
            *_actions(applied),
            *_loss(applied),
        ),
        tuple(_line(release, name) for name in _quasi_identifiers(manifest)),
        class_size_table(sizes) if len(np.unique(sizes)) > 1 else None,
    )


def _quasi_identifiers(manifest: Manifest) -> list[str]:
    return [name for name in manifest.shown if manifest[name].attribute.role is Role.QUASI_IDENTIFIER]


def _sizes(release: Release, keys: Sequence[str]) -> Ints:
    """The sizes of classes without suppressed records; if all are suppressed, one class."""
    parts, words = [np.zeros(0, dtype=np.uint64)], release.manifest.missing_values
    numbers: list[tuple[int, Ints | None]] = []
    for batch, number in release.counted(keys) if keys else ():
        texts = pl.DataFrame([plain_text(as_series(batch.column(name)).alias(name), words) for name in keys])
        nothing = pl.all_horizontal((pl.col(key) == SUPPRESSED).fill_null(False) for key in keys)
        shown = texts.select(pl.repeat(True, pl.len()) & ~nothing).to_series()
        parts.append(fingerprints(texts.filter(shown)))
        numbers.append((len(parts[-1]), None if number is None else number[shown.to_numpy()]))
    prints = np.concatenate(parts)
    if keys and not len(prints):
        return np.array([release.manifest.records])
    return class_sizes(prints, all_counts(numbers))


def _size_facts(sizes: Ints, unit: str) -> list[tuple[str, str]]:
    if not len(sizes):
        return []
    name = "Groups" if unit == "group" else "Classes"
    low, middle, high = (quantity(float(value)) for value in (sizes.min(), np.median(sizes), sizes.max()))
    sizes_text = low if low == high else f"{low} to {high}, half of them at most {middle}"
    return [(name, count(len(sizes))), (f"Records in a {unit}", sizes_text)]


def _people_facts(people: People | None, unit: str) -> list[tuple[str, str]]:
    """What the publisher claims of people; nothing where records were counted."""
    if people is None:
        return []
    claimed = f"{count(people.total)} in all, at least {count(people.smallest_class)} in a {unit}"
    return [("People", f"{claimed}: claimed by the publisher, and no row shows it")]


def _suppressed(applied: Applied, records: int) -> str:
    if not applied.suppressed:
        return "none"
    everyone = records + (applied.suppressed if applied.withheld else 0)
    share = f"{applied.suppressed / everyone:.1%}"
    shown = (
        "left out of the release: its numbers are about the others"
        if applied.withheld
        else "shown with * in every quasi-identifier"
    )
    lost = "1 record" if applied.suppressed == 1 else f"{count(applied.suppressed)} records"
    whose = "" if applied.people is None else f" of {people_words(applied.people)}"
    return f"{lost} ({share}){whose}, {shown}"


def _actions(applied: Applied) -> list[tuple[str, str]]:
    """What was done about classes that a rule gave away; changed values are said loudly."""
    change = applied.parameters.get("change-values")
    facts = [(f"Classes with {action}", count(number)) for action, number in applied.actions.items()]
    if "change-values" in applied.actions and change:
        false = f"{quantity(float(change['by']))} was added to '{change['attribute']}' in these classes"
        facts.append(("False values", f"{false}, as the owner asked: they are not the values of the records"))
    return facts


def _loss(applied: Applied) -> list[tuple[str, str]]:
    """What was minimized, and whether it is proved to be the least."""
    if applied.loss is None:
        return []
    proved = "whether less is possible is not proved"
    if applied.gap is not None:
        least = "proved to be the least possible"
        proved = least if applied.gap == 0 else f"the least possible is smaller by {quantity(applied.gap)} at the most"
    if "loss" in applied.parameters:
        name = applied.parameters["loss"]
        return [(f"Loss ({name})", f"{quantity(applied.loss)}{_LOSS_UNITS.get(name, '')}, {proved}")]
    if "left-out" in applied.parameters and applied.gap == 0:
        proved = "no grouping that leaves out several values suppresses fewer"
    what = "as if so many were suppressed" if applied.name == "rules" else "suppressed"
    return [(f"Loss ({what})", f"{quantity(applied.loss)} records, {proved}")]


def _line(release: Release, name: str) -> RecodedLine:
    """What was done to one quasi-identifier, with its most frequent labels."""
    words, column = release.manifest.missing_values, release.manifest[name]
    parts = [
        distinct_rows(plain_text(as_series(batch.column(0)), words).to_frame("label"), number, "count")
        for batch, number in release.counted([name])
    ]
    tally = merged_rows(parts, "count")
    tally = tally.sort(["count", "label"], descending=[True, False])
    labels = tally["label"].to_list()
    stands_for = column.stands_for if isinstance(column, Generalized) else {}
    top = isinstance(column, Generalized) and column.level and set(labels) == {SUPPRESSED}
    done = f"not shown (level {column.level})" if top and isinstance(column, Generalized) else column.in_words
    examples = ", ".join(_example(label, stands_for) for label in labels[:_EXAMPLES])
    more = ", …" if len(labels) > _EXAMPLES else ""
    return RecodedLine(name, done, len(labels), f"{examples}{more}")


def _example(label: str | None, stands_for: Mapping[str, Sequence[str]]) -> str:
    """A label, and what it may stand for where the policy says so."""
    if label is None:
        return "(missing)"
    values = stands_for.get(label, ())
    if label == SUPPRESSED or not values or tuple(values) == (label,):
        return label
    more = ", …" if len(values) > _EXAMPLES else ""
    return f"{label} ({', '.join(values[:_EXAMPLES])}{more})"


def class_size_table(sizes: Ints) -> ClassSizes:
    """How many classes have how many records.

    In ranges where there are many sizes, which double where some are huge.

    >>> class_size_table(np.array([2, 2, 5])).labels
    ('2', '5')
    """
    found, number = np.unique(sizes, return_counts=True)
    edges = found if len(found) <= _SIZES else _edges(found, float(np.median(sizes)))
    place = np.searchsorted(edges, found, side="right") - 1
    ends = np.append(edges[1:], found[-1] + 1) - 1
    exact = len(edges) == len(found)
    labels = [count(low) if exact or low == high else f"{count(low)}–{count(high)}" for low, high in zip(edges, ends)]
    classes = np.bincount(place, weights=number, minlength=len(edges)).astype(int)
    records = np.bincount(place, weights=found * number, minlength=len(edges)).astype(int)
    return ClassSizes(tuple(labels), tuple(classes.tolist()), tuple(records.tolist()))


def _edges(found: Ints, middle: float) -> Ints:
    """Where the ranges of sizes begin."""
    low, high = int(found[0]), int(found[-1])
    if high <= _HUGE * middle:
        width = -(-(high - low + 1) // _SIZES)
        return np.arange(low, high + 1, width)
    return np.array([low, *(1 << power for power in range(low.bit_length(), high.bit_length()))])


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
    everyone = [model for model in manifest.models if not MODELS[next(iter(model))].about]
    lines = [_model_line("", everyone, "class")] if everyone else []
    for column in manifest.columns:
        if column.attribute.role.is_secret and not isinstance(column, Sets):
            about = [model for model in manifest.models if model not in everyone and is_about(model, column.name)]
            lines.append(_model_line(column.name, about, unit if isinstance(column, Grouped) else "class"))
    return tuple(lines)


def _model_line(attribute: str, models: Sequence[Mapping[str, Mapping[str, Any]]], unit: str) -> PromiseLine:
    sentences = [model_sentence(model, unit) for model in models]
    if attribute:
        shown = "by group" if unit == "group" else "as it is, in classes of records that look alike"
        sentences.insert(0, f"{attribute} is published {shown}.")
    given = [(name, given_to) for model in models for name, given_to in model.items()]
    named = (
        f"{name} ({parameters({k: v for k, v in given_to.items() if k != 'attribute'})})" for name, given_to in given
    )
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
