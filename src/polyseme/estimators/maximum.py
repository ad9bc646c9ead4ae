"""`ml`: maximum likelihood on the sets, and `bayes`: the composite likelihood of containment counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from polyseme.distances.base import MATRIX_LIMIT
from polyseme.distances.structure import Bools, Floats, Ints
from polyseme.errors import ImpossibleError
from polyseme.estimators.axes import exact_map
from polyseme.estimators.base import Estimator, Fit, Limits, Population, Reports, check
from polyseme.estimators.counts import containment, shape_of
from polyseme.estimators.likelihood import ContainmentLikelihood, Likelihood, likelihood_of
from polyseme.estimators.linear import NO_VARIANCE, Inverse
from polyseme.estimators.profile import Path, Quadratic
from polyseme.estimators.solver import GAP, Solution, maximise
from polyseme.mechanism import Mechanism

__all__ = ["Bayes", "CellFit", "LikelihoodLimits", "MaximumLikelihood", "cell_fit", "convergence_note", "linear_start"]

COMPOSITE = (
    "counts only: which values were published together is not known, so the composite likelihood of the containment "
    "counts was maximised; set form would be more precise"
)
BOUNDARY_MARGIN = 1.3
"""With cells at zero in the table, the loss of a sum has a heavier tail than chi-square: a mixture over the cells that
leave zero. Simulated over smooth, skewed and sparse tables, this factor restores the level."""

_MANY, _MATRIX = 300_000, 1_000
PROFILE_CELLS = 500
"""Most cells of one group for which every limit follows its own path."""

LARGE = (
    f"groups of more than {PROFILE_CELLS} cells: standard errors and intervals are normal ones with the variance of "
    "`inverse`, wider than profile-likelihood limits"
)
FLAT = "some values cannot be told apart by these reports: the estimate is one of several equally good ones"


def convergence_note(gap: float) -> tuple[str, ...]:
    """A warning when the maximum was not reached."""
    if gap <= GAP:
        return ()
    return (f"not converged: the log-likelihood per record may still grow by {gap:.1e} (promised {GAP:.0e})",)


def tolerance_for(records: float) -> float:
    """A gap small for each record and, with many records, small for all of them together."""
    return float(max(min(GAP, 0.01 / max(records, 1.0)), 1e-11))


@dataclass(frozen=True, eq=False)
class CellFit:
    """The fitted table of one cell of the untouched attributes, with the loss around it where it has a matrix.

    places     the cells of the flattened table that can hold records: the others were reported by nobody
    ceiling    how many reports contain each place; nobody else can have that value when every set holds the truth
    """

    x: Floats
    gap: float
    places: Ints
    quadratic: Quadratic | None
    ceiling: Floats | None

    def variance(self) -> Floats:
        """Finite-population variance of each place: `H^-1 - diag(x)` on the support; nan where H is singular."""
        out = np.full(len(self.x), np.nan)
        if self.quadratic is None:
            return out
        covariance, support = self.covariance()
        out[:] = 0.0
        out[self.places[support]] = np.maximum(covariance.diagonal() - self.quadratic.x[support], 0.0)
        return out

    def covariance(self) -> tuple[Floats, Bools]:
        """`H^-1` on the support, and the support among the places."""
        assert self.quadratic is not None  # noqa: S101 - callers ask only where there is one
        support = self.quadratic.x > 0.0
        matrix = self.quadratic.information[np.ix_(support, support)]
        try:
            inverse = np.linalg.inv(matrix)
        except np.linalg.LinAlgError:
            return np.full(matrix.shape, np.nan), support
        if matrix.size and np.linalg.norm(matrix, 1) * np.linalg.norm(inverse, 1) > 1e14:
            return np.full(matrix.shape, np.nan), support
        return inverse.astype(np.float64, copy=False), support


def cell_fit(likelihood: Likelihood, solution: Solution, records: float, ceiling: Floats | None) -> CellFit:
    """The fit of one cell, and its loss when the table is small enough for a matrix."""
    x = solution.x * records
    if likelihood.size > PROFILE_CELLS or records <= 0.0:
        return CellFit(x, solution.gap, np.arange(likelihood.size), None, ceiling)
    f = likelihood.product(x)
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes = likelihood.pull(np.where(likelihood.counts > 0, likelihood.counts / f, 0.0))
        information = likelihood.information(np.where(likelihood.counts > 0, likelihood.counts / f**2, 0.0))
    places = np.flatnonzero(slopes > 0.0)
    # What is below any reader's notice counts as zero, so that the boundary is recognised as such.
    kept = np.where(x < 1e-9 * records * (slopes < 1.0), 0.0, x)[places]
    quadratic = Quadratic(kept, information[np.ix_(places, places)], np.where(kept > 0, 0.0, slopes[places] - 1.0))
    return CellFit(x, solution.gap, places, quadratic, ceiling)


class MaximumLikelihood(Estimator):
    """The table under which the published sets are most likely: efficient, never negative. The default.

    Its duality gap is certified, see `solver`; its intervals are profile-likelihood ones, see `profile`.
    """

    name = "ml"

    def fit(self, reports: Reports, mechanisms: Sequence[Mechanism]) -> Fit:
        check(reports, mechanisms)
        if not reports.paired:
            fit = _composite(reports, mechanisms)
            return Fit(fit.values, fit.variance, fit.gap, (COMPOSITE, *fit.notes), fit.totals, fit.spread)
        whole = all(mechanism.p == 1.0 for mechanism in mechanisms)
        fits = []
        for _, sets, counts in reports.by_cell():
            likelihood = likelihood_of(sets, counts, mechanisms)
            records = likelihood.records
            start = linear_start(likelihood, sets, counts, mechanisms)
            solution = maximise(likelihood, tolerance_for(records), start=start)
            ceiling = likelihood.presence() if whole else None
            fits.append(cell_fit(likelihood, solution, records, ceiling))
        return assemble(fits, reports, mechanisms)


def linear_start(
    likelihood: Likelihood, sets: Sequence[Ints], counts: Ints, mechanisms: Sequence[Mechanism]
) -> Floats | None:
    """With very many reports the unbiased table is so near the maximum that it is worth starting from it."""
    if likelihood.thinning(_MANY) == 1 or max(shape_of(mechanisms)) > _MATRIX:
        return None
    maps = [exact_map(mechanism) for mechanism in mechanisms]
    if not all(axis_map.identifiable for axis_map in maps):
        return None
    table = containment(Reports(tuple(sets), np.zeros(len(counts), dtype=np.int64), counts, 1), mechanisms)
    for axis, axis_map in enumerate(maps, start=1):
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
        return Fit(values, linear.variance, gap, (*notes, LARGE, *linear.notes), totals, linear.spread)
    variance[totals == 0] = 0.0
    if np.isnan(variance).any():
        notes.append(FLAT)
    limits = LikelihoodLimits(tuple(fits), totals, shape)
    return Fit(values, variance, gap, tuple(notes), totals, limits.spread, limits)


@dataclass(frozen=True, eq=False)
class LikelihoodLimits(Limits):
    """Profile limits of sums of cells; a sum over several cells of the untouched attributes adds independent parts."""

    fits: tuple[CellFit, ...]
    totals: Floats
    shape: tuple[int, ...]

    def spread(self, contrasts: Floats, population: Population) -> Floats:
        """Variances of sums of cells from the information on the support."""
        flat = contrasts.reshape(len(contrasts), self.shape[0], -1)
        out = np.zeros(len(contrasts))
        for cell, fit in enumerate(self.fits):
            if fit.quadratic is None or self.totals[cell] == 0:
                continue
            covariance, support = fit.covariance()
            part, x = flat[:, cell, fit.places[support]], fit.quadratic.x[support]
            total = np.einsum("ki,ij,kj->k", part, covariance, part)
            drawn = part**2 @ x if population == "finite" else (part @ x) ** 2 / self.totals[cell]
            out += np.maximum(total - drawn, 0.0)
        return out

    def __call__(self, contrasts: Floats, level: float, population: Population) -> tuple[Floats, Floats]:
        flat = contrasts.reshape(len(contrasts), self.shape[0], -1)
        values = np.array([fit.x for fit in self.fits])
        centre = np.einsum("kcv,cv->k", flat, values)
        below, above = np.zeros(len(contrasts)), np.zeros(len(contrasts))
        for cell, fit in enumerate(self.fits):
            used = np.flatnonzero(np.abs(flat[:, cell]).any(axis=1))
            if fit.quadratic is None or not used.size or self.totals[cell] == 0:
                continue
            down, up = _reaches(fit, flat[used, cell][:, fit.places], level, population)
            # Independent parts add their squared distances, the usual rule for variances, on each side.
            below[used] += down**2
            above[used] += up**2
        return centre - np.sqrt(below), centre + np.sqrt(above)

    def cells(self, level: float, population: Population) -> tuple[Floats, Floats]:
        """Limits of every cell of the table."""
        low, high = np.zeros((self.shape[0], len(self.fits[0].x))), np.zeros((self.shape[0], len(self.fits[0].x)))
        for cell, fit in enumerate(self.fits):
            if fit.quadratic is None or self.totals[cell] == 0:
                continue
            if population == "super":
                # Nobody reported these values; the likelihood still allows a few records.
                high[cell] = _quantile(level) / 2.0
            down, up = _reaches(fit, np.eye(len(fit.places)), level, population)
            low[cell, fit.places] = np.maximum(fit.x[fit.places] - down, 0.0)
            high[cell, fit.places] = fit.x[fit.places] + up
            if population == "finite" and fit.ceiling is not None:
                high[cell] = np.minimum(high[cell], np.maximum(fit.ceiling, fit.x))
        return low.reshape(self.shape), high.reshape(self.shape)


def _reaches(fit: CellFit, contrasts: Floats, level: float, population: Population) -> tuple[Floats, Floats]:
    """How far each sum reaches down and up from its estimate."""
    assert fit.quadratic is not None  # noqa: S101 - callers ask only where there is one
    path = fit.quadratic.path()
    # The search may have stopped this much short of the maximum: the limits are about the maximum all the same.
    missing = 2.0 * fit.gap * float(path.x.sum())
    sides = np.array([_sides(path, contrast, level, missing, population) for contrast in contrasts]).reshape(-1, 2)
    return sides[:, 0], sides[:, 1]


def _sides(
    path: Path, contrast: Floats, level: float, missing: float, population: Population
) -> tuple[float, float]:
    """How far a sum reaches down and up from its estimate."""
    loss = _quantile(level) * (BOUNDARY_MARGIN if path.bounded else 1.0)
    down, lowest = path.reach(-contrast, loss + missing)
    up, highest = path.reach(contrast, loss + missing)
    if population == "super":
        return down, up
    here = _drawn(contrast, path.x)
    return (
        _without(down, loss, min(here, _drawn(contrast, lowest))),
        _without(up, loss, min(here, _drawn(contrast, highest))),
    )


def _quantile(level: float) -> float:
    """Of the chi-square distribution with one degree of freedom."""
    return float(special.ndtri(0.5 + level / 2.0)) ** 2


def _drawn(contrast: Floats, x: Floats) -> float:
    """The variance of a sum that comes from drawing the records, not from the mechanism."""
    return float(contrast**2 @ x - (contrast @ x) ** 2 / x.sum())


def _without(reach: float, loss: float, drawn: float) -> float:
    """A reach for the records themselves: the part of its variance that comes from drawing them is taken out."""
    return float(np.sqrt(max(reach**2 - loss * drawn, 0.0)))


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
    return Fit(values, linear.variance, gap, (*convergence_note(gap), *flat), totals, linear.spread)
