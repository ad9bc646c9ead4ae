"""Interval limits of likelihood estimates, by profile likelihood or from `inverse`.

The latter is for tables that are too large.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from polyseme.inference.base import Fit, Limits, Population
from polyseme.inference.intervals.intervals import (
    Errors,
    Paths,
    Quadratic,
    boundary_errors,
    intervals,
    normal_quantile,
    on_support,
    sum_intervals,
    widened,
)
from polyseme.inference.likelihood import Likelihood, Stacked
from polyseme.inference.solver import MATRIX_CELLS, Solution, Solutions
from polyseme.kernel.arrays import Bools, Floats, Ints
from polyseme.kernel.work import check_cancelled

__all__ = [
    "CellFit",
    "LikelihoodLimits",
    "LinearLimits",
    "Sampled",
    "Unbiased",
    "Widened",
    "around",
    "cell_fit",
    "stacked_fits",
    "variances",
]

_SINGULAR = 1e14
"""Condition number beyond which an inverse has no right digit left."""
_UNNOTICED = 1e-9
"""Share of the records below which a cell counts as zero: the solver leaves that much."""
BOUNDARY_MARGIN = 1.3
"""With cells at zero in the table, the loss of a sum has a heavier tail than chi-square: a mixture over the cells that
leave zero. Simulated over smooth, skewed and sparse tables, this factor restores the level."""


_TOGETHER = 1_000
"""Places of all groups whose limits are found together: the draws for them take 2 MB."""
NORMAL_RECORDS = 100.0
"""Records of a group from which on the normal limits of an unbiased estimate can stand alone. With 25 or 50 records and
p < 1 they covered cells in 86% to 94%, those of the likelihood dominant values in 88% to 92%: there both must allow a
value."""


@dataclass(frozen=True, eq=False)
class Sampled:
    """Records with weights as a sample of a population, drawn with replacement.

    squares  the unbiased estimate of the sum of squared weights for each value
    records  how many records there are
    given    whether the sum of the weights is taken as given, as for shares, instead of being drawn with the records
    """

    squares: Floats
    records: float
    given: bool = False


@dataclass(frozen=True, eq=False)
class Unbiased:
    """An unbiased estimate of the table of one group, as a sum of what each report adds.

    values   the estimate, flattened over the whole table
    second   the sum over reports of the outer products of what they add
    least    the covariance, about the people in the table, below which no variance is taken; None where there is none
    sampled  what drawing the records from a population adds; None where they all weigh the same
    """

    values: Floats
    second: Floats
    least: Floats | None = None
    sampled: Sampled | None = None

    def variance(self, contrasts: Floats, population: Population, repeats: float) -> Floats:
        """Variances of sums of cells."""
        drawn = contrasts**2 @ (self.values if self.sampled is None else self.sampled.squares)
        variance = np.maximum(_forms(contrasts, self.second) - drawn, 0.0)
        if self.least is not None:
            variance = np.maximum(variance, _forms(contrasts, self.least))
        if population == "super":
            variance = variance + np.maximum(drawn - self._expected(contrasts), 0.0)
        return np.asarray(repeats * variance, dtype=np.float64)

    def _expected(self, contrasts: Floats) -> Floats:
        """What the squares of one record's share in a sum are by its mean alone, over all records."""
        sums, total = contrasts @ self.values, max(self.values.sum(), 1e-300)
        if self.sampled is None:
            return np.asarray(sums**2 / total, dtype=np.float64)
        if not self.sampled.given:
            return np.asarray(sums**2 / max(self.sampled.records, 1.0), dtype=np.float64)
        squares, mean = self.sampled.squares, sums / total
        return np.asarray(2.0 * mean * (contrasts @ squares) - mean**2 * squares.sum(), dtype=np.float64)

    def limits(self, contrasts: Floats, level: float, population: Population, repeats: float) -> tuple[Floats, Floats]:
        """Normal limits of sums of cells."""
        center = contrasts @ self.values
        half = normal_quantile(level) * np.sqrt(self.variance(contrasts, population, repeats))
        return center - half, center + half


