"""A test of independence of two attributes of an estimated table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special

from polyseme.distances.structure import Floats
from polyseme.errors import QuestionError

__all__ = ["Independence", "wald_independence"]


@dataclass(frozen=True)
class Independence:
    """A test of independence: the statistic, its degrees of freedom, and the chance of one as large by chance."""

    statistic: float
    freedom: int
    p_value: float


def wald_independence(shares: Floats, variances: Callable[[Floats], Floats]) -> Independence:
    """Wald's test of `p_ij = p_i. p_.j`.

    where
        shares     the estimated p, (I, J)
        variances  of linear functions of p, given their gradients (k, I, J)

    The departures `p_ij - p_i. p_.j` of all rows and columns but the last are linearised at the estimate; their
    covariance leaves out directions in which the data say nothing.
    """
    row, column = shares.sum(axis=1), shares.sum(axis=0)
    rows, columns = np.flatnonzero(row > 0), np.flatnonzero(column > 0)
    gradients, departures = [], []
    for i in rows[:-1]:
        for j in columns[:-1]:
            gradient = np.zeros(shares.shape)
            gradient[i, j] += 1.0
            gradient[i, :] -= column[j]
            gradient[:, j] -= row[i]
            gradients.append(gradient)
            departures.append(shares[i, j] - row[i] * column[j])
    if not gradients:
        return Independence(0.0, 0, 1.0)
    covariance = _covariance(np.array(gradients), variances)
    if not np.isfinite(covariance).all():
        raise QuestionError("independence cannot be tested: some values leave the same traces in the sets")
    values, vectors = np.linalg.eigh(covariance)
    kept = values > 1e-9 * values.max(initial=0.0)
    turned = vectors[:, kept].T @ np.array(departures)
    statistic, freedom = float((turned**2 / values[kept]).sum()), int(kept.sum())
    return Independence(statistic, freedom, float(special.chdtrc(freedom, statistic)) if freedom else 1.0)


def _covariance(gradients: Floats, variances: Callable[[Floats], Floats]) -> Floats:
    """Covariances by polarisation: `4 Cov(a, b) = Var(a + b) - Var(a - b)`."""
    out = np.empty((len(gradients), len(gradients)))
    for place, gradient in enumerate(gradients):
        others = gradients[place:]
        out[place, place:] = (variances(others + gradient) - variances(others - gradient)) / 4.0
        out[place:, place] = out[place, place:]
    return out
