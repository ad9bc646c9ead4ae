"""The similarity adversary: is content to learn the branch of the tree or the range of the number.

It guesses a neighbourhood, all values nearer than d to some value v, and is right when the true value lies in it.
Success is the largest posterior probability of a set's members that one such neighbourhood holds; exact, from the
release alone. Diversity does not bound it; semantic diversity does.
"""

from __future__ import annotations

import numpy as np

from polyseme.attacks.base import Finding, above
from polyseme.attacks.posterior import posterior_of, uniform
from polyseme.distances.base import Distance
from polyseme.distances.structure import Floats, Ints
from polyseme.estimators.counts import distinct
from polyseme.mechanism import Mechanism

__all__ = ["attack"]


def attack(
    sets: Ints,
    mechanism: Mechanism,
    distance: Distance,
    d: float,
    *,
    attribute: str = "",
    prior: Floats | None = None,
    bound: float | None = None,
) -> Finding:
    """On published sets, with the posterior of each candidate. Values outside the set are not added to a guess."""
    prior = uniform(mechanism.size) if prior is None else np.asarray(prior, dtype=np.float64)
    bound = 1.0 / mechanism.l if bound is None else bound
    unique, inverse = distinct(sets, mechanism.size)
    posterior = posterior_of(unique, mechanism, prior).inside
    held = np.zeros(len(unique))
    for center in range(unique.shape[1]):
        near = distance.between(unique[:, center : center + 1], unique) < d
        near[:, center] = True
        held = np.maximum(held, (posterior * near).sum(axis=1))
    success = float(held.max())
    return Finding(
        "similarity",
        attribute,
        success,
        bound,
        float(prior.max()),
        above(success, bound),
        "the published set, the mechanism, and which values are alike",
        "the branch of the tree or the range of the number, though not the exact value",
        "semantic diversity: candidates at least d apart",
        {"hit_rate": float(held[inverse].mean())},
    )
