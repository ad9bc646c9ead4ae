"""`evaluate`: what is estimated from a release against the original table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Never

from polyseme.inference.base import EstimateOptions, Estimator, Nonnegative, Population, refuse_unknown
from polyseme.inference.questions.classes import group_counts
from polyseme.inference.questions.counts import asks_members
from polyseme.inference.questions.question import has_domain, of_whole_table
from polyseme.inference.sets.estimate import Estimate
from polyseme.kernel.arrays import Floats
from polyseme.kernel.errors import Problem, QuestionError
from polyseme.kernel.work import tracked, verb
from polyseme.publishing.inputs import compared_with, names_given, release_given
from polyseme.release import Grouped, Manifest, Release
from polyseme.release.release import SetCounts
from polyseme.results.table import Target
from polyseme.results.verification import Evaluation
from polyseme.scrutiny.metrics import (
    as_grid,
    compare,
    covered,
    diversity_degrees,
    information_losses,
    learning,
    query_error,
)
from polyseme.scrutiny.metrics.truth import Truth
from polyseme.semantics.distances.line import LineDistance
from polyseme.tables.io.source import TableOptions
from polyseme.verbs.estimate import ask

__all__ = ["evaluate"]


@verb(read=1, tables=8)
def evaluate(
    release: Release | str | Path,
    original: Any,
    of: Sequence[str] = (),
    by: Sequence[str] = (),
    using: Sequence[str] = (),
    *,
    separator: str | None = None,
    encoding: str = "utf-8",
    sheet: str | None = None,
    decimal: str = "point",
    dates: str | None = None,
    learn: bool = False,
    estimator: str | Estimator | None = None,
    level: float = 0.95,
    population: Population = "finite",
    nonnegative: Nonnegative = "no",
    unweighted: bool = False,
    target: Target = "published",
    **unknown: Never,
) -> Evaluation:
    """Compare what is estimated from a release with the original table.

    Options say how the table is stored, as for `init`.

    learn    also train predictors of the attribute from those of `by`, on both tables (needs scikit-learn)

    The other options are those of `estimate`.
    """
    refuse_unknown(unknown, "separator", "encoding", "sheet", "decimal", "dates", "learn")
    options = EstimateOptions(estimator, level, population, nonnegative, unweighted, target)
    opened = release_given(release)
    written = TableOptions(separator=separator, encoding=encoding, sheet=sheet, decimal=decimal, dates=dates)
    source = compared_with(original, opened, **written)
    questions = [names_given(of)] if of else _each(opened.manifest, names_given(by))
    combined = asks_members(opened.manifest, names_given(of)) if of else None
    weight = None if unweighted else opened.manifest.weight
    original_tables = Truth(opened, source, [combined.columns] if combined is not None else questions, weight)
    counts = SetCounts(opened, names_given(by)) if not of and opened.manifest.sets else None
    tables, learned = {}, {}
    for names in tracked(questions, "tables", "Comparing tables"):
        estimated = ask(opened, names, names_given(by), names_given(using), options, counts)
        truth = original_tables.table(combined.columns if combined is not None else names, estimated.by)
        truth = combined.summed(truth) if combined is not None else truth
        title = _title(names, names_given(by))
        tables[title] = compare(truth, estimated.values, opened.manifest.records if weight is None else truth.sum())
        boxes, guesses = as_grid(truth, estimated.by), as_grid(estimated.values, estimated.by)
        if boxes is not None and guesses is not None:
            tables[title]["query_error"] = query_error(boxes, guesses).mean
        tables[title] |= {} if combined is not None else _of_groups(opened, names)
        tables[title] |= covered(truth, *_limits(estimated), estimated.level)
        if learn:
            distance = opened.manifest[names[0]].attribute.distance if combined is None else None
            positions = distance.positions if isinstance(distance, LineDistance) else None
            learned[title] = learning(truth, estimated.values, estimated.by, positions)
    return Evaluation(tables, learned)


def _of_groups(release: Release, names: Sequence[str]) -> dict[str, float]:
    """The measures of the (l, e) paper, where values are published by group."""
    item = release.manifest[names[0]] if len(names) == 1 else None
    if not isinstance(item, Grouped):
        return {}
    counts, distance = group_counts(release, item), item.attribute.distance
    found = {"information_loss": float(information_losses(counts).sum())}
    return (
        found if distance is None else found | {"diversity_degree": float(diversity_degrees(counts, distance).mean())}
    )


def _limits(estimated: Estimate) -> tuple[Floats, Floats]:
    """Intervals for the whole original, of which some records may be left out."""
    narrow = estimated.target == "table" or estimated.weight is not None or estimated.population == "super"
    whole = estimated if narrow or not estimated.left_out else of_whole_table(estimated)
    return whole.low, whole.high


def _each(manifest: Manifest, by: Sequence[str]) -> list[tuple[str, ...]]:
    """Every attribute that can be estimated, one at a time."""
    questions: list[tuple[str, ...]] = [
        (column.name,) for column in manifest.columns if has_domain(column) and column.name not in by
    ]
    if not questions:
        raise QuestionError(
            Problem(
                "of",
                "nothing in this release is estimated: it has no sets and no groups"
                + (f" beside {', '.join(by)}" if by else "")
                + ", and the labels of its generalized columns list no values",
                "compare the columns themselves; `polyseme report` says what generalization and suppression cost",
            )
        )
    return questions


def _title(of: Sequence[str], by: Sequence[str]) -> str:
    return " x ".join(of) + (f" by {', '.join(by)}" if by else "")
