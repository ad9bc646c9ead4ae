"""Reading a document piece by piece, collecting every problem with its place instead of stopping at the first."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from polyseme.errors import InvalidInput, Problem, nearest

__all__ = ["Reader", "kind_of"]

_KINDS: dict[type, str] = {
    str: "text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    list: "a list",
    dict: "a mapping",
    type(None): "nothing",
}


def kind_of(value: object) -> str:
    """A word for the type of a YAML value, for error messages."""
    return _KINDS.get(type(value), type(value).__name__)


class Reader:
    """One place (`$.attributes.age`) in a document; readers of inner places share its list of problems."""

    def __init__(self, value: Any, where: str = "$", problems: list[Problem] | None = None) -> None:
        self.value = value
        self.where = where
        self.problems: list[Problem] = [] if problems is None else problems

    def at(self, key: str | int, value: Any) -> Reader:
        """The reader of an inner place."""
        inner = f"{self.where}[{key}]" if isinstance(key, int) else f"{self.where}.{key}"
        return Reader(value, inner, self.problems)

    def problem(self, what: str, hint: str = "") -> None:
        self.problems.append(Problem(self.where, what, hint))

    def adopt(self, error: InvalidInput) -> None:
        """Take over the problems of an error from a lower room, putting this place before theirs."""
        for found in error.problems:
            inner = f"{self.where}.{found.where}" if found.where else self.where
            self.problems.append(replace(found, where=inner))

    def expected(self, what: str) -> None:
        self.problem(f"expected {what}, found {kind_of(self.value)}")

    def mapping(self, known: Collection[str] | None = None) -> Mapping[str, Any]:
        """The value as a mapping; keys that are not known are problems."""
        if not isinstance(self.value, Mapping):
            self.expected("a mapping")
            return {}
        result = {str(key): value for key, value in self.value.items()}
        if known is not None:
            for key in result.keys() - set(known):
                self.at(key, result[key]).problem("unknown key", nearest(key, known))
        return result

    def items(self) -> Iterable[tuple[str, Reader]]:
        """Keys of a mapping with the readers of their values."""
        return [(key, self.at(key, value)) for key, value in self.mapping().items()]

    def elements(self) -> list[Reader]:
        """Readers of the elements of a list."""
        if not isinstance(self.value, list):
            self.expected("a list")
            return []
        return [self.at(index, value) for index, value in enumerate(self.value)]

    def text(self, default: str = "") -> str:
        if isinstance(self.value, str):
            return self.value
        self.expected("text")
        return default

    def flag(self) -> bool:
        if not isinstance(self.value, bool):
            self.expected("true or false")
        return self.value is True

    def choice(self, options: Collection[str], default: str) -> str:
        """The value as one word out of `options`."""
        if isinstance(self.value, str) and self.value in options:
            return self.value
        if isinstance(self.value, str):
            self.problem(f"unknown word '{self.value}'", nearest(self.value, options))
        else:
            self.expected(f"one of: {', '.join(options)}")
        return default
