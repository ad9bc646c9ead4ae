"""`estimate`: cross-tabulations of protected attributes within cells of untouched ones."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Never

import numpy as np
import polars as pl

from polyseme.designs.mechanism import Mechanism
from polyseme.inference.base import EstimateOptions, Estimator, Nonnegative, Population, Reports, refuse_unknown
from polyseme.inference.counts import Part
from polyseme.inference.questions.classes import ask_classes, records_left_out, suppression_notes
from polyseme.inference.questions.counts import WEIGHT, Weights, asks_members, coarser_cells, grouped_sets, marks_of
from polyseme.inference.questions.question import check_help, check_size, check_weighted, targets_of
from polyseme.inference.questions.whole_table import of_whole_table
from polyseme.inference.sets.auxiliary import Help, with_help
from polyseme.inference.sets.estimate import DEFAULT, Estimate, estimate_parts
from polyseme.kernel.arrays import Ints
from polyseme.kernel.errors import QuestionError, ReleaseError
from polyseme.kernel.work import stage, verb
from polyseme.publishing.inputs import names_given, release_given
from polyseme.release import Manifest, Release, Sets
from polyseme.release.release import SetCounts, stratum_column
from polyseme.results.table import Target
from polyseme.schema import Weighting
from polyseme.scrutiny.verification import doubts
from polyseme.semantics.distances import Distance, LineDistance
from polyseme.strata import Strata
from polyseme.tables.codes import label_array
from polyseme.tables.groups import Grouped

__all__ = ["ask", "estimate"]

_log = logging.getLogger(__name__)


@verb(read=1, fit=8)
def estimate(
    release: Release | str | Path,
    of: Sequence[str],
    by: Sequence[str] = (),
    using: Sequence[str] = (),
    *,
    estimator: str | Estimator | None = None,
    level: float = 0.95,
    population: Population = "finite",
    nonnegative: Nonnegative = "no",
    unweighted: bool = False,
    target: Target = "published",
    **unknown: Never,
) -> Estimate:
    """The cross-tabulation of true values, with intervals.

    of           protected attributes to recover, or attributes that were published in combination; also sensitive ones
                 that are published in classes or groups, and generalized ones whose values the policy lists
    by           other attributes to break them down by: untouched ones, or the labels of generalized ones
    using        other attributes that help: the table does not hold them, but what they have to do with those of `of`
                 makes it more exact
    estimator    a name such as "ml", or an estimator; None lets the data choose
    level        of the intervals
    population   "finite": the people in the table; "super": the population they were drawn from
    nonnegative  for linear estimators: "project" gives the nearest table without negative cells
    unweighted   count the records also where the release has a column of survey weights; without it, the table then
                 holds sums of weights: how many people of the population the records stand for
    target       "published": numbers of the published records; "table": of all records of the table, with intervals
                 that hold whatever the values of those that a method left out
    """
    refuse_unknown(unknown)
    options = EstimateOptions(estimator, level, population, nonnegative, unweighted, target)
    table = ask(release_given(release), names_given(of), names_given(by), names_given(using), options)
    _log.info("estimate: %d cells, estimator %s", table.values.size, table.estimator)
    return table


def ask(
    release: Release,
    of: Sequence[str],
    by: Sequence[str] = (),
    using: Sequence[str] = (),
    options: EstimateOptions = DEFAULT,
    counts: SetCounts | None = None,
    examined: Mapping[str, float] | None = None,
) -> Estimate:
    """The estimated cross-tabulation of `of` within cells of `by`.

    using     columns that help: what they have to do with `of` makes the table more exact
    counts    the distinct sets, for those who have them counted already
    examined  how well the sets of attributes fit their mechanism (p-values), for those who know it already
    """
    if problems := list(options.problems()):
        raise QuestionError(problems)
    found = _asked(release, of, by, using, options, counts, examined)
    return of_whole_table(found) if options.target == "table" else found


def _asked(
    release: Release,
    of: Sequence[str],
    by: Sequence[str],
    using: Sequence[str],
    options: EstimateOptions,
    counts: SetCounts | None,
    examined: Mapping[str, float] | None,
) -> Estimate:
    """The estimated cross-tabulation of the published records."""
    combined = asks_members(release.manifest, of)
    if combined is not None:
        return combined.answered(_asked(release, combined.columns, by, using, options, counts, examined))
    asked = targets_of(release, of, by, using)
    check_size(asked)
    left_out, suppressed = records_left_out(release.manifest), suppression_notes(release.manifest, by, options.target)
    targets = [item for item in asked if isinstance(item, Sets)]
    weight = None if options.unweighted else release.manifest.weight
    if weight is not None:
        check_weighted(weight, asked, by, using)
    if len(targets) < len(asked):
        return replace(ask_classes(release, asked, by, options).warned(*suppressed), left_out=left_out)
    long = release.manifest.form == "long"
    if using:
        check_help(options.estimator, long)
    if long and len(targets) > 1:
        raise QuestionError(
            "in the long form it is not known which candidates belong together",
            "ask for one attribute at a time, or publish the set form",
        )
    mechanisms = [item.mechanism for item in targets]
    marks = {**marks_of(release, targets, using), **({WEIGHT: Weights(weight)} if weight is not None else {})}
    grouped = grouped_sets(release, targets, by, marks, counts)
    cells, cell = (
        coarser_cells(grouped.cells, by) if marks else (grouped.cells, np.arange(max(grouped.cells.height, 1)))
    )
    check_size(targets, cells.height)
    reports = _reports(release, targets, grouped, cell, max(cells.height, 1))
    marked = grouped.cells[grouped.cell] if marks else grouped.cells
    if weight is not None:
        reports = replace(reports, weights=marked[WEIGHT].to_numpy().astype(np.float64))
    helping = [
        Help(mark.name, marked[name].to_numpy())
        for name, mark in marks.items()
        if not isinstance(mark, Strata | Weights)
    ]
    for item, mechanism, sets in zip(targets, mechanisms, reports.sets):
        if not item.stratified:
            _check_drawn(item, mechanism, sets)
    if any(item.stratified for item in targets):
        parts = _parts(reports, targets, marked, helping)
    else:
        parts = [Part.whole(with_help(reports, helping, mechanisms) if helping else reports, mechanisms)]
    with stage("fit", "Estimating the table"):
        table = estimate_parts(
            parts,
            reports.cells,
            tuple(of),
            [label_array(item.domain.values).to_pylist() for item in targets],
            cells.to_dict(as_series=False),
            options,
        )
    table = replace(table, weight=weight, left_out=left_out)
    caveats = (
        *_coarser_weights(release.manifest, weight),
        *doubts(release.manifest, targets, table.parts, examined),
        *_repeated(release.manifest, targets, reports),
    )
    return table.warned(*caveats, *suppressed)


def _coarser_weights(manifest: Manifest, weight: str | None) -> tuple[str, ...]:
    rule = None if weight is None else manifest[weight].attribute.weighting
    if rule is None or rule == Weighting():
        return ()
    return (f"{weight} was {rule.in_words}: intervals are about sums of the published weights",)


def _reports(release: Release, targets: Sequence[Sets], grouped: Grouped, cell: Ints, cells: int) -> Reports:
    """What the estimators see of the counted sets.

    cell  the cell of the table that each cell of `grouped` belongs to
    """
    long, records = release.manifest.form == "long", grouped.counts
    if long:
        # A candidate of one attribute stands in a row for every combination of the others' candidates.
        others = [item.l for item in release.manifest.sets if item not in targets]
        records = records // int(np.prod(others, dtype=np.int64))
    distances, repeats = tuple(_distance(item) for item in targets), max(item.repeats for item in targets)
    return Reports(grouped.sets, cell[grouped.cell], records, cells, not long, distances, repeats=repeats)


def _repeated(manifest: Manifest, targets: Sequence[Sets], reports: Reports) -> tuple[str, ...]:
    """What sticky or shared sets mean for the errors: records of a person or group with one value are one draw."""
    if manifest.uncounted:
        return (
            "decoys are sticky, but the records per draw were not counted: intervals are too short where people have "
            "several records",
        )
    if reports.repeats == 1.0:
        return ()
    records = manifest.records / reports.repeats
    if all(item.shared_by for item in targets if item.repeats > 1.0):
        columns = ", ".join(dict.fromkeys(item.shared_by for item in targets if item.shared_by))
        return (f"records of one group of {columns} have one set: errors are those of about {records:,.0f} records",)
    return (f"people have several records with the same decoys: errors are those of about {records:,.0f} records",)


def _check_drawn(item: Sets, mechanism: Mechanism, sets: Ints) -> None:
    """Refuse sets that the stated mechanism never draws: no distribution of values makes them likely."""
    if sets.shape[1] == mechanism.l and (strange := mechanism.never_drawn(sets)):
        raise ReleaseError(
            f"column '{item.name}': {strange:,} of {len(sets):,} distinct sets cannot have been drawn by the mechanism "
            "that the manifest states",
            "run polyseme verify",
        )


def _parts(reports: Reports, targets: Sequence[Sets], marked: pl.DataFrame, helping: Sequence[Help]) -> list[Part]:
    """The reports of each combination of strata, in codes of the strata's own mechanisms.

    marked  the stratum of each row, for the attributes that have several
    """
    none = np.zeros(len(reports.counts), dtype=np.int64)
    places = np.column_stack([marked[stratum_column(item)].to_numpy() if item.stratified else none for item in targets])
    parts = []
    for combination in np.unique(places, axis=0):
        rows = np.flatnonzero((places == combination).all(axis=1))
        strata = [item.strata.members[place] for item, place in zip(targets, combination)]
        for item, stratum, sets in zip(targets, strata, reports.sets):
            if stratum.forbids[sets[rows]].any():
                raise ReleaseError(
                    f"column '{item.name}': some sets hold a value that is impossible for their record",
                    "run polyseme verify to see how many",
                )
        cells, cell = np.unique(reports.cell[rows], return_inverse=True)
        narrowed = tuple(stratum.narrow(sets[rows]) for stratum, sets in zip(strata, reports.sets))
        for item, stratum, sets in zip(targets, strata, narrowed):
            _check_drawn(item, stratum.mechanism, sets)
        distances = tuple(
            distance and distance.among(stratum.allowed) for distance, stratum in zip(reports.distances or (), strata)
        )
        part = replace(
            reports,
            sets=narrowed,
            cell=cell,
            counts=reports.counts[rows],
            cells=len(cells),
            distances=distances,
            weights=None if reports.weights is None else reports.weights[rows],
        )
        mechanisms = tuple(stratum.mechanism for stratum in strata)
        # A column that decides the stratum is the same for all its records.
        telling = [column.among(rows) for column in helping if len(np.unique(column.kinds[rows])) > 1]
        if helping:
            part = with_help(part, telling, mechanisms)
        parts.append(Part(part, mechanisms, cells, tuple(stratum.allowed for stratum in strata)))
    return parts


def _distance(item: Sets) -> Distance | None:
    """The distance of an attribute; intervals and periods without one still stand in their order."""
    domain = item.domain
    if item.attribute.distance is None and domain.cut is not None and domain.missing.action != "category":
        return LineDistance.ranks(domain.size)
    return item.attribute.distance
