"""What was promised for one attribute, read from the policy's `protect` and checked; all problems at once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from polyseme.errors import PolicyError, Problem, nearest
from polyseme.recipes.ground import GROUNDS

__all__ = ["PROMISES", "Closeness", "Diversity", "Ldp", "Promises", "SemanticDiversity", "read_promises"]

MECHANISMS = ("balanced", "simple", "duplicate", "least-risk")

PROMISES: Mapping[str, tuple[str, ...]] = {
    "semantic-diversity": ("l", "d", "mechanism"),
    "diversity": ("l", "adapt"),
    "entropy-diversity": ("l", "adapt"),
    "closeness": ("t", "ground", "size"),
    "ldp": ("epsilon", "size"),
}
"""Every promise with its parameters."""


@dataclass(frozen=True)
class SemanticDiversity:
    """Sets of at least l candidates, pairwise at least d apart."""

    l: int
    d: float
    mechanism: str = "balanced"


@dataclass(frozen=True)
class Diversity:
    """At least l candidates: frequency or entropy l-diversity. `asked` is what stood there before adapting."""

    name: str
    l: int
    asked: float


@dataclass(frozen=True)
class Closeness:
    """No set moves the distribution of the attribute by more than t; `size` fixes the number of candidates."""

    t: float
    ground: str = "equal"
    size: int | None = None


@dataclass(frozen=True)
class Ldp:
    """No set is more than e^epsilon times likelier under one value than under another; `size` as above."""

    epsilon: float
    size: int | None = None


@dataclass(frozen=True)
class Promises:
    """All promises of one attribute."""

    semantic: SemanticDiversity | None = None
    diversities: tuple[Diversity, ...] = ()
    closeness: Closeness | None = None
    ldp: Ldp | None = None

    @property
    def least_size(self) -> tuple[int, str]:
        """The smallest set that keeps the diversity promises, and the promise that asks for it."""
        sizes = [(promise.l, promise.name) for promise in self.diversities]
        if self.semantic is not None:
            sizes.append((self.semantic.l, "semantic-diversity"))
        return max(sizes, default=(1, ""), key=lambda pair: pair[0])

    @property
    def fixed_sizes(self) -> Mapping[str, int]:
        """The set sizes that promises name outright."""
        limits = {"closeness": self.closeness, "ldp": self.ldp}
        return {name: limit.size for name, limit in limits.items() if limit is not None and limit.size is not None}


class _Reader:
    """Reads parameters and gathers what is wrong with them."""

    def __init__(self, protection: Mapping[str, Mapping[str, Any]], size: int) -> None:
        self.protection, self.size = protection, size
        self.problems: list[Problem] = []

    def complain(self, where: str, what: str, hint: str = "") -> None:
        self.problems.append(Problem(where, what, hint))

    def number(self, promise: str, key: str, low: float, high: float, whole: bool = False) -> float | None:
        """A number of the promise within its limits, or None with a complaint."""
        where, value = f"{promise}.{key}", self.protection[promise].get(key)
        kind = "a whole number" if whole else "a number"
        if value is None:
            self.complain(where, f"missing: {kind} is needed", f"for example {promise}: {{{key}: {_EXAMPLES[key]}}}")
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            self.complain(where, f"expected {kind}, found {value!r}")
            return None
        if whole and value != int(value):
            self.complain(where, f"expected a whole number, found {value!r}")
            return None
        if not low <= value <= high:
            limits = f"at least {low:g}" if high > _ANY else f"between {low:g} and {high:g}"
            self.complain(where, f"expected {kind} {limits}, found {value!r}")
            return None
        return value

    def word(self, promise: str, key: str, choices: tuple[str, ...]) -> str:
        value = self.protection[promise].get(key, choices[0])
        if value not in choices:
            self.complain(f"{promise}.{key}", f"unknown: {value!r}", nearest(str(value), choices))
            return choices[0]
        return str(value)

    def names(self) -> None:
        if not self.protection:
            self.complain("", "nothing is promised", f"one of: {', '.join(PROMISES)}")
        for promise, parameters in self.protection.items():
            if promise not in PROMISES:
                self.complain(promise, "unknown promise", nearest(promise, PROMISES))
            elif not isinstance(parameters, Mapping):
                self.complain(promise, f"expected parameters, found {parameters!r}", _example(promise))
            else:
                for key in parameters:
                    if key not in PROMISES[promise]:
                        self.complain(f"{promise}.{key}", "unknown parameter", nearest(str(key), PROMISES[promise]))

    def asked(self, promise: str) -> bool:
        return isinstance(self.protection.get(promise), Mapping)

    def semantic(self, has_distance: bool) -> SemanticDiversity | None:
        name = "semantic-diversity"
        l = self.number(name, "l", 1, math.inf, whole=True)
        d = self.number(name, "d", 0, math.inf)
        mechanism = self.word(name, "mechanism", MECHANISMS)
        if not has_distance:
            self.complain(
                name, "the attribute has no distance", "give it one, or promise diversity, which asks for none"
            )
        if l is None or d is None:
            return None
        if l > self.size:
            hint = f"l can be at most {self.size}, and less when close values exclude each other"
            self.complain(f"{name}.l", f"{l:g} candidates from a domain of {_values(self.size)}", hint)
            return None
        return SemanticDiversity(int(l), float(d), mechanism)

    def diversity(self, name: str) -> Diversity | None:
        asked = self.number(name, "l", 1, math.inf, whole=name == "diversity")
        adapt = self.protection[name].get("adapt", False)
        if not isinstance(adapt, bool):
            self.complain(f"{name}.adapt", f"expected true or false, found {adapt!r}")
        if asked is None:
            return None
        l, useful = math.ceil(asked), max(self.size - 1, 1)
        if l <= useful:
            return Diversity(name, l, asked)
        if adapt is True:
            return Diversity(name, useful, asked)
        self.complain(f"{name}.l", *_too_many(asked, self.size))
        return None

    def closeness(self, has_distance: bool) -> Closeness | None:
        t = self.number("closeness", "t", 0, 1)
        ground = self.word("closeness", "ground", GROUNDS)
        if ground == "hierarchical" and not has_distance:
            self.complain(
                "closeness.ground", "hierarchical needs a distance", "give the attribute a tree, or use equal"
            )
        size = self.set_size("closeness")
        return None if t is None else Closeness(float(t), ground, size)

    def ldp(self) -> Ldp | None:
        epsilon = self.number("ldp", "epsilon", 0, math.inf)
        size = self.set_size("ldp")
        return None if epsilon is None else Ldp(float(epsilon), size)

    def set_size(self, promise: str) -> int | None:
        if "size" not in self.protection[promise]:
            return None
        size = self.number(promise, "size", 1, max(self.size - 1, 1), whole=True)
        return None if size is None else int(size)


_ANY = 10**9
"""No domain has so many values: an upper limit beyond is none."""
_EXAMPLES = {"l": 3, "d": 2, "t": 0.2, "epsilon": 2.0, "size": 3}


def _example(promise: str) -> str:
    shown = ", ".join(f"{key}: {_EXAMPLES[key]}" for key in PROMISES[promise] if key in _EXAMPLES)
    return f"for example {promise}: {{{shown}}}"


def _values(size: int) -> str:
    return "one value" if size == 1 else f"{size:,} values"


def _too_many(l: float, size: int) -> tuple[str, str]:
    if size == 1:
        return f"{l:g} candidates from a domain of one value", "everybody knows this value: nothing can be hidden"
    what = f"{l:g} candidates from a domain of {size:,} values leave every set the same, so nothing can be estimated"
    if size == 2:
        return what, "a yes/no attribute is protected by closeness or ldp, which also answer with the other value"
    return what, f"l can be at most {size - 1}; adapt: true takes that by itself"


def read_promises(protection: Mapping[str, Mapping[str, Any]], size: int, has_distance: bool) -> Promises:
    """The promises of one attribute; raises `PolicyError` with every problem, places relative to `protect`."""
    reader = _Reader(protection, size)
    reader.names()
    semantic = reader.semantic(has_distance) if reader.asked("semantic-diversity") else None
    kinds = [reader.diversity(name) for name in ("diversity", "entropy-diversity") if reader.asked(name)]
    closeness = reader.closeness(has_distance) if reader.asked("closeness") else None
    ldp = reader.ldp() if reader.asked("ldp") else None
    promises = Promises(semantic, tuple(kind for kind in kinds if kind is not None), closeness, ldp)
    least, asking = promises.least_size
    for name, fixed in promises.fixed_sizes.items():
        if fixed < least:
            reader.complain(f"{name}.size", f"{fixed} is below the l = {least} of {asking}", "leave it out")
    if len(set(promises.fixed_sizes.values())) > 1:
        reader.complain("ldp.size", "closeness names another size", "a set has one size: name it once")
    if reader.problems:
        raise PolicyError(reader.problems)
    return promises
