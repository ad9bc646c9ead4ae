"""beta-likeness: no sensitive value is much more frequent in a class than in the whole table.

    (q_s - p_s) / p_s <= beta                   basic
    (q_s - p_s) / p_s <= min(beta, -ln p_s)     enhanced

for every class and every value s with q_s > p_s, where
    p_s   share of s in the whole table
    q_s   share of s in the class
    beta  largest relative gain, positive

The enhanced form also bounds the gain of frequent values, for which a relative gain of beta would be certainty. Its
worst value is the gain scaled by `beta / min(beta, -ln p_s)`, so that it compares with beta.

Cao and Karras (2012).
"""

from __future__ import annotations

import numpy as np

from polyseme.arrays import Bools, multipliable
from polyseme.models.base import SLACK, TOLERANCE, Score, Verdict, judge
from polyseme.tables.classes import Counts

__all__ = ["check_beta_likeness", "relaxed_beta_likeness", "score_beta_likeness"]


def score_beta_likeness(counts: Counts, beta: float, enhanced: bool = False) -> Score:
    """The largest gain of a value in each class."""
    count, total, sizes = multipliable(counts.records, counts.count, counts.total, counts.sizes)
    expected = total[counts.value] * sizes[counts.owner]
    gain = np.asarray(np.maximum(count * counts.records - expected, 0) / expected, dtype=np.float64)
    fine = gain <= beta
    if enhanced:
        surprise = -np.log(counts.total[counts.value] / counts.records)
        fine &= gain <= surprise + TOLERANCE
        scale = np.minimum(surprise / beta, 1.0)
        gain = np.divide(gain, scale, out=np.zeros(len(gain)), where=gain > 0)
    starts = counts.starts[:-1]
    return Score(np.maximum.reduceat(gain, starts), np.logical_and.reduceat(fine, starts), beta, at_least=False)


def relaxed_beta_likeness(counts: Counts, beta: float, enhanced: bool = False) -> Bools:
    """Whether the values of each class may have all of it: q_s <= (1 + gain) p_s sums up to at least 1."""
    share = counts.total / counts.records
    gain = np.full(len(share), beta)
    if enhanced:
        gain = np.minimum(gain, -np.log(share, out=np.zeros(len(share)), where=share > 0))
    return np.asarray(counts.held((1.0 + gain) * share) >= 1.0 - SLACK)


def check_beta_likeness(counts: Counts, beta: float, enhanced: bool = False) -> Verdict:
    """Is the relative gain of every value in every class within the bound?"""
    parameters = {"beta": beta, "enhanced": enhanced}
    return judge(
        "beta-likeness",
        counts.attribute,
        parameters,
        counts,
        counts.sizes,
        lambda: score_beta_likeness(counts, beta, enhanced),
    )
