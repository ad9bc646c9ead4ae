"""Distinct l-diversity: every class has at least l different sensitive values.

|{s : n(E, s) > 0}| >= l   for every class E
"""

from __future__ import annotations

import math

import numpy as np

from polyseme.arrays import Bools
from polyseme.models.base import SLACK, Score, Verdict, judge
from polyseme.tables.classes import Counts

__all__ = ["at_least", "check_distinct", "score_distinct"]


def score_distinct(counts: Counts, l: int) -> Score:
    """How many different values each class has."""
    return Score(counts.distinct, counts.distinct >= l, l, at_least=True)


def at_least(counts: Counts, l: float) -> Bools:
    """Whether each class has l different values, which every other kind of l-diversity implies."""
    return np.asarray(counts.distinct >= math.ceil(l - SLACK))


def check_distinct(counts: Counts, l: int) -> Verdict:
    """Does every class have at least l different values?"""
    return judge(
        "distinct-diversity", counts.attribute, {"l": l}, counts, counts.sizes, lambda: score_distinct(counts, l)
    )
