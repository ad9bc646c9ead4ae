"""Can the true values be distinguished? Rank, condition and trace of inclusion matrices, by structure.

`Q[v, u] = P(u in R | v)` has full rank exactly when different distributions of true values give different reports.

- Evenly spaced circle: `Q` is circulant, its singular values are the moduli of a Fourier transform.
- Clusters: with membership `M` and shares `S` (both F x C), `Q = p I + M K S'`, where `K = Q_c - p I` and `Q_c` is the
  inclusion matrix of the clusters. `S' M = I`, so Q is invertible exactly when `Q_c` is (and p > 0), null vectors
  are null vectors of `Q_c` spread by share, and all singular values but p come from a matrix of twice as many rows as
  there are clusters.
- Anything else: dense, up to `DENSE` values.

The traces are those of `X = D Pi^-1 D`, with `Pi` the joint inclusion at p = 1 and `D = diag(rho)`, from which the
precision of estimates follows (see `analysis/precision.py`): on the circle `tr X = (l / F) sum 1 / lambda_k` with the
eigenvalues of the circulant, over clusters `tr X = l - sum_c (sum of s_v^2 in c) (A Q_c^-1)[c, c]` with
`A = Pi_c - diag(rho_c)`, by Woodbury's identity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from polyseme.arrays import Floats, Ints
from polyseme.designs.chain import Chain

__all__ = [
    "DENSE",
    "Spectrum",
    "alike_spectrum",
    "alike_trace",
    "circulant_spectrum",
    "cluster_spectrum",
    "cluster_trace",
    "dense_spectrum",
    "dense_trace",
]

DENSE = 1_500
"""Largest matrix that is decomposed: chosen by judgment. Measured on one core, its singular values take 0.8 s, its
inverse 0.3 s."""

_ZERO = 1e-10
"""Singular values below this part of the largest count as zero: rounding leaves about 1e-16 times the size."""

_EQUAL_SHARES = 1e-12
"""Shares of a cluster that differ by less are equal, but for rounding."""

_LINKED = 1e-7
"""Entries of the projector on the null space beyond this link two values: chosen by judgment, far above rounding."""


@dataclass(frozen=True)
class Spectrum:
    """Whether Q has full rank, how well conditioned it is, and which values it confounds; None where unknown."""

    identifiable: bool | None
    condition: float | None
    confounded: tuple[tuple[int, ...], ...] = ()
    note: str = ""


def dense_spectrum(matrix: Floats) -> Spectrum:
    """By decomposing the whole matrix."""
    values, null = _decompose(matrix)
    if null.shape[1] == 0:
        return Spectrum(True, float(values.max() / values.min()))
    return Spectrum(False, np.inf, _groups(null, [[code] for code in range(len(matrix))]))


def _decompose(matrix: Floats) -> tuple[Floats, Floats]:
    """Singular values, and the left vectors belonging to those that are zero: (rows, nullity)."""
    values = np.asarray(np.linalg.svd(matrix, compute_uv=False), dtype=np.float64)
    zero = values <= _ZERO * values[0]
    if not zero.any():
        return values, np.empty((len(matrix), 0))
    return values, np.asarray(np.linalg.svd(matrix)[0][:, zero], dtype=np.float64)


def _groups(null: Floats, members: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """Values that move together in what the reports do not show: connected through the projector on the null space."""
    linked = np.abs(null @ null.T) > _LINKED
    seen: set[int] = set()
    groups = []
    for start in range(len(linked)):
        if start in seen or not linked[start, start]:
            continue
        group, queue = {start}, [start]
        while queue:
            following = set(np.flatnonzero(linked[queue.pop()]).tolist()) - group
            group |= following
            queue.extend(following)
        seen |= group
        groups.append(tuple(sorted(code for index in group for code in members[index])))
    return tuple(groups)


def _cluster_matrix(chain: Chain, p: float) -> Floats:
    """`Q_c[c, c'] = P(cluster c' is in the set | the true value is in c)`."""
    rho = chain.inclusion
    matrix: Floats = p * chain.joint_matrix() / rho[:, None] + (1.0 - p) * rho
    return matrix


def cluster_spectrum(chain: Chain, labels: Ints, shares: Floats, p: float) -> Spectrum:
    """Clusters drawn by a chain, values within a cluster by share."""
    matrix, count = _cluster_matrix(chain, p), chain.size
    _, null = _decompose(matrix)
    if null.shape[1]:
        members: list[list[int]] = [[] for _ in range(count)]
        for code, label in enumerate(labels.tolist()):
            members[label].append(code)
        return Spectrum(False, np.inf, _groups(null, members))
    root = np.sqrt(np.bincount(labels, minlength=count))
    square = np.bincount(labels, shares**2, count)
    rest = np.sqrt(np.maximum(square - 1.0 / root**2, 0.0))
    kernel = root[:, None] * (matrix - p * np.eye(count))
    # Where shares are equal the second half of the matrix has nothing to add.
    if rest.max(initial=0.0) <= _EQUAL_SHARES:
        values = np.linalg.svd(p * np.eye(count) + kernel / root, compute_uv=False)
    else:
        upper = np.concatenate([p * np.eye(count) + kernel / root, kernel * rest], axis=1)
        lower = np.concatenate([np.zeros((count, count)), p * np.eye(count)], axis=1)
        values = np.linalg.svd(np.concatenate([upper, lower]), compute_uv=False)
    if len(labels) > count:
        values = np.append(values, p)
    return Spectrum(True, float(values.max() / values.min()))


def alike_spectrum(count: int, size: int, l: int, p: float) -> Spectrum:
    """`count` clusters drawn alike and of one size: two singular values, and p within clusters."""
    other = p * (l - 1) / (count - 1)
    values = [float(l), p - other]
    if size > count:
        values.append(p)
    if min(values) <= _ZERO * l:
        return Spectrum(False, np.inf, (tuple(range(size)),))
    return Spectrum(True, max(values) / min(values))


def circulant_spectrum(offsets: Floats, order: Ints, l: int, p: float) -> Spectrum:
    """An evenly spaced circle; `offsets` is the first row of the circulant at p = 1, by place."""
    values = np.abs(p * np.fft.fft(offsets))
    values[0] = l
    zero = values <= _ZERO * l
    if not zero.any():
        return Spectrum(True, float(values.max() / values.min()))
    size = len(offsets)
    waves = np.exp(2j * np.pi * np.outer(np.arange(size), np.flatnonzero(zero)) / size)
    null = np.concatenate([waves.real, waves.imag], axis=1) / np.sqrt(size)
    return Spectrum(False, np.inf, _groups(null, [[int(code)] for code in order]))


def dense_trace(rho: Floats, joint: Floats) -> float:
    """`tr D Pi^-1 D` of a whole matrix; infinite for a singular one."""
    try:
        return float(rho @ (np.diag(np.linalg.inv(joint)) * rho))
    except np.linalg.LinAlgError:
        return np.inf


def cluster_trace(chain: Chain, labels: Ints, shares: Floats) -> float:
    """The same over clusters."""
    matrix, rho = _cluster_matrix(chain, 1.0), chain.inclusion
    kernel = rho[:, None] * (matrix - np.eye(len(rho)))
    squares = np.bincount(labels, shares**2, chain.size)
    try:
        return chain.l - float(squares @ np.diag(np.linalg.solve(matrix.T, kernel.T).T))
    except np.linalg.LinAlgError:
        return np.inf


def alike_trace(count: int, l: int, shares: Floats) -> float:
    """The same where all clusters are drawn alike: `Q_c` has eigenvalues l and `1 - (l-1)/(C-1)`."""
    rho, inner = l / count, 1.0 - (l - 1) / (count - 1)
    # A = rho (Q_c - I), so the mean diagonal of A Q_c^-1 is rho times the mean of 1 - 1/eigenvalue.
    diagonal = rho * (1.0 - (1.0 / l + (count - 1) / inner) / count)
    return l - float((shares**2).sum()) * diagonal
