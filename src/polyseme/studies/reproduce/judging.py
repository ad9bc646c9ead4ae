"""How claims are judged: by rules that are declared with them, from the numbers of a run and their intervals.

A claim that compares is judged setting by setting. Something counts as smaller only where the intervals say so; for
this they are taken half again as wide as on the charts, about three standard errors, because a study compares dozens
of pairs and one in twenty would differ by chance. What a paper printed wrong is judged by two questions: does it hold
as printed, and does it hold when put right.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from polyseme.studies.reproduce.study import Row, Verdict

__all__ = [
    "BY_SETTING",
    "NEAR",
    "PUT_RIGHT",
    "SETTING_BY_SETTING",
    "Tally",
    "at_most",
    "away",
    "below",
    "put_right",
    "rising",
    "smaller",
    "within",
]

_WIDER = 1.5
NEAR = 1.2
"""At the limit: theory and a prototype had 0.8 to 1.2 times it before any of these studies was run."""
BY_SETTING = "Setting by setting."
SETTING_BY_SETTING = (
    "Reproduced if it holds beyond the intervals in some settings and the opposite in none, with a correction if it "
    "holds in more settings than the opposite does, undecided if no setting tells, else not reproduced."
)
"""What `BY_SETTING` means: pages say it once."""
PUT_RIGHT = "Reproduced if it holds as printed; with a correction if it holds only when put right; else not reproduced."


@dataclass(frozen=True)
class Tally:
    """In how many settings something holds, is too close to tell, and is the other way round."""

    clear: int
    close: int
    against: int

    @property
    def settings(self) -> int:
        return self.clear + self.close + self.against

    @property
    def verdict(self) -> Verdict:
        if not self.settings:
            return Verdict.NOT_RUN
        if not self.clear and not self.against:
            return Verdict.UNDECIDED
        if not self.against:
            return Verdict.REPRODUCED
        return Verdict.CORRECTED if self.clear > self.against else Verdict.NOT_REPRODUCED

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.clear + other.clear, self.close + other.close, self.against + other.against)

    def __str__(self) -> str:
        """
        >>> print(Tally(3, 1, 0), "|", Tally(2, 0, 0), "|", Tally(1, 0, 2))
        in 3 of 4 settings (1 too close to tell) | in all 2 settings | in 1 of 3 settings (2 the other way round)
        """
        if self.settings == self.clear:
            return "in the one setting" if self.clear == 1 else f"in all {self.clear} settings"
        rest = [f"{self.against} the other way round"] * bool(self.against)
        rest += [f"{self.close} too close to tell"] * bool(self.close)
        return f"in {self.clear} of {self.settings} settings ({', '.join(rest)})"


def _low(one: Row | float) -> float:
    return one.value - _WIDER * (one.value - one.low) if isinstance(one, Row) else one


def _high(one: Row | float) -> float:
    return one.value + _WIDER * (one.high - one.value) if isinstance(one, Row) else one


def below(one: Row | float, other: Row | float) -> bool:
    """Whether one is smaller beyond the intervals."""
    return _high(one) < _low(other)


def within(one: Row, low: float, high: float) -> bool:
    """Whether the interval reaches a range."""
    return _low(one) <= high and _high(one) >= low


def at_most(rows: Iterable[Row], factor: float = 1.0, limits: Iterable[float] | None = None) -> list[bool]:
    """For each row, whether its interval reaches down to so many times its limit (1 where none is given)."""
    rows = list(rows)
    bounds = [1.0] * len(rows) if limits is None else list(limits)
    return [_low(row) <= factor * bound for row, bound in zip(rows, bounds, strict=True)]


def away(one: Row, value: float) -> bool:
    """Whether a number lies beyond the interval."""
    return below(one, value) or below(value, one)


def smaller(pairs: Iterable[tuple[Row | float, Row | float]]) -> Tally:
    """How often the first of a pair is the smaller one."""
    pairs = list(pairs)
    clear, against = sum(below(*pair) for pair in pairs), sum(below(other, one) for one, other in pairs)
    return Tally(clear, len(pairs) - clear - against, against)


def rising(lines: Iterable[list[Row]]) -> Tally:
    """How many lines end higher than they begin; lines of one point do not count."""
    return smaller((line[0], line[-1]) for line in lines if len(line) > 1)


def put_right(as_printed: bool, corrected: bool) -> Verdict:
    """What comes of something that was printed."""
    return Verdict.REPRODUCED if as_printed else Verdict.CORRECTED if corrected else Verdict.NOT_REPRODUCED
