"""Recursive (c, l)-diversity: the most frequent value is not too frequent, even after l - 2 others are ruled out.

    r_1 < c * (r_l + r_(l+1) + ... + r_m)   for every class

where
    r_1 >= r_2 >= ... >= r_m   the counts of the m different sensitive values of the class, in descending order
    c > 0, l >= 1

A class with fewer than l different values fails: its sum is empty. The worst value is `r_1 / (r_l + ... + r_m)`, which
must stay below c.
"""

from __future__ import annotations

import numpy as np

from polyseme.arrays import Ints
from polyseme.models.base import Score, Verdict, judge
from polyseme.tables.classes import Counts

__all__ = ["check_recursive", "score_recursive"]


def _head_and_tail(counts: Counts, l: int) -> tuple[Ints, Ints]:
    """`r_1` and `r_l + ... + r_m` of each class."""
    order = np.lexsort((-counts.count, counts.owner))
    descending = counts.count[order]
    place = np.arange(len(descending)) - counts.starts[:-1][counts.owner]
    tail = np.add.reduceat(np.where(place >= l - 1, descending, 0), counts.starts[:-1])
    return descending[counts.starts[:-1]], tail


def score_recursive(counts: Counts, c: float, l: int) -> Score:
    """The most frequent value of each class over what remains from the l-th on."""
    head, tail = _head_and_tail(counts, l)
    value = np.divide(head, tail, out=np.full(len(head), np.inf), where=tail > 0)
    fine = head < int(c) * tail if float(c).is_integer() else value < c
    return Score(value, fine, c, at_least=False, strict=True)


def check_recursive(counts: Counts, c: float, l: int) -> Verdict:
    """Is the most frequent value of every class below c times what remains from the l-th on?"""
    parameters = {"c": c, "l": l}
    return judge(
        "recursive-diversity", counts.attribute, parameters, counts, counts.sizes, lambda: score_recursive(counts, c, l)
    )
