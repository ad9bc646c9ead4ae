"""What a report needs to know about a release: distributions, facts, and how far estimates are from the truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from polyseme.attacks.base import Finding
from polyseme.facts import Facts, facts, worst_of
from polyseme.metrics import compare
from polyseme.questions import ask, published_counts, true_table
from polyseme.release import PublishedAttribute, Release
from polyseme.reports.assembling import release_page
from polyseme.reports.document import Distribution, Page
from polyseme.strata import Stratum
from polyseme.tables.source import Source
from polyseme.verification import Verification

__all__ = ["make_page"]


def make_page(
    release: Release,
    verification: Verification,
    original: Source | None = None,
    by: str | None = None,
    findings: Sequence[Finding] | None = None,
) -> Page:
    """Everything a report shows; with the original, also the truth."""
    manifest = release.manifest
    metrics: dict[str, Mapping[str, float]] = {}
    notes: list[str] = []
    distributions: list[Distribution] = []
    for item in manifest.protected:
        distributions += _distributions(release, item, original, None, metrics, notes)
        if by is not None:
            distributions += _distributions(release, item, original, by, metrics, notes)
    return release_page(
        manifest,
        verdicts=verification.verdicts,
        facts={
            item.name: worst_of([_facts(item, stratum, manifest.records) for stratum in item.strata.members])
            for item in manifest.protected
        },
        distributions=distributions,
        metrics=metrics or None,
        findings=findings,
        notes=tuple(dict.fromkeys(notes)),
    )


def _facts(item: PublishedAttribute, stratum: Stratum, records: int) -> Facts:
    prior = item.domain.prior
    return facts(stratum.mechanism, None if prior is None else prior[stratum.allowed], records)


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
    truth = true_table(release, original, (item.name,), estimated.by) if original is not None else None
    if truth is not None:
        title = f"{item.name} by {by}" if by else item.name
        metrics[title] = compare(truth, estimated.values, release.manifest.records)
    published = published_counts(release, item.name, by)
    groups: list[Any] = list(estimated.by[by]) if by else [None]
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
