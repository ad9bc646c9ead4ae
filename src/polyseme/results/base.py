"""What all results have in common: a document that says everything, and a view.

JSON has no infinity and no NaN. A document has null in their place, as every reader of JSON expects, and beside it, in
the same object, `nonfinite` says which number it was:

    {"l": 3, "epsilon": null, "nonfinite": {"epsilon": "Infinity"}}

A null that is not named there is a number that is not known.

Values of attributes that JSON does not have are written as text, with the name of their type.
"""

from __future__ import annotations

import datetime as dt
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from polyseme.kernel.errors import InvalidInput

__all__ = ["Result", "plain_value", "read_values", "restored", "spelled", "write_values", "written"]

if TYPE_CHECKING:
    from rich.console import RenderableType


class Result(ABC):
    """What a verb returns. Two results are equal when their documents are."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Everything it says, ready for JSON."""

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """What `to_dict` wrote, read back."""
        try:
            return cls._read(document)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            raise InvalidInput(
                f"this document is not a stored {cls.__name__}", "expected what to_dict() or --json writes"
            ) from None

    @classmethod
    @abstractmethod
    def _read(cls, document: Mapping[str, Any]) -> Self: ...

    @abstractmethod
    def __rich__(self) -> RenderableType:
        """As `rich` shows it in a terminal."""

    @abstractmethod
    def _repr_html_(self) -> str:
        """As a notebook shows it."""

    def __str__(self) -> str:
        from polyseme.results.views.terminal import as_text

        return as_text(self.__rich__())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self.to_dict() == other.to_dict()


def spelled(number: float) -> str | None:
    """How a number is written that JSON does not have; None for the others.

    >>> spelled(-math.inf), spelled(math.nan), spelled(2.5)
    ('-Infinity', 'NaN', None)
    """
    if math.isfinite(number):
        return None
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"


def written(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document with null in place of numbers that JSON does not have.

    >>> written({"l": 3, "epsilon": math.inf})
    {'l': 3, 'epsilon': None, 'nonfinite': {'epsilon': 'Infinity'}}
    """
    strange = {key: spelled(value) for key, value in document.items() if isinstance(value, float)}
    named = {key: spelling for key, spelling in strange.items() if spelling is not None}
    plain = {key: None if key in named else value for key, value in document.items()}
    return {**plain, "nonfinite": named} if named else plain


def restored(document: Mapping[str, Any]) -> dict[str, Any]:
    """The reverse of `written`.

    >>> restored({"l": 3, "epsilon": None, "nonfinite": {"epsilon": "Infinity"}})
    {'l': 3, 'epsilon': inf}
    """
    named = document.get("nonfinite", {})
    plain = {key: value for key, value in document.items() if key != "nonfinite"}
    return {**plain, **{key: float(spelling) for key, spelling in named.items()}}


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
