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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from polyseme.designs.mechanism import Mechanism
from polyseme.inference.base import Estimator, Finer, Fit, Reports, check
from polyseme.inference.counts import shape_of
from polyseme.inference.intervals.limits import around
from polyseme.inference.likelihood import CellLikelihoods, RecordLikelihood
from polyseme.inference.sets.loglinear import Effects, contrast, make_effects, terms
from polyseme.inference.sets.maximum import most_likely
from polyseme.inference.solver import MATRIX_CELLS, shared_out
from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.errors import ImpossibleError
from polyseme.kernel.work import check_cancelled

__all__ = ["Room", "Smooth", "Smoothed", "smoothed"]

WEIGHTS = 600
"""Most weights of a table: their matrix is factored some hundred times, at 4 milliseconds each. A judgment."""
PARTS = 150
"""Most parts into which helping columns divide the records: each has a likelihood of its own. A judgment."""
_ROUNDS = 40
"""Turns of weights and sizes at the most, and a note says when they were not enough. Tables of 100,000 records took 3
or 4."""
_STEPS = 30
"""Newton steps for one set of sizes at the most. Tables of 100,000 records took 4 in the middle and 9 at the most."""
_HALVINGS = 12
"""How often a step is halved before the point is taken to be the best: to 1/2,048 of its length."""
_REPEATS = 100
"""Repetitions of the formula for the sizes around one point; each costs a factored matrix."""
_FIRST = 1.0
"""The first size of every effect: one on the logarithmic scale, a factor of e between values."""
_LEAST = 1e-9
"""The least size: such an effect changes no value by more than one in ten thousand, and is as good as left out."""
_MOST = 100.0
"""The largest size: values that differ by a factor of e^10 either way are not held together at all."""
_NEAR = 1e-5
"""Log-density that the last Newton step may still have gained: the weights are then final."""
_CLOSE = 0.1
"""The same while the sizes are still moving, when more would be lost again."""
_SETTLED = 0.01
"""Log-likelihood that other sizes could still gain when they count as settled: too little to be seen."""
_RESIZED = 0.001
"""The same for one repetition of the formula for the sizes: a tenth, since many of them follow each other."""
_UNSEEN = 1e-12
"""Weights that the reports determine less than this keep their size."""


class Smooth(Estimator):
    """Smoothing splines along ordered attributes and in their interactions.

    Wins where attributes are ordered.
    """

    name = "smooth"

    def fit(self, reports: Reports, mechanisms: Sequence[Mechanism]) -> Fit:
        check(reports, mechanisms)
        likelihoods = CellLikelihoods(reports, mechanisms)
        plain = most_likely(likelihoods)
        if max(shape_of(mechanisms)) == 1:
            return plain
        if not reports.paired:
            return replace(plain, notes=("smoothing needs the sets: not applied to counts only", *plain.notes))
        found = smoothed(likelihoods, reports.finer)
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

    expected  its proportions: (cells, F_1, ..., F_q), each cell adding up to one
    people    the records of the table, as the reports share them out when these proportions are the prior
    variance  of the expected records, as far as the weights are uncertain
    value     the log-likelihood
    used      how many weights the reports have really determined
    reached   whether the search ended by itself
    finer     the parts that helping columns split
    """

    expected: Floats
    people: Floats
    variance: Floats
    value: float
    used: float
    reached: bool
    finer: Finer | None = None

    @property
    def left_out(self) -> float:
        """The log-likelihood of all reports, each under the fit without it, to first order."""
        return self.value - self.used

    def fit(self, plain: Fit) -> Fit:
        """The estimate; `plain` is that of `ml`."""
        totals = plain.values.reshape(len(plain.values), -1).sum(axis=1)
        expected = self.expected * totals.reshape(-1, *[1] * (self.expected.ndim - 1))
        names = ", ".join(self.finer.names) if self.finer else ""
        how = f"with the help of {names}" if names else "along ordered attributes"
        notes = [f"smoothed {how}: about {self.used:,.0f} numbers describe the table"]
        if self.finer:
            notes.extend(self.finer.unused())
        if not self.reached:
            notes.append("smoothing stopped before it converged")
        return around(plain, self.people, expected, gap=None, notes=(*notes, *plain.notes))


def smoothed(likelihoods: CellLikelihoods, finer: Finer | None = None) -> Smoothed | None:
    """The smooth table that the reports support.

    None when it would be too large, or has nothing that can vary.

    Where columns help, it is the sum of smooth tables of the parts that they tell apart.

    finer  these parts
    """
    reports, mechanisms = likelihoods.reports, likelihoods.mechanisms
    apart = finer or _cells_themselves(reports)
    effects = _effects(reports, mechanisms, apart)
    if effects is None:
        return None
    parts = list(CellLikelihoods(finer.reports, mechanisms) if finer else likelihoods)
    shape = (reports.cells, *shape_of(mechanisms))
    return replace(_Search(parts, effects, apart.whole, reports.cells).run(shape), finer=finer)


class Room:
    """How much a smooth table of some reports may hold."""

    def __init__(self, reports: Reports, mechanisms: Sequence[Mechanism]) -> None:
        self.shape, self.cells = shape_of(mechanisms), reports.cells
        self.fits = reports.cells * int(np.prod(self.shape)) <= MATRIX_CELLS
        given = reports.distances if reports.distances is not None else (None,) * len(self.shape)
        found = terms(self.shape, given) if self.fits else []
        self.widths: list[tuple[int, int]] = [(order, columns.shape[1]) for order, columns in found]

    def weights(self, kinds: Sequence[int], order: int) -> int:
        """The number of weights with helping columns of so many kinds, up to an order of effects."""
        within = sum(width for has, width in self.widths if has <= order)
        return sum(width for _, width in self.widths) * self.cells + within * sum(kind - 1 for kind in kinds)

    def holds(self, parts: int, kinds: Sequence[int]) -> bool:
        """Whether so many parts of cells fit, split by helping columns of so many kinds."""
        return self.fits and parts <= max(PARTS, self.cells) and self.weights(kinds, order=1) <= WEIGHTS


def _cells_themselves(reports: Reports) -> Finer:
    """The parts of the cells without helping columns."""
    nothing = np.zeros((reports.cells, 0), dtype=np.int64)
    return Finer((), replace(reports, finer=None), np.arange(reports.cells), nothing)


def _effects(reports: Reports, mechanisms: Sequence[Mechanism], finer: Finer) -> Effects | None:
    """Effects of the table's groups in every interaction; of helpers as far as weights allow."""
    room = Room(reports, mechanisms)
    kinds = [int(column.max(initial=0)) + 1 for column in finer.groups.T]
    if not room.holds(len(finer.whole), kinds):
        return None
    most = len(room.shape)
    order = next(order for order in range(most, 0, -1) if room.weights(kinds, order) <= WEIGHTS)
    distances = reports.distances if reports.distances is not None else (None,) * most
    found = [contrast(finer.whole, most), *(contrast(column, order) for column in finer.groups.T)]
    return make_effects(room.shape, distances, len(finer.whole), [item for item in found if item is not None])


