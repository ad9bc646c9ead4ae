"""`ml`: maximum likelihood on the sets, and `bayes`: the composite likelihood of containment counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from polyseme.arrays import Floats
from polyseme.distances.base import MATRIX_LIMIT
from polyseme.errors import ImpossibleError
from polyseme.estimators.axes import exact_map
from polyseme.estimators.base import Estimator, Fit, Reports, check
from polyseme.estimators.cells import CellLikelihoods
from polyseme.estimators.counts import containment, shape_of
from polyseme.estimators.dispersion import group_effect
from polyseme.estimators.likelihood import ContainmentLikelihood, RecordLikelihood
from polyseme.estimators.limits import CellFit, LikelihoodLimits, LinearLimits, Widened, cell_fit
from polyseme.estimators.linear import NO_VARIANCE, Inverse
from polyseme.estimators.solver import GAP, MATRIX_CELLS, maximise, tolerance_for
from polyseme.estimators.unbiased import UnbiasedMap, unbiased_map, unbiased_table
from polyseme.mechanism import Mechanism

__all__ = [
    "LARGE",
    "Bayes",
    "MaximumLikelihood",
    "assemble",
    "convergence_note",
    "linear_start",
    "may_lie",
    "most_likely",
]

COMPOSITE = (
    "counts only: which values were published together is unknown, so the composite likelihood of the containment "
    "counts was maximised; set form would be more precise"
)
LARGE = (
    f"groups of more than {MATRIX_CELLS:,} cells: standard errors and intervals are those of `inverse`, wider than "
    "profile-likelihood limits"
)
FLAT = "these reports cannot distinguish some values: the estimate is one of several that fit equally well"

_MANY = 300_000
"""Records from which on a linear estimate is near enough to the maximum to be worth its time; a judgment."""
_MATRIX = 1_000
"""Values of an attribute up to which a linear estimate takes next to no time."""
_INSIDE = 1e-4
"""Share of an even table below which no cell of a start may lie, so that every cell can still grow."""
_UNBIASED_WORK = 1e9
"""Operations that an unbiased estimate of one group may take, about a second."""


def convergence_note(gap: float) -> tuple[str, ...]:
    """A warning when the maximum was not reached."""
    if gap <= GAP:
        return ()
    return (f"not converged: the log-likelihood per record may still grow by {gap:.1e} (promised {GAP:.0e})",)


class MaximumLikelihood(Estimator):
    """The table under which the published sets are most likely: efficient, never negative. The default.

    Its duality gap is certified, see `solver`; its intervals are profile-likelihood ones, see `profile`.
    """

    name = "ml"

    def fit(self, reports: Reports, mechanisms: Sequence[Mechanism]) -> Fit:
        check(reports, mechanisms)
        return most_likely(CellLikelihoods(reports, mechanisms))


def most_likely(likelihoods: CellLikelihoods) -> Fit:
    """The table under which the reports of every cell are most likely."""
    reports, mechanisms = likelihoods.reports, likelihoods.mechanisms
    if not reports.paired:
        fit = _composite(reports, mechanisms)
        return replace(fit, notes=(COMPOSITE, *fit.notes))
    fits, maps = [], _uniform_maps(mechanisms) if may_lie(mechanisms) else ()
    for likelihood, (_, sets, counts) in zip(likelihoods, reports.by_cell()):
        records = likelihood.records
        start = linear_start(likelihood, mechanisms)
        solution = maximise(likelihood, tolerance_for(records), start=start)
        ceiling = None if may_lie(mechanisms) else likelihood.presence()
        repeats = reports.repeats
        if repeats > 1.0 and reports.cells > 1 and len(mechanisms) == 1 and records > 0:
            repeats = group_effect(sets[0], counts, solution.x * records, mechanisms[0], repeats)
        cell = cell_fit(likelihood, solution, records, ceiling, repeats)
        if maps and len(counts) * likelihood.size**2 <= _UNBIASED_WORK:
            cell = replace(cell, unbiased=unbiased_table(maps, sets, counts))
        fits.append(cell)
    fit = assemble(fits, (reports.cells, *shape_of(mechanisms)), reports.totals(mechanisms))
    if all(cell.quadratic is not None or cell.x.sum() == 0.0 for cell in fits):
        return fit
    return _with_inverse(fit, [cell.ceiling for cell in fits], reports, mechanisms)


def may_lie(mechanisms: Sequence[Mechanism]) -> bool:
    """Whether a published set need not hold the true value."""
    return any(mechanism.p < 1.0 for mechanism in mechanisms)


def _uniform_maps(mechanisms: Sequence[Mechanism]) -> tuple[UnbiasedMap, ...]:
    """What a set adds to an unbiased estimate; nothing where some values leave the same traces."""
    maps = tuple(unbiased_map(mechanism, np.ones(mechanism.size)) for mechanism in mechanisms)
    return maps if all(axis.identifiable for axis in maps) else ()


def linear_start(likelihood: RecordLikelihood, mechanisms: Sequence[Mechanism]) -> Floats | None:
    """With very many reports the unbiased table is so near the maximum that it is worth starting from it."""
    if likelihood.records < _MANY or max(shape_of(mechanisms)) > _MATRIX:
        return None
    maps = [exact_map(mechanism) for mechanism in mechanisms]
    if not all(axis_map.identifiable for axis_map in maps):
        return None
    table = likelihood.presence().reshape(likelihood.shape)
    for axis, axis_map in enumerate(maps):
        table = axis_map.apply(table, axis)
    x = np.maximum(table.ravel() / likelihood.records, _INSIDE / likelihood.size)
    return np.asarray(x / x.sum(), dtype=np.float64)


def assemble(fits: Sequence[CellFit], shape: tuple[int, ...], totals: Floats) -> Fit:
    """One table from the fits of its cells."""
    values = np.array([fit.x for fit in fits]).reshape(shape)
    variance = np.array([fit.variance() for fit in fits]).reshape(shape)
    variance[totals == 0] = 0.0
    gap = max((fit.gap for fit in fits), default=0.0)
    notes = (*convergence_note(gap), *((FLAT,) if np.isnan(variance).any() else ()))
    profile = LikelihoodLimits(tuple(fits), totals, shape)
    repeats = max((fit.repeats for fit in fits), default=1.0)
    return Fit(values, variance, gap, notes, totals, profile.spread, profile, repeats=repeats)


def _with_inverse(
    fit: Fit, ceilings: Sequence[Floats | None], reports: Reports, mechanisms: Sequence[Mechanism]
) -> Fit:
    """A table that is too large for a likelihood's own limits, with the errors and limits of `inverse`."""
    notes = convergence_note(fit.gap or 0.0)
    try:
        linear = Inverse().fit(reports, mechanisms)
    except ImpossibleError:
        return replace(fit, notes=(*notes, NO_VARIANCE), spread=None, limits=None)
    known = all(ceiling is not None for ceiling in ceilings)
    inner = LinearLimits(linear, np.array(ceilings).reshape(fit.values.shape) if known else None)
    limits = Widened(inner, fit.values, fit.values)
    said = (*notes, LARGE, *linear.notes)
    return replace(fit, variance=linear.variance, notes=said, spread=linear.spread, limits=limits)


