"""A printed example: the numbers of the print, what they should be, how they are computed.

Small tables are as the papers print them: columns by name, and what classes of them hold.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from polyseme.papers.study import PUT_RIGHT, Claim, Finding, Results, Row, Sources, Verdict, put_right

__all__ = ["FOUND", "NUMBERS", "PRINTED", "RIGHT", "Example", "Record", "classes", "effective", "smallest_distinct"]

Record: TypeAlias = tuple[str, ...]


def classes(records: Sequence[Record], by: Sequence[int]) -> list[list[Record]]:
    """Records that agree in some columns.

    >>> len(classes([("a", "1"), ("a", "2"), ("b", "1")], [0]))
    2
    """
    found: dict[Record, list[Record]] = {}
    for record in records:
        found.setdefault(tuple(record[place] for place in by), []).append(record)
    return list(found.values())


def smallest_distinct(found: Sequence[Sequence[Record]], column: int) -> int:
    """The fewest different values that a class has."""
    return min(len({record[column] for record in held}) for held in found)


def effective(held: Sequence[Record], column: int) -> float:
    """The exponential of the entropy of a class: entropy l-diversity asks for l at least."""
    counts = Counter(record[column] for record in held)
    shares = [many / len(held) for many in counts.values()]
    return math.exp(-sum(share * math.log(share) for share in shares))


NUMBERS, PRINTED, RIGHT, FOUND = "number", "printed", "put right", "found"
_ROUNDED = 0.005
"""Prints have two decimals at most."""


@dataclass(frozen=True)
class Example:
    """Some numbers that a paper prints about an example of its own.

    where, says  as of a claim
    printed      the numbers as the paper has them, each with what it is
    right        what they should be, where the print errs; None where it does not
    found        computes them; None where data that it needs is missing
    why          what explains a difference
    """

    where: str
    says: str
    printed: Mapping[str, float]
    found: Callable[[Sources], Mapping[str, float] | None]
    right: Mapping[str, float] | None = None
    why: str = ""

    @property
    def claim(self) -> Claim:
        rounding = " Numbers agree when they do so to the two decimals of the print."
        if self.right is None:
            return Claim(
                self.where, self.says, f"Reproduced if all numbers are as printed; else not reproduced.{rounding}"
            )
        right = ", ".join(f"{name}: {_short(number)}" for name, number in self.right.items())
        return Claim(self.where, self.says, f"{PUT_RIGHT} Put right: {right}.{rounding}")

    @property
    def panel(self) -> str:
        return f"{self.where}: {self.says}"

    def rows(self, sources: Sources) -> list[Row]:
        found = self.found(sources)
        if found is None:
            return []
        numbers = {PRINTED: self.printed, FOUND: found, **({} if self.right is None else {RIGHT: self.right})}
        return [
            Row.exact(self.panel, NUMBERS, series, name, float(number))
            for series, line in numbers.items()
            for name, number in line.items()
        ]

    def judge(self, results: Results) -> Finding:
        found = {row.x: row.value for row in results.pick(self.panel, NUMBERS, FOUND)}
        if not found:
            return Finding(self.claim, Verdict.NOT_RUN, "It needs the Adult table.")
        verdict = put_right(_alike(found, self.printed), self.right is not None and _alike(found, self.right))
        words = ", ".join(
            f"{name} = {_short(number)}{self._beside(str(name), number)}" for name, number in found.items()
        )
        return Finding(self.claim, verdict, f"Found: {words}.{f' {self.why}' if self.why else ''}")

    def _beside(self, name: str, number: float) -> str:
        return "" if _same(number, self.printed[name]) else f" ({_short(self.printed[name])} printed)"


def _short(number: float) -> str:
    return f"{number:,.0f}" if number == round(number) else f"{number:.3g}"


def _same(one: float, other: float) -> bool:
    return abs(one - other) <= _ROUNDED + 1e-9


def _alike(found: Mapping[str | float, float], expected: Mapping[str, float]) -> bool:
    return set(found) == set(expected) and all(_same(found[name], number) for name, number in expected.items())
