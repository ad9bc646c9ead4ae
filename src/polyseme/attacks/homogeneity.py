"""The homogeneity adversary: knows which class, or which set, a person is in, and guesses its most frequent value.

Success is the share of the most frequent value in the class of the person worst off; exact, from the release alone.
"""

from __future__ import annotations

import numpy as np

from polyseme.attacks.base import Finding, above
from polyseme.tables.classes import Counts, PublishedSets

__all__ = ["attack", "attack_sets"]

_KNOWS = "which class of records the person belongs to"
_GAINS = "the value that all or most of the class share"
_HELPS = "frequency or entropy l-diversity instead of k-anonymity alone; merging or suppressing the classes named"


def attack(counts: Counts, bound: float | None = None) -> Finding:
    """On a table published in classes."""
    largest = np.maximum.reduceat(counts.count, counts.starts[:-1])
    share = largest / counts.sizes
    success = float(share.max())
    detail = {
        "hit_rate": float(largest.sum() / counts.sizes.sum()),
        "records_certain": float(counts.sizes[counts.distinct == 1].sum() / counts.sizes.sum()),
    }
    baseline = float(counts.total.max() / counts.records)
    exceeded = above(success, bound)
    return Finding("homogeneity", counts.attribute, success, bound, baseline, exceeded, _KNOWS, _GAINS, _HELPS, detail)


def attack_sets(sets: PublishedSets, bound: float | None = None, truthful: float = 1.0) -> Finding:
    """On published sets: the shortest one.

    truthful  how likely a set holds the true value at all; less than 1 where the mechanism lies now and then
    """
    share = truthful / np.maximum(sets.distinct, 1)
    success = float(share.max())
    detail = {
        "hit_rate": float((share * sets.counts).sum() / sets.records),
        "records_certain": float(sets.counts[(sets.distinct <= 1) & (truthful == 1.0)].sum() / sets.records),
    }
    return Finding(
        "homogeneity",
        sets.attribute,
        success,
        bound,
        1.0 / sets.size,
        above(success, bound),
        knows="the set published for the person",
        gains="a value, where the set has fewer candidates than promised",
        helps="publish every set with l different candidates of the domain",
        detail=detail,
    )
