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

from polyseme.inference.likelihood import Likelihood, Stacked
from polyseme.kernel.arrays import Bools, Floats, Ints
from polyseme.kernel.work import check_cancelled

__all__ = [
    "GAP",
    "MANY_RECORDS",
    "MATRIX_CELLS",
    "STILL",
    "WORK",
    "Solution",
    "Solutions",
    "expectation_maximization",
    "fixed_point",
    "maximize",
    "maximize_stacked",
    "nonnegative_minima",
    "nonnegative_minimum",
    "shared_out",
    "stacked_shares",
    "steps_of_expectation",
    "tolerance_for",
    "tolerances_for",
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
WORK = 300_000
"""Operations for a first look at the curvature, about a millisecond: far from the maximum a sample of the reports is
enough. Chosen by judgment; it changes the time of the search, never its end."""
MANY_RECORDS = 300_000
"""Records from which on a linear estimate is near enough to the maximum to be worth its time; a judgment."""
_LOOKS = 4
"""Steps after which it is asked whether a table will do."""
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
_EXACT = 1e-12
"""What the equations of a solution may be off by, as a share of the largest right-hand side, before they are solved
from the matrix again."""
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


def tolerances_for(records: Floats) -> Floats:
    """The same for each of several groups."""
    return np.maximum(np.minimum(GAP, _TOGETHER / np.maximum(records, 1.0)), _FINEST)


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


def maximize(
    likelihood: Likelihood,
    tolerance: float = GAP,
    limit: int = 200,
    start: Floats | None = None,
    enough: Callable[[Floats], bool] | None = None,
) -> Solution:
    """The table of largest likelihood, to a gap of `tolerance` or the best after `limit` steps.

    enough  asked now and then, for tables without a matrix: whether the present one will do
    """
    if likelihood.records <= 0.0:
        return Solution(np.full(likelihood.size, 1.0 / likelihood.size), 0.0, 0)
    if likelihood.size > MATRIX_CELLS:
        return _extrapolated(likelihood, max(tolerance, GAP), 50 * limit, start, enough)
    share = likelihood.counts / likelihood.records
    thin, before = likelihood.thinning(WORK), np.inf
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


@dataclass(frozen=True, eq=False)
class Solutions:
    """The same of several groups: x (groups, K), gap (groups,)."""

    x: Floats
    gap: Floats


def maximize_stacked(stack: Stacked, tolerance: Floats, limit: int = 200, start: Floats | None = None) -> Solutions:
    """`maximize` for many small groups at once, step by step the same.

    tolerance  of each group: (groups,); start (groups, K)
    """
    solved = [
        _maximized(block, tolerance[at], limit, None if start is None else start[at]) for at, block in stack.blocks()
    ]
    if not solved:
        return Solutions(np.zeros((0, stack.size)), np.zeros(0))
    return Solutions(np.concatenate([each.x for each in solved]), np.concatenate([each.gap for each in solved]))


def _maximized(stack: Stacked, tolerance: Floats, limit: int, start: Floats | None) -> Solutions:
    if start is None:
        x = np.full((stack.groups, stack.size), 1.0 / stack.size)
        for _ in range(4):
            x = _each_normalized(x * _stacked_slopes(stack, x)[1])
    else:
        x = (1.0 - _PULLED_IN) * start + _PULLED_IN / stack.size
    best, gaps, open_groups = x.copy(), np.full(stack.groups, np.inf), np.arange(stack.groups)
    for _ in range(limit):
        check_cancelled()
        f, slopes = _stacked_slopes(stack, x)
        gap = np.maximum(slopes.max(axis=1) - 1.0, 0.0)
        better = gap < gaps[open_groups]
        gaps[open_groups[better]], best[open_groups[better]] = gap[better], x[better]
        left = np.flatnonzero(gap > tolerance[open_groups])
        if not left.size:
            break
        if left.size < len(open_groups):
            stack, open_groups, x, slopes = stack.among(left), open_groups[left], x[left], slopes[left]
            f = stack.product(x)
        x = _stacked_newton(stack, x, f, slopes)
    return Solutions(best, gaps)


def _stacked_slopes(stack: Stacked, x: Floats) -> tuple[Floats, Floats]:
    share, prior = stack.shares
    f = stack.product(x)
    slopes = stack.pull(_ratio(share, f))
    return f, slopes if prior is None else slopes + _ratio(prior, x)


def _stacked_newton(stack: Stacked, x: Floats, f: Floats, slopes: Floats) -> Floats:
    """A step of `_newton` in each group."""
    share, prior = stack.shares
    matrix, places = stack.information(_ratio(_ratio(share, f), f)), np.arange(stack.size)
    if prior is not None:
        matrix[:, places, places] += _ratio(_ratio(prior, x), x)
    matrix[:, places, places] += _DAMPING * np.maximum(matrix.diagonal(axis1=1, axis2=2).max(axis=1), 1.0)[:, None]
    linear = np.matmul(matrix, x[..., None])[..., 0] + slopes - 1.0
    step = nonnegative_minima(matrix, linear[:, None], (x > _AT_ZERO) | (slopes > 1.0))[:, 0] - x
    moved = stack.product(step)
    here, decrease = _stacked_objective(stack, f, x), ((1.0 - slopes) * step).sum(axis=1)
    rounding = _ROUNDING * np.maximum(1.0, np.abs(here))
    out, waiting, length = _each_normalized(x * slopes), decrease < 0.0, 1.0
    while length > _SHORTEST and waiting.any():
        there = _stacked_objective(stack, f + length * moved, x + length * step)
        good = waiting & (there <= here + _ENOUGH * length * decrease + rounding)
        out[good] = _each_normalized(np.maximum(x[good] + length * step[good], 0.0))
        waiting &= ~good
        length *= 0.5
    return out


def _stacked_objective(stack: Stacked, f: Floats, x: Floats) -> Floats:
    """What a step lessens: minus the log-likelihood of a record, and the sum of the table."""
    share, prior = stack.shares
    out = x.sum(axis=1) - stack.summed(_weighed_logs(share, f))
    return np.asarray(out if prior is None else out - _weighed_logs(prior, x).sum(axis=1), dtype=np.float64)


def _weighed_logs(share: Floats, f: Floats) -> Floats:
    """`share log f`: minus infinity where a share has no chance."""
    possible = f > 0.0
    logs = np.log(np.where(possible, f, 1.0))
    return np.where(possible | (share <= 0.0), share * logs, -np.inf)


def steps_of_expectation(stack: Stacked, steps: int) -> Floats:
    """Some steps of `expectation_maximization` in each group: (groups, K)."""
    x = np.full((stack.groups, stack.size), 1.0 / stack.size)
    for _ in range(steps):
        check_cancelled()
        slopes = _stacked_slopes(stack, x)[1]
        x = np.where(slopes.max(axis=1, keepdims=True) > 1.0, _each_normalized(x * slopes), x)
    return x


def stacked_shares(stack: Stacked, x: Floats) -> Floats:
    """`shared_out` of each group: (groups, K) records."""
    return x * stack.pull(_ratio(stack.counts, stack.product(x)))


def _each_normalized(x: Floats) -> Floats:
    return np.asarray(x / x.sum(axis=1, keepdims=True), dtype=np.float64)


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
    """`nonnegative_minimum` for stacked systems, each with a guess for all its sides.

    matrix  (systems, K, K), linear (systems, n, K), passive (systems, K)
    """
    _, many, size = linear.shape
    scale = _SIGN * np.maximum(np.abs(linear).max(axis=(1, 2), initial=0.0), 1e-300)
    if many > 1:
        return _exchanged(matrix, linear, passive, scale)
    masked = np.where(passive[:, :, None] & passive[:, None, :], matrix, 0.0)
    masked[:, np.arange(size), np.arange(size)] = np.where(passive, matrix.diagonal(axis1=1, axis2=2), 1.0)
    sides = linear[:, 0]
    y = np.linalg.solve(masked, np.where(passive, sides, 0.0)[..., None])[..., 0]
    wrong = np.where(passive, y < 0.0, _times(matrix, np.arange(len(y)), y) - sides < -scale[:, None])
    out, rows = np.maximum(y, 0.0), np.flatnonzero(wrong.any(axis=1))
    if rows.size:
        out[rows] = _pivoted(matrix, rows, sides[rows], scale[rows], passive[rows], wrong[rows])
    return out[:, None]


def _exchanged(matrix: Floats, linear: Floats, passive: Bools, scale: Floats) -> Floats:
    """Block pivoting of many right-hand sides by the entries that leave the guess.

    With the entries of the guess solved for, `z = q + A w`: z are their values and the slacks of the others, w the
    slacks of the former and the values of the latter, all zero at first. When the entries D change sides, their z is
    zero and their w is t, so that `A_DD t = -q_D` and `z = q + A_.D t`: a system of a few entries, and no other.
    """
    systems, many, size = linear.shape
    both = passive[:, :, None] & passive[:, None, :]
    masked = np.where(both, matrix, 0.0)
    masked[:, np.arange(size), np.arange(size)] = np.where(passive, matrix.diagonal(axis1=1, axis2=2), 1.0)
    inverse = np.where(both, np.linalg.inv(masked), 0.0)
    across = inverse @ matrix
    mine, theirs = passive[:, :, None], passive[:, None, :]
    exchange = np.where(
        mine, np.where(theirs, inverse, -across), np.where(theirs, across.transpose(0, 2, 1), matrix - matrix @ across)
    ).transpose(0, 2, 1)
    y = linear @ inverse
    q = np.where(passive[:, None], y, y @ matrix - linear).reshape(-1, size)
    own = np.repeat(np.arange(systems), many)
    guess = passive[own]
    values, inside, reached = _exchanges(np.ascontiguousarray(exchange), own, q, guess, scale[own])
    y = np.where(inside, np.maximum(values, 0.0), 0.0)
    # What rounding has spoiled is solved from the matrix itself.
    slack = (y.reshape(linear.shape) @ matrix - linear).reshape(-1, size)
    off = np.where(inside, np.abs(slack), np.maximum(-slack - scale[own, None], 0.0)).max(axis=1)
    again = np.flatnonzero(~(reached & (off <= _EXACT * np.maximum(scale[own] / _SIGN, 1e-300))))
    if again.size:
        first = np.zeros((len(again), size), dtype=np.bool_)
        y[again] = _pivoted(matrix, own[again], linear.reshape(-1, size)[again], scale[own[again]], guess[again], first)
    return y.reshape(linear.shape)


def _exchanges(exchange: Floats, own: Ints, q: Floats, guess: Bools, scale: Floats) -> tuple[Floats, Bools, Bools]:
    """The values, which are not zero, and whether all have the right sign: (rows,).

    exchange  the transposed A of each system
    """
    rows, size = q.shape
    values, moved, open_rows = q.copy(), np.zeros(q.shape, dtype=np.bool_), np.arange(rows)
    fewest, patience = np.full(rows, size + 1), np.full(rows, _PATIENCE)
    for _ in range(_PIVOTS + 3 * size):
        here = moved[open_rows]
        z = _after(exchange, own[open_rows], q[open_rows], here)
        values[open_rows] = z
        wrong = z < np.where(here ^ guess[open_rows], 0.0, -scale[open_rows, None])
        number = wrong.sum(axis=1)
        better = number < fewest[open_rows]
        fewest[open_rows] = np.where(better, number, fewest[open_rows])
        patience[open_rows] = np.where(better, _PATIENCE, patience[open_rows] - 1)
        last = np.arange(size) == size - 1 - np.argmax(wrong[:, ::-1], axis=1)[:, None]
        moved[open_rows] ^= wrong & (last | (patience[open_rows] >= 0)[:, None])
        open_rows = open_rows[number > 0]
        if not len(open_rows):
            break
    reached = np.asarray(np.isfinite(values).all(axis=1), dtype=np.bool_)
    reached[open_rows] = False
    return values, moved ^ guess, reached


def _after(exchange: Floats, own: Ints, q: Floats, moved: Bools) -> Floats:
    """What the entries become when some of them have changed sides."""
    out, many = q.copy(), moved.sum(axis=1)
    for count in np.unique(many[many > 0]):
        rows = np.flatnonzero(many == count)
        places = np.nonzero(moved[rows])[1].reshape(-1, count)
        columns = exchange[own[rows, None], places]
        side, at = -q[rows[:, None], places], np.arange(len(rows))[:, None]
        if count == 1:
            with np.errstate(divide="ignore", invalid="ignore"):
                entered = side / columns[at, 0, places]
        else:
            system = columns[at[..., None], np.arange(count)[None, :, None], places[:, None, :]]
            try:
                entered = np.linalg.solve(system.transpose(0, 2, 1), side[..., None])[..., 0]
            except np.linalg.LinAlgError:
                entered = np.full(side.shape, np.nan)
        out[rows] = q[rows] + np.matmul(entered[:, None, :], columns)[:, 0]
        out[rows[:, None], places] = entered
    return out


def _pivoted(matrix: Floats, own: Ints, linear: Floats, scale: Floats, passive: Bools, wrong: Bools) -> Floats:
    """Block pivoting of single systems from entries of the wrong sign; `own` names matrices."""
    rows, size = linear.shape
    out, open_rows, passive = np.zeros((rows, size)), np.arange(rows), passive.copy()
    fewest, patience = np.where(wrong.any(axis=1), wrong.sum(axis=1), size + 1), np.full(rows, _PATIENCE)
    passive ^= wrong
    for _ in range(_PIVOTS + 3 * size):
        inside, here = passive[open_rows], linear[open_rows]
        y = _solved(matrix, own[open_rows], here, inside)
        slack = _times(matrix, own[open_rows], y) - here
        wrong = np.where(inside, y < 0.0, slack < -scale[open_rows, None])
        number = wrong.sum(axis=1)
        out[open_rows] = np.maximum(y, 0.0)
        better = number < fewest[open_rows]
        fewest[open_rows] = np.where(better, number, fewest[open_rows])
        patience[open_rows] = np.where(better, _PATIENCE, patience[open_rows] - 1)
        # As in the single case: only the last one changes sides where changing all of them goes round in circles.
        last = np.arange(size) == size - 1 - np.argmax(wrong[:, ::-1], axis=1)[:, None]
        passive[open_rows] ^= wrong & (last | (patience[open_rows] >= 0)[:, None])
        open_rows = open_rows[number > 0]
        if not len(open_rows):
            break
    return out


def _times(matrix: Floats, own: Ints, y: Floats) -> Floats:
    """Each row times the symmetric matrix of its system: `own`, ascending."""
    if len(own) < 2 * len(matrix):
        return np.asarray(np.matmul(y[:, None, :], matrix[own])[:, 0], dtype=np.float64)
    starts = np.searchsorted(own, np.arange(len(matrix)))
    place, dense = np.arange(len(own)) - starts[own], np.zeros((len(matrix), int(np.bincount(own).max()), y.shape[1]))
    dense[own, place] = y
    return np.asarray((dense @ matrix)[own, place], dtype=np.float64)


def _solved(matrix: Floats, own: Ints, linear: Floats, inside: Bools) -> Floats:
    """The solutions of systems of the entries inside only; systems of one size go together."""
    out, sizes = np.zeros_like(linear), inside.sum(axis=1)
    for size in np.unique(sizes[sizes > 0]):
        rows = np.flatnonzero(sizes == size)
        places = np.nonzero(inside[rows])[1].reshape(-1, size)
        system = matrix[own[rows, None, None], places[:, :, None], places[:, None, :]]
        side = linear[rows[:, None], places]
        out[rows[:, None], places] = np.linalg.solve(system, side[..., None])[..., 0]
    return out


def _extrapolated(
    likelihood: Likelihood,
    tolerance: float,
    limit: int,
    start: Floats | None,
    enough: Callable[[Floats], bool] | None = None,
) -> Solution:
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
        if enough is not None and step % _LOOKS == 0 and enough(x):
            return Solution(x, gap, step)
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
