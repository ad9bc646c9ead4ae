"""Interval limits of likelihood estimates: by profile likelihood, or from `inverse` where a table is too large."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from polyseme.distances.structure import Bools, Floats, Ints
from polyseme.estimators.base import Fit, Limits, Population
from polyseme.estimators.intervals import intervals, sum_intervals
from polyseme.estimators.likelihood import Likelihood
from polyseme.estimators.profile import Path, Quadratic
from polyseme.estimators.solver import MATRIX_CELLS, Solution

__all__ = ["CellFit", "LikelihoodLimits", "LinearLimits", "Widened", "cell_fit"]

BOUNDARY_MARGIN = 1.3
"""With cells at zero in the table, the loss of a sum has a heavier tail than chi-square: a mixture over the cells that
leave zero. Simulated over smooth, skewed and sparse tables, this factor restores the level."""


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
    if likelihood.size > MATRIX_CELLS or records <= 0.0:
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


def _sides(path: Path, contrast: Floats, level: float, missing: float, population: Population) -> tuple[float, float]:
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


@dataclass(frozen=True, eq=False)
class LinearLimits(Limits):
    """Limits of the unbiased linear estimate of the same reports.

    Around a likelihood estimate itself normal limits would be wrong: with fewer records than cells it is far from
    unbiased.

    linear   the fit of `inverse`; it has variances of sums
    ceiling  how many reports contain each place, see `CellFit`
    """

    linear: Fit
    ceiling: Floats | None

    def __call__(self, contrasts: Floats, level: float, population: Population) -> tuple[Floats, Floats]:
        _, _, low, high = sum_intervals(self.linear, contrasts, level, population)
        return low, high

    def cells(self, level: float, population: Population) -> tuple[Floats, Floats]:
        """Limits of every cell of the table."""
        low, high = intervals(self.linear, level, population)
        return low, high if population == "super" or self.ceiling is None else np.minimum(high, self.ceiling)


def around(
    plain: Fit, values: Floats, expected: Floats, variance: Floats, gap: float | None, notes: tuple[str, ...]
) -> Fit:
    """A fit that knows more than the reports say, by a penalty or by smoothness, which is no evidence.

    Its errors are at least those of the plain fit, unknown where those are, and its limits are those, widened to hold
    it.
    """
    return replace(
        plain,
        values=values,
        expected=expected,
        variance=np.maximum(plain.variance, variance),
        gap=gap,
        notes=notes,
        limits=None if plain.limits is None else Widened(plain.limits, values, expected),
    )


@dataclass(frozen=True, eq=False)
class Widened(Limits):
    """The limits of another estimate of the same reports, widened to hold this one's values.

    values    about the people in the table, expected about the population
    """

    inner: Limits
    values: Floats
    expected: Floats

    def __call__(self, contrasts: Floats, level: float, population: Population) -> tuple[Floats, Floats]:
        low, high = self.inner(contrasts, level, population)
        value = np.tensordot(contrasts, self._table(population), axes=self.values.ndim)
        return np.fmin(low, value), np.fmax(high, value)

    def cells(self, level: float, population: Population) -> tuple[Floats, Floats]:
        """Limits of every cell of the table."""
        low, high = self.inner.cells(level, population)
        return np.minimum(low, self._table(population)), np.maximum(high, self._table(population))

    def _table(self, population: Population) -> Floats:
        return self.values if population == "finite" else self.expected
