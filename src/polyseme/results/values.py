"""Values of attributes in a JSON document: what JSON does not have is written as text, with the name of its type."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from polyseme.results.base import spelled

__all__ = ["plain_value", "read_values", "write_values"]

_MICROSECOND = dt.timedelta(microseconds=1)

# A datetime is a date too, so it stands before it.
_KINDS: Mapping[str, tuple[type, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "datetime": (dt.datetime, str, dt.datetime.fromisoformat),
    "date": (dt.date, str, dt.date.fromisoformat),
    "time": (dt.time, str, dt.time.fromisoformat),
    "microseconds": (dt.timedelta, lambda value: value // _MICROSECOND, lambda number: number * _MICROSECOND),
    "decimal": (Decimal, str, Decimal),
    "float": (float, lambda value: spelled(value) or value, float),
}


def plain_value(value: Any) -> Any:
    """A value as a cell of a document shows it; null where it is not finite.

    >>> plain_value(dt.date(2020, 2, 29)), plain_value(float("nan"))
    ('2020-02-29', None)
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return None if spelled(value) else value
    kind = _kind(value)
    return value if kind is None else _KINDS[kind][1](value)


def write_values(values: Sequence[Any]) -> dict[str, Any]:
    """Values of one attribute, and their type where JSON does not have it.

    >>> write_values([dt.date(2020, 2, 29), None])
    {'values': ['2020-02-29', None], 'type': 'date'}
    """
    values = [value.item() if isinstance(value, np.generic) else value for value in values]
    kind = next((found for value in values if (found := _kind(value)) is not None), None)
    if kind is None:
        return {"values": values}
    of_kind, write, _ = _KINDS[kind]
    return {"values": [write(value) if isinstance(value, of_kind) else value for value in values], "type": kind}


def read_values(document: Mapping[str, Any]) -> tuple[Any, ...]:
    """The reverse of `write_values`."""
    if "type" not in document:
        return tuple(document["values"])
    read = _KINDS[document["type"]][2]
    return tuple(None if value is None else read(value) for value in document["values"])


def _kind(value: Any) -> str | None:
    """The type that has to be named; None for what JSON has."""
    for name, (of_kind, _, _) in _KINDS.items():
        if isinstance(value, of_kind) and not (isinstance(value, float) and spelled(value) is None):
            return name
    return None
