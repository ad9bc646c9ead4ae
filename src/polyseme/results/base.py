"""What all results have in common: a document that says everything, and a view.

JSON has no infinity and no NaN. A document has null in their place, as every reader of JSON expects, and beside it, in
the same object, `nonfinite` says which number it was:

    {"l": 3, "epsilon": null, "nonfinite": {"epsilon": "Infinity"}}

A null that is not named there is a number that is not known.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from polyseme.errors import InvalidInput

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["Result", "restored", "spelled", "written"]


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
