"""Intervals for every cell and every sum of cells of an estimated table.

They include the error of a maximum-likelihood table that comes from the constraint that no cell may be negative.

Where cells are zero in truth, the constraint x >= 0 turns the noise of these cells into a bias: each of them can only
be estimated too high, and everything else too low. A single cell hardly notices. A sum that collects many such biases
does: a value that everybody has, the mean of a steep distribution, the upper tail. There the profile likelihood of the
sum is not chi-square with one degree of freedom, but a mixture with many.

So the error of a sum is drawn in the limit experiment: near the maximum the log-likelihood is quadratic with
information H, and the score at the true table is normal,

    y  minimizes  1/2 (y - x0)' H (y - x0) - (m + z)' (y - x0)    over the tables y >= 0,      z ~ N(0, V)

where
    x0  a true table near the estimate that is hard to estimate. Two are tried: cells within two standard errors of zero
        are zero, or have one standard error
    m   the mean score of cells at zero: as observed, but not further from zero than two standard deviations allow
    V   H - r H diag(x0) H for the people in the table, whose values are fixed and only the sets are drawn (r is the
        design effect of repeated draws); H less the part along x0 for a population, since the total is known
    y   the estimate; `y - x0` its error, for all sums of cells at once

The limits of a sum are widened to what the larger of these errors require.

Limits of sums of cells come from the profile likelihood on the non-negative tables. Near the maximum `x` twice the
log-likelihood that a table `x + e` loses is

    e' H e - 2 s' e,      e_j >= -x_j,   sum(e) = 0

where
    s  the score: 0 where x is positive, at most 0 where it is zero
    H  the information, `sum_i c_i a_i a_i' / f_i^2`

and the profile of a sum `k . x` is the least loss among the tables with that sum. The limits are where the profile
reaches the chi-square quantile with one degree of freedom. Cells at zero stay in the problem as one-sided constraints,
which is what normal intervals on the support miss.

The minimizer moves along straight lines as the sum moves, and changes direction only when a cell reaches zero or
leaves it. So the path is followed exactly from corner to corner: with the multiplier `m` of the sum as parameter, the
sum grows by `a dm` and the loss by `a d(m^2)` on each piece.

A corner changes the inverse by one rank, which costs no matrix. Where H is nearly singular these updates lose digits;
that shows in equations that the direction must satisfy, and from then on each piece solves them afresh.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from polyseme.inference.base import Fit, Population
from polyseme.inference.solver import nonnegative_minima
from polyseme.kernel.arrays import Bools, Floats, Ints
from polyseme.kernel.randomness import experiment

__all__ = [
    "Errors",
    "Paths",
    "Quadratic",
    "boundary_errors",
    "holding",
    "intervals",
    "normal_quantile",
    "on_support",
    "possible_sums",
    "presented",
    "project",
    "standard_errors",
    "sum_intervals",
    "widened",
]

_CORNERS = 200
"""More turns than a path has ever needed: only ends a loop that rounding keeps alive."""
_RIDGE = 1e-10
"""Ridge, as a share of the largest information, that keeps the matrix invertible: it changes no shown digit."""
_AT_ONCE = 100_000
"""Numbers of a kind that are followed at a time: some dozens of arrays of 1 MB."""
_NO_GAIN = 1e-14
"""Relative gain of a sum below which it does not respond, but for rounding."""
_DIGITS = 1e-7
"""Relative error of the equations of a direction from which updates of the inverse are no longer trusted: limits are
read to three digits, and a piece adds at most this share of its own length."""


@dataclass(frozen=True, eq=False)
class Quadratic:
    """The loss around a fitted table of one cell of the untouched attributes.

    x            the fitted table in records, flattened over the cells that can hold any
    information  H, score s: of the log-likelihood in records
    """

    x: Floats
    information: Floats
    score: Floats

    def path(self) -> Paths:
        """The problem with what all sums share."""
        return Paths.of([self])


@dataclass(frozen=True, eq=False)
class Paths:
    """The ways of constrained minimizers of several tables as sums of cells are pushed up.

    All tables have the same number of cells k: (g, k) or (g, k, k) each.

    inverse  K: of the matrix M on the cells that are free at first, zero elsewhere
    across   K M; twice is M K M
    sums     the column sums of K and of K M
    """

    x: Floats
    score: Floats
    matrix: Floats
    inverse: Floats
    across: Floats
    twice: Floats
    sums: tuple[Floats, Floats]
    free: Bools
    ridge: Floats

    @classmethod
    def of(cls, quadratics: Sequence[Quadratic]) -> Paths:
        """Of tables with the same number of cells."""
        x, score, matrix = (
            np.array([getattr(each, name) for each in quadratics]) for name in ("x", "score", "information")
        )
        places, free = np.arange(x.shape[1]), x > 0.0
        ridge = _RIDGE * np.maximum(matrix.diagonal(axis1=1, axis2=2).max(axis=1, initial=0.0), 1e-200)
        matrix[:, places, places] += ridge[:, None]
        inverse = on_support(matrix, free)
        across = inverse @ matrix
        sums = inverse.sum(axis=1), across.sum(axis=1)
        return cls(x, np.minimum(score, 0.0), matrix, inverse, across, matrix @ across, sums, free, ridge)

    @property
    def bounded(self) -> Bools:
        """Whether some cell of each table lies on the boundary."""
        return np.asarray(~self.free.all(axis=1), dtype=np.bool_)

    def reach(self, contrast: Floats, loss: float) -> tuple[float, Floats]:
        """How far `contrast . x` can rise in the first table at this loss, and the table there."""
        risen, there = self.reaches(np.zeros(1, dtype=np.int64), contrast[None], np.array([loss]))
        return float(risen[0]), there[0]

    def reaches(self, own: Ints, contrasts: Floats, loss: Floats) -> tuple[Floats, Floats]:
        """The same of many sums: `own` is the table of each, (t,), contrasts are (t, k), loss (t,)."""
        risen, there = np.zeros(len(own)), np.zeros(contrasts.shape)
        step = max(1, _AT_ONCE // max(contrasts.shape[1], 1))
        for start in range(0, len(own), step):
            part = slice(start, start + step)
            states = _States(self, own[part], contrasts[part], loss[part])
            risen[part], there[part] = states.followed()
        return risen, there


def on_support(matrix: Floats, free: Bools) -> Floats:
    """The inverses of stacked matrices on the cells that are free, zero elsewhere."""
    places, both = np.arange(free.shape[1]), free[:, :, None] & free[:, None, :]
    masked = np.where(both, matrix, 0.0)
    masked[:, places, places] = np.where(free, matrix.diagonal(axis1=1, axis2=2), 1.0)
    return np.where(both, np.linalg.inv(masked), 0.0)


class _States:
    """Where paths are: the free cells and the tables so far, one row for each path.

    The inverse on the free cells is `K + sum_i s_i v_i v_i'`, with one term for each cell that has reached zero or left
    it, so a corner costs no matrix. Kept up to date are its products with the contrast (`pull`) and with ones (`ones`),
    and M times these (`pulled`, `summed`). Paths that have ended are taken out.
    """

    def __init__(self, paths: Paths, own: Ints, contrasts: Floats, loss: Floats) -> None:
        self.paths = paths
        self.risen, self.there = np.zeros(len(own)), np.empty(contrasts.shape)
        self.row = np.arange(len(own))
        self.own, self.contrast, self.loss = own, contrasts, loss
        self.x, self.free, self.pressure = paths.x[own], paths.free[own], -paths.score[own]
        self.change = np.zeros(contrasts.shape)
        self.multiplier, self.lost, self.sum = np.zeros(len(own)), np.zeros(len(own)), np.zeros(len(own))
        self.exact = np.zeros(len(own), dtype=np.bool_)
        self.terms: list[tuple[Floats, Floats, Floats]] = []
        self.pull, self.pulled = self._times(paths.inverse), self._times(paths.across)
        self.ones, self.summed = paths.sums[0][own], paths.sums[1][own]

    def _times(self, matrices: Floats) -> Floats:
        """The contrasts times the matrices of their tables; most contrasts are single cells."""
        out, used = np.empty(self.contrast.shape), self.contrast != 0.0
        single = used.sum(axis=1) == 1
        place = used[single].argmax(axis=1)
        out[single] = self.contrast[single, place][:, None] * matrices[self.own[single], place]
        for table in np.unique(self.own[~single]):
            rows = np.flatnonzero(~single & (self.own == table))
            out[rows] = self.contrast[rows] @ matrices[table]
        return out

    def followed(self) -> tuple[Floats, Floats]:
        """How far each sum can rise within its loss, and the tables there."""
        for _ in range(_CORNERS):
            if not len(self.row):
                break
            self._advance()
        self._end(np.ones(len(self.row), dtype=np.bool_))
        return self.risen, self.there

    def _end(self, done: Bools) -> None:
        """Take out the paths that have ended."""
        rows = self.row[done]
        self.risen[rows], self.there[rows] = self.sum[done], np.maximum(self.x[done] + self.change[done], 0.0)
        left = ~done
        for name in _PER_PATH:
            setattr(self, name, getattr(self, name)[left])
        self.terms = [(sign[left], vector[left], product[left]) for sign, vector, product in self.terms]

    def _direction(self) -> tuple[Floats, Floats]:
        """Change of the tables per unit of the multiplier at a fixed total, and of the bound cells."""
        direction, rest = self._moves(slice(None))
        size = np.abs(direction).sum(axis=1)
        off = np.maximum(
            np.where(self.free, np.abs(rest), 0.0).max(axis=1, initial=0.0),
            np.abs(direction.sum(axis=1)) / np.maximum(size, 1e-300),
        )
        fine = off <= _DIGITS * np.maximum(1.0, np.abs(self.contrast).max(axis=1, initial=0.0))
        again = np.flatnonzero(~self.exact & ~fine)
        if again.size:
            self.exact[again] = True
            self._solve(again)
            direction[again], rest[again] = self._moves(again)
        return direction, np.where(self.free, 0.0, rest)

    def _moves(self, rows: Ints | slice) -> tuple[Floats, Floats]:
        total = self.ones[rows].sum(axis=1)
        level = np.divide(-self.pull[rows].sum(axis=1), total, out=np.zeros_like(total), where=total > 0.0)[:, None]
        direction = np.where(self.free[rows], self.pull[rows] + level * self.ones[rows], 0.0)
        return direction, self.pulled[rows] + level * self.summed[rows] - self.contrast[rows] - level

    def _solve(self, rows: Ints) -> None:
        """The products with the inverse on the free cells, from the matrix itself."""
        width = self.contrast.shape[1]
        step, places = max(1, _AT_ONCE // width**2), np.arange(width)
        for start in range(0, len(rows), step):
            some = rows[start : start + step]
            matrix, free = self.paths.matrix[self.own[some]], self.free[some]
            masked = np.where(free[:, :, None] & free[:, None, :], matrix, 0.0)
            masked[:, places, places] = np.where(free, matrix.diagonal(axis1=1, axis2=2), 1.0)
            sides = np.stack([np.where(free, self.contrast[some], 0.0), free.astype(np.float64)], axis=2)
            solved = np.linalg.solve(masked, sides)
            times = matrix @ solved
            self.pull[some], self.ones[some] = solved[..., 0], solved[..., 1]
            self.pulled[some], self.summed[some] = times[..., 0], times[..., 1]

    def _advance(self) -> None:
        """Follow one piece of each path."""
        direction, push = self._direction()
        gain = (self.contrast * direction).sum(axis=1)
        limit, corner, leaves = self._corner(direction, push)
        scale = np.maximum(np.abs(self.contrast).max(axis=1, initial=0.0), 1e-300)
        stuck = gain <= _NO_GAIN * scale * np.maximum(np.abs(self.pull).max(axis=1, initial=0.0), 1e-300)
        left = np.maximum(self.loss - self.lost, 0.0)
        rest = np.divide(left, gain, out=np.zeros_like(gain), where=~stuck)
        needed = np.sqrt(self.multiplier**2 + rest) - self.multiplier
        last = ~stuck & (needed <= limit)
        self.sum += np.where(last, gain * needed, 0.0)
        self.change += np.where(last, needed, 0.0)[:, None] * direction
        # Where a sum does not respond, only a cell entering can help.
        done = last | (corner < 0) | (stuck & ~leaves)
        on = ~done
        if on.any():
            ahead = np.where(on, limit, 0.0)
            self.change += ahead[:, None] * direction
            self.pressure += ahead[:, None] * push
            self.lost += gain * ahead * (2.0 * self.multiplier + ahead)
            self.sum += gain * ahead
            self.multiplier += ahead
        self._end(done)
        if len(self.row):
            self._turn(corner[on], leaves[on])

    def _corner(self, direction: Floats, push: Floats) -> tuple[Floats, Ints, Bools]:
        """Where a free cell reaches zero or a bound one leaves it first; -1 without one."""
        rows = np.arange(len(self.row))
        best, falling = _nearest(self.x + self.change, direction, self.free & (direction < 0.0), rows)
        room, easing = _nearest(self.pressure, push, ~self.free & (push < 0.0), rows)
        corner = np.where(np.isfinite(best), falling, -1)
        best = np.maximum(best, 0.0)
        leaves = room < best
        return np.where(leaves, np.maximum(room, 0.0), best), np.where(leaves, easing, corner), leaves

    def _turn(self, cell: Ints, leaves: Bools) -> None:
        """Take cells out of the inverse or into it.

        A cell that is bound changes it by `- K e (K e)' / (e' K e)`; one that is released by `+ v v' / (m - e' M K M
        e)` with `v = K M e - e` and m the cell's own entry of M.
        """
        rows, paths = np.arange(len(cell)), self.paths
        self.free[rows, cell] = leaves
        self.change[rows, cell] = np.where(leaves, self.change[rows, cell], -self.x[rows, cell])
        self.pressure[rows, cell] = 0.0
        exact = np.flatnonzero(self.exact)
        if exact.size:
            self._solve(exact)
        freed = leaves[:, None]
        column = np.where(freed, paths.across[self.own, :, cell], paths.inverse[self.own, :, cell])
        times = np.where(freed, paths.twice[self.own, :, cell], paths.across[self.own, cell])
        for sign, vector, product in self.terms:
            factor = (sign * np.where(leaves, product[rows, cell], vector[rows, cell]))[:, None]
            column += factor * vector
            times += factor * product
        rest = np.maximum(paths.matrix[self.own, cell, cell] - times[rows, cell], paths.ridge[self.own])
        sign = np.where(leaves, 1.0 / rest, -1.0 / np.maximum(column[rows, cell], 1e-300))
        column[rows, cell] -= leaves
        times -= np.where(freed, paths.matrix[self.own, :, cell], 0.0)
        sign[self.exact] = 0.0
        self.terms.append((sign, column, times))
        contrast, ones = sign * (column * self.contrast).sum(axis=1), sign * column.sum(axis=1)
        self.pull += contrast[:, None] * column
        self.pulled += contrast[:, None] * times
        self.ones += ones[:, None] * column
        self.summed += ones[:, None] * times


_PER_PATH = (
    *("row", "own", "contrast", "loss", "x", "free", "pressure", "change", "multiplier", "lost", "sum", "exact"),
    *("pull", "pulled", "ones", "summed"),
)
"""What each path has for itself."""


def _nearest(room: Floats, speed: Floats, where: Bools, rows: Ints) -> tuple[Floats, Ints]:
    """When the first of some entries has used up its room, and which; infinite without one."""
    time = np.divide(room, -speed, out=np.full(room.shape, np.inf), where=where)
    place = time.argmin(axis=1) if time.shape[1] else np.zeros(len(rows), dtype=np.int64)
    return (time[rows, place] if time.shape[1] else np.full(len(rows), np.inf)), place


_ROOM = 0.05
"""How far beyond a value that lies outside an interval the interval is widened, as a share of its length. A judgment:
enough to be seen, and too little to change how often the interval holds the truth."""
_HOLDING = 0.95
"""The level from which on intervals hold the estimate whatever it is: there next to none has to be widened for it."""


def standard_errors(fit: Fit, population: Population = "finite") -> Floats:
    """Standard error of every cell.

    About the population it has the multinomial part `x (1 - x / n)` on top.
    """
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
    """Value, standard error and limits of `sum(contrast * values)` for each contrast.

    Contrasts are (k, cells, F_1, ..., F_q).
    """
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


def holding(values: Floats, low: Floats, high: Floats, clear: Bools, level: float) -> tuple[Floats, Floats]:
    """Limits widened to hold these values, except in clear cells at levels below 95%.

    clear  cells well away from zero, whose limits are those of an unbiased estimate and hold the truth as often as the
           level says; a value with a penalty, often nearer to the truth, is outside a quarter of them at 50%, and to
           widen these to hold it makes 59% of 50%

    Limits and not values give way to the level: the same estimate is shown at every one.
    """
    left, right = widened(values, low, high)
    free = clear & (level < _HOLDING)
    return np.where(free, low, left), np.where(free, high, right)


def project(values: Floats, totals: Floats) -> Floats:
    """The nearest non-negative table (Euclidean) with the same total in each cell.

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
    from scipy import special

    return float(special.ndtri(0.5 + level / 2.0))


