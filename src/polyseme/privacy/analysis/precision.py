"""How well the shares of the true values can be recovered from N reports.

Where the true values are distributed as the design expects (`pi = rho / l`), everything follows from the joint
inclusion `Pi`: with `D = diag(rho)` and `X = D Pi^-1 D` the limit is

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

from dataclasses import dataclass

import numpy as np

from polyseme.designs.base import SET_LIMIT
from polyseme.designs.distribution import compatibility
from polyseme.designs.mechanism import Mechanism
from polyseme.designs.ring import DENSE, Spectrum
from polyseme.kernel.arrays import Floats
from polyseme.semantics.distances.base import Clusters

__all__ = ["Precision", "Spectrum", "paper_cluster_matrix", "paper_matrix", "precision", "spectrum"]


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


def _matched_covariance(mechanism: Mechanism, pi: Floats) -> Floats:
    """Of the membership indicators of one report; the report itself is then distributed as the design."""
    joint = mechanism.design.conditional_inclusion(np.arange(mechanism.size)) * (mechanism.l * pi)[:, None]
    matrix = mechanism.inclusion_matrix()
    covariance: Floats = joint - matrix.T @ (pi[:, None] * matrix)
    return covariance


def _moments(mechanism: Mechanism, pi: Floats) -> tuple[Floats, Floats]:
    """The Fisher information of a report and the covariance of its membership indicators, at truth `pi`."""
    design, p, size = mechanism.design, mechanism.p, mechanism.size
    sets = design.sets()
    inside, blind = p * design.likelihood(sets), (1.0 - p) * design.blind_likelihood(sets)
    marginal = (pi[sets] * inside).sum(axis=1) + blind
    possible = marginal > 0
    sets, inside, blind, marginal = sets[possible], inside[possible], blind[possible], marginal[possible]
    information, together, single = np.zeros(size**2), np.zeros(size**2), np.zeros(size)
    for first in range(mechanism.l):
        single += np.bincount(sets[:, first], inside[:, first] * blind / marginal, size)
        for second in range(mechanism.l):
            pair = sets[:, first] * size + sets[:, second]
            information += np.bincount(pair, inside[:, first] * inside[:, second] / marginal, size**2)
            together += np.bincount(pair, marginal, size**2)
    fisher = information.reshape(size, size) + single[:, None] + single[None, :] + float((blind**2 / marginal).sum())
    matrix = mechanism.inclusion_matrix()
    return fisher, together.reshape(size, size) - matrix.T @ (pi[:, None] * matrix)


def _error(matrix: Floats, covariance: Floats, expectation: tuple[Floats, Floats] | None, records: int) -> float | None:
    """Mean squared error of solving `matrix' x = w` for shares; `expectation` is the mean of w and the truth."""
    if np.linalg.cond(matrix) > _SINGULAR:
        return None
    inverse = np.linalg.inv(matrix.T)
    variance = np.einsum("ij,jk,ik->i", inverse, covariance, inverse, optimize=True) / records
    bias = 0.0 if expectation is None else inverse @ expectation[0] - expectation[1]
    return float(np.mean(variance + np.square(bias)))
