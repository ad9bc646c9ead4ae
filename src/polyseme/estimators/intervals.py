"""Intervals for every cell and every sum of cells of an estimated table."""

from __future__ import annotations

import numpy as np
from scipy import special

from polyseme.arrays import Floats
from polyseme.estimators.base import Fit, Population

__all__ = [
    "intervals",
    "normal_quantile",
    "possible_sums",
    "presented",
    "project",
    "standard_errors",
    "sum_intervals",
    "widened",
]

_ROOM = 0.05
"""How far beyond a value that lies outside an interval the interval is widened, as a share of its length. A judgment:
enough to be seen, and too little to change how often the interval holds the truth."""


def standard_errors(fit: Fit, population: Population = "finite") -> Floats:
    """Standard error of every cell; about the population it has the multinomial part `x (1 - x / n)` on top."""
    variance = fit.variance
    if population == "super" and fit.sampled is not None:
        variance = fit.sampled
    elif population == "super":
        x, total = np.maximum(fit.values, 0.0), _totals(fit)
        share = np.divide(x, total, out=np.zeros_like(x), where=total > 0)
        variance = variance + fit.repeats * x * np.clip(1.0 - share, 0.0, 1.0)
    return np.sqrt(variance)


def intervals(fit: Fit, level: float = 0.95, population: Population = "finite") -> tuple[Floats, Floats]:
    """Lower and upper limits of every cell.

    Likelihood estimators have profile-likelihood limits, which hold at the boundary too. The others have normal ones
    around the estimate, cut to what is possible: no cell holds fewer than no record or more than all of its group.
    Where a standard error is missing the limits are these bounds themselves.
    """
    if fit.limits is not None:
        low, high = fit.limits.cells(level, population)
        most = np.inf if fit.given is not None and population == "super" else _totals(fit)
        return np.clip(low, 0.0, most), np.clip(high, 0.0, most)
    half = normal_quantile(level) * standard_errors(fit, population)
    known = np.isfinite(half)
    total = np.broadcast_to(_totals(fit), fit.values.shape)
    low = np.where(known, np.clip(fit.values - half, 0.0, total), 0.0)
    high = np.where(known, np.clip(fit.values + half, 0.0, total), total)
    return low, high


def sum_intervals(
    fit: Fit, contrasts: Floats, level: float = 0.95, population: Population = "finite"
) -> tuple[Floats, Floats, Floats, Floats]:
    """Value, standard error and limits of `sum(contrast * values)` for each contrast (k, cells, F_1, ..., F_q)."""
    values = np.tensordot(contrasts, fit.values, axes=fit.values.ndim)
    if fit.spread is None:
        missing = np.full(len(contrasts), np.nan)
        return values, missing, missing, missing
    errors = np.sqrt(fit.spread(contrasts, population))
    if fit.limits is not None:
        low, high = fit.limits(contrasts, level, population)
    else:
        half = normal_quantile(level) * errors
        low, high = values - half, values + half
    bounds = possible_sums(fit, contrasts, population)
    return values, errors, *((low, high) if bounds is None else (np.clip(low, *bounds), np.clip(high, *bounds)))


def presented(
    values: Floats, errors: Floats, low: Floats, high: Floats, level: float = 0.95
) -> tuple[Floats, Floats, Floats]:
    """Standard errors and limits as they are shown beside their values.

    An interval holds its value, also where an estimator without constraints gives an impossible one; and what lies
    within limits has no standard error larger than half the distance between them, as far as limits of this level
    hold so much at all.
    """
    low, high = np.minimum(low, values), np.maximum(high, values)
    return np.minimum(errors, (high - low) / (2.0 * min(normal_quantile(level), 1.0))), low, high


def widened(values: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Limits that hold these values too, and do not end at them."""
    room = _ROOM * (high - low)
    return np.fmin(low, values - room), np.fmax(high, values + room)


def project(values: Floats, totals: Floats) -> Floats:
    """The nearest non-negative table, by Euclidean distance, with the same total in each cell of the first axis.

    >>> project(np.array([[3.0, 2.0, -1.0]]), np.array([4.0]))
    array([[2.5, 1.5, 0. ]])
    """
    flat = values.reshape(len(values), -1)
    ordered = -np.sort(-flat, axis=1)
    excess = (np.cumsum(ordered, axis=1) - totals[:, None]) / np.arange(1, flat.shape[1] + 1)
    last = flat.shape[1] - 1 - np.argmax((ordered > excess)[:, ::-1], axis=1)
    cut = np.take_along_axis(excess, last[:, None], axis=1)
    out = np.where(totals[:, None] > 0, np.maximum(flat - cut, 0.0), 0.0)
    return out.reshape(values.shape)


def normal_quantile(level: float) -> float:
    """How many standard errors to either side hold so large a share of a normal distribution."""
    return float(special.ndtri(0.5 + level / 2.0))


def _totals(fit: Fit) -> Floats:
    totals = fit.values.reshape(len(fit.values), -1).sum(axis=1) if fit.totals is None else fit.totals
    return np.asarray(totals, dtype=np.float64).reshape(-1, *[1] * (fit.values.ndim - 1))


def possible_sums(fit: Fit, contrasts: Floats, population: Population) -> tuple[Floats, Floats] | None:
    """The least and the largest value a sum can have, whatever the table: all records in one place of each cell.

    None about a population in which weights are drawn: what its people weigh together is estimated too.
    """
    if fit.given is not None and population == "super":
        return None
    flat = contrasts.reshape(len(contrasts), len(fit.values), -1)
    totals = _totals(fit).ravel()
    return flat.min(axis=2) @ totals, flat.max(axis=2) @ totals
