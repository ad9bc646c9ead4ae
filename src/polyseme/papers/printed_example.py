"""A printed example: the numbers of the print, what they should be, how they are computed.

Small tables are as the papers print them: columns by name, and what classes of them hold.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from polyseme.papers.study import Claim, Finding, Results, Row, Sources, Verdict, put_right

__all__ = [
    "AGAIN",
    "FOUND",
    "MENDED",
    "NUMBERS",
    "PRINTED",
    "Example",
    "Numbers",
    "Record",
    "classes",
    "effective",
    "smallest_distinct",
]

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


NUMBERS, PRINTED, FOUND, AGAIN, MENDED = "number", "printed", "found", "computed again", "with the text put right"
_SAME = 1e-9

Numbers: TypeAlias = Mapping[str, float]


@dataclass(frozen=True)
class Example:
    """Some numbers that a paper prints about an example of its own.

    where, says  as of a claim
    printed      the numbers as the paper has them, each with what it is
    found        computes them, to the letter of the print; None where data that it needs is missing
    again        computes them in another way, where the print has a number wrong
    mended       computes them with the text put right, where the print has a step wrong
    how          what is put right, or how they are computed again
    why          what explains a difference
    claimed      whether the numbers follow from a claim in words, and stand in no print
    """

    where: str
    says: str
    printed: Numbers
    found: Callable[[Sources], Numbers | None]
    again: Callable[[Sources], Numbers] | None = None
    mended: Callable[[Sources], Numbers] | None = None
    how: str = ""
    why: str = ""
    claimed: bool = False

    @property
    def claim(self) -> Claim:
        rule = "Reproduced if all numbers are as printed"
        if self.claimed:
            wanted = ", ".join(f"{name} = {_short(number)}" for name, number in self.printed.items())
            rule = f"Reproduced if {wanted}, which is what the claim needs"
        if self.again is not None:
            rule += f"; with a correction if they differ, and a second computation agrees with the first ({self.how})"
        if self.mended is not None:
            rule += f"; with a correction if they come out when the text is put right ({self.how})"
        return Claim(self.where, self.says, f"{rule}; else not reproduced. Numbers may be rounded or cut.")

    @property
    def panel(self) -> str:
        return f"{self.where}: {self.says}"

    def rows(self, sources: Sources) -> list[Row]:
        found = self.found(sources)
        if found is None:
            return []
        numbers = {PRINTED: self.printed, FOUND: found}
        numbers |= {name: how(sources) for name, how in ((AGAIN, self.again), (MENDED, self.mended)) if how}
        return [
            Row.exact(self.panel, NUMBERS, series, name, float(number))
            for series, line in numbers.items()
            for name, number in line.items()
        ]

    def judge(self, results: Results) -> Finding:
        found, again, mended = (
            {str(row.x): row.value for row in results.pick(self.panel, NUMBERS, name)}
            for name in (FOUND, AGAIN, MENDED)
        )
        if not found:
            return Finding(self.claim, Verdict.NOT_RUN, "It needs the Adult table.")
        as_printed = _all_of(_as_printed, found, self.printed)
        corrected = _all_of(_same, found, again) or _all_of(_as_printed, mended, self.printed)
        words = ", ".join(f"{name} = {_short(number)}{self._beside(name, number)}" for name, number in found.items())
        text = f"Found: {words}."
        if not as_printed:
            text += self._second(found, again, mended) + (f" {self.why}" if self.why and corrected else "")
        elif self.why and not (again or mended):
            text += f" {self.why}"
        return Finding(self.claim, put_right(as_printed, corrected), text)

    def _second(self, found: Numbers, again: Numbers, mended: Numbers) -> str:
        """What the second computation says of numbers that are not as printed."""
        if again:
            off = [f"{name} = {_short(number)}" for name, number in again.items() if not _same(found[name], number)]
            return f" Computed again: {', '.join(off)}." if off else " Computed again, the same."
        wrong = [name for name, number in mended.items() if not _as_printed(number, self.printed[name])]
        off = [f"{name} = {_short(mended[name])}" for name in wrong]
        kept = "as the paper has it" if not off else ", ".join(off)
        return f" With the text put right: {kept}." if mended else ""

    def _beside(self, name: str, number: float) -> str:
        if _as_printed(number, self.printed[name]):
            return ""
        return f" ({_short(self.printed[name])} {'if the claim held' if self.claimed else 'printed'})"


def _same(one: float, other: float) -> bool:
    return abs(one - other) <= _SAME


def _as_printed(number: float, printed: float) -> bool:
    """Whether a number is what is printed, rounded or cut to as many decimals.

    >>> _as_printed(0.7465, 0.74), _as_printed(0.7465, 0.75), _as_printed(0.7465, 0.73)
    (True, True, False)
    """
    unit = 10.0 ** -len(repr(printed).partition(".")[2]) if printed % 1 else 0.0
    return printed - unit / 2 - _SAME <= number < printed + unit + _SAME


def _all_of(agree: Callable[[float, float], bool], found: Numbers, expected: Numbers) -> bool:
    return set(found) == set(expected) and all(agree(found[name], number) for name, number in expected.items())


def _short(number: float) -> str:
    return f"{number:,.0f}" if number == round(number) else f"{number:.4g}"