def _totals(fit: Fit) -> Floats:
    totals = fit.values.reshape(len(fit.values), -1).sum(axis=1) if fit.totals is None else fit.totals
    return np.asarray(totals, dtype=np.float64).reshape(-1, *[1] * (fit.values.ndim - 1))


def possible_sums(fit: Fit, contrasts: Floats, population: Population) -> tuple[Floats, Floats] | None:
    """The least and the largest possible value of a sum: all records in one place of each cell.

    None about a population in which weights are drawn: what its people weigh together is estimated too.
    """
    if fit.given is not None and population == "super":
        return None
    flat = contrasts.reshape(len(contrasts), len(fit.values), -1)
    totals = _totals(fit).ravel()
    return flat.min(axis=2) @ totals, flat.max(axis=2) @ totals


_DRAWS, _FEWEST = 200, 40
"""The standard deviation of an error is known to 5% from 200 draws, to 11% from 40."""
_WORK = 4e8
"""Operations for one round of linear systems, about a fifth of a second."""
_NEAR = 2.0
"""Standard errors from zero within which a cell may be zero in truth; simulated with 1 and 2, 2 covers better."""
_SLACK = 0.4
"""What is added to the quantile where the bias is as large as the error, less where it is smaller. The true table is
not known, and draws at one near it are a little too narrow: without this the means of a steep distribution on 14 ranks
at (3, 4) were covered in 90% to 93% (300 records, 200 releases, three seeds), with it in 93% to 96%."""
_SEED = 20_261_116
"""Any number: the same question has the same interval each time it is asked."""


