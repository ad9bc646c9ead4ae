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

from dataclasses import dataclass

import numpy as np

from polyseme.inference.base import Fit, Population
from polyseme.inference.solver import nonnegative_minima
from polyseme.kernel.arrays import Bools, Floats
from polyseme.kernel.randomness import experiment

__all__ = [
    "Errors",
    "Path",
    "Quadratic",
    "boundary_errors",
    "holding",
    "intervals",
    "normal_quantile",
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

    def path(self) -> Path:
        """The problem with what all sums share."""
        ridge = _RIDGE * max(float(self.information.diagonal().max(initial=0.0)), 1e-200)
        matrix = self.information + ridge * np.eye(len(self.x))
        free = self.x > 0.0
        inverse = np.zeros_like(matrix)
        inverse[np.ix_(free, free)] = np.linalg.inv(matrix[np.ix_(free, free)])
        across = inverse @ matrix
        sums = inverse.sum(axis=0), across.sum(axis=0)
        return Path(self.x, np.minimum(self.score, 0.0), matrix, inverse, across, matrix @ across, sums, free, ridge)


@dataclass(frozen=True, eq=False)
class Path:
    """The way of the constrained minimizer as one sum of cells is pushed up or down.

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
    ridge: float

    @property
    def bounded(self) -> bool:
        """Whether some cell lies on the boundary."""
        return not bool(self.free.all())

    def reach(self, contrast: Floats, loss: float) -> tuple[float, Floats]:
        """How far `contrast . x` can rise before the profile loses `loss`, and the table there."""
        state = _State(self, contrast)
        for _ in range(_CORNERS):
            done = state.advance(loss)
            if done:
                break
        return state.risen, np.maximum(self.x + state.change, 0.0)


class _State:
    """Where the path is: the free cells and the table so far.

    The inverse on the free cells is `K + sum_i s_i v_i v_i'`, with one term for each cell that has reached zero or left
    it, so a corner costs no matrix. Kept up to date are its products with the contrast (`pull`) and with ones (`ones`),
    and M times these (`pulled`, `summed`).
    """

    def __init__(self, path: Path, contrast: Floats) -> None:
        self.path = path
        self.contrast = contrast
        self.free = path.free.copy()
        self.change = np.zeros(len(path.x))
        self.pressure = -path.score.copy()
        self.multiplier = self.lost = self.risen = 0.0
        places = np.flatnonzero(contrast)
        self.terms: list[tuple[float, Floats, Floats]] = []
        self.pull, self.pulled = contrast[places] @ path.inverse[places], contrast[places] @ path.across[places]
        self.ones, self.summed = path.sums
        self.exact = False

    def _direction(self) -> tuple[Floats, Floats]:
        """Change of the table per unit of the multiplier at a fixed total, and of the bound cells."""
        total = float(self.ones.sum())
        level = -float(self.pull.sum()) / total if total > 0.0 else 0.0
        direction = np.where(self.free, self.pull + level * self.ones, 0.0)
        rest = self.pulled + level * self.summed - self.contrast - level
        size = float(np.abs(direction).sum())
        off = max(float(np.abs(rest[self.free]).max(initial=0.0)), abs(float(direction.sum())) / max(size, 1e-300))
        if not self.exact and not off <= _DIGITS * max(1.0, float(np.abs(self.contrast).max())):
            self.exact = True
            self._solve()
            return self._direction()
        return direction, np.where(self.free, 0.0, rest)

    def _solve(self) -> None:
        """The products with the inverse on the free cells, from the matrix itself."""
        free, matrix = np.flatnonzero(self.free), self.path.matrix
        self.pull, self.ones = np.zeros(len(matrix)), np.zeros(len(matrix))
        if free.size:
            sides = np.column_stack([self.contrast[free], np.ones(free.size)])
            solved = np.linalg.solve(matrix[np.ix_(free, free)], sides)
            self.pull[free], self.ones[free] = solved.T
        self.pulled, self.summed = matrix @ self.pull, matrix @ self.ones

    def advance(self, loss: float) -> bool:
        """Follow one piece; true when the loss is used up or the sum cannot rise further."""
        direction, push = self._direction()
        gain = float(self.contrast @ direction)
        limit, corner, leaves = self._corner(direction, push)
        scale = max(float(np.abs(self.contrast).max()), 1e-300)
        if gain <= _NO_GAIN * scale * max(float(np.abs(self.pull).max(initial=0.0)), 1e-300):
            # The sum does not respond: only a cell entering can help.
            if corner < 0 or not leaves:
                return True
        else:
            needed = np.sqrt(self.multiplier**2 + max(loss - self.lost, 0.0) / gain) - self.multiplier
            if needed <= limit:
                self.risen += gain * needed
                self.change += needed * direction
                return True
        if corner < 0:
            return True
        self.change += limit * direction
        self.pressure += limit * push
        self.lost += gain * limit * (2.0 * self.multiplier + limit)
        self.risen += gain * limit
        self.multiplier += limit
        if leaves:
            self._release(corner)
        else:
            self._bind(corner)
        return False

    def _corner(self, direction: Floats, push: Floats) -> tuple[float, int, bool]:
        """The nearest place where a free cell reaches zero or a bound one leaves it."""
        best, corner, leaves = np.inf, -1, False
        falling = np.flatnonzero(self.free & (direction < 0.0))
        if falling.size:
            room = (self.path.x[falling] + self.change[falling]) / -direction[falling]
            place = int(room.argmin())
            best, corner = max(float(room[place]), 0.0), int(falling[place])
        easing = np.flatnonzero(~self.free & (push < 0.0))
        if easing.size:
            room = self.pressure[easing] / -push[easing]
            place = int(room.argmin())
            if room[place] < best:
                best, corner, leaves = max(float(room[place]), 0.0), int(easing[place]), True
        return best, corner, leaves

    def _bind(self, cell: int) -> None:
        """Take a cell out of the inverse: `- K e (K e)' / (e' K e)`."""
        self.free[cell] = False
        self.change[cell] = -self.path.x[cell]
        self.pressure[cell] = 0.0
        if self.exact:
            return self._solve()
        column, times = self.path.inverse[:, cell].copy(), self.path.across[cell].copy()
        for sign, vector, product in self.terms:
            column += sign * vector[cell] * vector
            times += sign * vector[cell] * product
        return self._add(-1.0 / max(float(column[cell]), 1e-300), column, times)

    def _release(self, cell: int) -> None:
        """Update the inverse for a released cell: `+ v v' / (m - e' M K M e)` with `v = K M e - e`.

        `m` is the cell's own entry of M.
        """
        self.free[cell] = True
        self.pressure[cell] = 0.0
        if self.exact:
            return self._solve()
        column, times = self.path.across[:, cell].copy(), self.path.twice[:, cell].copy()
        for sign, vector, product in self.terms:
            column += sign * product[cell] * vector
            times += sign * product[cell] * product
        rest = max(float(self.path.matrix[cell, cell] - times[cell]), self.path.ridge)
        column[cell] -= 1.0
        return self._add(1.0 / rest, column, times - self.path.matrix[:, cell])

    def _add(self, sign: float, vector: Floats, product: Floats) -> None:
        """A further term of the inverse; `product` is M times its vector."""
        self.terms.append((sign, vector, product))
        contrast, ones = sign * float(vector @ self.contrast), sign * float(vector.sum())
        self.pull = self.pull + contrast * vector
        self.pulled = self.pulled + contrast * product
        self.ones = self.ones + ones * vector
        self.summed = self.summed + ones * product


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
    """Drawn errors of one group's table, one true table after the other: (draws, places) each."""

    draws: tuple[Floats, ...]

    def reaches(self, contrasts: Floats, level: float) -> tuple[Floats, Floats]:
        """How far the truth of each sum may lie below and above its estimate.

        Normal quantiles on either side of the mean, each with the spread of its own side: errors are lopsided.
        """
        sides = [_reaches(draws @ contrasts.T, level) for draws in self.draws]
        return np.max([below for below, _ in sides], axis=0), np.max([above for _, above in sides], axis=0)


def _reaches(errors: Floats, level: float) -> tuple[Floats, Floats]:
    mean, spread = errors.mean(axis=0), np.maximum(errors.std(axis=0), 1e-300)
    quantile = normal_quantile(level) * (1.0 + _SLACK * np.minimum(np.abs(mean) / spread, 1.0))
    high, low = (np.sqrt(2.0 * np.mean(np.maximum(sign * (errors - mean), 0.0) ** 2, axis=0)) for sign in (1, -1))
    return np.maximum(mean + quantile * high, 0.0), np.maximum(quantile * low - mean, 0.0)


def boundary_errors(quadratic: Quadratic, population: Population, repeats: float) -> Errors | None:
    """Errors of a fitted table; None when no cell is near zero or the table is too large."""
    x, size = quadratic.x, len(quadratic.x)
    draws = int(min(_DRAWS, _WORK / max(size, 1) ** 3))
    if draws < _FEWEST:
        return None
    ridge = _RIDGE * float(quadratic.information.diagonal().max(initial=0.0))
    matrix = quadratic.information + ridge * np.eye(size)
    support = x > 0.0
    variance = np.zeros(size)
    variance[support] = np.linalg.inv(matrix[np.ix_(support, support)]).diagonal()
    drawn = repeats * x if population == "finite" else 0.0
    # Where H is nearly singular, a cell could have anything up to the total.
    error = np.minimum(np.sqrt(np.maximum(np.nan_to_num(variance) - drawn, 0.0)), x.sum())
    low = x < _NEAR * error
    if low.all() or not ridge > 0.0 or (support.all() and not low.any()):
        return None
    score = np.where(support, 0.0, np.minimum(quadratic.score + _NEAR * np.sqrt(matrix.diagonal()), 0.0))
    normal = experiment(_SEED).standard_normal((draws, size))
    found = []
    for truth in (np.where(low, 0.0, x), np.where(low, error, x)):
        noise = normal @ _root(_noise(matrix, truth, population, repeats)).T
        found.append(nonnegative_minima(matrix, matrix @ truth + score + noise, support) - truth)
    return Errors(tuple(found))


def _noise(matrix: Floats, truth: Floats, population: Population, repeats: float) -> Floats:
    """The covariance of the score at the true table."""
    if population == "finite":
        return matrix - repeats * (matrix * truth) @ matrix
    along = matrix @ truth
    return matrix - np.outer(along, along) / max(float(truth @ along), 1e-300)


def _root(covariance: Floats) -> Floats:
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2.0)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)), dtype=np.float64)
