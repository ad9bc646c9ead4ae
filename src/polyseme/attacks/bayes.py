"""The Bayesian adversary: knows the exact channel and a prior, and takes every set at its word.

Success is the largest posterior probability of any value for any published record: the person worst off. The promise
of 1/l is made for the reference prior of the mechanism (uniform unless the policy says otherwise); with another prior
the posterior may rise for reasons that have nothing to do with the release, which the baseline shows.
"""

from __future__ import annotations

import numpy as np

from polyseme.attacks.base import Finding, above, hit_rate, largest_share
from polyseme.attacks.posterior import posterior_of, uniform
from polyseme.distances.structure import Floats, Ints
from polyseme.mechanism import Mechanism

__all__ = ["attack"]


def attack(
    sets: Ints,
    mechanism: Mechanism,
    *,
    attribute: str = "",
    prior: Floats | None = None,
    bound: float | None = None,
    truth: Ints | None = None,
) -> Finding:
    """The surest posterior over all published sets, against `bound` (1/l by default). Exact."""
    prior = uniform(mechanism.size) if prior is None else np.asarray(prior, dtype=np.float64)
    bound = 1.0 / mechanism.l if bound is None else bound
    posterior = posterior_of(sets, mechanism, prior)
    success = float(posterior.best.max())
    detail = {"mean_posterior": float(posterior.best.mean())}
    if truth is not None:
        detail["hit_rate"] = float(hit_rate(posterior.inside, sets == truth[:, None]).mean())
    return Finding(
        "bayes",
        attribute,
        success,
        bound,
        largest_share(truth, prior),
        above(success, bound),
        knows="the published set, the exact mechanism and a prior over the values",
        gains="the value of the person whose set speaks most clearly",
        helps="the balanced mechanism, with a reference prior near the truth; a larger l",
        detail=detail,
    )
