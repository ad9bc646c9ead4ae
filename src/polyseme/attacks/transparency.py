"""The transparent adversary (minimality): knows the algorithm, and that some members of a set draw it more readily.

It guesses the member v of R with the largest `P(R | v)`. With the original, success is the observed share of right
guesses; without, the expected share under the prior of the promise (uniform unless given), which is exact.

Under the balanced design with a uniform prior all members are equally ready, and the guess is no better than 1/l;
under the papers' sequential algorithm they are not.

The promise is made for its prior. Where it holds for that one but the truth is distributed otherwise, the mechanism may
let more guesses be right; observed success is then held against what the mechanism allows for the true distribution.
"""

from __future__ import annotations

import numpy as np

from polyseme.attacks.base import Finding, above, hit_rate, largest_share, significantly_above
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
    """How often the likeliest member of the set is the true one."""
    bound = 1.0 / mechanism.l if bound is None else bound
    posterior = posterior_of(sets, mechanism, uniform(mechanism.size))
    expected = posterior.best if prior is None else _readiest(posterior.inside, sets, mechanism, prior)
    detail = {"worst_person": float(expected.max())}
    success = float(expected.mean())
    exceeded = above(success, bound)
    if truth is not None:
        detail["expected"] = success
        hits = hit_rate(posterior.inside, sets == truth[:, None])
        success = float(hits.mean())
        if not exceeded:
            met = np.bincount(truth, minlength=mechanism.size) / len(truth)
            bound = max(bound, float(_readiest(posterior.inside, sets, mechanism, met).mean()))
            exceeded = significantly_above(float(hits.sum()), len(hits), bound)
    return Finding(
        "transparency",
        attribute,
        success,
        bound,
        largest_share(truth, uniform(mechanism.size)),
        exceeded,
        knows="the published set and the algorithm that drew it",
        gains="the member of the set that was most ready to draw it",
        helps="the balanced mechanism, under which all members are equally ready",
        detail=detail,
    )


def _readiest(readiness: Floats, sets: Ints, mechanism: Mechanism, prior: Floats) -> Floats:
    """The probability under a prior that the readiest member of each set is the true one; ties are guessed among."""
    chosen = readiness >= readiness.max(axis=1, keepdims=True) * (1.0 - 1e-9)
    inside = posterior_of(sets, mechanism, np.asarray(prior, dtype=np.float64)).inside
    return np.asarray((inside * chosen).sum(axis=1) / chosen.sum(axis=1))
