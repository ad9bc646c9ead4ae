"""(alpha, k)-anonymity: k-anonymity, and no sensitive value has more than a share alpha of a class.

    |E| >= k   and   n(E, s) / |E| <= alpha   for every class E and value s

where
    n(E, s)  records of E with sensitive value s
    alpha    largest share, in (0, 1]

Wong, Li, Fu and Wang (2006).
"""

from __future__ import annotations

import math

import numpy as np

from polyseme.arrays import Bools
from polyseme.models.base import SLACK, Score, Verdict, judge
from polyseme.models.frequency_diversity import largest_count
from polyseme.tables.classes import Counts

__all__ = ["check_alpha_k", "relaxed_alpha_k", "score_alpha_k"]


def score_alpha_k(counts: Counts, alpha: float, k: int) -> Score:
    """The largest share of a value in each class."""
    share = largest_count(counts) / counts.sizes
    small = counts.sizes < k
    note = f"{int(small.sum()):,} classes have fewer than {k} records" if np.any(small) else ""
    return Score(share, (share <= alpha) & ~small, alpha, at_least=False, note=note)


def relaxed_alpha_k(counts: Counts, alpha: float, k: int) -> Bools:
    """Whether each class has k records, and as many values as are needed for shares of at most alpha."""
    return np.asarray((counts.sizes >= k) & (counts.distinct >= math.ceil(1.0 / alpha - SLACK)))


def check_alpha_k(counts: Counts, alpha: float, k: int) -> Verdict:
    """Is every class large enough, and no value too frequent in it? The worst value is the largest share."""
    parameters = {"alpha": alpha, "k": k}
    return judge(
        "alpha-k-anonymity", counts.attribute, parameters, counts, counts.sizes, lambda: score_alpha_k(counts, alpha, k)
    )