@dataclass(frozen=True, eq=False)
class CellFit:
    """The fitted table of one cell, with the loss around it where it has a matrix.

    places     the cells of the flattened table that can hold records: the others are in no report
    ceiling    how many reports contain each place; no other record has that value when every set holds the truth
    repeats    the design effect of repeated draws; the information is that of independent draws divided by it
    unbiased   an estimate without the bias that the boundary brings: where sets may lie, and where strata are mixed,
               which have no loss of their own
    possible   the cells that the records can have at all; None when they can have any
    """

    x: Floats
    gap: float
    places: Ints
    quadratic: Quadratic | None
    ceiling: Floats | None
    repeats: float = 1.0
    unbiased: Unbiased | None = None
    possible: Ints | None = None

    def variance(self) -> Floats:
        """Finite-population variance of each place: `H^-1 - r diag(x)` on the support.

        Nan where H is singular.
        """
        if self.quadratic is None:
            return self._unbiased_variance()
        out = np.full(len(self.x), np.nan)
        covariance, support = self.covariance()
        out[:] = 0.0
        drawn = self.repeats * self.quadratic.x[support]
        out[self.places[support]] = np.maximum(covariance.diagonal() - drawn, 0.0)
        return out

    def _unbiased_variance(self) -> Floats:
        if self.unbiased is None:
            return np.full(len(self.x), np.nan)
        return self.unbiased.variance(np.eye(len(self.x)), "finite", self.repeats)

    @property
    def is_known(self) -> bool:
        """Whether there is anything that limits follow from."""
        return self.quadratic is not None or self.unbiased is not None

    def spread(self, contrasts: Floats, population: Population) -> Floats:
        """Variances of sums over the flattened table: (k, cells) -> (k,)."""
        if self.quadratic is None:
            assert self.unbiased is not None  # noqa: S101 - callers ask only where something is known
            return self.unbiased.variance(contrasts, population, self.repeats)
        covariance, support = self.covariance()
        part, x = contrasts[:, self.places[support]], self.quadratic.x[support]
        total = np.einsum("ki,ij,kj->k", part, covariance, part)
        drawn = part**2 @ x if population == "finite" else (part @ x) ** 2 / x.sum()
        return np.asarray(np.maximum(total - self.repeats * drawn, 0.0), dtype=np.float64)

    def covariance(self) -> tuple[Floats, Bools]:
        """`H^-1` on the support, and the support among the places."""
        assert self.quadratic is not None  # noqa: S101 - callers ask only where there is one
        support = self.quadratic.x > 0.0
        matrix = self.quadratic.information[np.ix_(support, support)]
        try:
            inverse = np.linalg.inv(matrix)
        except np.linalg.LinAlgError:
            return np.full(matrix.shape, np.nan), support
        if matrix.size and np.linalg.norm(matrix, 1) * np.linalg.norm(inverse, 1) > _SINGULAR:
            return np.full(matrix.shape, np.nan), support
        return inverse.astype(np.float64, copy=False), support

    @cached_property
    def _profile(self) -> _Profiles:
        return _Profiles((self,))

    def limits(self, contrasts: Floats, level: float, population: Population) -> tuple[Floats, Floats]:
        """Lower and upper limits of sums over the flattened table: (k, cells) -> two of (k,)."""
        if self.quadratic is None:
            return self._unbiased_limits(contrasts, level, population)
        down, up = self._profile.reaches(contrasts[:, self.places], level, population)
        return self.within(contrasts, down[0], up[0], level, population)

    def within(
        self, contrasts: Floats, down: Floats, up: Floats, level: float, population: Population
    ) -> tuple[Floats, Floats]:
        """The limits of sums that may lie so far below and above their estimates."""
        value = contrasts @ self.x
        low, high = value - down, value + up
        if self.unbiased is None:
            return low, high
        # Around a likelihood estimate that the boundary has moved, limits are wide; the unbiased ones may be shorter.
        left, right = self.unbiased.limits(contrasts, level, population, self.repeats)
        if self.x.sum() < NORMAL_RECORDS * self.repeats:
            return np.minimum(left, low), np.maximum(right, high)
        shorter = (right - left < 2.0 * np.maximum(down, up)) & (left <= value) & (value <= right)
        return np.where(shorter, left, low), np.where(shorter, right, high)

    def _unbiased_limits(self, contrasts: Floats, level: float, population: Population) -> tuple[Floats, Floats]:
        """Limits of the unbiased estimate, widened to include the value where it is impossible."""
        assert self.unbiased is not None  # noqa: S101 - callers ask only where something is known
        low, high = self.unbiased.limits(contrasts, level, population, self.repeats)
        value, room = contrasts @ self.x, 0.5 * (high - low)
        return np.minimum(low, value - room), np.maximum(high, value + room)


