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

from typing import Literal

import numpy as np

from polyseme.models.base import TOLERANCE, Score, Verdict, judge
from polyseme.tables.classes import Counts

__all__ = ["check"]


def check(counts: Counts, delta: float, absent: Literal["violates", "ignored"] = "violates") -> Verdict:
    """Does every class keep the share of every value within a factor exp(delta)?"""

    def score() -> Score:
        share = counts.count / counts.sizes[counts.owner]
        ratio = np.abs(np.log(share / (counts.total[counts.value] / counts.records)))
        value = np.maximum.reduceat(ratio, counts.starts[:-1])
        note = ""
        if absent == "violates":
            lacking = counts.distinct < np.count_nonzero(counts.total)
            if np.any(lacking):
                note = (
                    f"{int(lacking.sum()):,} classes lack a value of the table; over the values they have, "
                    f"the worst is {float(value.max()):.6g}"
                )
            value = np.where(lacking, np.inf, value)
        # Strictly less: a ratio that equals the bound up to rounding violates.
        return Score(value, value < delta - TOLERANCE, delta, at_least=False, note=note)

    parameters = {"delta": delta, "absent": absent}
    return judge("delta-disclosure", counts.attribute, parameters, counts, counts.sizes, score)
