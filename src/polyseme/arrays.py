"""The array types that every signature speaks of."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Bools", "Floats", "Ints", "multipliable"]

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]

_FITTING = 3_000_000_000
"""Numbers up to which the product of two fits 64 bits."""


def multipliable(largest: int, *counts: Ints) -> tuple[Ints, ...]:
    """Counts of which any two can be multiplied: as numbers of any length where 64 bits are not enough.

    >>> multipliable(10**10, np.array([10**10]))[0] * 10**10
    array([100000000000000000000], dtype=object)
    """
    return counts if largest <= _FITTING else tuple(count.astype(object) for count in counts)
