"""What a study is: a grid of points, how they are measured, claims, and how they are judged.

A study is data and a few functions. Everything that its numbers depend on is declared: the grid, how often each point
is repeated, the seed, and the rules by which claims are judged. Numbers depend on nothing else, so that they are
the same whatever ran before, on however many cores, and whether or not the run was stopped in between.

Means and shares of repeated runs have 95% intervals. Claims are judged by rules that are declared with them, from the
numbers of a run and their intervals.

A claim that compares is judged setting by setting. Something counts as smaller only where the intervals do not touch,
taken half again as wide as on the charts, about three standard errors, or wider: with m comparisons each interval is at
the level 1 - 0.05 / m (Bonferroni, Student's t), so that all comparisons of a claim together are wrong by chance with
probability 0.05 at most. What a paper printed wrong is judged by two questions: does it hold as printed, and does it
hold when put right.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
from scipy.stats import norm, t

from polyseme.kernel.arrays import Floats

__all__ = [
    "BY_SETTING",
    "NEAR",
    "PUT_RIGHT",
    "SETTING_BY_SETTING",
    "Claim",
    "Exhibit",
    "Figure",
    "Finding",
    "Grid",
    "Point",
    "Results",
    "Row",
    "Sources",
    "Study",
    "Tally",
    "Verdict",
    "at_most",
    "away",
    "below",
    "in_part",
    "mean_row",
    "put_right",
    "ratio_row",
    "rising",
    "share_row",
    "smaller",
    "smallest",
    "span",
    "wilson",
    "within",
]

Setting: TypeAlias = int | float | str


@dataclass(frozen=True)
class Sources:
    """Where data of others is.

    adult   the folder with `adult.data` and `adult.test`, or None without it
    census  the file of the US Census, or None where a generated table stands for it
    """

    adult: Path | None = None
    census: Path | None = None


@dataclass(frozen=True)
class Point:
    """One point of a grid.

    setting  what is measured: names and numbers, in the order in which they were given
    repeats  how often; 0 where the result is exact
    seconds  about how long it takes on one core, for the time left
    """

    setting: tuple[tuple[str, Setting], ...]
    repeats: int
    seconds: float

    @classmethod
    def of(cls, repeats: int = 0, seconds: float = 0.1, **setting: Setting) -> Point:
        return cls(tuple(setting.items()), repeats, seconds)

    def __getitem__(self, name: str) -> Setting:
        return dict(self.setting)[name]

    def number(self, name: str) -> int:
        """A setting that is a whole number."""
        return int(self[name])

    def text(self, name: str) -> str:
        return str(self[name])

    @property
    def key(self) -> str:
        """What tells this point from every other one of its study.

        >>> Point.of(l=2, d=3, repeats=5).key
        '{"d": 3, "l": 2, "repeats": 5}'
        """
        return json.dumps({**dict(self.setting), "repeats": self.repeats}, sort_keys=True)


@dataclass(frozen=True)
class Row:
    """One number of a study, with its 95% interval.

    panel    the chart it belongs to
    measure  what was measured
    series   by which method
    x        where: a number, or a name
    repeats  how many runs it is a mean of; 0 for an exact number, whose limits are itself
    """

    panel: str
    measure: str
    series: str
    x: float | str
    value: float
    low: float
    high: float
    repeats: int

    @classmethod
    def exact(cls, panel: str, measure: str, series: str, x: float | str, value: float) -> Row:
        return cls(panel, measure, series, x, value, value, value, 0)


_READ: ContextVar[dict[Row, None] | None] = ContextVar("rows read by a judgment", default=None)
"""What was picked since the last finding; None unless claims are being judged."""


def _rows_read() -> tuple[Row, ...]:
    read = _READ.get() or {}
    taken = tuple(read)
    read.clear()
    return taken


class Results:
    """The rows of a study."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows = tuple(rows)

    def pick(self, panel: str | None = None, measure: str | None = None, series: str | None = None) -> list[Row]:
        """The rows of a panel, a measure, a series, or of some of these."""
        found = [
            row
            for row in self.rows
            if panel in (None, row.panel) and measure in (None, row.measure) and series in (None, row.series)
        ]
        read = _READ.get()
        if read is not None:
            read.update(dict.fromkeys(found))
        return found

    def line(self, panel: str, measure: str, series: str) -> dict[float | str, Row]:
        """The rows of one line of a chart, by where they stand."""
        return {row.x: row for row in self.pick(panel, measure, series)}

    def line_of(self, panel: str, measure: str) -> dict[str, Row]:
        """The rows of a panel that has one number for each series."""
        return {row.series: row for row in self.pick(panel, measure)}

    def value(self, panel: str, measure: str, series: str, x: float | str) -> float:
        return self.line(panel, measure, series)[x].value

    def panels(self, measure: str | None = None) -> list[str]:
        return list(dict.fromkeys(row.panel for row in self.pick(measure=measure)))


