"""The skewness adversary: compares what is known about a person after the release with what was known before.

Success is the largest total variation distance between the two distributions, over all classes or published sets: the
most by which the probability of any statement about a person can change. Exact. The bound is the t of closeness, where
that was promised; diversity promises nothing here.
"""

from __future__ import annotations

import numpy as np

from polyseme.attacks.base import Finding, above
from polyseme.attacks.posterior import distinct_rows, posterior_of, uniform
from polyseme.distances.structure import Floats, Ints
from polyseme.mechanism import Mechanism
from polyseme.models.closeness import equal_distances
from polyseme.tables.classes import Counts

__all__ = ["attack", "attack_sets"]

_GAINS = "that some values are much more likely for the person than for others"
_HELPS = "closeness, with a t that the people concerned can live with"


def attack(counts: Counts, bound: float | None = None) -> Finding:
    """On a table published in classes."""
    apart = equal_distances(counts)
    gain = counts.count * counts.records / (counts.total[counts.value] * counts.sizes[counts.owner])
    success = float(apart.max())
    return Finding(
        "skewness",
        counts.attribute,
        success,
        bound,
        0.0,
        above(success, bound),
        "which class of records the person belongs to, and the distribution of the whole table",
        _GAINS,
        _HELPS,
        {"mean": float((apart * counts.sizes).sum() / counts.sizes.sum()), "largest_gain": float(gain.max())},
    )


def attack_sets(
    sets: Ints,
    mechanism: Mechanism,
    *,
    attribute: str = "",
    prior: Floats | None = None,
    bound: float | None = None,
) -> Finding:
    """On published sets: posterior against prior."""
    prior = uniform(mechanism.size) if prior is None else np.asarray(prior, dtype=np.float64)
    unique, inverse = distinct_rows(sets, mechanism.size)
    posterior = posterior_of(unique, mechanism, prior).inside
    # No value outside the set gains: the channel favours members, and outsiders all change by one factor.
    gain = np.maximum(posterior - prior[unique], 0.0).sum(axis=1)
    success = float(gain.max())
    return Finding(
        "skewness",
        attribute,
        success,
        bound,
        0.0,
        above(success, bound),
        "the published set, the mechanism and the public distribution",
        _GAINS,
        _HELPS,
        {"mean": float(gain[inverse].mean())},
    )
