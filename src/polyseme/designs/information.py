"""How precisely a design's sets give shares: exact, and without a list of sets.

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
from polyseme.kernel.arrays import Floats, Ints

__all__ = [
    "INFORMATION_LIMIT",
    "Sums",
    "chain_sums",
    "error_from",
    "exponentials",
    "information_from",
    "tilted_sums",
]

INFORMATION_LIMIT = 1_500
"""Most values (or clusters) for which the information is computed: some forty joint matrices of 18 MB, one after the
other. Chosen by judgment."""

_ACCURACY = 1e-9
"""Relative error of `1 / m` as a sum of exponentials: what a fit is good to."""
_TERMS = range(8, 49, 4)
"""How many exponentials are tried. Measured: 20 reach `_ACCURACY` where the largest m is 10 times the smallest, 32 at
1,000 times; at 10,000 times 48 reach 2e-9, at a million times 2e-8, and that is what is then taken."""
_SINGULAR = 1e10
"""Scaled variances beyond this are those of values that cannot be distinguished: chosen by judgment."""


Sums = tuple[float, Floats, Floats]
"""Sums of `P(R) / m(R)`: over all sets, over those with each value, over those with each pair."""


def information_from(sums: Sums, rho: Floats, p: float) -> Floats:
    """`I` from the sums, for values or for clusters with these inclusion probabilities: (F, F)."""
    everything, single, pair = sums
    slope = p * (1.0 - p) * single / rho
    information: Floats = p**2 * pair / np.outer(rho, rho) + slope[:, None] + slope + (1.0 - p) ** 2 * everything
    return information


def error_from(sums: Sums, rho: Floats, prior: Floats, squares: Floats, p: float) -> float:
    """`tr I^-1 - 1` from the sums; `squares` are `sigma` of clusters, ones for single values.

    Infinite if singular.
    """
    _, single, _ = sums
    information = information_from(sums, rho, p)
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


def chain_sums(chain: Chain, prior: Floats, p: float) -> Sums:
    """The sums over the sets of a chain."""
    # Every set has l members, so 1 - p is spread over them.
    score = p * prior / chain.inclusion + (1.0 - p) / chain.l
    return tilted_sums(chain, np.arange(chain.size), np.ones(chain.size), score)


def tilted_sums(chain: Chain, labels: Ints, shares: Floats, score: Floats) -> Sums:
    """The sums over sets of values whose places follow a chain.

    labels  the place of each value, and `shares` how often it is the one that stands there
    score   what each value adds to m
    """
    size, alone = len(labels), np.array_equal(labels, np.arange(chain.size))
    least, most = np.full(chain.size, np.inf), np.full(chain.size, -np.inf)
    np.minimum.at(least, labels, score)
    np.maximum.at(most, labels, score)
    low, high = float(chain.lightest(least).min()), -float(chain.lightest(-most).min())
    everything, single, pair = 0.0, np.zeros(size), np.zeros((size, size))
    for rate, weight in zip(*(column.tolist() for column in exponentials(low, high)), strict=True):
        within = shares * np.exp(-rate * (score - least[labels]))
        mass = np.bincount(labels, weights=within, minlength=chain.size)
        tilted = Chain(chain.steps, chain.l, chain.log_weights + np.log(mass) - rate * least)
        factor = weight * float(np.exp(tilted.log_partition - chain.log_total))
        part, joint = within / mass[labels], tilted.joint_matrix()
        everything += factor
        single += factor * tilted.inclusion[labels] * part
        pair += factor * (joint if alone else joint[np.ix_(labels, labels)] * np.outer(part, part))
    # No set holds two values of one place.
    pair[labels[:, None] == labels] = 0.0
    pair.flat[:: size + 1] = single
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
