"""`ml`: maximum likelihood on the sets, and `bayes`: the composite likelihood of containment counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from polyseme.distances.base import MATRIX_LIMIT
from polyseme.distances.structure import Floats
from polyseme.errors import ImpossibleError
from polyseme.estimators.axes import exact_map
from polyseme.estimators.base import Estimator, Fit, Reports, check
from polyseme.estimators.counts import containment, shape_of
from polyseme.estimators.likelihood import ContainmentLikelihood, RecordLikelihood, likelihood_of
from polyseme.estimators.limits import CellFit, LikelihoodLimits, LinearLimits, Widened, cell_fit
from polyseme.estimators.linear import NO_VARIANCE, Inverse
from polyseme.estimators.solver import GAP, MATRIX_CELLS, maximise, tolerance_for
from polyseme.mechanism import Mechanism

__all__ = ["Bayes", "MaximumLikelihood", "assemble", "convergence_note", "linear_start"]

COMPOSITE = (
    "counts only: which values were published together is not known, so the composite likelihood of the containment "
    "counts was maximised; set form would be more precise"
)
LARGE = (
    f"groups of more than {MATRIX_CELLS:,} cells: standard errors and intervals are those of `inverse`, wider than "
    "profile-likelihood limits"
)
FLAT = "some values cannot be told apart by these reports: the estimate is one of several equally good ones"

_MANY, _MATRIX = 300_000, 1_000


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
        if not reports.paired:
            fit = _composite(reports, mechanisms)
            return replace(fit, notes=(COMPOSITE, *fit.notes))
        whole = all(mechanism.p == 1.0 for mechanism in mechanisms)
        fits = []
        for _, sets, counts in reports.by_cell():
            likelihood = likelihood_of(sets, counts, mechanisms)
            records = likelihood.records
            start = linear_start(likelihood, mechanisms)
            solution = maximise(likelihood, tolerance_for(records), start=start)
            ceiling = likelihood.presence() if whole else None
            fits.append(cell_fit(likelihood, solution, records, ceiling))
        return assemble(fits, reports, mechanisms)


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
    x = np.maximum(table.ravel() / likelihood.records, 1e-4 / likelihood.size)
    return np.asarray(x / x.sum(), dtype=np.float64)


def assemble(fits: Sequence[CellFit], reports: Reports, mechanisms: Sequence[Mechanism]) -> Fit:
    """One table from the fits of its cells."""
    shape = (reports.cells, *shape_of(mechanisms))
    values = np.array([fit.x for fit in fits]).reshape(shape)
    variance = np.array([fit.variance() for fit in fits]).reshape(shape)
    gap = max((fit.gap for fit in fits), default=0.0)
    totals = reports.totals(mechanisms)
    notes = list(convergence_note(gap))
    if any(fit.quadratic is None and total > 0 for fit, total in zip(fits, totals)):
        try:
            linear = Inverse().fit(reports, mechanisms)
        except ImpossibleError:
            return Fit(values, variance, gap, (*notes, NO_VARIANCE), totals)
        ceilings = [fit.ceiling for fit in fits]
        known = all(ceiling is not None for ceiling in ceilings)
        limits = Widened(LinearLimits(linear, np.array(ceilings).reshape(shape) if known else None), values, values)
        return Fit(values, linear.variance, gap, (*notes, LARGE, *linear.notes), totals, linear.spread, limits)
    variance[totals == 0] = 0.0
    if np.isnan(variance).any():
        notes.append(FLAT)
    profile = LikelihoodLimits(tuple(fits), totals, shape)
    return Fit(values, variance, gap, tuple(notes), totals, profile.spread, profile)


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
    return Fit(values, linear.variance, gap, notes, totals, linear.spread, limits)
