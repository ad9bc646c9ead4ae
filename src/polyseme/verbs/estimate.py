"""`estimate`: cross-tabulations of protected attributes within cells of untouched ones."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Never

import numpy as np

from polyseme.inference.base import EstimateOptions, Estimator, Nonnegative, Population, refuse_unknown
from polyseme.inference.counts import Part
from polyseme.inference.questions.classes import ask_classes, records_left_out, suppression_notes
from polyseme.inference.questions.counts import (
    WEIGHT,
    Weights,
    asks_members,
    check_drawn,
    coarser_cells,
    coarser_weights,
    grouped_sets,
    marks_of,
    parts_of,
    repeated_draws,
    reports_of,
)
from polyseme.inference.questions.question import check_help, check_size, check_weighted, of_whole_table, targets_of
from polyseme.inference.sets.auxiliary import Help, with_help
from polyseme.inference.sets.estimate import DEFAULT, Estimate, estimate_parts
from polyseme.kernel.errors import QuestionError
from polyseme.kernel.work import stage, verb
from polyseme.publishing.inputs import names_given, release_given
from polyseme.release import Release, Sets
from polyseme.release.release import SetCounts
from polyseme.results.table import Target
from polyseme.scrutiny.verification import doubts
from polyseme.strata import Strata
from polyseme.tables.codes import label_array

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
    found = _answer(release, of, by, using, options, counts, examined)
    return of_whole_table(found) if options.target == "table" else found


def _answer(
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
        return combined.answered(_answer(release, combined.columns, by, using, options, counts, examined))
    columns = targets_of(release, of, by, using)
    check_size(columns)
    left_out, suppressed = records_left_out(release.manifest), suppression_notes(release.manifest, by, options.target)
    targets = [item for item in columns if isinstance(item, Sets)]
    weight = None if options.unweighted else release.manifest.weight
    if weight is not None:
        check_weighted(weight, columns, by, using)
    if len(targets) < len(columns):
        return replace(ask_classes(release, columns, by, options).warned(*suppressed), left_out=left_out)
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
    reports = reports_of(release, targets, grouped, cell, max(cells.height, 1))
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
            check_drawn(item, mechanism, sets)
    if any(item.stratified for item in targets):
        parts = parts_of(reports, targets, marked, helping)
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
        *coarser_weights(release.manifest, weight),
        *doubts(release.manifest, targets, table.parts, examined),
        *repeated_draws(release.manifest, targets, reports),
    )
    return table.warned(*caveats, *suppressed)
