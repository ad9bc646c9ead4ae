"""Regression on sets by corrected scores.

    sum_i w_i s_i(b) = 0,      s_i(b) = sum_v u_v(R_i) psi(v, x_i, y_i; b)

where
    psi  the score of a regression on open data, `x (y - mean(x b))` with the canonical link of the family
    u    the unbiased contribution of a set: its expectation given the true value t is 1 at v = t and 0 elsewhere
    v    the values of all protected attributes in the formula; with several, u is the product of theirs
    w_i  the survey weight of a record, or 1

Given the true values, the expectation of s_i is the score of the open record, so the estimate is that of the open data
up to the noise of the sets. No distribution of v is assumed. With

    H = sum_i w_i sum_v u_iv psi'(v)      B = sum_i w_i^2 s_i s_i'      C = sum_i w_i^2 sum_v u_iv psi_iv psi_iv'

the variance is `H^-1 B H^-1` about the population, and `H^-1 (B - C) H^-1` about the people in the table, since C
estimates the meat of the open data without bias.

Contributions may be negative, so the score may have no root, or H may be nearly singular or even indefinite. H is
compared with M, the same matrix with the working posterior, which is positive, in place of u. So is the variance that
open records would have, `M^-1 C M^-1`: n times its ratio to the variance about the population is how many open records
an estimate is worth. With u it would be unbiased, but with few records it can be negative.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol, TypeAlias

import numpy as np
from scipy import special

from polyseme.inference.regression.working import SetScores
from polyseme.kernel.arrays import Floats, Ints

__all__ = ["FAMILIES", "LEAST_EIGENVALUE", "Family", "Fitted", "NoRoot", "RegressionDesign", "ScoreData", "fit_scores"]

Family: TypeAlias = Literal["linear", "logistic", "poisson", "multinomial"]
FAMILIES: tuple[Family, ...] = ("linear", "logistic", "poisson", "multinomial")

LEAST_EIGENVALUE = 0.02
"""Of the Hessian, scaled to 1 where sets say what values would: below it no root is used. With it, at n = 300 and l = 3
up to 5% of fits are refused, and the intervals of the others cover 96% to 98%."""
_STEPS = 50
"""Most Newton steps at a time."""
_PATH = (0.25, 0.5, 0.75, 1.0)
"""From the working posterior to the contributions, where Newton's method does not get there at once."""
_ROOT = 1e-10
"""The scaled score, in standard errors, below which it is zero."""
_ENOUGH = 1e-5
"""The same where rounding does not allow more."""
_LARGEST = 30.0
"""Logits beyond which an outcome is separated: its probability is 1e-13."""
_COLLINEAR = 1e-10
"""The least eigenvalue of the correlations of terms, below which they count as combinations of each other."""
_SEPARATED = 1e-6
"""What is left of the information in a direction, by that at coefficients of 0, where outcomes are separated: the
mean of p (1 - p) is then below 2.5e-7."""
_SPOKEN = 0.25
"""The part of the working posterior's variance below which none is taken. A judgment."""
_CHUNK = 4_000_000
"""Numbers in memory at a time (32 MB)."""
_KEPT = 40_000_000
"""Numbers that are kept between two steps (320 MB); beyond that they are computed again."""


class NoRoot(Exception):
    """The corrected score has no usable root.

    reason  "collinear", "separated", "unstable" or "none"
    term    the place of the parameter that is concerned most; None where none stands out
    """

    def __init__(self, reason: Literal["collinear", "separated", "unstable", "none"], term: int | None = None) -> None:
        super().__init__(reason)
        self.reason, self.term = reason, term


class RegressionDesign(Protocol):
    """The numbers of a formula, for some records and all values of the protected attributes.

    A second axis of length 1 means that a number does not depend on the protected values.
    """

    def matrix(self, rows: slice) -> Floats:
        """The terms: (n, values or 1, p)."""
        ...

    def outcome(self, rows: slice) -> Floats:
        """The outcome, or its category from 0 up: (n, values or 1)."""
        ...

    def kept(self, rows: slice) -> Floats | None:
        """1 where the filter keeps a record with these values, None where it keeps all."""
        ...


@dataclass(frozen=True, eq=False)
class ScoreData:
    """Distinct records of a release.

    sets      what the sets of each protected attribute of the formula contribute
    counts    how many records each row stands for
    weights   the survey weight of each row's records; None without
    cluster   the person of each row, from 0 up; None where every record is its own
    repeats   the design effect of sticky sets, where people are not known
    """

    design: RegressionDesign
    sets: tuple[SetScores, ...]
    counts: Ints
    weights: Floats | None = None
    cluster: Ints | None = None
    repeats: float = 1.0

    @property
    def values(self) -> int:
        """Combinations of the protected values."""
        return int(np.prod([each.size for each in self.sets], dtype=np.int64))

    @cached_property
    def effective(self) -> float:
        """Records, less what weights and repeated draws cost."""
        if self.weights is None:
            return float(self.counts.sum()) / self.repeats
        first, second = float(self.counts @ self.weights), float(self.counts @ self.weights**2)
        return first**2 / second / self.repeats if second > 0.0 else 0.0


