"""Limits of sums of cells by profile likelihood on the non-negative tables.

Near the maximum `x` twice the log-likelihood that a table `x + e` loses is

    e' H e - 2 s' e,      e_j >= -x_j,   sum(e) = 0

where
    s  the score: 0 where x is positive, at most 0 where it is zero
    H  the information, `sum_i c_i a_i a_i' / f_i^2`

and the profile of a sum `k . x` is the least loss among the tables with that sum. The limits are where the profile
reaches the chi-square quantile with one degree of freedom. Cells at zero stay in the problem as one-sided constraints,
which is what normal intervals on the support miss.

The minimiser moves along straight lines as the sum moves, and changes direction only when a cell reaches zero or
leaves it. So the path is followed exactly from corner to corner: with the multiplier `m` of the sum as parameter, the
sum grows by `a dm` and the loss by `a d(m^2)` on each piece.

A corner changes the inverse by one rank, which costs no matrix. Where H is nearly singular these updates lose digits;
that shows in equations that the direction must satisfy, and from then on each piece solves them afresh.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyseme.kernel.arrays import Bools, Floats

__all__ = ["Path", "Quadratic"]

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
    """The way of the constrained minimiser as one sum of cells is pushed up or down.

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
        """Change of the table for each unit of the multiplier, keeping the total; and of the bound cells' pressure."""
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
        """Take a cell into the inverse: `+ v v' / (m - e' M K M e)` with `v = K M e - e` and m its own entry of M."""
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