class Verdict(Enum):
    """What came of a claim."""

    REPRODUCED = "reproduced"
    CORRECTED = "reproduced with a correction"
    IN_PART = "in part of the range"
    OUTSIDE = "outside the paper's model"
    NOT_REPRODUCED = "not reproduced"
    READING = "a reading that fits"
    UNDECIDED = "undecided"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class Claim:
    """A claim of a paper in our words, its place there, and the rule by which a run decides."""

    where: str
    says: str
    rule: str


@dataclass(frozen=True)
class Finding:
    """What came of a claim, and the numbers that say so.

    numbers  the rows that were read to judge it
    """

    claim: Claim
    verdict: Verdict
    because: str
    numbers: tuple[Row, ...] = field(default_factory=_rows_read, compare=False, repr=False)


@dataclass(frozen=True)
class Figure:
    """A chart: the rows of one panel and one measure, a line for each series.

    log     whether the upright axis is logarithmic
    joined  whether points of a series are joined by a line: not where they stand beside each other in no order
    series  which to draw, all where none is named
    """

    panel: str
    measure: str
    x: str
    y: str
    log: bool = False
    title: str = ""
    joined: bool = True
    series: tuple[str, ...] = ()

    def rows(self, results: Results) -> list[Row]:
        """What is drawn."""
        return [row for row in results.pick(self.panel, self.measure) if not self.series or row.series in self.series]


@dataclass(frozen=True)
class Exhibit:
    """Charts beside what the paper says of the same, in words."""

    title: str
    says: str
    sees: str
    figures: tuple[Figure, ...]


Grid: TypeAlias = Callable[[bool, Sources], Sequence[Point]]


@dataclass(frozen=True)
class Study:
    """One experiment of the papers, or one of ours.

    source      the paper, and the figures and tables
    did         what the paper did, paragraph by paragraph
    ran         what we ran
    grid        the points; fewer of them, with fewer repeats, where it is to be quick
    measure     the numbers of one point, from its seed alone
    claims      what is judged, each with its rule
    judge       what came of every claim
    exhibits    the charts, beside what the paper says of them
    seed        from which the seed of every point is made
    edition     counts up when numbers change with unchanged settings: what was kept before is then measured again
    adult       whether some of it, or all, needs the Adult table
    census      whether some of it is about the US Census
    beside      what must lie beside the two files of the Adult table
    steady      False where numbers are times, which differ from run to run
    """

    name: str
    title: str
    source: str
    did: tuple[str, ...]
    ran: tuple[str, ...]
    grid: Grid
    measure: Callable[[Point, int, Sources], list[Row]]
    claims: tuple[Claim, ...]
    judge: Callable[[Results], list[Finding]]
    exhibits: Callable[[Results], list[Exhibit]]
    seed: int = 20
    edition: int = 1
    adult: Literal["none", "some", "all"] = "none"
    census: bool = False
    beside: tuple[str, ...] = ()
    steady: bool = True

    def seed_of(self, point: Point) -> int:
        """The seed of a point: it depends on the study and the point, not on the order of the work."""
        text = f"{self.seed} {self.name} {point.key}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big")

    def points(self, quick: bool, sources: Sources) -> list[Point]:
        """The grid; nothing where the data it needs is missing."""
        return [] if self.lacks(sources) else list(self.grid(quick, sources))

    def lacks(self, sources: Sources) -> str:
        """What is missing to run any of it; empty where nothing is."""
        if self.adult == "all" and sources.adult is None:
            return "the Adult table"
        lacking = [name for name in self.beside if sources.adult is None or not (sources.adult / name).exists()]
        return f"{', '.join(lacking)} beside the files of the Adult table" if lacking else ""

    def findings(self, results: Results) -> list[Finding]:
        """What came of every claim that was declared, in the same order."""
        judging = _READ.set({})
        try:
            found = self.judge(results)
        finally:
            _READ.reset(judging)
        if [finding.claim for finding in found] != list(self.claims):
            raise ValueError(f"{self.name} judged other claims than it declares")
        return found

    def run(self, point: Point, sources: Sources) -> list[Row]:
        return self.measure(point, self.seed_of(point), sources)