@dataclass(frozen=True, eq=False)
class Fitted:
    """Coefficients: those of one outcome in a row of their own.

    coefficients  (outcomes, p)
    variance      about the population and about the people in the table: (outcomes * p, outcomes * p) each
    open          what the first would be with open records
    freedom       the degrees of freedom of each variance: (outcomes * p,)
    records       the records that the filter keeps, as estimated
    least         the least eigenvalue of the scaled Hessian
    """

    coefficients: Floats
    population: Floats
    finite: Floats
    open: Floats
    freedom: Floats
    records: float
    least: float


@dataclass(frozen=True, eq=False)
class _Piece:
    """Some records.

    u, q  contributions and working posterior: (n, c)
    x, y  terms (n, c or 1, p) and outcome (n, c or 1, m)
    """

    rows: slice
    u: Floats
    q: Floats
    x: Floats
    y: Floats


def fit_scores(data: ScoreData, family: Family, outcomes: int = 1) -> Fitted:
    """The regression; raises `NoRoot` where the sets do not bear it.

    outcomes  for the multinomial family: how many categories there are beside the first
    """
    fit = _Scores(data, family, outcomes)
    coefficients = fit.root()
    return fit.variances(coefficients)


class _Scores:
    """Sums over records, piece by piece."""

    def __init__(self, data: ScoreData, family: Family, outcomes: int) -> None:
        self.data, self.family, self.outcomes = data, family, outcomes
        self.p = data.design.matrix(slice(0, 1)).shape[2]
        self.size = self.p * outcomes
        weights = np.ones(len(data.counts)) if data.weights is None else data.weights
        self.once, self.twice = data.counts * weights, data.counts * weights**2
        self._kept: list[_Piece] | None = None

    def pieces(self) -> Iterator[_Piece]:
        if self._kept is not None:
            yield from self._kept
            return
        records, width = len(self.data.counts), self.data.values
        step = max(1, _CHUNK // (width * (self.p + 2)))
        keep: list[_Piece] | None = [] if records * width * (self.p + 2) <= _KEPT else None
        for start in range(0, records, step):
            piece = self._piece(slice(start, min(start + step, records)))
            if keep is not None:
                keep.append(piece)
            yield piece
        self._kept = keep

    def _piece(self, rows: slice) -> _Piece:
        design, number = self.data.design, len(self.data.counts[rows])
        u, q = np.ones((number, 1)), np.ones((number, 1))
        for each in self.data.sets:
            u = (u[:, :, None] * each.contributions(rows)[:, None, :]).reshape(number, -1)
            q = (q[:, :, None] * each.posterior(rows)[:, None, :]).reshape(number, -1)
        kept = design.kept(rows)
        if kept is not None:
            u, q = u * kept, q * kept
        y = design.outcome(rows)[:, :, None]
        if self.family == "multinomial":
            y = (y == np.arange(1, self.outcomes + 1)).astype(np.float64)
        return _Piece(rows, u, q, design.matrix(rows), y)

    def root(self) -> Floats:
        """Where the corrected score is zero, beginning at the root with the working posterior."""
        start = np.zeros((self.outcomes, self.p))
        _whitened(self._sums(start, 0.0)[2])
        start = self._newton(start, 0.0)
        try:
            return self._newton(start, 1.0)
        except NoRoot:
            for share in _PATH:
                start = self._newton(start, share)
            return start

    def _newton(self, b: Floats, share: float) -> Floats:
        """Newton's method; `share` is that of the contributions, the rest of the posterior."""
        score, hessian, positive = self._sums(b, share)
        size = self._norm(score, positive)
        for _ in range(_STEPS):
            if size < _ROOT:
                return b
            step = _solve(hessian, score).reshape(b.shape)
            for halving in range(12):
                trial = b + step * 0.5**halving
                found = self._sums(trial, share)
                smaller = self._norm(found[0], found[2])
                if np.isfinite(smaller) and smaller < size:
                    break
            else:
                if size < _ENOUGH:
                    return b
                raise NoRoot(self._why(b))
            b, (score, hessian, positive), size = trial, found, smaller
        if size < _ENOUGH:
            return b
        raise NoRoot(self._why(b))

    def _why(self, b: Floats) -> Literal["separated", "none"]:
        if self.family in ("logistic", "multinomial"):
            largest = max(float(np.abs(piece.x @ b.T).max(initial=0.0)) for piece in self.pieces())
            return "separated" if largest > _LARGEST else "none"
        return "none"

    def _norm(self, score: Floats, positive: Floats) -> float:
        """The score in standard errors of the open data, about: `sqrt(S' M^-1 S)`."""
        with np.errstate(all="ignore"):
            if not (np.isfinite(score).all() and np.isfinite(positive).all()):
                return np.inf
            return float(np.sqrt(max(float(score @ _solve(positive, score)), 0.0)))

    def _sums(self, b: Floats, share: float) -> tuple[Floats, Floats, Floats]:
        """The score, H and M."""
        score, hessian, positive = np.zeros(self.size), np.zeros((self.size,) * 2), np.zeros((self.size,) * 2)
        for piece in self.pieces():
            mean = _mean(self.family, piece.x @ b.T)
            used = piece.q if share == 0.0 else piece.u if share == 1.0 else share * piece.u + (1 - share) * piece.q
            once = self.once[piece.rows, None]
            rest = piece.y - mean
            for k, mine in enumerate(self._slices()):
                score[mine] += _sum(piece.x, once * used * rest[:, :, k])
                for j, other in enumerate(self._slices()):
                    slope = _slope(self.family, mean, k, j)
                    hessian[mine, other] += _square(piece.x, once * used * slope)
                    positive[mine, other] += _square(piece.x, once * piece.q * slope)
        return score, hessian, positive

    def _slices(self) -> list[slice]:
        return [slice(k * self.p, (k + 1) * self.p) for k in range(self.outcomes)]

    def variances(self, b: Floats) -> Fitted:
        """The sandwiches around the root, after a look at the Hessian."""
        _, hessian, positive = self._sums(b, 1.0)
        self._check_separation(positive)
        least = _least(hessian, positive)
        bread = np.linalg.inv(hessian)
        meat, drawn, likely = (np.zeros((self.size,) * 2) for _ in range(3))
        quartic, records = np.zeros(self.size), 0.0
        clusters = 0 if self.data.cluster is None else int(self.data.cluster.max()) + 1
        sums = np.zeros((clusters, self.size))
        for piece in self.pieces():
            rest = piece.y - _mean(self.family, piece.x @ b.T)
            scores = np.concatenate([_rows(piece.x, piece.u * rest[:, :, k]) for k in range(self.outcomes)], axis=1)
            twice = self.twice[piece.rows]
            records += float(self.data.counts[piece.rows] @ piece.u.sum(axis=1))
            for k, mine in enumerate(self._slices()):
                for j, other in enumerate(self._slices()):
                    both = twice[:, None] * rest[:, :, k] * rest[:, :, j]
                    drawn[mine, other] += _square(piece.x, piece.u * both)
                    likely[mine, other] += _square(piece.x, piece.q * both)
            if self.data.cluster is None:
                meat += scores.T @ (scores * twice[:, None])
                influence = (scores @ bread) ** 2
                quartic += (
                    self.once[piece.rows] ** 4 / np.maximum(self.data.counts[piece.rows], 1) ** 3
                ) @ influence**2
            else:
                np.add.at(sums, self.data.cluster[piece.rows], scores * self.once[piece.rows, None])
        if self.data.cluster is not None:
            meat, quartic = sums.T @ sums, ((sums @ bread) ** 4).sum(axis=0)
            # Sets are drawn record by record, so about the people in the table records are what counts.
        spread, own = bread @ meat @ bread, meat if self.data.cluster is None else self._apart(b)
        finite = self._finite(spread, bread @ (own - drawn) @ bread, bread @ (own - likely) @ bread)
        freedom = 3.0 * np.divide(np.diag(spread) ** 2, quartic, out=np.full(self.size, np.inf), where=quartic > 0.0)
        most, repeats = (clusters or self.data.effective) - self.p, self.data.repeats
        apart = np.linalg.inv(positive)
        return Fitted(
            b,
            repeats * spread,
            repeats * finite,
            apart @ likely @ apart,
            np.clip(freedom / repeats, 1.0, max(most, 1.0)),
            records,
            least,
        )

    def _check_separation(self, positive: Floats) -> None:
        """Raise where outcomes are so sure in some direction that its coefficient has no bound."""
        if self.family == "linear":
            return
        root = _whitened(self._sums(np.zeros((self.outcomes, self.p)), 0.0)[2])
        if np.linalg.eigvalsh(root.T @ positive @ root)[0] < _SEPARATED:
            raise NoRoot("separated")

    def _finite(self, spread: Floats, found: Floats, working: Floats) -> Floats:
        """The variance about the people in the table.

        It is an estimate, and with few records one that may be too small, even negative. So it is not taken smaller
        than a part of what the working posterior says, nor larger than that about the population.
        """
        if not self.data.sets:
            return np.zeros_like(spread)
        variance, largest = np.diag(found).copy(), np.diag(spread)
        least = np.minimum(_SPOKEN * np.maximum(np.diag(working), 0.0), largest)
        bounded = np.minimum(np.maximum(variance, least), largest)
        bounded = np.where(bounded > 0.0, bounded, largest)
        scale = np.sqrt(np.divide(bounded, variance, out=np.ones(self.size), where=variance > 0.0))
        out = np.asarray(found * np.outer(scale, scale), dtype=np.float64)
        np.fill_diagonal(out, bounded)
        return out

    def _apart(self, b: Floats) -> Floats:
        """The meat with every record as its own cluster."""
        meat = np.zeros((self.size,) * 2)
        for piece in self.pieces():
            rest = piece.y - _mean(self.family, piece.x @ b.T)
            scores = np.concatenate([_rows(piece.x, piece.u * rest[:, :, k]) for k in range(self.outcomes)], axis=1)
            meat += scores.T @ (scores * self.twice[piece.rows, None])
        return meat


def _mean(family: Family, linear: Floats) -> Floats:
    """The expected outcome: (n, c, m)."""
    if family == "linear":
        return linear
    if family == "logistic":
        return np.asarray(special.expit(linear), dtype=np.float64)
    if family == "poisson":
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(linear), dtype=np.float64)
    largest = np.maximum(linear.max(axis=2, keepdims=True), 0.0)
    odds = np.exp(linear - largest)
    return np.asarray(odds / (np.exp(-largest) + odds.sum(axis=2, keepdims=True)), dtype=np.float64)


