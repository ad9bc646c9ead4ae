"""What a published set says to someone who knows the mechanism.

    P(v | R) = pi_v P(R | v) / sum_u pi_u P(R | u)

where
    R    the published set
    pi   the adversary's prior over the values
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyseme.arrays import Floats, Ints
from polyseme.designs.base import heaviest_outside
from polyseme.estimators.counts import distinct
from polyseme.mechanism import Mechanism

__all__ = ["Posterior", "posterior_of", "uniform"]


def uniform(size: int) -> Floats:
    """Every value equally likely."""
    return np.full(size, 1.0 / size)


@dataclass(frozen=True, eq=False)
class Posterior:
    """For each record: P of each member of its set (n, l), and of the likeliest value outside it (n,)."""

    sets: Ints
    inside: Floats
    outside: Floats

    @property
    def best(self) -> Floats:
        """The probability of the best guess for each record."""
        best: Floats = np.maximum(self.inside.max(axis=1), self.outside)
        return best


def posterior_of(sets: Ints, mechanism: Mechanism, prior: Floats) -> Posterior:
    """Posterior of every record's set; identical sets are worked out once."""
    unique, inverse = distinct(sets, mechanism.size)
    inside, outside = mechanism.weights(unique)
    members = prior[unique]
    joint = members * inside
    rest = np.maximum(1.0 - members.sum(axis=1), 0.0) * outside
    total = joint.sum(axis=1) + rest
    possible = total > 0
    # A set the mechanism cannot have published says nothing beyond its members.
    scale = np.where(possible, total, 1.0)
    joint = np.where(possible[:, None], joint / scale[:, None], 1.0 / sets.shape[1])
    beyond = np.where(possible, outside * heaviest_outside(prior, unique) / scale, 0.0)
    return Posterior(sets, joint[inverse], beyond[inverse])
