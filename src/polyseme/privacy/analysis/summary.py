"""What a mechanism does to privacy and to estimates, before any record is touched.

    worst posterior        max over sets R and values v of P(v | R)
    average posterior      sum over R of max_v pi_v P(R | v): how often the best guess is right (Bayes vulnerability)
    prior vulnerability    max_v pi_v: how often it is right without any set
    epsilon                max over R, v, v' of ln P(R | v) / P(R | v'); infinite at p = 1
    identifiable           whether different distributions of true values give different expected reports: rank of Q
    mse                    expected (1/F) sum_v (estimated share - true share)^2 over the N records of the table

where `pi` is the attacker's prior, and the distribution of the true values for `mse`. All of it is exact; what would
need more than a table of sets or a dense matrix of moderate size is None, and `notes` says so.

With `I` the Fisher information of one report, the limit of any estimator is `(tr I^-1 - 1) / (F N)`: the Cramér-Rao
bound less the multinomial variance, because the records of the table are all there is to estimate.

The frontier is risk against precision over the settings (l, d), and the settings nearest to one that does not work.

*How well the shares of the true values can be recovered from N reports.* Where the true values are distributed as the
design expects (`pi = rho / l`), everything follows from the joint inclusion `Pi`: with `D = diag(rho)` and `X = D Pi^-1
D` the limit is

    (tr I^-1 - 1) / (F N),   tr I^-1 = (tr X - (1 - p^2) sum pi^2) / p^2

and the inverse estimator reaches it. (Put `I = p^2 X^-1 + (1 - p^2) 11'`, use `Pi 1 = l rho` and Sherman-Morrison; the
same algebra gives the variance of the inverse estimator.) On an evenly spaced circle `tr X = (l / F) sum 1 / lambda_k`
with the eigenvalues of the circulant `Q`; over clusters `tr X = l - sum_c (sum of s_v^2 in c) (A Q_c^-1)[c, c]` with
`A = Pi_c - diag(rho_c)`, by Woodbury's identity.

Elsewhere the sets are gone through one by one; where these are too many, `polyseme.designs.information` has the limit
of a design of maximum entropy. One by one: with `m_R = sum_v pi_v P(R | v)`

    I = sum_R P(R | .) P(R | .)' / m_R         Cov(w) = N (sum_R m_R 1_R 1_R' - Q' diag(pi) Q)

The variance of `inverse` is `Q^-T Cov(w) Q^-1`; that of `paper` the same with Equation 2 in place of Q (see below), and
its bias is what it makes of `Q' pi`.

*Equation 2 of the journal paper* is what its estimator takes the inclusion matrix to be:

    Q[v, u] = p * q(v, u) + (1 - p) * l / F
    q(v, v) = 1,   q(v, u) = (l - 1) / |extract(S, {v}, d)|  for compatible u, else 0

where
    extract(S, {v}, d)  the values at least d away from v
    p                   the truth probability, which the journal paper does not have: as in the sensitive-QID paper a
                        blind set is taken to hold every value with probability l / F

Every compatible value counts as an equally likely decoy. That is exact for `l = 2` with the simple algorithm; from
`l = 3` on it is not, because later decoys must be far from each other too.

*Rank and condition of Q* say whether the true values can be distinguished; designs know their own (`Spectrum`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Literal

import numpy as np

from polyseme.designs import make_design
from polyseme.designs.base import SET_LIMIT
from polyseme.designs.distribution import compatibility
from polyseme.designs.mechanism import Mechanism
from polyseme.designs.ring import DENSE, Spectrum
from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.errors import ImpossibleError, PolicyError
from polyseme.kernel.work import tracked
from polyseme.privacy.analysis.learner import success
from polyseme.semantics.distances.base import Clusters, Distance

__all__ = [
    "Facts",
    "Precision",
    "Setting",
    "Spectrum",
    "facts",
    "frontier",
    "least_limit",
    "nearest_settings",
    "paper_cluster_matrix",
    "paper_matrix",
    "precision",
    "spectrum",
    "thresholds",
    "worst_of",
]


def paper_matrix(mechanism: Mechanism) -> Floats:
    """`Q` between values: (F, F)."""
    compatible = compatibility(mechanism.design.structure)
    room = compatible.sum(axis=1)
    q = np.where(compatible, (mechanism.l - 1) / np.maximum(room, 1)[:, None], 0.0)
    np.fill_diagonal(q, 1.0)
    matrix: Floats = mechanism.p * q + (1.0 - mechanism.p) * mechanism.l / mechanism.size
    return matrix


def paper_cluster_matrix(clusters: Clusters, l: int) -> Floats:
    """`q` summed over the values of each cluster, for a true value of each cluster: (C, C).

    Without `p`.
    """
    sizes = np.bincount(clusters.labels, minlength=clusters.count).astype(np.float64)
    expected: Floats = (l - 1) * sizes[None, :] / np.maximum(clusters.size - sizes, 1.0)[:, None]
    np.fill_diagonal(expected, 1.0)
    return expected


def spectrum(mechanism: Mechanism) -> Spectrum:
    """Rank and condition of the inclusion matrix of a mechanism."""
    if mechanism.p == 0.0:
        everything = tuple(range(mechanism.size))
        return Spectrum(mechanism.size == 1, np.inf, (everything,) if mechanism.size > 1 else ())
    return mechanism.design.spectrum(mechanism.p)


_SINGULAR = 1e10
"""Condition number beyond which a variance is rounding; the estimators draw their own line at 1e11."""


@dataclass(frozen=True)
class Precision:
    """Expected mean squared errors of shares; None where unknown or unbounded."""

    inverse: float | None = None
    paper: float | None = None
    limit: float | None = None


def precision(mechanism: Mechanism, pi: Floats, records: int, shape: Spectrum, notes: list[str]) -> Precision:
    """Expected errors for a table of `records` records with true values distributed as `pi`."""
    design, size = mechanism.design, mechanism.size
    if shape.identifiable is False:
        notes.append("expected error: unbounded, because some values cannot be distinguished")
        return Precision()
    limit = inverse = paper = covariance = None
    if design.matches(pi):
        trace, p = design.matched_trace(), mechanism.p
        if trace is not None:
            limit = inverse = ((trace - (1.0 - p**2) * float(pi @ pi)) / p**2 - 1.0) / (size * records)
        covariance = _matched_covariance(mechanism, pi) if size <= DENSE else None
    elif size <= DENSE and np.all(pi > 0) and design.has_at_most(SET_LIMIT):
        information, covariance = _moments(mechanism, pi)
        limit = (float(np.trace(np.linalg.pinv(information, hermitian=True))) - 1.0) / (size * records)
        inverse = _error(mechanism.inclusion_matrix(), covariance, None, records)
    elif np.all(pi > 0):
        trace = design.least_error(pi, mechanism.p)
        limit = None if trace is None else trace / (size * records)
    if limit is None:
        notes.append("expected error: not computed for a domain of this size")
    if covariance is not None:
        expectation = (mechanism.inclusion_matrix().T @ pi, pi)
        paper = _error(paper_matrix(mechanism), covariance, expectation, records)
    return Precision(inverse, paper, limit)


def least_limit(mechanism: Mechanism, pi: Floats) -> float | None:
    """The limit of `precision` for one record, alone: all that a search for a setting looks at."""
    design, size, p = mechanism.design, mechanism.size, mechanism.p
    if design.matches(pi):
        trace = design.matched_trace()
        return None if trace is None else ((trace - (1.0 - p**2) * float(pi @ pi)) / p**2 - 1.0) / size
    if size <= DENSE and np.all(pi > 0) and design.has_at_most(SET_LIMIT):
        information, _, _ = _information(mechanism, pi)
        return (float(np.trace(np.linalg.pinv(information, hermitian=True))) - 1.0) / size
    trace = design.least_error(pi, p) if np.all(pi > 0) else None
    return None if trace is None else trace / size


def _matched_covariance(mechanism: Mechanism, pi: Floats) -> Floats:
    """Covariance of the membership indicators of one report that is distributed as the design."""
    joint = mechanism.design.conditional_inclusion(np.arange(mechanism.size)) * (mechanism.l * pi)[:, None]
    matrix = mechanism.inclusion_matrix()
    covariance: Floats = joint - matrix.T @ (pi[:, None] * matrix)
    return covariance


def _moments(mechanism: Mechanism, pi: Floats) -> tuple[Floats, Floats]:
    """The Fisher information of a report and the covariance of its membership, at truth `pi`."""
    size = mechanism.size
    fisher, sets, marginal = _information(mechanism, pi)
    together = np.zeros(size**2)
    for first in range(mechanism.l):
        for second in range(mechanism.l):
            together += np.bincount(sets[:, first] * size + sets[:, second], marginal, size**2)
    matrix = mechanism.inclusion_matrix()
    return fisher, together.reshape(size, size) - matrix.T @ (pi[:, None] * matrix)


def _information(mechanism: Mechanism, pi: Floats) -> tuple[Floats, Ints, Floats]:
    """The Fisher information of a report at truth `pi`, possible sets and their probabilities."""
    design, p, size = mechanism.design, mechanism.p, mechanism.size
    sets = design.sets()
    inside, blind = p * design.likelihood(sets), (1.0 - p) * design.blind_likelihood(sets)
    marginal = (pi[sets] * inside).sum(axis=1) + blind
    possible = marginal > 0
    sets, inside, blind, marginal = sets[possible], inside[possible], blind[possible], marginal[possible]
    information, single = np.zeros(size**2), np.zeros(size)
    for first in range(mechanism.l):
        single += np.bincount(sets[:, first], inside[:, first] * blind / marginal, size)
        for second in range(mechanism.l):
            pair = sets[:, first] * size + sets[:, second]
            information += np.bincount(pair, inside[:, first] * inside[:, second] / marginal, size**2)
    fisher = information.reshape(size, size) + single[:, None] + single[None, :] + float((blind**2 / marginal).sum())
    return fisher, sets, marginal


def _error(matrix: Floats, covariance: Floats, expectation: tuple[Floats, Floats] | None, records: int) -> float | None:
    """Mean squared error of solving `matrix' x = w` for shares; `expectation` is the mean of w."""
    if np.linalg.cond(matrix) > _SINGULAR:
        return None
    inverse = np.linalg.inv(matrix.T)
    variance = np.einsum("ij,jk,ik->i", inverse, covariance, inverse, optimize=True) / records
    bias = 0.0 if expectation is None else inverse @ expectation[0] - expectation[1]
    return float(np.mean(variance + np.square(bias)))


@dataclass(frozen=True)
class Facts:
    """Everything a plan says about one mechanism."""

    design: str
    size: int
    l: int
    p: float
    worst_posterior: float | None
    average_posterior: float | None
    prior_vulnerability: float
    epsilon: float | None
    identifiable: bool | None
    condition: float | None
    confounded: tuple[tuple[int, ...], ...] = ()
    """Groups of values (codes) that no estimator can tell apart."""
    records: int | None = None
    mse_inverse: float | None = None
    mse_paper: float | None = None
    mse_limit: float | None = None
    notes: tuple[str, ...] = field(default=())

    @property
    def expected_mse(self) -> float | None:
        """What the default estimator comes close to: the limit, else the inverse estimator's error."""
        return self.mse_limit if self.mse_limit is not None else self.mse_inverse