def _slope(family: Family, mean: Floats, k: int, j: int) -> Floats:
    """How the mean of outcome k changes with the linear predictor of outcome j: (n, c)."""
    if family == "linear":
        return np.ones_like(mean[:, :, 0])
    if family == "poisson":
        return mean[:, :, 0]
    return np.asarray(mean[:, :, k] * ((k == j) - mean[:, :, j]), dtype=np.float64)


def _rows(x: Floats, weights: Floats) -> Floats:
    """`sum_c weight x` of each record: (n, p)."""
    if x.shape[1] == 1:
        return np.asarray(x[:, 0] * weights.sum(axis=1, keepdims=True), dtype=np.float64)
    return np.asarray((weights[:, None, :] @ x)[:, 0], dtype=np.float64)


def _sum(x: Floats, weights: Floats) -> Floats:
    if x.shape[1] == 1:
        return np.asarray(weights.sum(axis=1) @ x[:, 0], dtype=np.float64)
    return np.asarray(weights.reshape(-1) @ x.reshape(-1, x.shape[2]), dtype=np.float64)


def _square(x: Floats, weights: Floats) -> Floats:
    """`sum weight x x'`: (p, p)."""
    if x.shape[1] == 1:
        weights = weights.sum(axis=1, keepdims=True)
    flat = x.reshape(-1, x.shape[2])
    return np.asarray(flat.T @ (flat * np.broadcast_to(weights, x.shape[:2]).reshape(-1, 1)), dtype=np.float64)


