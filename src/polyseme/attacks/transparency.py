"""The transparent adversary (minimality): knows the algorithm, and that some members of a set draw it more readily.

It guesses the member v of R with the largest `P(R | v)`. With the original, success is the observed share of right
guesses; without, the expected share under the reference prior (uniform unless given), which is exact.

Under the balanced design with a uniform reference all members are equally ready, and the guess is no better than 1/l;
under the papers' sequential algorithm they are not.
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
    if truth is None:
        success = float(expected.mean())
        exceeded = above(success, bound)
    else:
        hits = hit_rate(posterior.inside, sets == truth[:, None])
        success = float(hits.mean())
        exceeded = significantly_above(float(hits.sum()), len(hits), bound)
        detail["expected"] = float(expected.mean())
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