def facts(mechanism: Mechanism, prior: Floats | None = None, records: int | None = None) -> Facts:
    """The facts of a mechanism against an attacker with this prior (uniform by default).

    >>> from polyseme.designs import make_design
    >>> from polyseme.semantics.distances import LineDistance
    >>> found = facts(Mechanism(make_design("balanced", LineDistance.ranks(14).structure(7), 2)))
    >>> round(found.worst_posterior, 6), found.identifiable, found.confounded[:2]
    (0.5, False, ((0, 7), (1, 8)))
    """
    pi = attacker_prior(prior, mechanism.size)
    notes: list[str] = []
    worst = mechanism.worst_posterior(pi)
    if np.isnan(worst):
        notes.append(f"worst posterior: more than {SET_LIMIT:,} sets, too many to go through")
    average = success(mechanism, pi)
    if average is None:
        notes.append("average posterior: too many sets to go through")
    ratio = mechanism.design.epsilon(mechanism.p)
    if ratio is None:
        notes.append("epsilon: too many sets to go through")
    shape = spectrum(mechanism)
    if shape.note:
        notes.append(shape.note)
    accuracy = precision(mechanism, pi, records, shape, notes) if records else Precision()
    return Facts(
        design=mechanism.design.name,
        size=mechanism.size,
        l=mechanism.l,
        p=mechanism.p,
        worst_posterior=None if np.isnan(worst) else worst,
        average_posterior=average,
        prior_vulnerability=float(pi.max()),
        epsilon=ratio,
        identifiable=shape.identifiable,
        condition=shape.condition,
        confounded=shape.confounded,
        records=records,
        mse_inverse=accuracy.inverse,
        mse_paper=accuracy.paper,
        mse_limit=accuracy.limit,
        notes=tuple(notes),
    )