@dataclass(frozen=True, eq=False)
class _Point:
    """Where the search stands: x (cells, values), and the likelihood of the reports."""

    weights: Floats
    x: Floats
    value: float


@dataclass(frozen=True, eq=False)
class _Solution:
    """The weights for given sizes, in a normal approximation.

    inverse   with `C = inverse * scale`, C' C is the covariance of the weights
    used      for each weight how far it is determined by the reports: from 0 to 1
    evidence  the log-likelihood with the weights averaged out, up to a constant
    """

    weights: Floats
    inverse: Floats
    scale: Floats
    used: Floats
    evidence: float

    @property
    def root(self) -> Floats:
        return self.inverse * self.scale


class _Stride:
    """The largest step of sizes on a log scale, halved each time they turned back.

    What is known around the present weights says little about weights far away. Without this, sizes of strong effects
    would go to and fro.
    """

    def __init__(self, terms: int) -> None:
        self.reach = np.full(terms, np.log(_MOST / _LEAST))
        self.last = np.zeros(terms)

    def toward(self, sizes: Floats, wanted: Floats) -> Floats:
        step = np.log(wanted / sizes)
        self.reach = np.where(step * self.last < 0.0, self.reach / 2.0, self.reach)
        self.last = np.clip(step, -self.reach, self.reach)
        return np.asarray(sizes * np.exp(self.last), dtype=np.float64)


