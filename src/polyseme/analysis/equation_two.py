"""Equation 2 of the journal paper: what its estimator takes the inclusion matrix to be.

    Q[v, u] = p * q(v, u) + (1 - p) * l / F
    q(v, v) = 1,   q(v, u) = (l - 1) / |extract(S, {v}, d)|  for compatible u, else 0

where
    extract(S, {v}, d)  the values at least d away from v
    p                   the truth probability, which the journal paper does not have: as in the sensitive-QID paper a
                        blind set is taken to hold every value with probability l / F

Every compatible value counts as an equally likely decoy. That is exact for `l = 2` with the simple algorithm; from
`l = 3` on it is not, because later decoys must be far from each other too.
"""

from __future__ import annotations

import numpy as np

from polyseme.arrays import Floats
from polyseme.designs.listing import compatibility
from polyseme.distances.structure import Clusters
from polyseme.mechanism import Mechanism

__all__ = ["paper_cluster_matrix", "paper_matrix"]


def paper_matrix(mechanism: Mechanism) -> Floats:
    """`Q` between values: (F, F)."""
    compatible = compatibility(mechanism.design.structure)
    room = compatible.sum(axis=1)
    q = np.where(compatible, (mechanism.l - 1) / np.maximum(room, 1)[:, None], 0.0)
    np.fill_diagonal(q, 1.0)
    matrix: Floats = mechanism.p * q + (1.0 - mechanism.p) * mechanism.l / mechanism.size
    return matrix


def paper_cluster_matrix(clusters: Clusters, l: int) -> Floats:
    """`q` summed over the values of each cluster, for a true value of each cluster: (C, C); without `p`."""
    sizes = np.bincount(clusters.labels, minlength=clusters.count).astype(np.float64)
    expected: Floats = (l - 1) * sizes[None, :] / np.maximum(clusters.size - sizes, 1.0)[:, None]
    np.fill_diagonal(expected, 1.0)
    return expected
