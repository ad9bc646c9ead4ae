"""t-closeness: in every class the sensitive values are distributed nearly as in the whole table.

    EMD(p, q) <= t   for every class

where
    p    distribution of the sensitive values in the class
    q    distribution in the whole table (suppressed rows set aside)
    EMD  earth mover's distance on a ground: equal, ordered or hierarchical, see `distances/ground.py`

`F` counts the values of the declared domain; without one, those that occur. With equal ground distances everything is
an exact ratio of integers; the others are compared with a tolerance of 1e-12.

Li, Li and Venkatasubramanian (2007).
"""

from __future__ import annotations

import numpy as np

from polyseme.arrays import Bools
from polyseme.distances.ground import Equal, Ground
from polyseme.models.base import SLACK, TOLERANCE, Score, Verdict, judge
from polyseme.tables.classes import Counts

__all__ = ["check", "relaxed", "score"]


def score(counts: Counts, t: float, ground: Ground | None = None) -> Score:
    """The distance of each class from the whole table."""
    ground = ground or Equal()
    value = ground.of_classes(counts.spread)
    slack = 0.0 if isinstance(ground, Equal) else TOLERANCE
    return Score(value, value <= t + slack, t, at_least=False)


def relaxed(counts: Counts, t: float, ground: Ground | None = None) -> Bools:
    """Whether what each class lacks costs at most t to bring to the nearest other value, which it may not lack."""
    cost = (ground or Equal()).nearest(counts.domain_size) * counts.total / counts.total.sum()
    return np.asarray(cost.sum() - counts.held(cost) <= t + SLACK)


def check(counts: Counts, t: float, ground: Ground | None = None) -> Verdict:
    """Is every class within t of the whole table? The worst value is the largest distance."""
    ground = ground or Equal()
    parameters = {"t": t, "ground": ground.name}
    return judge("closeness", counts.attribute, parameters, counts, counts.sizes, lambda: score(counts, t, ground))
