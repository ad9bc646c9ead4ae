"""JSON that every program reads alike: its numbers are finite, and no object has a key twice.

Python would read infinity and NaN, which JSON does not have, and take the last of two equal keys.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

__all__ = ["once", "read_json"]


def read_json(text: str) -> Any:
    """What a JSON text says; `ValueError`, or `RecursionError` where it is nested too deeply.

    >>> read_json('{"a": [1, 2.5]}')
    {'a': [1, 2.5]}
    >>> read_json('{"a": 1e999}')
    Traceback (most recent call last):
    ValueError: not a finite number
    >>> read_json('{"a": 1, "a": 2}')
    Traceback (most recent call last):
    ValueError: a key is given more than once
    """
    return json.loads(text, parse_constant=_finite, parse_float=_finite, object_pairs_hook=once)


def once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """An object from its entries; of a key that is written twice no two programs read the same."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is given more than once")
    return found


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("not a finite number")
    return number
