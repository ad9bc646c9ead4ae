"""What a model may be asked for: names, kinds and ranges of its parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from polyseme.errors import PolicyError, Problem, nearest

__all__ = ["Parameter", "validated"]


@dataclass(frozen=True)
class Parameter:
    """One parameter: its name, its kind (rules have been read by their own model), and its range."""

    name: str
    kind: Literal["whole", "number", "switch", "choice", "file", "rules"] = "number"
    low: float = -math.inf
    high: float = math.inf
    above: bool = False
    """Whether `low` itself is excluded."""
    choices: Sequence[str] = ()
    default: Any = None
    required: bool = True

    def problem(self, value: Any) -> tuple[str, str] | None:
        """What is wrong with a value and what would help, or None."""
        if self.kind == "rules":
            return None
        if self.kind == "file":
            return None if isinstance(value, str) else ("expected the name of a file", "write population.csv")
        if self.kind == "choice":
            return None if value in self.choices else (f"'{value}' is no choice", nearest(str(value), self.choices))
        if self.kind == "switch":
            return None if isinstance(value, bool) else ("expected true or false", "write true or false")
        if isinstance(value, bool) or not isinstance(value, (int, float)) or math.isnan(value):
            return f"expected a number, got {type(value).__name__}", f"write {self.range()}"
        if self.kind == "whole" and (not math.isfinite(value) or value != int(value)):
            return f"expected a whole number, got {value}", f"write {self.range()}"
        if value < self.low or value > self.high or (self.above and value == self.low) or math.isinf(value):
            return f"{value} cannot be satisfied or means nothing", f"write {self.range()}"
        return None

    def range(self) -> str:
        """The range in words."""
        noun = "a whole number" if self.kind == "whole" else "a number"
        low = "" if self.low == -math.inf else f" {'above' if self.above else 'from'} {self.low:g}"
        return noun + low + ("" if self.high == math.inf else f" up to {self.high:g}")


def validated(where: str, parameters: Sequence[Parameter], given: Mapping[str, Any]) -> dict[str, Any]:
    """The given values with defaults filled in; raises with every problem at once."""
    known = {parameter.name: parameter for parameter in parameters}
    problems = [
        Problem(f"{where}.{name}", "unknown parameter", nearest(name, known) if known else "the model takes none")
        for name in given
        if name not in known
    ]
    values: dict[str, Any] = {}
    for name, parameter in known.items():
        if name not in given:
            if parameter.required:
                problems.append(Problem(f"{where}.{name}", "missing", f"write {name}: {parameter.range()}"))
            else:
                values[name] = parameter.default
            continue
        wrong = parameter.problem(given[name])
        if wrong:
            problems.append(Problem(f"{where}.{name}", *wrong))
        else:
            values[name] = int(given[name]) if parameter.kind == "whole" else given[name]
    if problems:
        raise PolicyError(problems)
    return values
