"""How often decoys of plain l-diversity violate (l, d)-semantic diversity: Equations 11 to 17, exactly.

On F values in a row, any l - 1 of the other values are equally likely decoys. A set is valid when any two of its values
are d or more apart. Valid sets of l that hold value i (from 1):

    valid(i) = sum over a + b = l - 1 of C(i - d - (a-1)(d-1), a) * C(F + 1 - i - d - (b-1)(d-1), b)

with a of the decoys below i and b above: a values among n places, d or more apart, can be chosen in
C(n - (a-1)(d-1), a) ways. The violation of value i is 1 - valid(i) / C(F-1, l-1); Equation 11 is that of the first
value.
"""

from __future__ import annotations

from math import comb

import numpy as np

from polyseme.arrays import Floats

__all__ = ["equation_11", "equation_17", "room", "violation"]


def equation_11(size: int, l: int, d: int) -> float:
    """The printed lower bound, with `m` read as F.

    >>> round(equation_11(14, 3, 3), 6)
    0.538462
    """
    top = size - (l - 1) * d - 1 + l - 1
    achieving = comb(top, l - 1) if size - (l - 1) * d - 1 >= 0 else 0
    return 1.0 - achieving / comb(size - 1, l - 1)


def equation_17(size: int, l: int, d: int) -> float:
    """The last step of the proof as it is printed, with no binomial symbol above the line.

    >>> round(equation_17(14, 3, 3), 6)
    0.884615
    """
    return 1.0 - (size + l + d - d * l - 2) / comb(size - 1, l - 1)


def violation(size: int, l: int, d: int) -> Floats:
    """The violation probability of a record with each true value: (F,)."""
    every = comb(size - 1, l - 1)
    return np.array([1.0 - _valid(size, l, d, place) / every for place in range(1, size + 1)])


def _valid(size: int, l: int, d: int, place: int) -> int:
    below, above = place - d, size + 1 - place - d
    return sum(_spread(below, a, d) * _spread(above, l - 1 - a, d) for a in range(l))


def _spread(places: int, many: int, d: int) -> int:
    """In how many ways so many values can be chosen among places in a row, any two d or more apart."""
    if many == 0:
        return 1
    free = places - (many - 1) * (d - 1)
    return comb(free, many) if free >= many else 0


def room(size: int, d: int) -> np.ndarray:
    """The most values, d or more apart, that a set with each value can hold: (F,).

    >>> room(14, 6).tolist()
    [3, 3, 2, 2, 2, 2, 3, 3, 2, 2, 2, 2, 3, 3]
    """
    places = np.arange(size)
    return np.asarray(1 + places // d + (size - 1 - places) // d)
