"""Declared parameters: what a privacy model or a promise takes, in one idiom.

A declaration is a tuple of `Parameter`; reading goes through it once and finds every problem, each with its place.
"""

from __future__ import annotations

import math
import reprlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from polyseme.kernel.errors import PolicyError, Problem, nearest

__all__ = ["MOST", "Parameter", "Scalar", "read_parameters", "validated"]

Scalar: TypeAlias = str | int | float | bool

MOST = 10**9
"""More is never meant, and products with counts of records stay within whole numbers of 64 bits."""


_TYPES: Mapping[str, type] = {"file": str, "text": str, "mapping": Mapping, "list": list}
_WORDS: Mapping[str, str] = {
    "file": "the name of a file",
    "text": "a name",
    "mapping": "a mapping",
    "list": "a list",
    "switch": "true or false",
    "rules": "rules",
}


@dataclass(frozen=True)
class Parameter:
    """One parameter: its name, its kind (rules have been read by their own model), and its range.

    above    whether `low` itself is excluded
    default  what is meant where the parameter is left out
    example  a value to show to a user who left it out
    """

    name: str
    kind: Literal["whole", "number", "switch", "choice", "file", "text", "mapping", "list", "rules"] = "number"
    low: float = -math.inf
    high: float = math.inf
    above: bool = False
    choices: Sequence[str] = ()
    default: Scalar | None = None
    required: bool = True
    example: Scalar | None = None

    def problem(self, value: object) -> tuple[str, str] | None:
        """What is wrong with a value and what would help, or None."""
        if self._fits(value):
            return None
        hint = nearest(str(value), self.choices) if self.kind == "choice" else f"write {self.shown()}"
        return f"expected {self.expected()}, found {reprlib.repr(value)}{_remark(value)}", hint

    def _fits(self, value: object) -> bool:
        if self.kind == "rules":
            return True
        if self.kind in _TYPES:
            return isinstance(value, _TYPES[self.kind])
        if self.kind == "choice":
            return value in self.choices
        if self.kind == "switch":
            return isinstance(value, bool)
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= sys.float_info.max:
            return False
        within = self.low <= value <= self.high and not (self.above and value == self.low)
        return within and (self.kind == "number" or (value == int(value) and value <= MOST))

    def expected(self) -> str:
        """What a value must be, in words.

        >>> Parameter("t", low=0, high=1).expected(), Parameter("k", "whole", low=1).expected()
        ('a number from 0 up to 1', 'a whole number from 1')
        """
        if self.kind == "choice":
            return f"one of {', '.join(self.choices)}"
        if self.kind in _WORDS:
            return _WORDS[self.kind]
        noun = "a whole number" if self.kind == "whole" else "a number"
        low = "" if self.low == -math.inf else f" {'above' if self.above else 'from'} {self.low:g}"
        return noun + low + ("" if self.high == math.inf else f" up to {self.high:g}")

    def shown(self) -> str:
        """An entry with the example, or with what is expected."""
        return f"{self.name}: {self.expected() if self.example is None else self.example}"


def _remark(value: object) -> str:
    """What is odd about a number that does not fit."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ""
    if value != value:
        return ", which is not a number"
    if abs(value) == math.inf:
        return ", which is infinite"
    return f": absurd, no table has more than {MOST:,} of anything" if value > MOST else ""


def read_parameters(
    where: str, parameters: Sequence[Parameter], given: Mapping[str, Any]
) -> tuple[dict[str, Any], list[Problem]]:
    """The given values that fit their declaration, and every problem with the others."""
    known = {parameter.name: parameter for parameter in parameters}
    problems = [
        Problem(f"{where}.{name}", "unknown parameter", nearest(str(name), known) if known else "it takes none")
        for name in given
        if name not in known
    ]
    values: dict[str, Any] = {}
    for name, parameter in known.items():
        if name not in given:
            if parameter.required:
                what = f"missing: {parameter.expected()} is needed"
                problems.append(Problem(f"{where}.{name}", what, f"write {parameter.shown()}"))
            continue
        wrong = parameter.problem(given[name])
        if wrong:
            problems.append(Problem(f"{where}.{name}", *wrong))
        else:
            values[name] = int(given[name]) if parameter.kind == "whole" else given[name]
    return values, problems


def validated(where: str, parameters: Sequence[Parameter], given: Mapping[str, Any]) -> dict[str, Any]:
    """The given values with defaults filled in; raises with every problem at once."""
    values, problems = read_parameters(where, parameters, given)
    if problems:
        raise PolicyError(problems)
    defaults = {parameter.name: parameter.default for parameter in parameters if not parameter.required}
    return {**defaults, **values}
