"""Maximum entropy: log weights with prescribed inclusion probabilities, and listed designs.

Minimize `f(x) = ln Z(x) - sum_v rho_v x_v` over log weights `x`: convex, with gradient (inclusion minus target) and
Hessian the covariance of membership. Newton steps with a line search; each step by conjugate gradients, or by a dense
factorization where these are slow and the domain is small.

Designs over listed sets are for structures that follow no simple order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from polyseme.designs.distribution import MaximumEntropy, compatibility, list_sets
from polyseme.designs.information import INFORMATION_LIMIT, error_from
from polyseme.designs.ring import document, neighbors, portable_circle, require_few, whole
from polyseme.designs.samplers import TableSampler
from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.errors import ImpossibleError, InternalError
from polyseme.kernel.work import check_cancelled
from polyseme.semantics.distances.base import Circle, Structure

__all__ = ["EnumeratedDesign", "Family", "ListedFamily", "fit", "fit_listed"]

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

    @property
    def log_partition(self) -> float: ...
    @property
    def inclusion(self) -> Floats: ...
    def covariance(self) -> Floats: ...
    def covariance_times(self, vector: Floats) -> Floats: ...


def fit(
    family: Callable[[Floats], Family], target: Floats, tolerance: float = TOLERANCE, start: Floats | None = None
) -> Floats:
    """The log weights at which `family` has the reachable inclusion probabilities `target`.

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
    centered: Floats = weights - weights.mean()
    return centered


def _error(inclusion: Floats, target: Floats) -> float:
    return float(np.max(np.abs(inclusion - target) / target))


def _search(
    family: Callable[[Floats], Family], weights: Floats, here: Family, step: Floats, target: Floats
) -> tuple[Floats, Family] | None:
    """The first step of 1, 1/2, 1/4, ... that lowers the objective or, at the end, the gradient."""
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
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

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


class ListedFamily:
    """`P(R)` proportional to the product of `exp(log_weights)` over the listed sets."""

    def __init__(self, sets: Ints, log_weights: Floats) -> None:
        self.sets, self.size = sets, len(log_weights)
        exponent = log_weights[sets].sum(axis=1)
        top = exponent.max()
        scaled = np.exp(exponent - top)
        self.log_partition = float(top + np.log(scaled.sum()))
        self.probability: Floats = scaled / scaled.sum()

    def _spread(self, per_set: Floats) -> Floats:
        """The sum over the sets that hold each value."""
        total: Floats = np.zeros(self.size)
        for column in self.sets.T:
            total += np.bincount(column, per_set, self.size)
        return total

    @cached_property
    def inclusion(self) -> Floats:
        return self._spread(self.probability)

    @cached_property
    def joint(self) -> Floats:
        return self._spread_pairs(self.probability)

    def _spread_pairs(self, per_set: Floats) -> Floats:
        """The sum over the sets that hold each pair of values."""
        both: Floats = np.zeros(self.size**2)
        for first in self.sets.T:
            for second in self.sets.T:
                both += np.bincount(first * self.size + second, per_set, self.size**2)
        return both.reshape(self.size, self.size)

    def sums(self, per_set: Floats) -> tuple[float, Floats, Floats]:
        """The expectation of `per_set`: over all sets, those with each value, those with each pair."""
        weighted = self.probability * per_set
        return float(weighted.sum()), self._spread(weighted), self._spread_pairs(weighted)

    def covariance(self) -> Floats:
        return self.joint - np.outer(self.inclusion, self.inclusion)

    def covariance_times(self, vector: Floats) -> Floats:
        total = vector[self.sets].sum(axis=1)
        return self._spread(self.probability * (total - self.inclusion @ vector))


def fit_listed(
    structure: Structure,
    l: int,
    sets: Ints,
    possible: Ints,
    target: Floats,
    name: str = "balanced",
    start: Floats | None = None,
) -> EnumeratedDesign:
    """The design with inclusion `target` over `sets[possible]`."""
    log_weights = fit(lambda weights: ListedFamily(sets[possible], weights), target, start=start)
    return EnumeratedDesign(structure, l, log_weights, np.setdiff1d(np.arange(len(sets)), possible), name)


class EnumeratedDesign(MaximumEntropy):
    """A design over the list of all valid sets.

    log_weights  by code
    excluded     numbers of valid sets, in lexicographic order, that are never drawn
    """

    draws = 1

    def __init__(
        self, structure: Structure, l: int, log_weights: Floats, excluded: Ints, name: str = "balanced"
    ) -> None:
        super().__init__(structure, l, name)
        self._given, self._excluded = log_weights, excluded
        self._all = list_sets(structure, l)
        self.possible = np.delete(self._all, excluded, axis=0)
        self.family = ListedFamily(self.possible, log_weights)

    def count(self) -> int:
        return len(self._all)

    def sets(self) -> Ints:
        return self._all

    @cached_property
    def _sampler(self) -> TableSampler:
        return TableSampler(self.possible, self.family.probability, self.size)

    def sample(self, codes: Ints, uniforms: Floats) -> Ints:
        return self._sampler.sample(codes, uniforms)

    @cached_property
    def _known(self) -> tuple[NDArray[np.uint64], Ints]:
        """Keys of the possible sets in ascending order, and which set each belongs to."""
        keys = self._key(self.possible)
        order = np.argsort(keys, kind="stable")
        if np.any(keys[order][1:] == keys[order][:-1]):
            raise InternalError("two sets share a key")
        return keys[order], order

    def _key(self, sets: Ints) -> NDArray[np.uint64]:
        """A number for each set: its digits in base F, or mixed bits where those do not fit."""
        base = np.uint64(self.size if self.size**self.l < 2**64 else 0x9E3779B97F4A7C15)
        key = np.zeros(len(sets), dtype=np.uint64)
        for column in sets.T:
            key = key * base + column.astype(np.uint64)
        return key

    def log_probability(self, sets: Ints) -> Floats:
        keys, order = self._known
        place = np.minimum(np.searchsorted(keys, self._key(sets)), len(keys) - 1)
        number = order[place]
        match = (self.possible[number] == sets).all(axis=1)
        return np.where(match, np.log(self.family.probability[number]), -np.inf)

    def inclusion(self) -> Floats:
        return self.family.inclusion

    def joint(self, codes: Ints) -> Floats:
        return self.family.joint[codes]

    def lightest(self, cost: Floats) -> Floats:
        total = cost[self.possible].sum(axis=1)
        least = np.full(self.size, np.inf)
        for column in self.possible.T:
            np.minimum.at(least, column, total)
        return least

    def least_error(self, prior: Floats, p: float = 1.0) -> float | None:
        if p == 0.0 or self.size > INFORMATION_LIMIT:
            return super().least_error(prior, p)
        mass = p * (prior / self.inclusion())[self.possible].sum(axis=1) + 1.0 - p
        return error_from(self.family.sums(1.0 / mass), self.inclusion(), prior, np.ones(self.size), p)

    def portable(self, p: float = 1.0) -> dict[str, Any]:
        if isinstance(self.structure, Circle) and not len(self._excluded):
            return portable_circle(self.structure, self.l, self._given, p)
        require_few(len(self._all))
        compatible, excluded = compatibility(self.structure), self._all[self._excluded].tolist()
        weights = whole(self._given)
        return document("listed", self.l, p, neighbours=neighbors(compatible), weights=weights, excluded=excluded)

    def parameters(self) -> Mapping[str, Any]:
        return {"log_weights": self._given.tolist(), "excluded": self._excluded.tolist()}
