"""Can the true values be told apart? Rank and condition of `Q`, by structure.

- Evenly spaced circle: `Q` is circulant, its singular values are the moduli of a Fourier transform.
- Clusters: with membership `M` and shares `S` (both F x C), `Q = p I + M K S'`, where `K = Q_c - p I` and `Q_c` is the
  inclusion matrix of the clusters. `S' M = I`, so Q is invertible exactly when `Q_c` is (and p > 0), null vectors
  are null vectors of `Q_c` spread by share, and all singular values but p come from a matrix of twice as many rows as
  there are clusters.
- Anything else: dense, up to `DENSE` values.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyseme.designs.circle import CircleDesign
from polyseme.designs.clusters import ClustersDesign
from polyseme.distances.structure import Floats, Ints
from polyseme.errors import ImpossibleError
from polyseme.mechanism import Mechanism

__all__ = ["DENSE", "Spectrum", "cluster_matrix", "spectrum"]

DENSE = 1_500
"""Largest matrix that is decomposed."""

_ZERO = 1e-10


@dataclass(frozen=True)
class Spectrum:
    """Whether Q has full rank, how well conditioned it is, and which values it confounds; None where unknown."""

    identifiable: bool | None
    condition: float | None
    confounded: tuple[tuple[int, ...], ...] = ()
    note: str = ""


def spectrum(mechanism: Mechanism) -> Spectrum:
    """Rank and condition of the inclusion matrix of a mechanism."""
    design = mechanism.design
    if mechanism.p == 0.0:
        everything = tuple(range(mechanism.size))
        return Spectrum(mechanism.size == 1, np.inf, (everything,) if mechanism.size > 1 else ())
    if isinstance(design, ClustersDesign) and design.clusters <= DENSE:
        return _of_clusters(design, mechanism.p)
    if isinstance(design, ClustersDesign) and design.alike:
        return _of_equal_clusters(design, mechanism.p)
    if isinstance(design, CircleDesign):
        return _of_circle(design, mechanism.p)
    if mechanism.size > DENSE:
        return Spectrum(None, None, note=f"rank and condition: not computed beyond {DENSE:,} values of this structure")
    try:
        matrix = mechanism.inclusion_matrix()
    except ImpossibleError:
        return Spectrum(None, None, note="rank and condition: too many sets to go through")
    values, vectors = _decompose(matrix)
    return _summary(values, vectors, [[code] for code in range(mechanism.size)])


def _decompose(matrix: Floats) -> tuple[Floats, Floats]:
    """Singular values, and the left vectors belonging to those that are zero: (rows, nullity)."""
    values = np.asarray(np.linalg.svd(matrix, compute_uv=False), dtype=np.float64)
    zero = values <= _ZERO * values[0]
    if not zero.any():
        return values, np.empty((len(matrix), 0))
    return values, np.asarray(np.linalg.svd(matrix)[0][:, zero], dtype=np.float64)


def _summary(values: Floats, null: Floats, members: list[list[int]]) -> Spectrum:
    if null.shape[1] == 0:
        return Spectrum(True, float(values.max() / values.min()))
    return Spectrum(False, np.inf, _groups(null, members))


def _groups(null: Floats, members: list[list[int]]) -> tuple[tuple[int, ...], ...]:
    """Values that move together in what the reports do not show: connected through the projector on the null space."""
    linked = np.abs(null @ null.T) > 1e-7
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


def cluster_matrix(design: ClustersDesign, p: float) -> Floats:
    """`Q_c[c, c'] = P(cluster c' is in the set | the true value is in c)`."""
    rho = design.chain.inclusion
    matrix: Floats = p * design.chain.joint_matrix() / rho[:, None] + (1.0 - p) * rho
    return matrix


def _of_clusters(design: ClustersDesign, p: float) -> Spectrum:
    matrix = cluster_matrix(design, p)
    count, labels = design.clusters, design.structure.labels
    _, null = _decompose(matrix)
    if null.shape[1]:
        members: list[list[int]] = [[] for _ in range(count)]
        for code, label in enumerate(labels.tolist()):
            members[label].append(code)
        return Spectrum(False, np.inf, _groups(null, members))
    root = np.sqrt(np.bincount(labels, minlength=count))
    square = np.bincount(labels, design.shares**2, count)
    rest = np.sqrt(np.maximum(square - 1.0 / root**2, 0.0))
    kernel = root[:, None] * (matrix - p * np.eye(count))
    if rest.max(initial=0.0) <= 1e-12:
        values = np.linalg.svd(p * np.eye(count) + kernel / root, compute_uv=False)
    else:
        upper = np.concatenate([p * np.eye(count) + kernel / root, kernel * rest], axis=1)
        lower = np.concatenate([np.zeros((count, count)), p * np.eye(count)], axis=1)
        values = np.linalg.svd(np.concatenate([upper, lower]), compute_uv=False)
    if design.size > count:
        values = np.append(values, p)
    return Spectrum(True, float(values.max() / values.min()))


def _of_equal_clusters(design: ClustersDesign, p: float) -> Spectrum:
    """All clusters drawn alike and of one size: two singular values, and p within clusters."""
    count, l = design.clusters, design.l
    other = p * (l - 1) / (count - 1)
    values = [float(l), p - other]
    if design.size > count:
        values.append(p)
    if min(values) <= _ZERO * l:
        return Spectrum(False, np.inf, (tuple(range(design.size)),))
    return Spectrum(True, max(values) / min(values))


def _of_circle(design: CircleDesign, p: float) -> Spectrum:
    transform = np.fft.fft(design.offsets)
    values = np.abs(p * transform)
    values[0] = design.l
    zero = values <= _ZERO * design.l
    if not zero.any():
        return Spectrum(True, float(values.max() / values.min()))
    order: Ints = design.structure.order
    waves = np.exp(2j * np.pi * np.outer(np.arange(design.size), np.flatnonzero(zero)) / design.size)
    null = np.concatenate([waves.real, waves.imag], axis=1) / np.sqrt(design.size)
    return Spectrum(False, np.inf, _groups(null, [[int(code)] for code in order]))
