"""Maximum entropy: log weights that give prescribed inclusion probabilities.

Minimize `f(x) = ln Z(x) - sum_v rho_v x_v` over log weights `x`: convex, with gradient (inclusion minus target) and
Hessian the covariance of membership. Newton steps with a line search; each step by conjugate gradients, or by a dense
factorisation where these are slow and the domain is small.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from polyseme.arrays import Floats
from polyseme.errors import ImpossibleError
from polyseme.kernel.work import check_cancelled

__all__ = ["Family", "fit"]

TOLERANCE = 1e-9
"""Largest relative error of an inclusion probability that is let through: a posterior of 1/l has nine digits then."""

_AIM = 1e-11
"""Where the method stops of itself: what rounding allows, with a digit to spare."""
_DENSE = 2_000
"""Largest system that is solved directly where conjugate gradients do not settle: 32 MB, chosen by judgment."""
_ROUNDS = 200
"""Most Newton steps. Measured (F = 1,000, l = 5): 4 on a roomy line, 10 on a crowded one (d = 190)."""
_CONJUGATE = (60, 500)
"""Rounds of conjugate gradients, where there is a direct solution to fall back on and where there is none."""
_ENOUGH = 1e-7
"""How much of the residual's square may be left for a Newton step: they need not be exact."""
_LONGEST = 20.0
"""Most by which a log weight may change in one step: e^20, beyond which a tangent says nothing."""
_HALVINGS = 40
"""How often a step is halved before it is given up."""
_DESCENT = 1e-4
"""The part of the promised descent that must be kept: the usual constant of Armijo's rule."""
_RIDGE = 1e-13
"""What is added to the diagonal, as a part of the trace: rounding, so that directions without any set stay put."""


class Family(Protocol):
    """A distribution over sets of the exponential family, at given log weights."""

    log_partition: float

    @property
    def inclusion(self) -> Floats: ...
    def covariance(self) -> Floats: ...
    def covariance_times(self, vector: Floats) -> Floats: ...


def fit(
    family: Callable[[Floats], Family], target: Floats, tolerance: float = TOLERANCE, start: Floats | None = None
) -> Floats:
    """The log weights at which `family` has inclusion probabilities `target`, which must be within reach.

    start  log weights to begin with, those of a target nearby

    Raises `ImpossibleError` when `tolerance` is not reached: a design that misses its promise is never returned.
    """
    weights = np.log(target) if start is None else start
    here = family(weights)
    error = _error(here.inclusion, target)
    for _ in range(_ROUNDS):
        check_cancelled()
        if error <= _AIM:
            break
        gradient = here.inclusion - target
        step = -_solve(here, gradient)
        moved = _search(family, weights, here, step, target)
        if moved is None:
            break
        new_weights, new = moved
        new_error = _error(new.inclusion, target)
        if error <= tolerance and new_error >= 0.5 * error:
            break
        weights, here, error = new_weights, new, new_error
    if not error <= tolerance:
        raise ImpossibleError(
            f"the balanced design was not reached: inclusion probabilities are still off by {error:.1e}",
            "the target is at the edge of what is possible; choose a smaller l or d",
        )
    centred: Floats = weights - weights.mean()
    return centred


def _error(inclusion: Floats, target: Floats) -> float:
    return float(np.max(np.abs(inclusion - target) / target))


def _search(
    family: Callable[[Floats], Family], weights: Floats, here: Family, step: Floats, target: Floats
) -> tuple[Floats, Family] | None:
    """The first of the steps 1, 1/2, 1/4 ... that lowers the objective or, near the end, the gradient."""
    gradient = here.inclusion - target
    slope = float(gradient @ step)
    value = here.log_partition - float(target @ weights)
    length = min(1.0, _LONGEST / float(np.abs(step).max(initial=1e-300)))
    for _ in range(_HALVINGS):
        moved = weights + length * step
        there = family(moved)
        lower = there.log_partition - float(target @ moved) <= value + _DESCENT * length * slope
        # Close to the solution differences of the objective are lost to rounding; the gradient still tells.
        if lower or np.linalg.norm(there.inclusion - target) < 0.5 * np.linalg.norm(gradient):
            return moved, there
        length /= 2
    return None


def _solve(here: Family, gradient: Floats) -> Floats:
    """`covariance^-1 gradient`; directions in which no set differs are left alone."""
    solution, settled = _conjugate_gradients(here, gradient, rounds=_CONJUGATE[len(gradient) > _DENSE])
    if settled or len(gradient) > _DENSE:
        return solution
    matrix = here.covariance()
    ridge = _RIDGE * float(np.trace(matrix))
    for _ in range(8):
        try:
            exact: Floats = cho_solve(cho_factor(matrix + ridge * np.eye(len(matrix)), lower=True), gradient)
        except LinAlgError:
            ridge *= 100
        else:
            return exact
    return solution


def _conjugate_gradients(here: Family, gradient: Floats, rounds: int) -> tuple[Floats, bool]:
    """An approximate solution, and whether it is good enough for a Newton step."""
    scale = 1.0 / np.maximum(here.inclusion * (1.0 - here.inclusion), 1e-12 * here.inclusion)
    solution = np.zeros_like(gradient)
    # Inclusion always adds up to l, so a gradient that does not add up to zero is rounding, and out of reach.
    residual = gradient - gradient.sum() / here.inclusion.sum() * here.inclusion
    preconditioned = scale * residual
    direction = preconditioned.copy()
    power = float(residual @ preconditioned)
    enough = _ENOUGH * power
    for _ in range(rounds):
        check_cancelled()
        image = here.covariance_times(direction)
        curvature = float(direction @ image)
        if curvature <= 0:
            return solution, False
        length = power / curvature
        solution += length * direction
        residual -= length * image
        preconditioned = scale * residual
        new_power = float(residual @ preconditioned)
        if new_power <= enough:
            return solution, True
        direction = preconditioned + new_power / power * direction
        power = new_power
    return solution, False