class Bayes(Estimator):
    """Equations 26 and 27 of the sensitive-QID paper, carried to their certified limit.

        x_a  <-  sum_b w_b delta(a, b) x_a / sum_g delta(g, b) x_g,      finally divided by prod(eta)

    where
        delta(a, b)  probability that the sets of a record of true combination a contain combination b

    This is expectation-maximisation for the composite likelihood of the containment counts, so its limit is found by
    the same solver as `ml`. `delta` is the exact inclusion matrix of each attribute; for the paper's own mechanism the
    two agree.
    """

    name = "bayes"

    def fit(self, reports: Reports, mechanisms: Sequence[Mechanism]) -> Fit:
        check(reports, mechanisms)
        return _composite(reports, mechanisms)


def _composite(reports: Reports, mechanisms: Sequence[Mechanism]) -> Fit:
    if max(shape_of(mechanisms)) > MATRIX_LIMIT:
        raise ImpossibleError(
            f"the composite likelihood needs inclusion matrices, refused beyond {MATRIX_LIMIT:,} values",
            "use `inverse`, or `ml` on a release in set form",
        )
    counts, totals = containment(reports, mechanisms), reports.totals(mechanisms)
    inclusion = tuple(mechanism.inclusion_matrix() for mechanism in mechanisms)
    values, gap = np.zeros(counts.shape), 0.0
    for cell, table in enumerate(counts):
        likelihood = ContainmentLikelihood(inclusion, table.ravel(), table.shape)
        if totals[cell] > 0:
            solution = maximise(likelihood, tolerance_for(totals[cell]))
            values[cell] = totals[cell] * solution.x.reshape(table.shape)
            gap = max(gap, solution.gap)
    linear = Inverse().fit(reports, mechanisms)
    flat = () if all(exact_map(mechanism).identifiable for mechanism in mechanisms) else (FLAT,)
    notes = (*convergence_note(gap), *flat)
    limits = Widened(LinearLimits(linear, None), values, values)
    return replace(linear, values=values, gap=gap, notes=notes, limits=limits)
