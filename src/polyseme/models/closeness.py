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

from polyseme.distances.ground import Equal, Ground
from polyseme.models.base import TOLERANCE, Score, Verdict, judge
from polyseme.tables.classes import Counts

__all__ = ["check"]


def check(counts: Counts, t: float, ground: Ground | None = None) -> Verdict:
    """Is every class within t of the whole table? The worst value is the largest distance."""
    ground = ground or Equal()

    def score() -> Score:
        value = ground.of_classes(counts)
        slack = 0.0 if isinstance(ground, Equal) else TOLERANCE
        return Score(value, value <= t + slack, t, at_least=False)

    return judge("closeness", counts.attribute, {"t": t, "ground": ground.name}, counts, counts.sizes, score)