@dataclass(frozen=True, eq=False)
class Errors:
    """Drawn errors of several tables for each true table: (tables, draws, places) each.

    known  the tables that have them: no cell of the others is near zero
    """

    draws: tuple[Floats, ...]
    known: Ints

    def reaches(self, contrasts: Floats | None, level: float) -> tuple[Floats, Floats]:
        """How far the truth of each sum may lie below and above its estimate: (tables, k).

        contrasts  (k, places), the same for all tables; None for every place by itself

        Normal quantiles on either side of the mean, each with the spread of its own side: errors are lopsided.
        """
        sides = [_reaches(draws if contrasts is None else draws @ contrasts.T, level) for draws in self.draws]
        return np.max([below for below, _ in sides], axis=0), np.max([above for _, above in sides], axis=0)


def _reaches(errors: Floats, level: float) -> tuple[Floats, Floats]:
    mean, spread = errors.mean(axis=1), np.maximum(errors.std(axis=1), 1e-300)
    quantile = normal_quantile(level) * (1.0 + _SLACK * np.minimum(np.abs(mean) / spread, 1.0))
    beyond = errors - mean[:, None]
    high, low = (np.sqrt(2.0 * np.mean(np.maximum(sign * beyond, 0.0) ** 2, axis=1)) for sign in (1, -1))
    return np.maximum(mean + quantile * high, 0.0), np.maximum(quantile * low - mean, 0.0)


