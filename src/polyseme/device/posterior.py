"""What the set of a sampling document can tell at worst, computed from the document alone.

For an attacker who expects the values with shares `pi` the posterior of v is, with `c = pi / rho`,

    (p c_v + (1 - p) pi_v) / (p sum_R c + 1 - p)    inside of R
    (1 - p) pi_v / (p sum_R c + 1 - p)              outside of it

where `rho_v` is the probability that v is in a set. The lightest set that holds v is the worst for it.

Whatever an attacker expects, a set changes the odds between two of its values u and v by the factor

    (p / rho_u + 1 - p) / (p / rho_v + 1 - p)

so the largest such factor bounds what the set adds for every prior, also for one that the document does not declare.
"""

from __future__ import annotations

from collections.abc import Sequence

from polyseme.device.sampling import Sampling

__all__ = ["largest_odds", "worst_posterior"]


def worst_posterior(sampling: Sampling, prior: Sequence[float] | None = None) -> float:
    """The largest probability of any value given any set, for this prior; uniform by default."""
    shares = [1.0 / sampling.size] * sampling.size if prior is None else prior
    if len(shares) != sampling.size:
        raise ValueError("one share for each value")
    p = sampling.p
    cost = [share / rho for share, rho in zip(shares, sampling.inclusion, strict=True)]
    totals = [p * least + 1.0 - p for least in sampling.kind.lightest(cost)]
    # A set of which this prior believes no value is never seen by its owner.
    inside = [
        (p * one + (1.0 - p) * share) / total if total > 0.0 else 0.0
        for one, share, total in zip(cost, shares, totals, strict=True)
    ]
    outside = (1.0 - p) * max(shares) / min(totals) if p < 1.0 else 0.0
    return max(*inside, outside)


def largest_odds(sampling: Sampling) -> float:
    """The largest factor by which any set changes the odds between two of its values, for every prior."""
    p = sampling.p
    factors = [p / rho + 1.0 - p for rho in sampling.inclusion]
    best = sampling.kind.partners(factors)
    return max(1.0, *(other / own for own, other in zip(factors, best, strict=True)))
