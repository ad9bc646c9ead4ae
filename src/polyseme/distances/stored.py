"""Lists of numbers as a manifest, which is not trusted, stores them."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyseme.arrays import Floats, Ints
from polyseme.errors import PolicyError, Problem

__all__ = ["stored_floats", "stored_ints"]

_LARGEST = 1e300
"""Numbers beyond this would overflow when they are added up or squared; no manifest needs them."""


def stored_floats(given: Any, where: str, size: int | None = None) -> Floats:
    """A list of finite numbers, `size` of them when that is known; a `PolicyError` with its place otherwise.

    >>> stored_floats([0, 0.5], "shares", 2)
    array([0. , 0.5])
    """
    _check_list(given, where, size, (int, float), "numbers")
    row = np.array([float(max(min(number, 1e308), -1e308)) for number in given], dtype=np.float64)
    if np.any(np.abs(row) > _LARGEST):
        raise PolicyError(Problem(where, f"numbers beyond {_LARGEST:g} cannot occur in a mechanism or a distance"))
    return row


def stored_ints(given: Any, where: str, low: int, high: int, size: int | None = None) -> Ints:
    """A list of whole numbers from `low` up to, but not including, `high`."""
    _check_list(given, where, size, (int,), "whole numbers")
    outside = sum(not low <= number < high for number in given)
    if outside:
        raise PolicyError(Problem(where, f"{outside} of {len(given):,} numbers are not between {low} and {high - 1:,}"))
    return np.array(given, dtype=np.int64)


def _check_list(given: Any, where: str, size: int | None, kinds: tuple[type, ...], what: str) -> None:
    if not isinstance(given, list | tuple) or not {type(entry) for entry in given} <= set(kinds):
        raise PolicyError(Problem(where, f"expected a list of {what}"))
    if size is not None and len(given) != size:
        raise PolicyError(Problem(where, f"expected {size:,} {what}, found {len(given):,}"))
