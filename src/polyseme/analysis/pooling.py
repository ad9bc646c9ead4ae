"""Thin groups borrow from everybody: numbers of people by group and value, drawn towards the margin.

A number is known with an error, and the people of a group are a sample of all who are like them. Where a group differs
from the margin by no more than these two explain, the margin is the better guess. With

    n_qv    the number of people of group q with value v, known with variance s_qv
    m_v     the margin: the shares of everybody
    D_q     sum_v (n_qv - n_q m_v)^2,   how far the group is from the margin
    S_q     sum_v (s_qv + n_q m_v (1 - m_v)),   how far it would be by chance

the shares of a group are `m + (1 - S_q / D_q) (n_q. / n_q - m)`, and `m` where chance explains it all, as James and
Stein have it.
"""

from __future__ import annotations

import numpy as np

from polyseme.arrays import Floats

__all__ = ["pooled"]

_KEPT = 0.01
"""The least part of the margin in every group: no value is out of the question anywhere. A judgment."""
_HALF = 0.5
"""People with a value that no record was found to have."""


def pooled(numbers: Floats, variance: Floats) -> Floats:
    """The numbers of people by group and value, (G, F), all of them above 0; a group without people is a row of zeros.

    >>> exact = np.array([[90.0, 10.0], [10.0, 90.0]])
    >>> pooled(exact, np.zeros((2, 2))).round(1).tolist()
    [[89.4, 10.6], [10.6, 89.4]]
    >>> pooled(exact, np.full((2, 2), 2_000.0)).round(1).tolist()
    [[50.0, 50.0], [50.0, 50.0]]
    """
    people = np.maximum(numbers.sum(axis=1), 0.0)
    margin = np.maximum(numbers.sum(axis=0), _HALF)
    margin /= margin.sum()
    expected = people[:, None] * margin
    apart = np.sum((numbers - expected) ** 2, axis=1)
    chance = np.sum(variance + expected * (1.0 - margin), axis=1)
    # A group that is not apart at all is the margin, whatever its weight.
    explained = np.minimum(chance, apart) / np.where(apart > 0.0, apart, 1.0)
    own = np.clip(1.0 - explained, 0.0, 1.0 - _KEPT)
    drawn = np.maximum(numbers, 0.0)
    drawn *= (people / np.maximum(drawn.sum(axis=1), np.finfo(np.float64).tiny))[:, None]
    found: Floats = own[:, None] * drawn + (1.0 - own)[:, None] * expected
    return found
