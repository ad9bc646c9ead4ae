"""`report`: a page on a release with distributions, facts, and errors of estimates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from polyseme.inference.base import EstimateOptions
from polyseme.inference.questions.counts import published_counts
from polyseme.inference.questions.question import targets_of
from polyseme.kernel.arrays import Floats
from polyseme.kernel.spelling import written
from polyseme.kernel.work import tracked, verb
from polyseme.privacy.analysis import Facts, facts, worst_of
from polyseme.publishing.inputs import original_given, release_given, table_given
from polyseme.release import Release, Sets
from polyseme.release.release import SetCounts
from polyseme.reports.assembly import release_page, treatment_of
from polyseme.reports.contents import Distribution, Page, require_facts
from polyseme.results.attackers import Finding
from polyseme.results.verification import Verification
from polyseme.scrutiny.attacks.audit.shared_values import shared_remarks
from polyseme.scrutiny.learners import with_learners
from polyseme.scrutiny.metrics import compare
from polyseme.scrutiny.metrics.truth import Truth
from polyseme.scrutiny.verification.verdicts import verify_release
from polyseme.strata import Stratum
from polyseme.tables.io.source import Source, TableOptions
from polyseme.verbs.estimate import ask

__all__ = ["make_page", "report"]


@verb(read=1, attributes=6, promises=1, guesses=8, distributions=1, page=3)
def report(
    release: Release | str | Path,
    original: Any = None,
    by: str | None = None,
    *,
    title: str | None = None,
    publisher: str | None = None,
    population: Any = None,
    **written: Unpack[TableOptions],
) -> str:
    """One self-contained HTML page about a release.

    title, publisher  the name of the data set and who answers for it, where the manifest does not say or says otherwise
    population        people with the same quasi-identifiers as a table, for k-map and the journalist
    """
    # Charts and attacks cost a second to import: only calls that need them pay.
    from polyseme.reports.page import render_page
    from polyseme.scrutiny.attacks.audit import attack_release
    from polyseme.scrutiny.attacks.audit.records import population_of_release

    require_facts(title=title, publisher=publisher)
    opened = release_given(release)
    if by is not None:
        targets_of(opened, [item.name for item in opened.manifest.sets], (by,))  # raises where `by` is no such column
    source = original_given(original, opened, **written)
    people = None if population is None else table_given(population, **written)
    findings = attack_release(opened, source, population=people) if opened.manifest.form == "set" else None
    counts = SetCounts(opened, (), (by,)) if by is not None else SetCounts(opened)
    reference = None if people is None else population_of_release(opened, people)
    verified = verify_release(opened, counts, reference)
    remarks = shared_remarks(opened, findings or ()) if verified.holds else ()
    verified = replace(with_learners(verified, opened), remarks=remarks)
    return render_page(make_page(opened, verified, source, by, findings, counts, title=title, publisher=publisher))


def make_page(
    release: Release,
    verification: Verification,
    original: Source | None = None,
    by: str | None = None,
    findings: Sequence[Finding] | None = None,
    counts: SetCounts | None = None,
    *,
    title: str | None = None,
    publisher: str | None = None,
) -> Page:
    """Everything a report shows; with the original, also the truth.

    counts  the distinct sets, for those who have them counted already
    """
    manifest = release.manifest
    truth = Truth(release, original, [(item.name,) for item in manifest.sets]) if original is not None else None
    metrics: dict[str, Mapping[str, float]] = {}
    notes: list[str] = []
    distributions: list[Distribution] = []
    examined = _examined(verification)
    for item in tracked(manifest.sets, "distributions", "Estimating distributions"):
        for group in (None,) if by is None else (None, by):
            distributions += _distributions(release, item, truth, group, metrics, notes, counts, examined)
    return release_page(
        manifest,
        title=title or "",
        publisher=publisher,
        original=original is not None,
        verdicts=verification.verdicts,
        facts={item.name: _facts(release, item) for item in manifest.sets},
        distributions=distributions,
        metrics=metrics or None,
        findings=findings,
        notes=tuple(dict.fromkeys([*verification.remarks, *notes])),
        learners=verification.learners,
        treatment=treatment_of(release),
    )


def _examined(verification: Verification) -> dict[str, float]:
    """How well each attribute's sets fit their mechanism, so that estimates can reuse it."""
    return {
        verdict.attribute: verdict.worst
        for verdict in verification.verdicts
        if verdict.model == "mechanism" and verdict.attribute is not None and verdict.worst is not None
    }


def _facts(release: Release, item: Sets) -> Facts:
    """The worst risks of all strata; with own priors, the expected error of all records."""
    members, records = item.strata.members, release.manifest.records
    found = worst_of([facts(member.mechanism, member.prior, records) for member in members])
    if not any(member.condition for member in members):
        return found
    number = np.zeros(len(members))
    for batch, counts in release.counted(item.strata.columns):
        columns = {name: batch.column(name) for name in item.strata.columns}
        number += np.bincount(item.strata.places(columns, batch.num_rows), counts, minlength=len(members))
    errors = [
        facts(member.mechanism, _expected(member), records).expected_mse if people else 0.0
        for member, people in zip(members, number, strict=True)
    ]
    known = [error for error in errors if error is not None]
    total = float(number @ known / number.sum()) if len(known) == len(errors) and number.any() else None
    return replace(found, mse_limit=total, mse_inverse=total)


def _expected(member: Stratum) -> Floats | None:
    """How the true values of a stratum are taken to be distributed."""
    known = member.distributions.learner_prior
    return member.prior if known is None else known


def _distributions(
    release: Release,
    item: Sets,
    truth: Truth | None,
    by: str | None,
    metrics: dict[str, Mapping[str, float]],
    notes: list[str],
    counts: SetCounts | None,
    examined: Mapping[str, float],
) -> list[Distribution]:
    """The distribution of one attribute, of everybody or by group."""
    names = (by,) if by else ()
    # Beside how often values are published and true, which are not weighted.
    unweighted = EstimateOptions(unweighted=True)
    estimated = ask(release, (item.name,), names, options=unweighted, counts=counts, examined=examined)
    notes += [f"{item.name}{f' by {by}' if by else ''}: {note}" for note in estimated.notes]
    true = truth.table((item.name,), estimated.by) if truth is not None else None
    if true is not None:
        title = f"{item.name} by {by}" if by else item.name
        metrics[title] = compare(true, estimated.values, release.manifest.records)
    published = published_counts(release, item.name, by, counts)
    groups: list[Any] = list(estimated.by[by]) if by else [None]
    return [
        Distribution(
            attribute=item.name,
            labels=[written(value) for value in item.domain.values],
            published=published[index],
            estimate=estimated.values[index],
            low=estimated.low[index],
            high=estimated.high[index],
            original=true[index] if true is not None else None,
            ordered=item.domain.ordered,
            group=f"{by} = {group if group is not None else '(none)'}" if by else None,
        )
        for index, group in enumerate(groups)
    ]
