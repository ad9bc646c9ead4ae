"""A page from a manifest and from what was found out about the release."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from polyseme.facts.summary import epsilon
from polyseme.mechanism import Mechanism
from polyseme.models.base import Verdict
from polyseme.recipes.closeness import closeness_of_epsilon
from polyseme.recipes.promises import Closeness, Promises, read_promises
from polyseme.release import Manifest, PublishedAttribute
from polyseme.reports.document import (
    AttributeLine,
    Distribution,
    FactLine,
    FindingLine,
    KnownFacts,
    Page,
    PromiseLine,
    Reached,
)
from polyseme.reports.formats import count, parameters, quantity

__all__ = ["attribute_line", "fact_line", "promise_line", "release_page"]


_SPELT_OUT = 50.0
"""Epsilons from here on stay exponents."""


def release_page(
    manifest: Manifest,
    *,
    title: str = "",
    verdicts: Sequence[Verdict] = (),
    facts: Mapping[str, KnownFacts] | None = None,
    distributions: Sequence[Distribution] = (),
    metrics: Mapping[str, Mapping[str, float]] | None = None,
    findings: Sequence[Reached] | None = None,
    notes: Sequence[str] = (),
) -> Page:
    """Everything on the page of a release; `facts` are by attribute, `metrics` by question."""
    return Page(
        title=title or f"Release of {count(manifest.records)} records",
        records=manifest.records,
        dropped=manifest.dropped,
        form=manifest.form,
        for_publication=not manifest.seeded,
        sticky=manifest.sticky,
        promises=tuple(promise_line(item) for item in manifest.protected),
        attributes=tuple(attribute_line(item) for item in manifest.attributes),
        checks=tuple(verdicts),
        facts=tuple(fact_line(item, facts[item.name]) for item in manifest.protected if facts and item.name in facts),
        distributions=tuple(distributions),
        metrics=metrics,
        findings=None if findings is None else tuple(map(_finding_line, findings)),
        notes=tuple(notes),
    )


def _mechanism(published: PublishedAttribute) -> Mechanism:
    if published.mechanism is None:
        raise ValueError(f"'{published.name}' is published as it is")
    return published.mechanism


def _promises(published: PublishedAttribute) -> Promises:
    attribute = published.attribute
    models = attribute.protection.models if attribute.protection else {}
    return read_promises(models, published.domain.size, attribute.distance is not None) if models else Promises()


def _promised(published: PublishedAttribute) -> float | None:
    """The bound on a guess that the diversity promises give: 1/l."""
    least, asking = _promises(published).least_size
    return 1.0 / least if asking else None


def _apart(published: PublishedAttribute) -> str:
    return f", at least {quantity(published.threshold)} apart" if published.threshold else ""


def promise_line(published: PublishedAttribute) -> PromiseLine:
    """What was promised for a protected attribute, in plain words."""
    name, mechanism, promises = published.name, _mechanism(published), _promises(published)
    candidates = "1 candidate" if mechanism.l == 1 else f"{mechanism.l} candidates"
    sentences = [f"Each record shows {candidates} for {name}{_apart(published)}."]
    if mechanism.p < 1.0:
        sentences.append(
            f"With probability {quantity(mechanism.p)} they are drawn around the true value, otherwise blindly, "
            "so nobody can be sure that the true value is among them."
        )
    rules = len(published.attribute.constraints)
    if rules:
        declared = "1 combination is" if rules == 1 else f"{rules} combinations are"
        sentences.append(f"{declared} declared impossible; no record shows a candidate that is impossible for it.")
    promised = _promised(published)
    if promised is not None:
        sentences.append(
            f"Someone who knows the method and nothing else about a person{_expecting(published)} guesses right with "
            f"probability at most {quantity(promised)}."
        )
    if promises.closeness is not None:
        sentences.append(_closeness_sentence(published, promises.closeness))
    if promises.ldp is not None:
        epsilon = promises.ldp.epsilon
        factor = quantity(math.exp(epsilon)) if epsilon < _SPELT_OUT else f"e^{epsilon:g}"
        sentences.append(
            f"No published set is more than {factor} times as likely for one true {name} as for another, "
            "whatever else is known about the person."
        )
    models = published.attribute.protection.models if published.attribute.protection else {}
    return PromiseLine(
        name, " ".join(sentences), tuple(f"{model} ({parameters(values)})" for model, values in models.items())
    )


def _expecting(published: PublishedAttribute) -> str:
    """What the attacker of the diversity promises takes for likely beforehand."""
    if published.domain.prior is not None:
        return ", but expects the declared distribution,"
    return " and takes every value for equally likely beforehand"


_ALONG = {"equal": "", "ordered": ", counted along their order", "hierarchical": ", counted by how far apart they are"}


def _closeness_sentence(published: PublishedAttribute, closeness: Closeness) -> str:
    name, moved = published.name, f"by at most {quantity(closeness.t)}"
    scale = "where 0 is not at all and 1 is from one certainty to another" + _ALONG[closeness.ground]
    if published.domain.reference is None:
        return f"Seeing a record moves what one believes about its {name} {moved}, {scale}."
    reached = [epsilon(member.mechanism) for member in published.strata.members]
    others = closeness_of_epsilon(max(math.inf if found is None else found for found in reached))
    return (
        f"Seeing a record moves someone who expects the published distribution of {name} {moved}, {scale}; whoever "
        f"expects another one by at most {quantity(others)}, all moves counted alike."
    )


def attribute_line(published: PublishedAttribute) -> AttributeLine:
    """How a column is published."""
    role = published.attribute.role.value
    if published.mechanism is None:
        return AttributeLine(published.name, role, "as it is")
    shown = f"sets of {published.mechanism.l}{_apart(published)}"
    return AttributeLine(published.name, role, shown, protected=True, domain_from_data=published.domain_from_data)


def fact_line(published: PublishedAttribute, known: KnownFacts) -> FactLine:
    """How a protected attribute was made, and what follows from that."""
    mechanism = _mechanism(published)
    return FactLine(
        attribute=published.name,
        design=mechanism.design.name,
        size=mechanism.size,
        l=mechanism.l,
        d=published.threshold,
        p=mechanism.p,
        promised=_promised(published),
        worst_posterior=known.worst_posterior,
        epsilon=known.epsilon,
        identifiable=known.identifiable,
        expected_mse=known.expected_mse,
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
