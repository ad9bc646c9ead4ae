"""What a study is: a grid of points, how one point is measured, what the paper claims, and how a claim is judged.

A study is data and a few functions. Everything that its numbers depend on is declared: the grid, how often each point
is repeated, the seed, and the rules by which claims are judged. Numbers depend on nothing else, so that they are
the same whatever ran before, on however many cores, and whether or not the run was stopped in between.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Literal, TypeAlias

__all__ = [
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
    "Verdict",
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


class Results:
    """The rows of a study."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows = tuple(rows)

    def pick(self, panel: str | None = None, measure: str | None = None, series: str | None = None) -> list[Row]:
        """The rows of a panel, a measure, a series, or of some of these."""
        return [
            row
            for row in self.rows
            if panel in (None, row.panel) and measure in (None, row.measure) and series in (None, row.series)
        ]

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
    NOT_REPRODUCED = "not reproduced"
    READING = "a reading that fits"
    UNDECIDED = "undecided"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class Claim:
    """Something that a paper says, in our words, where it says so, and by which rule a run decides on it."""

    where: str
    says: str
    rule: str


@dataclass(frozen=True)
class Finding:
    """What came of a claim, and the numbers that say so."""

    claim: Claim
    verdict: Verdict
    because: str


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
        found = self.judge(results)
        if [finding.claim for finding in found] != list(self.claims):
            raise ValueError(f"{self.name} judged other claims than it declares")
        return found

    def run(self, point: Point, sources: Sources) -> list[Row]:
        return self.measure(point, self.seed_of(point), sources)