def boundary_errors(quadratics: Sequence[Quadratic], population: Population, repeats: Floats) -> Errors | None:
    """Errors of fitted tables of the same number of places; None when none has any.

    repeats  of each table
    """
    size = len(quadratics[0].x)
    draws = int(min(_DRAWS, _WORK / max(size, 1) ** 3))
    if draws < _FEWEST:
        return None
    x, scores, matrix = (
        np.array([getattr(each, name) for each in quadratics]) for name in ("x", "score", "information")
    )
    places, support = np.arange(size), x > 0.0
    ridge = _RIDGE * matrix.diagonal(axis1=1, axis2=2).max(axis=1, initial=0.0)
    matrix[:, places, places] += ridge[:, None]
    able = np.flatnonzero(ridge > 0.0)
    variance = np.zeros(x.shape)
    variance[able] = on_support(matrix[able], support[able]).diagonal(axis1=1, axis2=2)
    drawn = repeats[:, None] * x if population == "finite" else 0.0
    # Where H is nearly singular, a cell could have anything up to the total.
    error = np.minimum(np.sqrt(np.maximum(np.nan_to_num(variance) - drawn, 0.0)), x.sum(axis=1, keepdims=True))
    low = x < _NEAR * error
    none = low.all(axis=1) | ~(ridge > 0.0) | (support.all(axis=1) & ~low.any(axis=1))
    known = np.flatnonzero(~none)
    if not known.size:
        return None
    x, matrix, error, low, support = x[known], matrix[known], error[known], low[known], support[known]
    near = np.minimum(scores[known] + _NEAR * np.sqrt(matrix.diagonal(axis1=1, axis2=2)), 0.0)
    score, normal = np.where(support, 0.0, near), experiment(_SEED).standard_normal((draws, size))
    found = []
    for truth in (np.where(low, 0.0, x), np.where(low, error, x)):
        noise = normal @ _root(_noise(matrix, truth, population, repeats[known])).transpose(0, 2, 1)
        center = np.matmul(matrix, truth[..., None])[..., 0] + score
        found.append(nonnegative_minima(matrix, center[:, None] + noise, support) - truth[:, None])
    return Errors(tuple(found), known)


def _noise(matrix: Floats, truth: Floats, population: Population, repeats: Floats) -> Floats:
    """The covariances of the scores at true tables."""
    if population == "finite":
        return matrix - repeats[:, None, None] * (matrix * truth[:, None]) @ matrix
    along = np.matmul(matrix, truth[..., None])[..., 0]
    length = np.maximum((truth * along).sum(axis=1), 1e-300)
    return np.asarray(matrix - along[:, :, None] * along[:, None, :] / length[:, None, None], dtype=np.float64)


def _root(covariance: Floats) -> Floats:
    values, vectors = np.linalg.eigh((covariance + covariance.transpose(0, 2, 1)) / 2.0)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0))[:, None], dtype=np.float64)
