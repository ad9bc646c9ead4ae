"""Models of distributions in classes: t-closeness, beta-likeness, delta-disclosure privacy.

*t-closeness*: in every class the sensitive values are distributed nearly as in the whole table.

    EMD(p, q) <= t   for every class

where
    p    distribution of the sensitive values in the class
    q    distribution in the whole table (suppressed rows set aside)
    EMD  earth mover's distance on a ground: equal, ordered or hierarchical, see `semantics.distances.ground`

`F` counts the values of the declared domain; without one, those that occur. With equal ground distances everything is
an exact ratio of integers; the others are compared with a tolerance of 1e-12.

Li, Li and Venkatasubramanian (2007).

*beta-likeness*: no sensitive value is much more frequent in a class than in the whole table.

    (q_s - p_s) / p_s <= beta                   basic
    (q_s - p_s) / p_s <= min(beta, -ln p_s)     enhanced

for every class and every value s with q_s > p_s, where
    p_s   share of s in the whole table
    q_s   share of s in the class
    beta  largest relative gain, positive

The enhanced form also bounds the gain of frequent values, for which a relative gain of beta would be certainty. Its
worst value is the gain scaled by `beta / min(beta, -ln p_s)`, so that it compares with beta.

Cao and Karras (2012).

*delta-disclosure privacy*: the share of every value in every class is within a factor of that in the whole table.

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

from polyseme.kernel.arrays import Bools, multipliable
from polyseme.models.base import SLACK, TOLERANCE, Score, Verdict, judge
from polyseme.semantics.distances.ground import Equal, Ground
from polyseme.tables.equivalence_classes import Counts

__all__ = [
    "Absent",
    "check",
    "check_beta_likeness",
    "check_delta_disclosure",
    "relaxed",
    "relaxed_beta_likeness",
    "relaxed_delta_disclosure",
    "score",
    "score_beta_likeness",
    "score_delta_disclosure",
]


def score(counts: Counts, t: float, ground: Ground | None = None) -> Score:
    """The distance of each class from the whole table."""
    ground = ground or Equal()
    value = ground.of_classes(counts.spread)
    slack = 0.0 if isinstance(ground, Equal) else TOLERANCE
    return Score(value, value <= t + slack, t, at_least=False)


def relaxed(counts: Counts, t: float, ground: Ground | None = None) -> Bools:
    """Whether moving what each class lacks to the nearest other value costs at most t."""
    cost = (ground or Equal()).nearest(counts.domain_size) * counts.total / counts.total.sum()
    return np.asarray(cost.sum() - counts.held(cost) <= t + SLACK)


def check(counts: Counts, t: float, ground: Ground | None = None) -> Verdict:
    """Is every class within t of the whole table? The worst value is the largest distance."""
    ground = ground or Equal()
    parameters = {"t": t, "ground": ground.name}
    return judge("closeness", counts.attribute, parameters, counts, counts.sizes, lambda: score(counts, t, ground))


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
    """Whether the values of each class may have all of it: q_s <= (1 + gain) p_s sums to >= 1."""
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
    """Whether each class's values may have all of it: q_s < exp(delta) p_s.

    And it has every value if it must.
    """
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
