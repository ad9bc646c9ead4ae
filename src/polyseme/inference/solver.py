"""Maximizing a concave likelihood over the simplex, with a certificate.

For proportions x that add up to one let `G_j = sum_i (c_i / n) A_ij / f_i`. Then `x . G = 1`, and for every other
table y, by concavity,

    (log L(y) - log L(x)) / n  <=  sum_j (y_j - x_j) G_j  <=  max_j G_j - 1

so `max_j G_j - 1` bounds the log-likelihood per record that is still missing: the duality gap. Nothing else stops the
search.

A step is sequential quadratic programming: the second-order model, minimized over the non-negative tables by block
pivoting, then a line search. Tables with too many cells for a matrix use expectation-maximization, extrapolated
(SQUAREM, Varadhan and Roland 2008).

Fixed points are where the steps of expectation maximization come to rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from polyseme.inference.likelihood import Likelihood
from polyseme.kernel.arrays import Bools, Floats
from polyseme.kernel.work import check_cancelled

__all__ = [
    "GAP",
    "MATRIX_CELLS",
    "STILL",
    "Solution",
    "expectation_maximization",
    "fixed_point",
    "maximize",
    "nonnegative_minima",
    "nonnegative_minimum",
    "shared_out",
    "tolerance_for",
]

_STEPS = 3_000
STILL, _SHARE = 1e-3, 1e-7
"""Records, and share of all records, by which no cell moves any more in a step: then it has converged."""


def fixed_point(step: Callable[[Floats], Floats], start: Floats, still: float = STILL) -> tuple[Floats, bool]:
    """The table that a step leaves as it is, and whether it was reached.

    Leaps ahead are those of SQUAREM (Varadhan and Roland, 2008). A leap is taken back when the step after it is longer
    than the one before it was.

    still  records by which no cell moves any more
    """
    table, still = start, max(still, _SHARE * float(start.sum()))
    for _ in range(_STEPS // 3):
        check_cancelled()
        once = step(table)
        first = once - table
        if np.abs(first).max(initial=0.0) < still:
            return once, True
        twice = step(once)
        bend = twice - once - first
        length = max(1.0, float(np.linalg.norm(first) / max(float(np.linalg.norm(bend)), 1e-300)))
        leap = np.maximum(table + 2.0 * length * first + length**2 * bend, 0.0)
        landed = step(leap)
        table = landed if np.linalg.norm(landed - leap) <= np.linalg.norm(first) else twice
    return table, False


GAP = 1e-6
"""How far from its maximum the log-likelihood of a record may stay."""
_TOGETHER = 0.01
"""The same for all records together: nothing that depends on a difference of log-likelihoods notices that."""
_FINEST = 1e-11
"""A gap below this cannot be computed: slopes are sums with a relative error of about 1e-13."""
MATRIX_CELLS = 1_200
"""Most cells for which a matrix of all pairs is formed: 12 MB, factored in 34 milliseconds. A judgment."""
_WORK = 300_000
"""Operations for a first look at the curvature, about a millisecond: far from the maximum a sample of the reports is
enough. Chosen by judgment; it changes the time of the search, never its end."""
_NEAR = 0.005
"""Gap below which all reports are looked at."""
_SLOW = 0.3
"""A gap that a step leaves larger than this share of what it was: the sample was too small."""
_PULLED_IN = 0.001
"""Share of an even table that is mixed into a start, so that no cell begins at zero."""
_DAMPING = 1e-9
"""Ridge of the second-order model, as a share of its largest entry: it keeps the matrix invertible."""
_AT_ZERO = 1e-12
"""Proportions up to this are at the boundary."""
_ROUNDING = 1e-14
"""Relative error of a sum of logarithms."""
_SHORTEST = 1e-4
"""Lengths of a step that are tried; if none is good enough, a step of expectation-maximization is taken instead."""
_ENOUGH = 0.01
"""Share of the promised decrease that a step has to bring (Armijo's rule). A judgment."""
_SIGN = 1e-12
"""Slack, as a share of the largest right-hand side, that does not count as having the wrong sign."""
_PATIENCE = 3
"""How often all entries change sides without their number getting smaller, before only one does. A judgment."""
_PIVOTS = 50
"""Rounds of pivoting beyond three for each entry: only ends a loop that rounding keeps alive. Of 4,783 systems in
tables of 100,000 records none took more than 5."""


@dataclass(frozen=True, eq=False)
class Solution:
    """Proportions, how far from the maximum they can be at most, and the steps taken."""

    x: Floats
    gap: float
    steps: int


def tolerance_for(records: float) -> float:
    """A gap small for each record and, with many records, small for all of them together."""
    return float(max(min(GAP, _TOGETHER / max(records, 1.0)), _FINEST))


def _inside(start: Floats) -> Floats:
    """A start of which no cell is zero."""
    return (1.0 - _PULLED_IN) * start + _PULLED_IN / len(start)


def _slopes(likelihood: Likelihood, share: Floats, x: Floats) -> tuple[Floats, Floats]:
    f = likelihood.product(x)
    return f, likelihood.pull(_ratio(share, f))


def _ratio(share: Floats, f: Floats) -> Floats:
    if f.min(initial=1.0) > 0.0:
        return share / f
    return np.divide(share, f, out=np.zeros_like(f), where=share > 0.0)


def shared_out(likelihood: Likelihood, x: Floats) -> Floats:
    """Every report shared out over its values in proportion to `x` and weights; in records."""
    _, slopes = _slopes(likelihood, likelihood.counts, x)
    return x * slopes


def expectation_maximization(
    likelihood: Likelihood, tolerance: float = GAP, limit: int = 100_000, start: Floats | None = None
) -> Solution:
    """Plain expectation-maximization: slow, monotone, the reference."""
    share = likelihood.counts / likelihood.records
    x = np.full(likelihood.size, 1.0 / likelihood.size) if start is None else start
    for step in range(limit):
        check_cancelled()
        _, slopes = _slopes(likelihood, share, x)
        gap = float(slopes.max()) - 1.0
        if gap <= tolerance:
            return Solution(x, max(gap, 0.0), step)
        x = x * slopes
        x /= x.sum()
    return Solution(x, gap, limit)


def maximize(likelihood: Likelihood, tolerance: float = GAP, limit: int = 200, start: Floats | None = None) -> Solution:
    """The table of largest likelihood, to a gap of `tolerance` or the best after `limit` steps."""
    if likelihood.records <= 0.0:
        return Solution(np.full(likelihood.size, 1.0 / likelihood.size), 0.0, 0)
    if likelihood.size > MATRIX_CELLS:
        return _extrapolated(likelihood, max(tolerance, GAP), 50 * limit, start)
    share = likelihood.counts / likelihood.records
    thin, before = likelihood.thinning(_WORK), np.inf
    if start is None:
        x = np.full(likelihood.size, 1.0 / likelihood.size)
        for _ in range(4):
            x = _normalised(x * _slopes(likelihood, share, x)[1])
    else:
        x = _inside(start)
    best = Solution(x, np.inf, 0)
    for step in range(limit):
        check_cancelled()
        f, slopes = _slopes(likelihood, share, x)
        gap = max(float(slopes.max()) - 1.0, 0.0)
        if gap < best.gap:
            best = Solution(x, gap, step)
        if gap <= tolerance:
            return best
        # A sample of the reports is enough to know the curvature, as long as the steps it gives are good ones.
        if gap < _NEAR:
            thin = 1
        elif step > 1 and gap > _SLOW * before:
            thin = max(1, thin // 4)
        before = gap
        x = _newton(likelihood, share, x, f, slopes, thin)
    return best


def _newton(likelihood: Likelihood, share: Floats, x: Floats, f: Floats, slopes: Floats, thin: int) -> Floats:
    matrix = likelihood.information(_ratio(_ratio(share, f), f), thin)
    # The quadratic model around x: 1/2 (y-x)' H (y-x) + (1-G)'(y-x); the ridge only damps the step.
    ridge = _DAMPING * float(matrix.diagonal().max(initial=1.0))
    matrix[np.diag_indices_from(matrix)] += ridge
    target = nonnegative_minimum(matrix, matrix @ x + slopes - 1.0, (x > _AT_ZERO) | (slopes > 1.0))
    step = target - x
    moved = likelihood.product(step)
    here = _objective(share, f) + x.sum()
    decrease = float((1.0 - slopes) @ step)
    # A decrease below what numbers of this size can show must be taken on trust.
    rounding = _ROUNDING * max(1.0, abs(here))
    length = 1.0
    while length > _SHORTEST and decrease < 0.0:
        there = _objective(share, f + length * moved) + float((x + length * step).sum())
        if there <= here + _ENOUGH * length * decrease + rounding:
            return _normalised(np.maximum(x + length * step, 0.0))
        length *= 0.5
    return _normalised(x * slopes)


def _normalised(x: Floats) -> Floats:
    return np.asarray(x / x.sum(), dtype=np.float64)


def _objective(share: Floats, f: Floats) -> float:
    if f.min(initial=1.0) > 0.0:
        return -float(share @ np.log(f))
    used = share > 0.0
    return np.inf if f[used].min(initial=1.0) <= 0.0 else -float(share[used] @ np.log(f[used]))


def nonnegative_minimum(matrix: Floats, linear: Floats, passive: Bools) -> Floats:
    """`argmin 1/2 y' M y - b' y` over `y >= 0`, by block principal pivoting from a guess.

    All entries with the wrong sign change sides at once; when that does not lessen their number three times in a row,
    only the last of them does, which cannot cycle.
    """
    from scipy import linalg

    size = len(linear)
    passive = passive.copy()
    fewest, patience = size + 1, _PATIENCE
    scale = _SIGN * max(float(np.abs(linear).max(initial=0.0)), 1e-300)
    y = np.zeros(size)
    for _ in range(_PIVOTS + 3 * size):
        y = np.zeros(size)
        inside = np.flatnonzero(passive)
        if inside.size:
            factor = linalg.cho_factor(matrix[np.ix_(inside, inside)], lower=True, check_finite=False)
            y[inside] = linalg.cho_solve(factor, linear[inside], check_finite=False)
        slack = matrix @ y - linear
        wrong = np.where(passive, y < 0.0, slack < -scale)
        number = int(wrong.sum())
        if number == 0:
            return y
        if number < fewest:
            fewest, patience = number, _PATIENCE
        else:
            patience -= 1
        if patience < 0:
            wrong[: np.flatnonzero(wrong)[-1]] = False
        passive ^= wrong
    return np.maximum(y, 0.0)


def nonnegative_minima(matrix: Floats, linear: Floats, passive: Bools) -> Floats:
    """`nonnegative_minimum` of many right-hand sides `linear` (n, size), all from one guess."""
    rows, size = linear.shape
    passives = np.broadcast_to(passive, (rows, size)).copy()
    out, open_rows = np.zeros((rows, size)), np.arange(rows)
    fewest, patience = np.full(rows, size + 1), np.full(rows, _PATIENCE)
    scale = _SIGN * max(float(np.abs(linear).max(initial=0.0)), 1e-300)
    for _ in range(_PIVOTS + 3 * size):
        inside = passives[open_rows]
        systems = np.where(inside[:, :, None] & inside[:, None, :], matrix, 0.0)
        systems[:, np.arange(size), np.arange(size)] = np.where(inside, matrix.diagonal(), 1.0)
        y = np.linalg.solve(systems, np.where(inside, linear[open_rows], 0.0)[..., None])[..., 0]
        wrong = np.where(inside, y < 0.0, y @ matrix - linear[open_rows] < -scale)
        number = wrong.sum(axis=1)
        out[open_rows] = np.maximum(y, 0.0)
        better = number < fewest[open_rows]
        fewest[open_rows] = np.where(better, number, fewest[open_rows])
        patience[open_rows] = np.where(better, _PATIENCE, patience[open_rows] - 1)
        # As in the single case: only the last one changes sides where changing all of them goes round in circles.
        last = np.arange(size) == size - 1 - np.argmax(wrong[:, ::-1], axis=1)[:, None]
        passives[open_rows] ^= wrong & (last | (patience[open_rows] >= 0)[:, None])
        open_rows = open_rows[number > 0]
        if not len(open_rows):
            break
    return out


def _extrapolated(likelihood: Likelihood, tolerance: float, limit: int, start: Floats | None) -> Solution:
    """Expectation-maximization with squared extrapolation, or the plain step if that is better."""
    share = likelihood.counts / likelihood.records
    x = np.full(likelihood.size, 1.0 / likelihood.size) if start is None else _inside(start)
    best = Solution(x, np.inf, 0)
    f, slopes = _slopes(likelihood, share, x)
    value = _objective(share, f)
    for step in range(limit):
        check_cancelled()
        gap = max(float(slopes.max()) - 1.0, 0.0)
        if gap < best.gap:
            best = Solution(x, gap, step)
        if gap <= tolerance:
            return best
        first = x * slopes
        first /= first.sum()
        _, again = _slopes(likelihood, share, first)
        second = first * again
        second /= second.sum()
        change, bend = first - x, second - 2.0 * first + x
        length = np.sqrt(float(change @ change) / max(float(bend @ bend), 1e-300))
        x, f, slopes, value = _leap(likelihood, share, x, change, bend, second, max(float(length), 1.0), value)
    return best


def _leap(
    likelihood: Likelihood,
    share: Floats,
    x: Floats,
    change: Floats,
    bend: Floats,
    second: Floats,
    length: float,
    value: float,
) -> tuple[Floats, Floats, Floats, float]:
    while length > 1.01:
        y = x + 2.0 * length * change + length**2 * bend
        # A value that jumped below zero keeps a little, so that it can return.
        y = np.maximum(y, 0.01 * second)
        y /= y.sum()
        f, slopes = _slopes(likelihood, share, y)
        there = _objective(share, f)
        if there <= value + _ROUNDING:
            return y, f, slopes, there
        length = (length + 1.0) / 2.0 if length > 4.0 else 1.0
    f, slopes = _slopes(likelihood, share, second)
    return second, f, slopes, _objective(share, f)