class _Profiles:
    """The profile likelihoods of groups whose tables have the same number of places."""

    def __init__(self, fits: Sequence[CellFit]) -> None:
        self.fits = fits
        self.quadratics = [fit.quadratic for fit in fits if fit.quadratic is not None]
        self.repeats = np.array([fit.repeats for fit in fits])
        self._errors: dict[Population, Errors | None] = {}

    @cached_property
    def _paths(self) -> Paths:
        return Paths.of(self.quadratics)

    def reaches(self, contrasts: Floats | None, level: float, population: Population) -> tuple[Floats, Floats]:
        """How far the sums of each group may lie below and above their estimates: (groups, k) each.

        contrasts  (k, places), the same for all groups; None for every place by itself
        """
        down, up = self._profile(contrasts, level, population)
        errors = self.errors(population)
        if errors is not None:
            below, above = errors.reaches(contrasts, level)
            known = errors.known
            down[known], up[known] = np.maximum(down[known], below), np.maximum(up[known], above)
        return down, up

    def errors(self, population: Population) -> Errors | None:
        """What the boundary does to sums of cells."""
        if population not in self._errors:
            self._errors[population] = boundary_errors(self.quadratics, population, self.repeats)
        return self._errors[population]

    def _profile(self, contrasts: Floats | None, level: float, population: Population) -> tuple[Floats, Floats]:
        """How far the profile likelihood lets each sum of places move down and up from its estimate."""
        paths, repeats = self._paths, self.repeats
        units = np.eye(paths.x.shape[1]) if contrasts is None else contrasts
        # The search may have stopped this much short of the maximum: the limits are about the maximum all the same.
        missing = 2.0 * np.array([fit.gap for fit in self.fits]) * paths.x.sum(axis=1) / repeats
        loss = _quantile(level) * np.where(paths.bounded, BOUNDARY_MARGIN, 1.0)
        own = np.repeat(np.arange(len(self.fits)), len(units))
        sums = np.tile(units, (len(self.fits), 1))
        sides = []
        for sign in (-1.0, 1.0):
            reach, there = paths.reaches(own, sign * sums, (loss + missing)[own])
            if population == "finite":
                # Of the fitted table, which the curvature is about, but for cells that have become empty.
                drawn = repeats[own] * _drawn(sums, np.where(there > 0.0, paths.x[own], 0.0))
                reach = np.sqrt(np.maximum(reach**2 - loss[own] * drawn, 0.0))
            sides.append(reach.reshape(len(self.fits), len(units)))
        return sides[0], sides[1]


