"""The design effect of one group, where people have several records with the same decoys.

The manifest states one design effect for the whole table. The people of one group may have more records than others,
and then its errors are larger than that says. It shows in the sets: records of one draw come in clumps, so counts of
sets spread more widely around what is expected of them,

    phi = sum_R (c_R - e_R)^2 / e_R / freedom

where
    c_R, e_R  how many records reported the set R, and how many are expected from the fitted table; sets expected to be
              drawn less than once are counted as one
    freedom   the number of sets less the number of fitted values

(the dispersion of a quasi-likelihood). A group has the larger of the stated effect and of phi, drawn towards what is
stated as if that came from a few further sets.
"""

from __future__ import annotations

import numpy as np

from polyseme.arrays import Floats, Ints
from polyseme.mechanism import Mechanism

__all__ = ["group_effect"]

_LISTED = 2_000_000
"""Largest number of values times sets for which expectations are formed: 16 MB for each group. A judgement."""
_STATED = 2.0
"""Degrees of freedom with which the stated effect speaks: few, so that a group with many records speaks for itself.
A judgement."""


def group_effect(sets: Ints, counts: Ints, x: Floats, mechanism: Mechanism, stated: float) -> float:
    """The design effect of a group with these reports and this fitted table (F,) in records."""
    if mechanism.design.count() * mechanism.size > _LISTED or mechanism.l * np.log2(max(mechanism.size, 2)) >= 62:
        return stated
    listed, channel = mechanism.channel()
    expected, observed = x @ channel, np.zeros(len(listed))
    observed[np.searchsorted(_keys(listed, mechanism.size), _keys(sets, mechanism.size))] = counts
    usual = expected >= stated
    expected = np.append(expected[usual], expected[~usual].sum())
    observed = np.append(observed[usual], observed[~usual].sum())
    kept = expected >= stated
    freedom = int(kept.sum()) - int((x > 0.0).sum())
    if freedom < 1:
        return stated
    found = float(np.sum((observed[kept] - expected[kept]) ** 2 / expected[kept]))
    return max(stated, (found + _STATED * stated) / (freedom + _STATED))


def _keys(sets: Ints, size: int) -> Ints:
    """One number for each set, ascending as the sets are."""
    key = np.zeros(len(sets), dtype=np.int64)
    for column in sets.T:
        key = key * size + column
    return key
