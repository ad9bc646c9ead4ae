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

Records with weights have their effect where the weights are: people with many records may have large ones, too. With
w a weight, n_w how many records have it, and f_R how likely the set R is among them,

    phi = sum_w w^2 sum_R (c_wR - n_w f_R)^2  /  sum_w w^2 n_w (1 - sum_R f_R^2)

which is 1 for independent records, and the mean of w^2 m^2 over that of w^2 m for people with m records each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyseme.arrays import Floats, Ints
from polyseme.estimators.target import margin_of
from polyseme.mechanism import Mechanism

__all__ = ["draw_effect", "group_effect"]

_LISTED = 2_000_000
"""Largest number of values times sets for which expectations are formed: 16 MB for each group. A judgment."""
_OWN = 5.0
"""Records for each value from which on those of one weight have a distribution of their own. A judgment."""
_ABSENT = 1e-6
"""Shares up to which a value is not in a distribution: the solver leaves that much."""
_STATED = 2.0
"""Degrees of freedom with which the stated effect speaks: few, so that a group with many records speaks for itself.
A judgment."""


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


def draw_effect(sets: Ints, counts: Ints, weights: Floats | None, mechanism: Mechanism, stated: float) -> float:
    """The larger of the stated design effect and of the one that these reports, which may have weights, show."""
    if not counts.sum():
        return stated
    weight, kind = np.unique(np.ones(len(counts)) if weights is None else weights, return_inverse=True)
    records = np.bincount(kind, weights=counts)
    # Weights that few records have are likely to go with the same values as the others.
    many = records >= _OWN * mechanism.size
    found = expected = 0.0
    for here in (*(kind == each for each in np.flatnonzero(many)), ~many[kind]):
        kinds, squares, held = np.unique(kind[here]), weight[kind[here]] ** 2, counts[here]
        fit = _Fitted.of(sets[here], held, mechanism)
        spread = squares @ (held**2 - 2.0 * held * records[kind[here]] * fit.likely)
        spread += fit.alike * (weight[kinds] ** 2 @ records[kinds] ** 2)
        found += fit.factor * float(spread)
        expected += (1.0 - fit.alike) * float(weight[kinds] ** 2 @ records[kinds])
    return max(stated, found / expected) if expected > 0.0 else stated


@dataclass(frozen=True, eq=False)
class _Fitted:
    """What the distribution of the values behind some sets says of them.

    likely  how likely each of the sets is
    alike   how likely two sets are to be the same
    factor  for what is left unexplained: fitted numbers explain some noise
    """

    likely: Floats
    alike: float
    factor: float

    @classmethod
    def of(cls, sets: Ints, counts: Ints, mechanism: Mechanism) -> _Fitted:
        """Of these sets; where a design has too many to list, they are hardly ever the same."""
        if not len(sets) or not mechanism.lists(_LISTED) or mechanism.l * np.log2(max(mechanism.size, 2)) >= 62:
            return cls(np.zeros(len(sets)), 0.0, 1.0)
        listed, channel = mechanism.channel()
        shares = margin_of(sets, counts, mechanism)
        likely = shares @ channel
        place = np.searchsorted(_keys(listed, mechanism.size), _keys(sets, mechanism.size))
        freedom = len(listed) - int((shares > _ABSENT).sum())
        return cls(likely[place], float(likely @ likely), len(listed) / freedom if freedom > 0 else 1.0)


def _keys(sets: Ints, size: int) -> Ints:
    """One number for each set, ascending as the sets are."""
    key = np.zeros(len(sets), dtype=np.int64)
    for column in sets.T:
        key = key * size + column
    return key
