"""How far a reconstructed distribution is from the truth, before any record is touched."""

from __future__ import annotations

import numpy as np

from polyseme.arrays import Floats, Ints

__all__ = ["expected_l2"]


def expected_l2(records: float, size: int, eta: int | Ints, p: float | Floats) -> Floats:
    """Expected L2 distance between estimated and true shares, for sets drawn uniformly and the inverse estimator.

        EL2^2 = (F - 1) ((F - 1 + p^2) eta - p^2 F) / (p^2 F N (F - eta))

    where
        records  N, the number of records
        size     F, the number of values (the paper's d_j)
        eta      the number of candidates in a set
        p        the truth probability

    It is the root of the summed squared error of all shares, whatever the distribution is; multiply by N for counts.
    It grows with eta and falls with p (Equation 9 and Theorem 1 of the sensitive quasi-identifier paper).
    Infinite when nothing can be estimated: p = 0, or sets that hold the whole domain.

    >>> round(float(expected_l2(1_000, 10, 2, 1.0)), 4)
    0.0335
    """
    F, k, told = float(size), np.asarray(eta, dtype=np.float64), np.asarray(p, dtype=np.float64) ** 2
    if size == 1:
        return np.zeros(np.broadcast_shapes(k.shape, told.shape))
    # (F - 1 + p^2) eta - p^2 F, regrouped so that it is exactly zero at eta = p = 1.
    spread = (F - 1.0) * (k - told) + told * (k - 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        squared = (F - 1.0) * spread / (told * F * records * (F - k))
    return np.where((told > 0.0) & (k < F), np.sqrt(squared), np.inf)
