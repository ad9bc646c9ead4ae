"""How a broken law is reported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from polyseme.kernel.arrays import Bools, Floats, Ints

__all__ = ["agree", "hold"]

Numbers: TypeAlias = Floats | Ints | Bools | Sequence[float] | float


def hold(kept: bool | np.bool_, law: str) -> None:
    """Raise unless the law was kept.

    >>> hold(1 > 2, "one is more than two")
    Traceback (most recent call last):
    AssertionError: broken law: one is more than two
    """
    if not kept:
        raise AssertionError(f"broken law: {law}")


def agree(found: Numbers, expected: Numbers, law: str, *, rtol: float = 0.0, atol: float = 0.0) -> None:
    """Raise unless two arrays are equal, or as near as the tolerances say."""
    if rtol or atol:
        one, other = (np.asarray(numbers, dtype=np.float64) for numbers in (found, expected))
        np.testing.assert_allclose(one, other, rtol=rtol, atol=atol, err_msg=f"broken law: {law}")
    else:
        np.testing.assert_array_equal(found, expected, err_msg=f"broken law: {law}")
