"""The transparent adversary (minimality): knows the algorithm, and that some members of a set draw it more readily.

It guesses the member v of R with the largest `P(R | v)`. With the original, success is the observed share of right
guesses; without, the expected share when all values are equally likely, which is exact.

Under the balanced design with a uniform reference all members are equally ready, and the guess is no better than 1/l;
under the papers' sequential algorithm they are not.
"""

from __future__ import annotations

from polyseme.attacks.base import Finding, above, hit_rate, largest_share, significantly_above
from polyseme.attacks.posterior import posterior_of, uniform
from polyseme.distances.structure import Ints
from polyseme.mechanism import Mechanism

__all__ = ["attack"]


def attack(
    sets: Ints,
    mechanism: Mechanism,
    *,
    attribute: str = "",
    bound: float | None = None,
    truth: Ints | None = None,
) -> Finding:
    """How often the likeliest member of the set is the true one."""
    bound = 1.0 / mechanism.l if bound is None else bound
    posterior = posterior_of(sets, mechanism, uniform(mechanism.size))
    detail = {"worst_person": float(posterior.best.max())}
    if truth is None:
        success = float(posterior.best.mean())
        exceeded = above(success, bound)
    else:
        hits = hit_rate(posterior.inside, sets == truth[:, None])
        success = float(hits.mean())
        exceeded = significantly_above(float(hits.sum()), len(hits), bound)
        detail["expected"] = float(posterior.best.mean())
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
