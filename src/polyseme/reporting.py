"""What a report says about a release: promises in words, checks, facts, distributions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from polyseme.attacks.base import Finding
from polyseme.facts import facts
from polyseme.metrics import compare
from polyseme.questions import ask, published_counts, true_table
from polyseme.release import PublishedAttribute, Release
from polyseme.reports.document import AttributeLine, Distribution, FactLine, FindingLine, Page, PromiseLine
from polyseme.tables.source import Source
from polyseme.verification import Verification

__all__ = ["make_page"]


def make_page(
    release: Release,
    verification: Verification,
    original: Source | None = None,
    by: str | None = None,
    findings: tuple[Finding, ...] = (),
) -> Page:
    """Everything a report shows."""
    manifest = release.manifest
    metrics: dict[str, Mapping[str, float]] = {}
    notes: list[str] = []
    distributions: list[Distribution] = []
    for item in manifest.protected:
        distributions += _distributions(release, item, original, None, metrics, notes)
        if by is not None:
            distributions += _distributions(release, item, original, by, metrics, notes)
    return Page(
        title=f"Release of {manifest.records:,} records",
        records=manifest.records,
        promises=tuple(_promise(item) for item in manifest.protected),
        attributes=tuple(_line(item) for item in manifest.attributes),
        checks=verification.verdicts,
        facts=tuple(_fact(item, manifest.records) for item in manifest.protected),
        distributions=tuple(distributions),
        metrics=metrics or None,
        findings=tuple(_finding(finding) for finding in findings) or None,
        notes=tuple(dict.fromkeys(notes)),
        dropped=manifest.dropped,
        form=manifest.form,
        for_publication=not manifest.seeded,
        sticky=manifest.sticky,
    )


def _finding(finding: Finding) -> FindingLine:
    return FindingLine(
        finding.attack, finding.attribute, finding.success, finding.bound, finding.exceeded, finding.gains
    )


def _words(item: PublishedAttribute) -> str:
    if item.mechanism is None:
        return "as it is"
    apart = f", at least {item.threshold:g} apart" if item.threshold else ""
    size = item.mechanism.l
    return f"sets of {size}{apart}" if size > 1 else "a single, possibly untrue value"


def _line(item: PublishedAttribute) -> AttributeLine:
    protected = item.mechanism is not None
    return AttributeLine(item.name, item.attribute.role.value, _words(item), protected, item.domain_from_data)


def _promise(item: PublishedAttribute) -> PromiseLine:
    mechanism = item.mechanism
    if mechanism is None or item.attribute.protection is None:
        raise ValueError("a promise is about a protected attribute")
    models = tuple(
        f"{name}: {', '.join(f'{key} = {value}' for key, value in parameters.items())}"
        for name, parameters in item.attribute.protection.models.items()
    )
    apart = f", at least {item.threshold:g} apart" if item.threshold else ""
    candidates = f"{mechanism.l} candidates" if mechanism.l > 1 else "one value"
    text = f"Each record shows {candidates} for {item.name}{apart}"
    if mechanism.p < 1.0:
        text += f"; the true value is put among them on purpose in {mechanism.p:.1%} of the records"
    worst = mechanism.worst_posterior()
    text += (
        ". Someone who knows the method and nothing else about a person guesses right with probability at most "
        f"{worst:.3f}."
    )
    return PromiseLine(item.name, text, models)


def _fact(item: PublishedAttribute, records: int) -> FactLine:
    mechanism = item.mechanism
    if mechanism is None:
        raise ValueError("facts are about a protected attribute")
    found = facts(mechanism, item.domain.prior, records)
    promised = 1.0 / mechanism.l if mechanism.p == 1.0 and mechanism.l > 1 else None
    return FactLine(
        item.name,
        mechanism.design.name,
        mechanism.size,
        mechanism.l,
        item.threshold,
        mechanism.p,
        promised,
        found.worst_posterior,
        found.epsilon,
        found.identifiable,
        found.expected_mse,
    )


def _distributions(
    release: Release,
    item: PublishedAttribute,
    original: Source | None,
    by: str | None,
    metrics: dict[str, Mapping[str, float]],
    notes: list[str],
) -> list[Distribution]:
    """The distribution of one attribute, of everybody or by group."""
    names = (by,) if by else ()
    estimated = ask(release, (item.name,), names)
    notes += [f"{item.name}{f' by {by}' if by else ''}: {note}" for note in estimated.notes]
    truth = true_table(release, original, (item.name,), names, estimated.cells) if original is not None else None
    if truth is not None:
        title = f"{item.name} by {by}" if by else item.name
        metrics[title] = compare(truth, estimated.values, release.manifest.records)
    published = published_counts(release, item.name, by)
    groups: list[Any] = estimated.cells[by].to_list() if by else [None]
    return [
        Distribution(
            attribute=item.name,
            labels=[str(value) for value in item.domain.values],
            published=published[index],
            estimate=estimated.values[index],
            low=estimated.low[index],
            high=estimated.high[index],
            original=truth[index] if truth is not None else None,
            ordered=item.domain.ordered,
            group=f"{by} = {group if group is not None else '(none)'}" if by else None,
        )
        for index, group in enumerate(groups)
    ]
