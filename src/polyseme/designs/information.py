"""How precisely shares can be estimated from sets drawn by a design: exact, and without a list of sets.

With `c = pi / rho`, `m(R) = p c(R) + 1 - p` (`c(R)` adds up `c` over R) and `a_v(R) = p [v in R] / rho_v + 1 - p`, a
report is R with probability `P(R) m(R)`, and its Fisher information about the shares is

    I[v, u] = sum over R of P(R) a_v(R) a_u(R) / m(R)

The mean squared error of a share over the values of a table of N records is at least `(tr I^-1 - 1) / (F N)`.

All it takes are sums of `P(R) / m(R)` over the sets that hold one or two given values. Where sets are too many to list,
`1 / m` is written as a sum of exponentials, `sum_k w_k exp(-r_k m)`, to `_ACCURACY` over all values that m can have; as
m adds up over the members of R, each term is a design of the same family with other weights.

Over clusters, with `s_v` the share of v in its cluster c and `sigma_c` the sum of their squares, p = 1 and `I_c` the
information about clusters alone (`g_c` the sum of `P(R) / m(R)` over the sets with a value of c),

    tr I^-1 = sum over c of (1 - sigma_c) rho_c^2 / g_c + sigma_c (I_c^-1)[c, c]
"""

from __future__ import annotations

import numpy as np

from polyseme.designs.chain import Chain
from polyseme.designs.clusters import ClustersDesign, cluster_masses
from polyseme.designs.entropy import MaximumEntropy
from polyseme.designs.enumerated import EnumeratedDesign
from polyseme.designs.line import LineDesign
from polyseme.distances.structure import Floats

__all__ = ["INFORMATION_LIMIT", "least_error"]

INFORMATION_LIMIT = 1_500
"""Most values (or clusters) for which the information is computed."""

_ACCURACY = 1e-9
_TERMS = range(8, 49, 4)
_SINGULAR = 1e10


def least_error(design: MaximumEntropy, prior: Floats, p: float = 1.0) -> float | None:
    """`tr I^-1 - 1` for true values distributed as `prior`; None where it is not computed.

    Infinite where some values cannot be told apart.
    """
    if p == 0.0:
        return np.inf
    if isinstance(design, EnumeratedDesign) and design.size <= INFORMATION_LIMIT:
        mass = p * (prior / design.inclusion())[design.possible].sum(axis=1) + 1.0 - p
        return _error(design.family.sums(1.0 / mass), design.inclusion(), prior, np.ones(design.size), p)
    if isinstance(design, LineDesign) and design.size <= INFORMATION_LIMIT:
        pi = prior[design.structure.order]
        return _error(_chain_sums(design.chain, pi, p), design.chain.inclusion, pi, np.ones(design.size), p)
    if isinstance(design, ClustersDesign) and design.clusters <= INFORMATION_LIMIT:
        return _over_clusters(design, prior, p)
    return None


def _over_clusters(design: ClustersDesign, prior: Floats, p: float) -> float | None:
    mass = cluster_masses(design.structure, prior)
    in_proportion = np.allclose(design.shares * mass[design.structure.labels], prior, rtol=1e-9)
    single = design.clusters == design.size
    if not single and (p < 1.0 or not in_proportion):
        return None
    squares = cluster_masses(design.structure, design.shares**2)
    return _error(_chain_sums(design.chain, mass, p), design.chain.inclusion, mass, squares, p)


Sums = tuple[float, Floats, Floats]
"""Sums of `P(R) / m(R)`: over all sets, over those with each value, over those with each pair."""


def _error(sums: Sums, rho: Floats, prior: Floats, squares: Floats, p: float) -> float:
    everything, single, pair = sums
    slope = p * (1.0 - p) * single / rho
    information = p**2 * pair / np.outer(rho, rho) + slope[:, None] + slope + (1.0 - p) ** 2 * everything
    # Scaled so that no eigenvalue exceeds one: what is large in the inverse is not a matter of units.
    root = np.sqrt(prior)
    try:
        inverse = np.diag(np.linalg.inv(information * np.outer(root, root)))
    except np.linalg.LinAlgError:
        return np.inf
    if not np.all((inverse > 0.0) & (inverse < _SINGULAR)):
        return np.inf
    within = (1.0 - squares) * rho**2 / single
    return float(within.sum() + squares @ (prior * inverse)) - 1.0


def _chain_sums(chain: Chain, prior: Floats, p: float) -> Sums:
    # Every set has l members, so 1 - p is spread over them.
    score = p * prior / chain.inclusion + (1.0 - p) / chain.l
    lowest, highest = float(chain.lightest(score).min()), -float(chain.lightest(-score).min())
    rates, weights = exponentials(lowest, highest)
    everything, single, pair = 0.0, np.zeros(chain.size), np.zeros((chain.size, chain.size))
    for rate, weight in zip(rates.tolist(), weights.tolist(), strict=True):
        tilted = Chain(chain.steps, chain.l, chain.log_weights - rate * score)
        factor = weight * float(np.exp(tilted.log_partition - chain.log_total))
        everything += factor
        single += factor * tilted.inclusion
        pair += factor * tilted.joint_matrix()
    return everything, single, pair


def exponentials(low: float, high: float) -> tuple[Floats, Floats]:
    """Rates and weights with `sum_k w_k exp(-r_k m) = 1 / m` for `low <= m <= high`, to a relative `_ACCURACY`.

    >>> rates, weights = exponentials(0.5, 2.0)
    >>> abs(float(weights @ np.exp(-rates * 0.8)) - 1 / 0.8) < 1e-8
    True
    """
    ratio = max(high / low, 1.001)
    fitted, checked = np.geomspace(1.0, ratio, 300), np.geomspace(1.0, ratio, 1001)
    for terms in _TERMS:
        rates = np.geomspace(0.1 / ratio, 15.0, terms)
        weights = np.linalg.lstsq(_terms(fitted, rates), np.ones(len(fitted)), rcond=1e-13)[0]
        if np.abs(_terms(checked, rates) @ weights - 1.0).max() <= _ACCURACY:
            break
    return rates / low, np.asarray(weights / low, dtype=np.float64)


def _terms(m: Floats, rates: Floats) -> Floats:
    terms: Floats = m[:, None] * np.exp(-np.outer(m, rates))
    return terms
