"""The table of records in classes or groups: exact where their values are known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Never

import numpy as np

from polyseme.inference.base import EstimateOptions, Estimator, Fit, Population
from polyseme.inference.classes.coarsened import Coarse
from polyseme.inference.classes.mixture import Mixed
from polyseme.inference.intervals.intervals import normal_quantile
from polyseme.inference.sets.estimate import Estimate
from polyseme.inference.sets.linear import Simple
from polyseme.inference.sets.maximum import MaximumLikelihood, Shrink
from polyseme.inference.sets.registry import estimator_given
from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.errors import Problem, QuestionError

__all__ = ["EXACT", "CoarseEstimate", "estimate_coarse"]

EXACT = "exact"
"""The estimator's name where every record's values are known: there is nothing to estimate."""

_BIASED = "the even spread is biased toward independence: shrink and ml make use of what differs between records"
_NOT_CONVERGED = "the steps did not converge: the table is not quite that of the largest likelihood"


@dataclass(frozen=True, eq=False, repr=False)
class CoarseEstimate(Estimate):
    """A table with the records it was made from.

    Margins are made from these, as if asked for directly.
    """

    coarse: Coarse | None = field(default=None)

    def _regrouped(self, group: Ints, kept: Sequence[int], by: Mapping[str, tuple[Any, ...]]) -> CoarseEstimate:
        assert self.coarse is not None  # noqa: S101 - only for tables with records
        table = estimate_coarse(
            self.coarse.coarser(group, kept),
            [self.of[axis] for axis in kept],
            [self.labels[axis] for axis in kept],
            by,
            EstimateOptions(self.requested, self.level, self.population, self.nonnegative),
        )
        return replace(table, left_out=self.left_out).warned(*self.caveats)

    def independence(self, left: str | None = None, right: str | None = None) -> Never:
        raise QuestionError(
            "a test of independence needs candidate sets that were drawn at random",
            "publish the attribute with protect:, which draws them",
        )


def estimate_coarse(
    coarse: Coarse,
    names: Sequence[str],
    labels: Sequence[Sequence[Any]],
    by_cells: Mapping[str, Sequence[Any]],
    options: EstimateOptions,
) -> CoarseEstimate:
    """The cross-tabulation of records in classes or groups, within cells of other columns."""
    if problems := list(options.problems()):
        raise QuestionError(problems)
    chosen, open_ = _chosen(options), coarse.open
    fitted, way = _fitted(coarse, chosen), chosen.name
    values = fitted.values
    totals, level, population = coarse.totals, options.level, options.population
    stderr, low, high = _limits(values, totals, level, population)
    stderr, low, high = (np.where(open_, np.nan, column) for column in (stderr, low, high))
    known = not open_.any()
    notes = [] if known else [coarse.without_intervals, *_notes(coarse, fitted, way, names, labels)]
    fit = Fit(values, np.where(open_, np.nan, 0.0), totals=totals, spread=_Drawn(values, totals) if known else None)
    return CoarseEstimate(
        of=tuple(names),
        labels=tuple(tuple(axis) for axis in labels),
        by={name: tuple(column) for name, column in by_cells.items()},
        values=values,
        stderr=stderr,
        low=low,
        high=high,
        estimator=EXACT if known else way,
        records=round(float(totals.sum())),
        totals=totals,
        notes=(*([] if fitted.converged else [_NOT_CONVERGED]), *notes),
        level=level,
        population=population,
        fit=fit,
        requested=options.estimator,
        nonnegative=options.nonnegative,
        coarse=coarse,
    )


def _chosen(options: EstimateOptions) -> Estimator:
    chosen = estimator_given(options.estimator)
    if chosen is None:
        return Shrink()
    if isinstance(chosen, MaximumLikelihood | Shrink | Simple):
        return chosen
    words = f"{chosen.name} is for candidate sets that were drawn at random"
    raise QuestionError(Problem("estimator", words, "use shrink, ml or simple"))


def _fitted(coarse: Coarse, chosen: Estimator) -> Mixed:
    if isinstance(chosen, Shrink):
        return coarse.shrunk(chosen.strength)
    if isinstance(chosen, Simple):
        return Mixed(coarse.spread_evenly(), {})
    values, converged = coarse.most_likely()
    return Mixed(values, {}, converged)


def _notes(
    coarse: Coarse, fitted: Mixed, way: str, names: Sequence[str], labels: Sequence[Sequence[Any]]
) -> Iterator[str]:
    """What is assumed, and what the records leave open."""
    if way == Simple.name:
        yield _BIASED
        return
    for axis, weight in fitted.weights.items():
        yield f"{names[axis]}: {weight:.0%} of each record goes by the likelihood, {1.0 - weight:.0%} is spread evenly"
    yield from coarse.remarks(names, labels)
    if way == MaximumLikelihood.name:
        yield from coarse.remarks_on_ml()


def _limits(values: Floats, totals: Floats, level: float, population: Population) -> tuple[Floats, Floats, Floats]:
    """Standard error and limits of counts that are known; about the population, Wilson's."""
    if population == "finite":
        return np.zeros_like(values), values, values
    n = np.maximum(np.broadcast_to(totals.reshape(-1, *[1] * (values.ndim - 1)), values.shape), 1.0)
    z, share = normal_quantile(level), values / n
    center = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return np.sqrt(values * (1 - share)), np.maximum(center - half, 0.0) * n, np.minimum(center + half, 1.0) * n


@dataclass(frozen=True, eq=False)
class _Drawn:
    """Variances of sums of known counts: none, and multinomial ones about the population."""

    values: Floats
    totals: Floats

    def __call__(self, contrasts: Floats, population: Population) -> Floats:
        if population == "finite":
            return np.zeros(len(contrasts))
        flat, x = contrasts.reshape(len(contrasts), len(self.values), -1), self.values.reshape(len(self.values), -1)
        means = (flat * x).sum(axis=2)
        squares = (flat**2 * x).sum(axis=2)
        spread = np.maximum(squares - means**2 / np.maximum(self.totals, 1.0), 0.0)
        return np.asarray(spread.sum(axis=1), dtype=np.float64)