def worst_of(found: Sequence[Facts]) -> Facts:
    """The facts of several mechanisms: the first one's, with the worst risks of all.

    What is not known of one of them is not known of all; expected errors stay those of the first.
    """

    def largest(numbers: list[float | None]) -> float | None:
        known = [number for number in numbers if number is not None]
        return max(known) if len(known) == len(numbers) else None

    distinguished = [item.identifiable for item in found]
    return replace(
        found[0],
        worst_posterior=largest([item.worst_posterior for item in found]),
        average_posterior=largest([item.average_posterior for item in found]),
        prior_vulnerability=max(item.prior_vulnerability for item in found),
        epsilon=largest([item.epsilon for item in found]),
        identifiable=False if False in distinguished else None if None in distinguished else True,
        condition=largest([item.condition for item in found]),
        confounded=tuple(dict.fromkeys(group for item in found for group in item.confounded)),
        notes=tuple(dict.fromkeys(note for item in found for note in item.notes)),
    )


def attacker_prior(prior: Floats | None, size: int) -> Floats:
    """A prior that adds up to one; an attacker may rule values out, so zeros are allowed."""
    if prior is None:
        return np.full(size, 1.0 / size)
    pi = np.asarray(prior, dtype=np.float64)
    if pi.shape != (size,) or not np.all(np.isfinite(pi)) or np.any(pi < 0) or pi.sum() <= 0:
        raise PolicyError(f"a prior needs one number, not negative, for each of the {size:,} values")
    proper: Floats = pi / pi.sum()
    return proper