_LEVEL = 0.975
"""Two-sided 95%."""


def mean_row(
    panel: str, measure: str, series: str, x: float | str, found: Sequence[float] | Floats, least: float | None = 0.0
) -> Row:
    """The mean over runs, with the interval of Student's t.

    least  what no value can be below: the lower limit is not either

    >>> row = mean_row("", "", "", 1, [1.0, 2.0, 3.0])
    >>> row.value, round(row.low, 3), round(row.high, 3)
    (2.0, 0.0, 4.484)
    """
    numbers = np.asarray(found, dtype=np.float64)
    middle, runs = float(numbers.mean()), len(numbers)
    if runs < 2:
        raise ValueError("an interval needs at least two runs")
    half = float(t.ppf(_LEVEL, runs - 1) * numbers.std(ddof=1) / np.sqrt(runs))
    low = middle - half if least is None else max(middle - half, least)
    return Row(panel, measure, series, x, middle, low, middle + half, runs)


def ratio_row(
    panel: str,
    measure: str,
    series: str,
    x: float | str,
    found: Sequence[float] | Floats,
    beside: Sequence[float] | Floats,
) -> Row:
    """The mean of one method over that of another on the same runs, with a paired interval.

    It is the ratio estimate of survey sampling: its error is the mean of what each run is off the ratio.

    >>> row = ratio_row("", "", "", 1, [1.0, 2.0, 3.0], [2.0, 4.0, 6.0])
    >>> row.value, row.low, row.high
    (0.5, 0.5, 0.5)
    """
    ones, others = np.asarray(found, dtype=np.float64), np.asarray(beside, dtype=np.float64)
    middle = float(others.mean())
    ratio = float(ones.mean()) / middle
    off = mean_row(panel, measure, series, x, (ones - ratio * others) / middle, least=None)
    return Row(panel, measure, series, x, ratio, max(ratio + off.low, 0.0), ratio + off.high, off.repeats)


def wilson(hits: int, tries: int) -> tuple[float, float]:
    """The interval of Wilson for a share.

    >>> [round(limit, 4) for limit in wilson(0, 100)]
    [0.0, 0.037]
    """
    z = float(norm.ppf(_LEVEL))
    share, room = hits / tries, z * z / tries
    middle = (share + room / 2) / (1 + room)
    half = z * np.sqrt(share * (1 - share) / tries + room / (4 * tries)) / (1 + room)
    # Exactly the end where all tries agree: rounding would leave it out.
    return float(middle - half) if hits else 0.0, float(middle + half) if hits < tries else 1.0


def share_row(panel: str, measure: str, series: str, x: float | str, hits: int, tries: int) -> Row:
    """A share of so many tries."""
    low, high = wilson(hits, tries)
    return Row(panel, measure, series, x, hits / tries, low, high, tries)