def _solve(matrix: Floats, right: Floats) -> Floats:
    try:
        return np.asarray(np.linalg.solve(matrix, right), dtype=np.float64)
    except np.linalg.LinAlgError:
        return np.full(right.shape, np.nan)


def _whitened(positive: Floats) -> Floats:
    """A matrix T with `T' M T = 1`; raises where terms are combinations of others."""
    scale = np.sqrt(np.diag(positive))
    if not (np.isfinite(scale).all() and (scale > 0.0).all()):
        raise NoRoot("collinear", int(np.argmin(np.nan_to_num(scale))))
    spread, directions = np.linalg.eigh(positive / np.outer(scale, scale))
    if spread[0] < _COLLINEAR:
        concerned = np.flatnonzero(np.abs(directions[:, 0]) > 0.1)
        raise NoRoot("collinear", int(concerned[-1]))
    return np.asarray((directions / np.sqrt(spread)) / scale[:, None], dtype=np.float64)


def _least(hessian: Floats, positive: Floats) -> float:
    """The least eigenvalue of H where M is 1; raises where no root may be used."""
    root = _whitened(positive)
    found, vectors = np.linalg.eigh(root.T @ hessian @ root)
    if found[0] < LEAST_EIGENVALUE:
        raise NoRoot("unstable", int(np.argmax(np.abs(root @ vectors[:, 0]) * np.sqrt(np.diag(positive)))))
    return float(found[0])