def _alike(fits: Sequence[CellFit], wanted: Bools) -> Iterator[tuple[Ints, list[CellFit]]]:
    """The wanted groups with a matrix, those with the same number of places together."""
    sizes = np.array([len(fit.places) if fit.quadratic is not None else 0 for fit in fits])
    for size in np.unique(sizes[wanted & (sizes > 0)]):
        cells = np.flatnonzero(wanted & (sizes == size))
        step = max(1, _TOGETHER // int(size))
        for start in range(0, len(cells), step):
            some = cells[start : start + step]
            yield some, [fits[cell] for cell in some.tolist()]


def cell_fit(
    likelihood: Likelihood, solution: Solution, records: float, ceiling: Floats | None, repeats: float = 1.0
) -> CellFit:
    """The fit of one cell, and its loss when the table is small enough for a matrix."""
    x = solution.x * records
    if likelihood.size > MATRIX_CELLS or records <= 0.0:
        return CellFit(x, solution.gap, np.arange(likelihood.size), None, ceiling, repeats)
    f = likelihood.product(x)
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes = likelihood.pull(np.where(likelihood.counts > 0, likelihood.counts / f, 0.0))
        information = likelihood.information(np.where(likelihood.counts > 0, likelihood.counts / f**2, 0.0))
    return _around_maximum(x, solution.gap, slopes, information, ceiling, repeats)


def stacked_fits(
    stack: Stacked, solutions: Solutions, ceilings: Floats | None, repeats: Sequence[float]
) -> list[CellFit]:
    """The fits of several groups, each as by `cell_fit`."""
    x, fits = solutions.x * stack.records[:, None], []
    for at, block in stack.blocks():
        f = block.product(x[at])
        with np.errstate(divide="ignore", invalid="ignore"):
            slopes = block.pull(np.where(block.counts > 0, block.counts / f, 0.0))
            information = block.information(np.where(block.counts > 0, block.counts / f**2, 0.0))
        for place, group in enumerate(range(at.start, at.stop)):
            ceiling, gap = None if ceilings is None else ceilings[group], float(solutions.gap[group])
            fits.append(_around_maximum(x[group], gap, slopes[place], information[place], ceiling, repeats[group]))
    return fits


def _around_maximum(
    x: Floats, gap: float, slopes: Floats, information: Floats, ceiling: Floats | None, repeats: float
) -> CellFit:
    places = np.flatnonzero(slopes > 0.0)
    # What is below any reader's notice counts as zero, so that the boundary is recognized as such.
    kept = np.where(x < _UNNOTICED * float(x.sum()) * (slopes < 1.0), 0.0, x)[places]
    score = np.where(kept > 0, 0.0, slopes[places] - 1.0)
    inner = information if len(places) == len(x) else information[np.ix_(places, places)]
    return CellFit(x, gap, places, Quadratic(kept, inner / repeats, score / repeats), ceiling, repeats)


def variances(fits: Sequence[CellFit]) -> Floats:
    """Finite-population variance of each place of each group: (groups, K).

    `H^-1 - r diag(x)` on the support; nan where H is singular.
    """
    out = np.empty((len(fits), len(fits[0].x)))
    alone = np.ones(len(fits), dtype=np.bool_)
    for cells, alike in _alike(fits, np.ones(len(fits), dtype=np.bool_)):
        x = np.array([fit.quadratic.x for fit in alike if fit.quadratic is not None])
        matrix = np.array([fit.quadratic.information for fit in alike if fit.quadratic is not None])
        free = x > 0.0
        try:
            inverse = on_support(matrix, free)
        except np.linalg.LinAlgError:
            continue
        inner = np.where(free[:, :, None] & free[:, None, :], np.abs(matrix), 0.0)
        condition = inner.sum(axis=1).max(axis=1) * np.abs(inverse).sum(axis=1).max(axis=1)
        repeats = np.array([fit.repeats for fit in alike])[:, None]
        found = np.where(free, np.maximum(inverse.diagonal(axis1=1, axis2=2) - repeats * x, 0.0), 0.0)
        found[free & (condition > _SINGULAR)[:, None]] = np.nan
        out[cells] = 0.0
        out[cells[:, None], np.array([fit.places for fit in alike])] = found
        alone[cells] = False
    for cell in np.flatnonzero(alone).tolist():
        out[cell] = fits[cell].variance()
    return out


@dataclass(frozen=True, eq=False)
class LikelihoodLimits(Limits):
    """Limits of sums of cells; a sum over several untouched cells adds independent parts."""

    fits: tuple[CellFit, ...]
    totals: Floats
    shape: tuple[int, ...]

    def spread(self, contrasts: Floats, population: Population) -> Floats:
        """Variances of sums of cells from the information on the support."""
        flat = contrasts.reshape(len(contrasts), self.shape[0], -1)
        out = np.zeros(len(contrasts))
        for cell, fit in enumerate(self.fits):
            if fit.is_known and self.totals[cell] > 0:
                out += fit.spread(flat[:, cell], population)
        return out

    def __call__(self, contrasts: Floats, level: float, population: Population) -> tuple[Floats, Floats]:
        flat = contrasts.reshape(len(contrasts), self.shape[0], -1)
        values = np.array([fit.x for fit in self.fits])
        center = np.einsum("kcv,cv->k", flat, values)
        below, above = np.zeros(len(contrasts)), np.zeros(len(contrasts))
        for cell, fit in enumerate(self.fits):
            used = np.flatnonzero(np.abs(flat[:, cell]).any(axis=1))
            if not fit.is_known or not used.size or self.totals[cell] == 0:
                continue
            here = flat[used, cell]
            low, high = fit.limits(here, level, population)
            # Independent parts add their squared distances, the usual rule for variances, on each side.
            below[used] += (here @ fit.x - low) ** 2
            above[used] += (high - here @ fit.x) ** 2
        return center - np.sqrt(below), center + np.sqrt(above)

    def cells(self, level: float, population: Population) -> tuple[Floats, Floats]:
        """Limits of every cell of the table."""
        size = len(self.fits[0].x)
        low, high = np.zeros((self.shape[0], size)), np.zeros((self.shape[0], size))
        known = (self.totals > 0) & np.array([fit.is_known for fit in self.fits])
        reaches: dict[int, tuple[Floats, Floats]] = {}
        for cells, fits in _alike(self.fits, known):
            check_cancelled()
            down, up = _Profiles(fits).reaches(None, level, population)
            reaches.update(zip(cells.tolist(), zip(down, up)))
        for cell in np.flatnonzero(known).tolist():
            fit = self.fits[cell]
            if population == "super":
                # No report holds these values; the likelihood still allows a few records.
                high[cell, fit.possible] = fit.repeats * _quantile(level) / 2.0
            if cell in reaches and fit.unbiased is None:
                down, up = reaches[cell]
                low[cell, fit.places], high[cell, fit.places] = fit.x[fit.places] - down, fit.x[fit.places] + up
            elif cell in reaches:
                down, up = reaches[cell]
                found = fit.within(np.eye(size)[fit.places], down, up, level, population)
                low[cell, fit.places], high[cell, fit.places] = found
            elif fit.quadratic is None:
                found = fit.limits(np.eye(size)[fit.places], level, population)
                low[cell, fit.places], high[cell, fit.places] = found
            if population == "finite" and fit.ceiling is not None:
                high[cell] = np.minimum(high[cell], np.maximum(fit.ceiling, fit.x))
        np.clip(low, 0.0, self.totals[:, None], out=low)
        np.clip(high, 0.0, self.totals[:, None], out=high)
        return low.reshape(self.shape), high.reshape(self.shape)


def _forms(contrasts: Floats, matrix: Floats) -> Floats:
    """`k' M k` for each contrast k."""
    return np.asarray(np.einsum("ki,ki->k", contrasts @ matrix, contrasts), dtype=np.float64)


def _quantile(level: float) -> float:
    """Of the chi-square distribution with one degree of freedom."""
    return normal_quantile(level) ** 2


def _drawn(contrasts: Floats, x: Floats) -> Floats:
    """The variances of sums from drawing the records, not from the mechanism: one a row."""
    total = x.sum(axis=1)
    mean = np.divide((contrasts * x).sum(axis=1) ** 2, total, out=np.zeros_like(total), where=total > 0.0)
    return np.where(total > 0.0, (contrasts**2 * x).sum(axis=1) - mean, 0.0)


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


def around(plain: Fit, values: Floats, expected: Floats, gap: float | None, notes: tuple[str, ...]) -> Fit:
    """A fit that knows more than the reports, by a penalty or smoothness, which is no evidence.

    Its standard errors and limits are those of the plain fit, the limits widened to hold it.
    """
    return replace(
        plain,
        values=values,
        expected=expected,
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
        return widened(value, low, high)

    def cells(self, level: float, population: Population) -> tuple[Floats, Floats]:
        """Limits of every cell of the table."""
        low, high = self.inner.cells(level, population)
        return widened(self._table(population), low, high)

    def _table(self, population: Population) -> Floats:
        return self.values if population == "finite" else self.expected
