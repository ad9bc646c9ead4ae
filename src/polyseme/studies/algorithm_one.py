"""Algorithm 1 of the sensitive quasi-identifier paper, as it stands: list every set, search p by halving.

Kept as a reference for small domains; `closeness` gives the same answer in closed form. One reading is settled here:
the paper's line 10 stores a p for every single set and line 13 takes the best of them, but Theorem 4 needs the p that
is small enough for all sets of a size, so that is what is taken.
"""

from __future__ import annotations

import numpy as np

from polyseme.analysis.closeness import subsets
from polyseme.arrays import Floats
from polyseme.calibration.accuracy import expected_l2
from polyseme.distances.ground import Ground

__all__ = ["algorithm_one", "largest_p", "posteriors"]

_HALVINGS = 60
"""The precision of a double: p lies between 0 and 1."""


def posteriors(prior: Floats, eta: int, p: float) -> Floats:
    """`B_j` of Equation 12 for every set of eta values: (sets, F)."""
    size = len(prior)
    sets = subsets(size, eta)
    # kappa_c and kappa_d up to the factor C(F, eta) they share.
    inside, outside = p * size / eta + 1.0 - p, 1.0 - p
    weight = np.full((len(sets), size), outside)
    weight[np.arange(len(sets))[:, None], sets] = inside
    joint = weight * prior
    total = joint.sum(axis=1, keepdims=True)
    # A set of values that no person has is never published at p = 1; it teaches nothing.
    return np.where(total > 0.0, joint / np.where(total > 0.0, total, 1.0), prior)


def largest_p(prior: Floats, eta: int, t: float, ground: Ground) -> float:
    """The largest p for which no set moves the prior by more than t, by halving."""

    def worst(p: float) -> float:
        return float(ground.work(posteriors(prior, eta, p) - prior).max())

    if worst(1.0) <= t:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if worst(middle) <= t else (low, middle)
    return low


def algorithm_one(
    prior: Floats, t: float, ground: Ground, smallest: int = 1, largest: int | None = None
) -> tuple[float, int]:
    """The pair (p, eta) with the least expected L2 distance among those that keep t-closeness."""
    size = len(prior)
    etas = range(smallest, (size - 1 if largest is None else largest) + 1)
    pairs = [(largest_p(prior, eta, t, ground), eta) for eta in etas]
    return min(pairs, key=lambda pair: float(expected_l2(1.0, size, pair[1], pair[0])))
