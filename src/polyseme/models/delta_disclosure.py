"""delta-disclosure privacy: the share of every value in every class is within a factor of that in the whole table.

    |ln(q_s / p_s)| < delta   for every class and every value s of the table

where
    p_s    share of s in the whole table
    q_s    share of s in the class
    delta  positive; natural logarithm

A value that a class lacks has `q_s = 0` and an infinite ratio, so by the definition the class violates for every delta.
Some tools look only at the values a class has; `absent="ignored"` gives that weaker reading, by explicit request.

Brickell and Shmatikov (2008).
"""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

import numpy as np

from polyseme.arrays import Bools
from polyseme.models.base import SLACK, TOLERANCE, Score, Verdict, judge
from polyseme.tables.classes import Counts

__all__ = ["Absent", "check_delta_disclosure", "relaxed_delta_disclosure", "score_delta_disclosure"]

Absent: TypeAlias = Literal["violates", "ignored"]


def score_delta_disclosure(counts: Counts, delta: float, absent: Absent = "violates") -> Score:
    """The largest logarithm of a ratio in each class."""
    share = counts.count / counts.sizes[counts.owner]
    ratio = np.abs(np.log(share / (counts.total[counts.value] / counts.records)))
    value = np.maximum.reduceat(ratio, counts.starts[:-1])
    note = ""
    if absent == "violates":
        lacking = _lacking(counts)
        if np.any(lacking):
            note = (
                f"{int(lacking.sum()):,} classes lack a value of the table; over the values they have, "
                f"the worst is {float(value.max()):.6g}"
            )
        value = np.where(lacking, np.inf, value)
    # Strictly less: a ratio that equals the bound up to rounding violates.
    return Score(value, value < delta - TOLERANCE, delta, at_least=False, note=note, strict=True)


def relaxed_delta_disclosure(counts: Counts, delta: float, absent: Absent = "violates") -> Bools:
    """Whether the values of each class may have all of it, q_s < exp(delta) p_s, and it has every value if it must."""
    enough = counts.held(counts.total / counts.records) >= math.exp(-delta) - SLACK
    return np.asarray(enough if absent == "ignored" else enough & ~_lacking(counts))


def _lacking(counts: Counts) -> Bools:
    """Whether each class lacks a value of the table."""
    return np.asarray(counts.distinct < np.count_nonzero(counts.total))


def check_delta_disclosure(counts: Counts, delta: float, absent: Absent = "violates") -> Verdict:
    """Does every class keep the share of every value within a factor exp(delta)?"""
    parameters = {"delta": delta, "absent": absent}
    return judge(
        "delta-disclosure",
        counts.attribute,
        parameters,
        counts,
        counts.sizes,
        lambda: score_delta_disclosure(counts, delta, absent),
    )
