"""Entropy l-diversity: the sensitive values of every class have at least the entropy of l equally frequent values.

    - sum_s p(s) ln p(s) >= ln l,   p(s) = n(E, s) / |E|

where
    n(E, s)  records of E with sensitive value s; where people are counted, p(s) is over the sum of their counts
    l        at least 1, need not be whole

The entropies are compared, with a tolerance of 1e-12, and nothing is rounded down. The worst value is the exponential
of the entropy: the effective number of values, 2.83 say, which fails l = 3.
"""

from __future__ import annotations

import math

import numpy as np

from polyseme.arrays import Floats
from polyseme.models.base import TOLERANCE, Score, Verdict, judge
from polyseme.tables.classes import Counts

__all__ = ["check_entropy", "entropies", "score_entropy"]


def entropies(counts: Counts) -> Floats:
    """The entropy of each class, in nats."""
    share = counts.count / counts.spread.sizes[counts.owner]
    return np.add.reduceat(-share * np.log(share), counts.starts[:-1])


def score_entropy(counts: Counts, l: float) -> Score:
    """The effective number of values of each class."""
    entropy = entropies(counts)
    return Score(np.exp(entropy), entropy >= math.log(l) - TOLERANCE, l, at_least=True)


def check_entropy(counts: Counts, l: float) -> Verdict:
    """Is the entropy of every class at least ln l?"""
    return judge(
        "entropy-diversity", counts.attribute, {"l": l}, counts, counts.sizes, lambda: score_entropy(counts, l)
    )
