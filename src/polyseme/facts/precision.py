"""How well the shares of the true values can be recovered from N reports.

Where the true values are distributed as the design expects (`pi = rho / l`), everything follows from the joint
inclusion `Pi`: with `D = diag(rho)` and `X = D Pi^-1 D` the limit is

    (tr I^-1 - 1) / (F N),   tr I^-1 = (tr X - (1 - p^2) sum pi^2) / p^2

and the inverse estimator reaches it. (Put `I = p^2 X^-1 + (1 - p^2) 11'`, use `Pi 1 = l rho` and Sherman-Morrison; the
same algebra gives the variance of the inverse estimator.) On an evenly spaced circle `tr X = (l / F) sum 1 / lambda_k`
with the eigenvalues of the circulant `Q`; over clusters `tr X = l - sum_c (sum of s_v^2 in c) (A Q_c^-1)[c, c]` with
`A = Pi_c - diag(rho_c)`, by Woodbury's identity.

Elsewhere the sets are gone through one by one; where these are too many, `designs/information.py` has the limit of a
design of maximum entropy. One by one: with `m_R = sum_v pi_v P(R | v)`

    I = sum_R P(R | .) P(R | .)' / m_R         Cov(w) = N (sum_R m_R 1_R 1_R' - Q' diag(pi) Q)

The variance of `inverse` is `Q^-T Cov(w) Q^-1`; that of `paper` the same with Equation 2 in place of Q, and its bias is
what it makes of `Q' pi`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyseme.designs.base import SET_LIMIT, SetDistribution
from polyseme.designs.circle import CircleDesign
from polyseme.designs.clusters import ClustersDesign
from polyseme.designs.entropy import MaximumEntropy
from polyseme.designs.information import least_error
from polyseme.designs.listing import compatibility
from polyseme.distances.structure import Floats
from polyseme.facts.identifiability import DENSE, Spectrum, cluster_matrix
from polyseme.mechanism import Mechanism

__all__ = ["Precision", "paper_matrix", "precision"]


@dataclass(frozen=True)
class Precision:
    """Expected mean squared errors of shares; None where unknown or unbounded."""

    inverse: float | None = None
    paper: float | None = None
    limit: float | None = None


def precision(mechanism: Mechanism, pi: Floats, records: int, shape: Spectrum, notes: list[str]) -> Precision:
    """Expected errors for a table of `records` records whose true values are distributed as `pi`."""
    design, size = mechanism.design, mechanism.size
    if shape.identifiable is False:
        notes.append("expected error: unbounded, because some values cannot be told apart")
        return Precision()
    matched = isinstance(design, SetDistribution) and np.allclose(design.inclusion(), mechanism.l * pi, rtol=1e-7)
    limit = inverse = paper = covariance = None
    if matched:
        trace, p = _matched_trace(mechanism), mechanism.p
        if trace is not None:
            limit = inverse = ((trace - (1.0 - p**2) * float(pi @ pi)) / p**2 - 1.0) / (size * records)
        covariance = _matched_covariance(mechanism, pi) if size <= DENSE else None
    elif size <= DENSE and np.all(pi > 0) and design.count() <= SET_LIMIT:
        information, covariance = _moments(mechanism, pi)
        limit = (float(np.trace(np.linalg.pinv(information, hermitian=True))) - 1.0) / (size * records)
        inverse = _error(mechanism.inclusion_matrix(), covariance, None, records)
    elif isinstance(design, MaximumEntropy) and np.all(pi > 0):
        trace = least_error(design, pi, mechanism.p)
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


def _matched_trace(mechanism: Mechanism) -> float | None:
    """`tr D Pi^-1 D`."""
    design = mechanism.design
    if isinstance(design, CircleDesign):
        return mechanism.l / mechanism.size * float(np.sum(1.0 / np.fft.fft(design.offsets).real))
    if isinstance(design, ClustersDesign) and design.clusters <= DENSE:
        matrix = cluster_matrix(design, 1.0)
        rho = design.chain.inclusion
        kernel = rho[:, None] * (matrix - np.eye(len(rho)))
        squares = np.bincount(design.structure.labels, design.shares**2, design.clusters)
        return mechanism.l - float(squares @ np.diag(np.linalg.solve(matrix.T, kernel.T).T))
    if isinstance(design, ClustersDesign) and design.alike:
        return _alike_trace(design)
    if mechanism.size > DENSE or not isinstance(design, SetDistribution):
        return None
    rho = design.inclusion()
    joint = design.conditional_inclusion(np.arange(mechanism.size)) * rho[:, None]
    return float(rho @ (np.diag(np.linalg.inv(joint)) * rho))


def _alike_trace(design: ClustersDesign) -> float:
    """The same where all clusters are drawn alike: `Q_c` has eigenvalues l and `1 - (l-1)/(C-1)`."""
    count, l, rho = design.clusters, design.l, design.l / design.clusters
    inner = 1.0 - (l - 1) / (count - 1)
    # A = rho (Q_c - I), so the mean diagonal of A Q_c^-1 is rho times the mean of 1 - 1/eigenvalue.
    diagonal = rho * (1.0 - (1.0 / l + (count - 1) / inner) / count)
    return l - float((design.shares**2).sum()) * diagonal


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
    if np.linalg.cond(matrix) > 1e10:
        return None
    inverse = np.linalg.inv(matrix.T)
    variance = np.einsum("ij,jk,ik->i", inverse, covariance, inverse, optimize=True) / records
    bias = 0.0 if expectation is None else inverse @ expectation[0] - expectation[1]
    return float(np.mean(variance + np.square(bias)))


def paper_matrix(mechanism: Mechanism) -> Floats:
    """Equation 2 of the journal paper: each compatible value taken to be a decoy with `(l-1) / |extract|`."""
    allowed = compatibility(mechanism.design.structure).astype(np.float64)
    matrix: Floats = (mechanism.l - 1) * allowed / np.maximum(allowed.sum(axis=1), 1.0)[:, None]
    np.fill_diagonal(matrix, 1.0)
    return matrix
