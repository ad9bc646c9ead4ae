"""Where the steps of expectation maximisation come to rest."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from polyseme.arrays import Floats
from polyseme.kernel.work import check_cancelled

__all__ = ["STILL", "fixed_point"]

_STEPS = 3_000
STILL, _SHARE = 1e-3, 1e-7
"""Records, and share of all records, by which no cell moves any more in a step: then it has converged."""


def fixed_point(step: Callable[[Floats], Floats], start: Floats, still: float = STILL) -> tuple[Floats, bool]:
    """The table that a step leaves as it is, and whether it was reached.

    Leaps ahead are those of SQUAREM (Varadhan and Roland, 2008). A leap is taken back when the step after it is longer
    than the one before it was.

    still  records by which no cell moves any more
    """
    table, still = start, max(still, _SHARE * float(start.sum()))
    for _ in range(_STEPS // 3):
        check_cancelled()
        once = step(table)
        first = once - table
        if np.abs(first).max(initial=0.0) < still:
            return once, True
        twice = step(once)
        bend = twice - once - first
        length = max(1.0, float(np.linalg.norm(first) / max(float(np.linalg.norm(bend)), 1e-300)))
        leap = np.maximum(table + 2.0 * length * first + length**2 * bend, 0.0)
        landed = step(leap)
        table = landed if np.linalg.norm(landed - leap) <= np.linalg.norm(first) else twice
    return table, False