_PAIRS = 400
"""Values whose distances are looked at, and distances that are tried, in a large domain: chosen by judgment."""


@dataclass(frozen=True)
class Setting:
    """One pair (l, d): what it does, or why it cannot be had."""

    l: int
    d: float
    status: Literal["feasible", "infeasible", "unestimable"]
    facts: Facts | None = None
    reason: str = ""


def frontier(
    make: Callable[[int, float], Mechanism],
    ls: Iterable[int],
    ds: Iterable[float],
    records: int | None = None,
    prior: Floats | None = None,
) -> list[Setting]:
    """The facts of every setting of the grid.

    make  the mechanism of a setting; `ImpossibleError` when there is none
    """
    grid = list(product(ls, list(ds)))
    return [_setting(make, l, d, records, prior) for l, d in tracked(grid, "settings", "Trying settings")]


def _setting(
    make: Callable[[int, float], Mechanism], l: int, d: float, records: int | None, prior: Floats | None
) -> Setting:
    try:
        mechanism = make(l, d)
    except ImpossibleError as error:
        return Setting(l, d, "infeasible", reason=error.problems[0].what)
    found = facts(mechanism, prior, records)
    if found.identifiable is False:
        return Setting(l, d, "unestimable", found, "some values cannot be distinguished")
    return Setting(l, d, "feasible", found)


def thresholds(distance: Distance) -> list[float]:
    """The distances that occur, ascending.

    In a large domain those among some evenly chosen values.
    """
    codes = np.unique(np.linspace(0, distance.size - 1, min(distance.size, _PAIRS)).astype(np.int64))
    between = distance.between(codes[:, None], codes[None, :])
    found = np.unique(between[between > 0]).tolist()
    return [float(value) for value in found]


def nearest_settings(
    distance: Distance,
    l: int,
    d: float,
    name: str = "balanced",
    prior: Floats | None = None,
    sizes: Iterable[int] | None = None,
) -> list[tuple[int, float]]:
    """Settings that work, nearest first: for each l the largest d up to the requested one.

    sizes  the l to look at: from 2 to one more than requested

    A setting works when the design exists and no two values are confounded.
    """
    below = [value for value in thresholds(distance) if value < d]
    candidates = [d, *below[::-1]]
    if len(candidates) > 2 * _PAIRS:
        candidates = candidates[:: len(candidates) // _PAIRS]
    found: dict[tuple[int, float], float] = {}
    for size in range(2, l + 2) if sizes is None else sizes:
        if size > distance.size:
            continue
        reached = _largest(distance, size, candidates, name, prior)
        if reached is not None and (size, reached) != (l, d):
            found[size, reached] = abs(size - l) / l + (abs(reached - d) / d if d else 0.0)
    return sorted(found, key=lambda pair: (found[pair], -pair[0]))


def _largest(distance: Distance, l: int, candidates: list[float], name: str, prior: Floats | None) -> float | None:
    """The largest descending candidate at which a design of `l` exists and can be estimated."""
    low, high = 0, len(candidates)
    # Fewer values are compatible at a larger d, so existence is monotone and found by bisection.
    while low < high:
        middle = (low + high) // 2
        if _make(distance, l, candidates[middle], name, prior) is None:
            low = middle + 1
        else:
            high = middle
    for candidate in candidates[low:]:
        mechanism = _make(distance, l, candidate, name, prior)
        if mechanism is not None and spectrum(mechanism).identifiable is not False:
            return candidate
    return None


def _make(distance: Distance, l: int, d: float, name: str, prior: Floats | None) -> Mechanism | None:
    try:
        return Mechanism(make_design(name, distance.structure(d), l, prior))
    except ImpossibleError:
        return None