_WIDER = 1.5
_LARGE = 100.0
NEAR = 1.2
"""At the limit: theory and a prototype had 0.8 to 1.2 times it before any of these studies was run."""
BY_SETTING = "Setting by setting."
SETTING_BY_SETTING = (
    "Reproduced if it holds beyond the intervals in most settings and the opposite in none; in part of the range if it "
    "holds in some and the opposite in others; not reproduced if only the opposite is seen; else undecided. Intervals "
    "are as wide as to make all comparisons of the claim together wrong by chance in 5% of runs at most."
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
        if self.clear and self.against:
            return Verdict.IN_PART
        if self.against:
            return Verdict.NOT_REPRODUCED
        return Verdict.REPRODUCED if 2 * self.clear > self.settings else Verdict.UNDECIDED

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


@lru_cache(maxsize=4096)
def _wider(repeats: int, comparisons: int) -> float:
    """By what a 95% interval is widened where so many comparisons are made."""
    if repeats < 2:
        return _WIDER
    wide, own = (float(t.ppf(level, repeats - 1)) for level in (1.0 - (1.0 - _LEVEL) / comparisons, _LEVEL))
    return max(_WIDER, wide / own)


def _low(one: Row | float, comparisons: int = 1) -> float:
    return one.value - _wider(one.repeats, comparisons) * (one.value - one.low) if isinstance(one, Row) else one


def _high(one: Row | float, comparisons: int = 1) -> float:
    return one.value + _wider(one.repeats, comparisons) * (one.high - one.value) if isinstance(one, Row) else one


def below(one: Row | float, other: Row | float, comparisons: int = 1) -> bool:
    """Whether one is smaller beyond the intervals, where so many comparisons are made."""
    return _high(one, comparisons) < _low(other, comparisons)


def within(one: Row, low: float, high: float) -> bool:
    """Whether the interval reaches a range."""
    return _low(one) <= high and _high(one) >= low


def at_most(rows: Iterable[Row], factor: float = 1.0, limits: Iterable[float] | None = None) -> list[bool]:
    """For each row, whether its interval reaches down to a multiple of its limit (default 1)."""
    rows = list(rows)
    bounds = [1.0] * len(rows) if limits is None else list(limits)
    return [_low(row) <= factor * bound for row, bound in zip(rows, bounds, strict=True)]


def away(one: Row, value: float) -> bool:
    """Whether a number lies beyond the interval."""
    return below(one, value) or below(value, one)


def smaller(pairs: Iterable[tuple[Row | float, Row | float]]) -> Tally:
    """How often the first of a pair is the smaller one; all pairs of a claim belong in one call."""
    pairs = list(pairs)
    clear = sum(below(one, other, len(pairs)) for one, other in pairs)
    against = sum(below(other, one, len(pairs)) for one, other in pairs)
    return Tally(clear, len(pairs) - clear - against, against)


def smallest(settings: Iterable[tuple[Row, Sequence[Row]]]) -> Tally:
    """How often a row is smaller than all others of its setting, or one is smaller than it."""
    settings = list(settings)
    many = sum(len(others) for _, others in settings)
    clear = sum(all(below(one, other, many) for other in others) for one, others in settings)
    against = sum(any(below(other, one, many) for other in others) for one, others in settings)
    return Tally(clear, len(settings) - clear - against, against)


def rising(lines: Iterable[list[Row]]) -> Tally:
    """How many lines end higher than they begin; lines of one point do not count."""
    return smaller((line[0], line[-1]) for line in lines if len(line) > 1)


def put_right(as_printed: bool, corrected: bool) -> Verdict:
    """What comes of something that was printed."""
    return Verdict.REPRODUCED if as_printed else Verdict.CORRECTED if corrected else Verdict.NOT_REPRODUCED


def span(values: Iterable[float]) -> str:
    """The least and the largest of some numbers, in words.

    >>> print(span([2.184, 2.184]), "|", span([0.91, 46.84]), "|", span([1.2, 34567.8]))
    2.18 | 0.91 to 46.8 | 1.2 to 34,568
    """
    found = list(values)
    low, high = (f"{end:,.0f}" if abs(end) >= _LARGE else f"{end:.3g}" for end in (min(found), max(found)))
    return low if low == high else f"{low} to {high}"


def in_part(holds: Sequence[bool]) -> Verdict:
    """What comes of something that holds in all settings, in some, or in none."""
    if not holds:
        return Verdict.NOT_RUN
    return Verdict.REPRODUCED if all(holds) else Verdict.IN_PART if any(holds) else Verdict.NOT_REPRODUCED
