"""What a published set says to someone who knows the mechanism.

    P(v | R) = pi_v P(R | v) / sum_u pi_u P(R | u)

where
    R    the published set
    pi   the adversary's prior over the values
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyseme.distances.structure import Floats, Ints
from polyseme.mechanism import Mechanism

__all__ = ["Posterior", "distinct_rows", "posterior_of", "uniform"]


def uniform(size: int) -> Floats:
    """Every value equally likely."""
    return np.full(size, 1.0 / size)


def distinct_rows(rows: Ints, size: int) -> tuple[Ints, Ints]:
    """The distinct rows of codes below `size`, and which of them each row is."""
    if size ** rows.shape[1] < 2**62:
        keys = np.zeros(len(rows), dtype=np.int64)
        for column in rows.T:
            keys = keys * size + column
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        return rows[first], inverse
    unique, inverse = np.unique(rows, axis=0, return_inverse=True)
    return unique, inverse.ravel()


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
    unique, inverse = distinct_rows(sets, mechanism.size)
    inside, outside = mechanism.weights(unique)
    members = prior[unique]
    joint = members * inside
    rest = np.maximum(1.0 - members.sum(axis=1), 0.0) * outside
    total = joint.sum(axis=1) + rest
    possible = total > 0
    # A set the mechanism cannot have published says nothing beyond its members.
    scale = np.where(possible, total, 1.0)
    joint = np.where(possible[:, None], joint / scale[:, None], 1.0 / sets.shape[1])
    beyond = np.where(possible, outside * _heaviest_outside(prior, unique) / scale, 0.0)
    return Posterior(sets, joint[inverse], beyond[inverse])


def _heaviest_outside(prior: Floats, sets: Ints) -> Floats:
    """The largest prior probability of a value that is not in the set; only the l + 1 heaviest can be it."""
    heaviest = np.zeros(len(sets))
    for value in np.argsort(prior)[-(sets.shape[1] + 1) :]:
        heaviest = np.where((sets == value).any(axis=1), heaviest, prior[value])
    return heaviest