class _Search:
    """The weights and their sizes, by turns."""

    def __init__(self, likelihoods: Sequence[RecordLikelihood], effects: Effects, whole: Ints, cells: int) -> None:
        self.likelihoods = likelihoods
        self.effects = effects
        self.term = effects.term
        self.whole = whole
        self.cells = cells
        self._latest: tuple[_Point, Floats, Floats] | None = None

    def run(self, shape: tuple[int, ...]) -> Smoothed:
        sizes = np.full(int(self.term.max()) + 1, _FIRST)
        point, stride = self.at(np.zeros(len(self.term))), _Stride(len(sizes))
        for _ in range(_ROUNDS):
            check_cancelled()
            point, information, pull = self.settle(point, sizes, near=_CLOSE)
            found, possible = self.resize(sizes, information, pull)
            before, sizes = sizes, stride.toward(sizes, found)
            gained = self.solve(sizes, information, pull).evidence - self.solve(before, information, pull).evidence
            if min(possible, abs(gained)) < _SETTLED:
                break
        point, information, pull = self.settle(point, sizes)
        solution = self.solve(sizes, information, pull)
        people = np.array([shared_out(likelihood, x) for likelihood, x in zip(self.likelihoods, point.x)])
        return Smoothed(
            expected=self.proportions(point).reshape(shape),
            people=self.added(people).reshape(shape),
            variance=self.variances(point, solution.root).reshape(shape),
            value=point.value,
            used=float(solution.used.sum()),
            reached=min(possible, abs(gained)) < _SETTLED,
        )

    def added(self, parts: Floats) -> Floats:
        """The sums of all parts of each cell of the table."""
        sums = np.zeros((self.cells, *parts.shape[1:]))
        np.add.at(sums, self.whole, parts)
        return sums

    def proportions(self, point: _Point) -> Floats:
        """The expected shares of the values in each cell of the table: (cells, values)."""
        records = np.array([likelihood.records for likelihood in self.likelihoods])
        # Where there are no records, all parts count alike.
        records = np.where(self.added(records)[self.whole] > 0, records, 1.0)
        return self.added(records[:, None] * point.x) / np.maximum(self.added(records), 1.0)[:, None]

    def variances(self, point: _Point, root: Floats) -> Floats:
        """Variances of the expected records, for weights of covariance `C' C`: (cells, values)."""
        moving = np.zeros((self.cells, *self.effects.moving(0).shape))
        for part, (cell, likelihood, x) in enumerate(zip(self.whole, self.likelihoods, point.x)):
            here = self.effects.moving(part)
            moving[cell] += likelihood.records * x[:, None] * (here - x @ here)
        return np.array([np.sum((cell @ root.T) ** 2, axis=1) for cell in moving])

    def at(self, weights: Floats) -> _Point:
        logs = self.effects.logs(weights)
        x = np.exp(logs - logs.max(axis=1, keepdims=True))
        x /= x.sum(axis=1, keepdims=True)
        value = sum(likelihood.value(cell) for likelihood, cell in zip(self.likelihoods, x))
        return _Point(weights, x, float(value))

    def settle(self, point: _Point, sizes: Floats, near: float = _NEAR) -> tuple[_Point, Floats, Floats]:
        """The weights of greatest density for these sizes, with `H` and `H w + g` there."""
        for _ in range(_STEPS):
            check_cancelled()
            information, pull = self.curvature(point)
            step = self.solve(sizes, information, pull).weights - point.weights
            moved = self.along(point, step, sizes)
            gained, point = self.density(moved, sizes) - self.density(point, sizes), moved
            if gained < near:
                break
        information, pull = self.curvature(point)
        return point, information, pull

    def along(self, point: _Point, step: Floats, sizes: Floats) -> _Point:
        """The best of the whole step, its half, its quarter ...; else the point itself."""
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
        """`H` and `H w + g`; where the search stands still they are not made again."""
        if self._latest is None or self._latest[0] is not point:
            self._latest = (point, *self._curvature(point))
        return self._latest[1:]

    def _curvature(self, point: _Point) -> tuple[Floats, Floats]:
        slopes = np.zeros_like(point.x)

        def squares() -> Iterator[tuple[int, Floats]]:
            for part, (likelihood, x) in enumerate(zip(self.likelihoods, point.x)):
                if likelihood.records == 0:
                    continue
                f = likelihood.product(x)
                seen = likelihood.counts > 0
                ratio = np.divide(likelihood.counts, f, out=np.zeros_like(f), where=seen)
                shared = x * likelihood.pull(ratio)
                square = np.divide(ratio, f, out=np.zeros_like(f), where=seen)
                outer = x[:, None] * likelihood.information(square) * x
                outer += likelihood.records * np.outer(x, x) - np.outer(shared, x) - np.outer(x, shared)
                slopes[part] = shared - likelihood.records * x
                yield part, outer

        information = self.effects.curvature(squares())
        return information, information @ point.weights + self.effects.slope(slopes)

    def solve(self, sizes: Floats, information: Floats, pull: Floats) -> _Solution:
        from scipy.linalg import lapack

        roots, size = np.sqrt(sizes[self.term]), len(self.term)
        scaled = information * roots[:, None]
        scaled *= roots
        scaled.reshape(-1)[:: size + 1] += 1.0
        # The matrix is symmetric, so its transpose is the same in the order that LAPACK likes.
        lower, flaw = lapack.dpotrf(scaled.T, lower=1, clean=1, overwrite_a=1)
        if flaw:
            raise np.linalg.LinAlgError("the curvature of a smooth table is not positive")
        logs = float(np.log(lower.diagonal()).sum())
        inverse, _ = lapack.dtrtri(lower, lower=1, overwrite_c=1)
        weights = roots * (inverse.T @ (inverse @ (roots * pull)))
        used = 1.0 - np.einsum("ij,ij->j", inverse, inverse)
        return _Solution(weights, inverse, roots, used, 0.5 * float(pull @ weights) - logs)

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
            if gained < _RESIZED:
                break
        return sizes, latest.evidence - before.evidence
