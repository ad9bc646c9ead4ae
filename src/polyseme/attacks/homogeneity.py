"""The homogeneity adversary: knows which set was published for a person, and guesses one of its members.

Success is the chance of that guess for the person whose set is shortest; exact, from the release alone.
"""

from __future__ import annotations

import numpy as np

from polyseme.attacks.base import Finding, above
from polyseme.tables.classes import PublishedSets

__all__ = ["attack"]


def attack(sets: PublishedSets, bound: float | None = None, truthful: float = 1.0) -> Finding:
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
