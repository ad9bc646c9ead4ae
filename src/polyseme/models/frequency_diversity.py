"""Frequency l-diversity: no sensitive value has more than 1/l of a class.

    n(E, s) * l <= |E|   for every class E and value s

where
    n(E, s)  records of E with sensitive value s
    l        at least 1, need not be whole

Compared in integers for a whole `l`. The worst value is `|E| / max_s n(E, s)`, the largest l the class satisfies.
With the other sensitive quasi-identifiers as known this is (l1, ..., lq)-diversity (Sei, Okumura, Takenouchi
and Ohsuga, Definition 12), one verdict for each of them.
"""

from __future__ import annotations

import numpy as np

from polyseme.arrays import Ints
from polyseme.models.base import Score, Verdict, judge
from polyseme.tables.classes import Counts

__all__ = ["check_frequency", "largest_count", "score_frequency"]


def largest_count(counts: Counts) -> Ints:
    """`max_s n(E, s)` of each class."""
    return np.maximum.reduceat(counts.count, counts.starts[:-1])


def score_frequency(counts: Counts, l: float) -> Score:
    """The largest l that each class satisfies."""
    largest = largest_count(counts)
    value = counts.sizes / largest
    fine = largest * int(l) <= counts.sizes if float(l).is_integer() else value >= l
    return Score(value, fine, l, at_least=True)


def check_frequency(counts: Counts, l: float) -> Verdict:
    """Is every value at most a share 1/l of its class?"""
    return judge(
        "frequency-diversity", counts.attribute, {"l": l}, counts, counts.sizes, lambda: score_frequency(counts, l)
    )
