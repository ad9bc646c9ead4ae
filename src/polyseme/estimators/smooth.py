"""`smooth`: maximum likelihood with a table that varies slowly along ordered attributes.

    log x_v = sum_k a_k(v),    a_k = F_k w_k,    w_k ~ N(0, s_k)

where
    x_v  the expected records of the combination v of true values
    k    a main effect or an interaction of the attributes: slope, bend, or one weight for each value, see `splines`
    s_k  how large its weights are: chosen so that the reports are most likely when the weights are averaged out

An interaction that the reports do not show gets the size zero, so the number of attributes costs nothing; with many
records every bend they do show is kept. The weights are those of greatest posterior density, found by Newton's method
with the information that the reports have given (the sum of squared scores), which is never negative:

    w = (H + 1/S)^-1 (H w + g),    H = F' (sum_i c_i r_i r_i') F,    g = F' sum_i c_i r_i,    r_i = q_i - x

where
    q_i  the distribution of the true value, given report i
    S    the sizes, one for each weight

and sizes by repeating  s_k <- |w_k|^2 / d_k,  where d_k is the number of weights of k that the reports have really
determined, or half that step on a logarithmic scale, which can only raise the likelihood (it minorises it).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import lapack

from polyseme.distances.structure import Floats, Ints
from polyseme.errors import ImpossibleError
from polyseme.estimators.base import Estimator, Fit, Reports, check
from polyseme.estimators.counts import shape_of
from polyseme.estimators.likelihood import RecordLikelihood, likelihood_of
from polyseme.estimators.limits import around
from polyseme.estimators.maximum import MaximumLikelihood
from polyseme.estimators.solver import MATRIX_CELLS, shared_out
from polyseme.estimators.splines import terms
from polyseme.mechanism import Mechanism

__all__ = ["Smooth", "Smoothed", "smoothed"]

WEIGHTS = 600
"""Most weights of a table: their matrix is factored some hundred times."""
_ROUNDS, _STEPS, _HALVINGS, _REPEATS = 20, 30, 12, 100
_FIRST, _LEAST, _MOST = 1.0, 1e-9, 100.0
_NEAR, _SETTLED, _UNSEEN = 1e-5, 1e-2, 1e-12


class Smooth(Estimator):
    """Smoothing splines along ordered attributes and in their interactions; wins where attributes are ordered."""

    name = "smooth"

    def fit(self, reports: Reports, mechanisms: Sequence[Mechanism]) -> Fit:
        check(reports, mechanisms)
        plain = MaximumLikelihood().fit(reports, mechanisms)
        if max(shape_of(mechanisms)) == 1:
            return plain
        if not reports.paired:
            return replace(plain, notes=("smoothing needs the sets: not applied to counts only", *plain.notes))
        found = smoothed(reports, mechanisms)
        if found is None:
            cells = reports.cells * int(np.prod(shape_of(mechanisms)))
            raise ImpossibleError(
                f"a table of {cells:,} cells is too large for `smooth` (at most {MATRIX_CELLS:,} cells and "
                f"{WEIGHTS} weights)",
                "use `shrink`, fewer groups or coarser values",
            )
        return found.fit(plain)


@dataclass(frozen=True, eq=False)
class Smoothed:
    """A smooth table.

    expected  its proportions: (cells, F_1, .., F_q), each cell adding up to one
    people    the records of the table, as the reports share them out when these proportions are the prior
    variance  of the expected records, as far as the weights are uncertain
    value     the log-likelihood
    used      how many weights the reports have really determined
    reached   whether the search ended by itself
    """

    expected: Floats
    people: Floats
    variance: Floats
    value: float
    used: float
    reached: bool

    @property
    def left_out(self) -> float:
        """The log-likelihood of all reports, each under the fit without it, to first order."""
        return self.value - self.used

    def fit(self, plain: Fit) -> Fit:
        """The estimate; `plain` is that of `ml`."""
        totals = plain.values.reshape(len(plain.values), -1).sum(axis=1)
        expected = self.expected * totals.reshape(-1, *[1] * (self.expected.ndim - 1))
        note = f"smoothed along ordered attributes: about {self.used:,.0f} numbers describe the table"
        ended = () if self.reached else ("smoothing was stopped before its sizes had settled",)
        return around(plain, self.people, expected, self.variance, gap=None, notes=(note, *ended, *plain.notes))


def smoothed(reports: Reports, mechanisms: Sequence[Mechanism]) -> Smoothed | None:
    """The smooth table that the reports support; None when it would be too large, or has nothing that can vary."""
    shape = (reports.cells, *shape_of(mechanisms))
    if int(np.prod(shape)) > MATRIX_CELLS:
        return None
    distances = reports.distances if reports.distances is not None else (None,) * len(mechanisms)
    parts = terms(shape, (None, *distances), within=1)
    if not 0 < sum(part.shape[1] for part in parts) <= WEIGHTS:
        return None
    likelihoods = [likelihood_of(sets, counts, mechanisms) for _, sets, counts in reports.by_cell()]
    return _Search(likelihoods, parts).run(shape)


@dataclass(frozen=True, eq=False)
class _Point:
    """Where the search stands: x (cells, values), and the likelihood of the reports."""

    weights: Floats
    x: Floats
    value: float


@dataclass(frozen=True, eq=False)
class _Solution:
    """The weights for given sizes, in a normal approximation.

    root      C' C is the covariance of the weights
    used      for each weight how far it is determined by the reports: from 0 to 1
    evidence  the log-likelihood with the weights averaged out, up to a constant
    """

    weights: Floats
    root: Floats
    used: Floats
    evidence: float


class _Search:
    """The weights and their sizes, by turns."""

    def __init__(self, likelihoods: Sequence[RecordLikelihood], parts: Sequence[Floats]) -> None:
        self.likelihoods = likelihoods
        self.functions = np.hstack(parts)
        self.term: Ints = np.repeat(np.arange(len(parts)), [part.shape[1] for part in parts])

    def run(self, shape: tuple[int, ...]) -> Smoothed:
        sizes = np.full(int(self.term.max()) + 1, _FIRST)
        point = self.at(np.zeros(len(self.term)))
        for _ in range(_ROUNDS):
            point, information, pull = self.settle(point, sizes)
            sizes, gained = self.resize(sizes, information, pull)
            if gained < _SETTLED:
                break
        point, information, pull = self.settle(point, sizes)
        solution = self.solve(sizes, information, pull)
        people = [shared_out(likelihood, x) for likelihood, x in zip(self.likelihoods, point.x)]
        return Smoothed(
            expected=point.x.reshape(shape),
            people=np.array(people).reshape(shape),
            variance=self.variances(point, solution.root).reshape(shape),
            value=point.value,
            used=float(solution.used.sum()),
            reached=gained < _SETTLED,
        )

    def variances(self, point: _Point, root: Floats) -> Floats:
        """Of the records in each cell, when the weights have the covariance `C' C`: (cells, values)."""
        found = np.empty_like(point.x)
        for cell, (likelihood, x) in enumerate(zip(self.likelihoods, point.x)):
            here = self.functions[cell * len(x) : (cell + 1) * len(x)]
            moving = x[:, None] * (here - x @ here)
            found[cell] = likelihood.records**2 * np.sum((moving @ root.T) ** 2, axis=1)
        return found

    def at(self, weights: Floats) -> _Point:
        logs = (self.functions @ weights).reshape(len(self.likelihoods), -1)
        x = np.exp(logs - logs.max(axis=1, keepdims=True))
        x /= x.sum(axis=1, keepdims=True)
        value = sum(likelihood.value(cell) for likelihood, cell in zip(self.likelihoods, x))
        return _Point(weights, x, float(value))

    def settle(self, point: _Point, sizes: Floats) -> tuple[_Point, Floats, Floats]:
        """The weights of greatest density for these sizes, with `H` and `H w + g` there."""
        for _ in range(_STEPS):
            information, pull = self.curvature(point)
            step = self.solve(sizes, information, pull).weights - point.weights
            moved = self.along(point, step, sizes)
            gained, point = self.density(moved, sizes) - self.density(point, sizes), moved
            if gained < _NEAR:
                break
        information, pull = self.curvature(point)
        return point, information, pull

    def along(self, point: _Point, step: Floats, sizes: Floats) -> _Point:
        """The best of the whole step, its half, its quarter ..; where none is better, the point itself."""
        best = point
        for halving in range(_HALVINGS):
            moved = self.at(point.weights + step * 0.5**halving)
            if self.density(moved, sizes) > self.density(best, sizes):
                best = moved
            elif best is not point:
                break
        return best

    def density(self, point: _Point, sizes: Floats) -> float:
        return point.value - 0.5 * float(np.sum(point.weights**2 / sizes[self.term]))

    def curvature(self, point: _Point) -> tuple[Floats, Floats]:
        """`H` and `H w + g`."""
        values = point.x.shape[1]
        information, slope = np.zeros((len(self.term), len(self.term))), np.zeros(len(self.term))
        for cell, (likelihood, x) in enumerate(zip(self.likelihoods, point.x)):
            if likelihood.records == 0:
                continue
            f = likelihood.product(x)
            seen = likelihood.counts > 0
            ratio = np.divide(likelihood.counts, f, out=np.zeros_like(f), where=seen)
            shared = x * likelihood.pull(ratio)
            square = np.divide(ratio, f, out=np.zeros_like(f), where=seen)
            outer = x[:, None] * likelihood.information(square) * x
            outer += likelihood.records * np.outer(x, x) - np.outer(shared, x) - np.outer(x, shared)
            here = self.functions[cell * values : (cell + 1) * values]
            information += here.T @ outer @ here
            slope += here.T @ (shared - likelihood.records * x)
        return information, information @ point.weights + slope

    def solve(self, sizes: Floats, information: Floats, pull: Floats) -> _Solution:
        roots = np.sqrt(sizes[self.term])
        scaled = roots[:, None] * information * roots
        scaled[np.diag_indices_from(scaled)] += 1.0
        lower = np.linalg.cholesky(scaled)
        inverse, _ = lapack.dtrtri(lower, lower=1)
        weights = roots * (inverse.T @ (inverse @ (roots * pull)))
        evidence = 0.5 * float(pull @ weights) - float(np.log(lower.diagonal()).sum())
        return _Solution(weights, inverse * roots, 1.0 - np.sum(inverse**2, axis=0), evidence)

    def resize(self, sizes: Floats, information: Floats, pull: Floats) -> tuple[Floats, float]:
        """Sizes under which the reports are more likely, and by how much."""
        before = latest = self.solve(sizes, information, pull)
        for _ in range(_REPEATS):
            found = np.bincount(self.term, weights=latest.weights**2, minlength=len(sizes)) / sizes
            determined = np.bincount(self.term, weights=latest.used, minlength=len(sizes))
            # What the reports say nothing about keeps its size.
            factor = np.divide(found, determined, out=np.ones_like(found), where=determined > _UNSEEN)
            # The whole step is twice as fast; its root never fails.
            for step in (factor, np.sqrt(factor)):
                tried = np.clip(sizes * step, _LEAST, _MOST)
                solution = self.solve(tried, information, pull)
                if solution.evidence >= latest.evidence:
                    break
            gained, sizes, latest = solution.evidence - latest.evidence, tried, solution
            if gained < 0.1 * _SETTLED:
                break
        return sizes, latest.evidence - before.evidence
