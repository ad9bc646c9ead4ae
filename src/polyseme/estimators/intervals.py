"""Intervals for every cell and every sum of cells of an estimated table."""

from __future__ import annotations

import numpy as np
from scipy import special

from polyseme.distances.structure import Floats, Ints
from polyseme.estimators.base import Fit, Population

__all__ = ["intervals", "normal_quantile", "project", "standard_errors", "sum_intervals"]


def standard_errors(fit: Fit, population: Population = "finite") -> Floats:
    """Standard error of every cell; about the population it has the multinomial part `x (1 - x / n)` on top."""
    variance = fit.variance
    if population == "super":
        x, total = np.maximum(fit.values, 0.0), _totals(fit)
        share = np.divide(x, total, out=np.zeros_like(x), where=total > 0)
        variance = variance + x * np.clip(1.0 - share, 0.0, 1.0)
    return np.sqrt(variance)


def intervals(fit: Fit, level: float = 0.95, population: Population = "finite") -> tuple[Floats, Floats]:
    """Lower and upper limits of every cell.

    Likelihood estimators have profile-likelihood limits, which hold at the boundary too. The others have normal ones
    around the estimate, cut to what is possible: no cell holds fewer than no record or more than all of its group.
    Where a standard error is missing the limits are these bounds themselves.
    """
    if fit.limits is not None:
        return fit.limits.cells(level, population)
    half = normal_quantile(level) * standard_errors(fit, population)
    known = np.isfinite(half)
    total = np.broadcast_to(_totals(fit), fit.values.shape)
    low = np.where(known, np.clip(fit.values - half, 0.0, total), 0.0)
    high = np.where(known, np.clip(fit.values + half, 0.0, total), total)
    return low, high


def sum_intervals(
    fit: Fit, contrasts: Floats, level: float = 0.95, population: Population = "finite", blocks: Ints | None = None
) -> tuple[Floats, Floats, Floats, Floats]:
    """Value, standard error and limits of `sum(contrast * values)` for each contrast (k, cells, F_1, .., F_q).

    blocks  the block of each cell: how many people a block has is known, and about a population it is random into which
            of its cells they fall; None when every cell is a block by itself
    """
    values = np.tensordot(contrasts, fit.values, axes=fit.values.ndim)
    if fit.spread is None:
        missing = np.full(len(contrasts), np.nan)
        return values, missing, missing, missing
    between = np.zeros(len(contrasts))
    if population == "super" and blocks is not None:
        between = _between(fit, contrasts, blocks)
    errors = np.sqrt(fit.spread(contrasts, population) + between)
    quantile = normal_quantile(level)
    if fit.limits is not None:
        low, high = fit.limits(contrasts, level, population)
        low, high = (
            values - np.hypot(np.maximum(values - low, 0.0), quantile * np.sqrt(between)),
            values + np.hypot(np.maximum(high - values, 0.0), quantile * np.sqrt(between)),
        )
    else:
        low, high = values - quantile * errors, values + quantile * errors
    floor, roof = _possible(fit, contrasts)
    return values, errors, np.clip(low, floor, roof), np.clip(high, floor, roof)


def _between(fit: Fit, contrasts: Floats, blocks: Ints) -> Floats:
    """The variance that comes from how many people of each block fall into each of its cells.

        sum_c n_c m_c^2 - sum_b (sum_c n_c m_c)^2 / n_b,    m_c = k . x_c / n_c

    where
        c, b      a cell, and a block of cells; n_c, n_b their records
        k . x_c   what the cell adds to the sum
    """
    names, block = np.unique(blocks, return_inverse=True)
    if len(names) == len(blocks):
        return np.zeros(len(contrasts))
    added = (contrasts * fit.values).reshape(len(contrasts), len(fit.values), -1).sum(axis=2)
    totals = _totals(fit).ravel()
    sums, whole = np.zeros((len(names), len(contrasts))), np.zeros(len(names))
    np.add.at(sums, block, added.T)
    np.add.at(whole, block, totals)
    squares = _ratio(added**2, totals).sum(axis=1) - _ratio(sums.T**2, whole).sum(axis=1)
    return np.asarray(np.maximum(squares, 0.0), dtype=np.float64)


def _ratio(numerator: Floats, records: Floats) -> Floats:
    return np.asarray(np.divide(numerator, records, out=np.zeros_like(numerator), where=records > 0))


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


def _possible(fit: Fit, contrasts: Floats) -> tuple[Floats, Floats]:
    """The least and the largest value a sum can have, whatever the table: all records in one place of each cell."""
    flat = contrasts.reshape(len(contrasts), len(fit.values), -1)
    totals = _totals(fit).ravel()
    return flat.min(axis=2) @ totals, flat.max(axis=2) @ totals
