"""Figures 5 and 6: times of anonymizing and reconstructing, on a table like the US Census."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from polyseme.designs.mechanism import Mechanism
from polyseme.inference.base import Estimator
from polyseme.inference.sets.linear import ValueAdding
from polyseme.inference.sets.maximum import Bayes, MaximumLikelihood
from polyseme.kernel.arrays import Ints
from polyseme.kernel.randomness import SystemStream, experiment
from polyseme.papers.baselines import rating, value_groups
from polyseme.papers.sensitive_qids.census import (
    ATTRIBUTES,
    OURS,
    PROPOSAL,
    RATING,
    RATING_DRAWN,
    RECORDS,
    VALUEADDING,
    Attributes,
    census,
    census_name,
    grouped,
)
from polyseme.papers.study import (
    BY_SETTING,
    Claim,
    Exhibit,
    Figure,
    Finding,
    Point,
    Results,
    Row,
    Sources,
    Study,
    Verdict,
    mean_row,
    ratio_row,
    smaller,
)
from polyseme.privacy.calibration import choose, mechanism_for
from polyseme.privacy.promises import Diversity, Promises

__all__ = ["STUDY"]

ANONYMIZING, SECONDS = "anonymizing all attributes", "seconds"
TIMES = "time over that of ValueAdding"
SAME = "Proposal and ValueAdding"
TENS, TEN_MINUTES = 100.0, 600.0
_LS, _QS = (2, 3, 5, 7, 10), (1, 2, 3)
_MANY = 4
FOUR = (2, 5, 10)
"""The l at which four attributes are asked for."""


def grid(quick: bool, sources: Sources) -> list[Point]:
    data, records, repeats = census_name(sources.census), *((5_000, 2) if quick else (RECORDS // 10, 3))
    ls = (2, 5) if quick else _LS
    points = [
        Point.of(data=data, part="anonymize", l=l, records=records, repeats=repeats, seconds=0.5 if quick else 9.0)
        for l in ls
    ]
    settings = [(2, 1), (5, 2)] if quick else [(l, q) for q in _QS for l in ((2, 3, 5) if q == 3 else _LS)]
    settings += [] if quick else [(l, 4) for l in FOUR]
    return points + [
        Point.of(
            data=data,
            part="reconstruct",
            l=l,
            q=q,
            records=records if q < _MANY else RECORDS // 100,
            repeats=repeats,
            seconds=0.5 if quick else 1.5 * q if q < _MANY else l**2 / 2.0,
        )
        for l, q in settings
    ]


def _mechanism(size: int, l: int) -> Mechanism:
    return mechanism_for(choose(size, None, Promises.of(Diversity(l=max(min(l, size - 1), 1)))))


def measure(point: Point, seed: int, sources: Sources) -> list[Row]:
    table = census(sources.census, point.number("records"))
    if point["part"] == "anonymize":
        return _anonymizing(table, point.number("l"), point.repeats, seed)
    return _reconstructing(table, point.number("l"), point.number("q"), point.repeats, seed)


def _seconds(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def _anonymizing(table: Attributes, l: int, repeats: int, seed: int) -> list[Row]:
    """Seconds for all attributes, as many times as long as the census has more records."""
    stream, larger = SystemStream.seeded(seed), RECORDS / table.records
    made = [_mechanism(size, l) for size in table.sizes]
    ways: dict[str, Callable[[int], object]] = {
        SAME: lambda place: made[place].sample(table.codes[place], stream),
        RATING: lambda place: _pointed(table, place, made[place].l),
        RATING_DRAWN: lambda place: rating(table.codes[place], table.sizes[place], made[place].l, stream),
    }
    return [
        mean_row(ANONYMIZING, SECONDS, name, l, [larger * _over_all(way) for _ in range(repeats)])
        for name, way in ways.items()
    ]


def _over_all(way: Callable[[int], object]) -> float:
    return sum(_seconds(partial(way, place)) for place in range(ATTRIBUTES))


def _pointed(table: Attributes, place: int, l: int) -> Ints:
    """Fixed groups of values: every record points to its group."""
    return value_groups(table.counts(place), l)[table.codes[place]]


def _reconstructing(table: Attributes, l: int, q: int, repeats: int, seed: int) -> list[Row]:
    stream, generator, larger = SystemStream.seeded(seed), experiment(seed), RECORDS / table.records
    estimators: dict[str, Estimator] = {PROPOSAL: Bayes(), VALUEADDING: ValueAdding(), OURS: MaximumLikelihood()}
    found: dict[str, list[float]] = {}
    for _ in range(repeats):
        places = table.some(q, generator)
        made = [_mechanism(table.sizes[place], l) for place in places]
        sets = [mechanism.sample(table.codes[place], stream) for mechanism, place in zip(made, places, strict=True)]
        begin = time.process_time()
        reports = grouped(sets)
        counting = time.process_time() - begin
        for name, estimator in estimators.items():
            took = _seconds(partial(estimator.fit, reports, made))
            found.setdefault(name, []).append(larger * (counting + took))
    panel = f"reconstructing, q' = {q}"
    rows = [mean_row(panel, SECONDS, name, l, numbers) for name, numbers in found.items()]
    return [*rows, ratio_row(panel, TIMES, PROPOSAL, l, found[PROPOSAL], found[VALUEADDING])]


QUICK = Claim(
    "sensitive QIDs, Fig. 5",
    "Anonymizing 2 million records with 68 attributes takes several tens of seconds",
    f"Reproduced if every time, projected to all records, is below {TENS:.0f} s: tens, not hundreds. Faster is as "
    "good. Else not reproduced.",
)
SLOWER = Claim(
    "sensitive QIDs, Fig. 5",
    "Rating takes longer to anonymize than the Proposal and ValueAdding",
    "For the reading with values of other records, which the paper's own explanation is about. " + BY_SETTING,
)
MINUTES = Claim(
    "sensitive QIDs, Fig. 6",
    "Reconstruction takes less than 10 minutes on average, also at q' = 4",
    f"By mean times projected to all records, against {TEN_MINUTES:.0f} s; not run without q' = 4 at l = 2, 5 and 10. "
    + BY_SETTING,
)
_SAME = "On the same questions, by the ratio of mean times. " + BY_SETTING
MORE = Claim("sensitive QIDs, Fig. 6", "The Proposal needs more time to reconstruct than ValueAdding", _SAME)


def judge(results: Results) -> list[Finding]:
    return [_quick(results), _slower(results), _minutes(results), _more(results)]


def _quick(results: Results) -> Finding:
    rows = results.pick(ANONYMIZING, SECONDS, SAME)
    longest = max(row.value for row in rows)
    words = (
        f"{min(row.value for row in rows):.1f} to {longest:.1f} s on one core for the drawing of all sets, projected "
        "from fewer records; reading and writing files not counted."
    )
    return Finding(QUICK, Verdict.REPRODUCED if longest < TENS else Verdict.NOT_REPRODUCED, words)


def _slower(results: Results) -> Finding:
    ours = results.line(ANONYMIZING, SECONDS, SAME)
    rows = {name: results.pick(ANONYMIZING, SECONDS, name) for name in (RATING, RATING_DRAWN)}
    tally = smaller((ours[row.x], row) for row in rows[RATING_DRAWN])
    ratios = {name: [row.value / ours[row.x].value for row in found] for name, found in rows.items()}
    words = "; ".join(f"{name}: {min(found):.1f} to {max(found):.1f} times" for name, found in ratios.items())
    text = f"Slower {tally}. Beside the time of the Proposal's sets: {words}."
    return Finding(SLOWER, tally.verdict, text)


def _minutes(results: Results) -> Finding:
    rows = [row for row in results.rows if row.panel.startswith("reconstructing") and row.series == PROPOSAL]
    longest = max(rows, key=lambda row: row.value)
    words = f"At most {longest.value:.2f} s on average ({longest.panel}, l = {longest.x}), projected to all records."
    four = {row.x: row.value for row in rows if row.panel.endswith("4")}
    words += f" At q' = 4: {', '.join(f'{took:.2f} s at l = {l}' for l, took in four.items())}." if four else ""
    if not set(FOUR) <= set(four):
        return Finding(MINUTES, Verdict.NOT_RUN, f"{words} Four attributes at a time are for the full run.")
    tally = smaller((row, TEN_MINUTES) for row in rows)
    return Finding(MINUTES, tally.verdict, f"Less {tally}. {words}")


def _more(results: Results) -> Finding:
    rows = results.pick(measure=TIMES)
    tally = smaller((1.0, row) for row in rows)
    words = f"More {tally}, {min(row.value for row in rows):.1f} to {max(row.value for row in rows):.1f} times as much."
    return Finding(MORE, tally.verdict, words)


def exhibits(results: Results) -> list[Exhibit]:
    panels = [panel for panel in results.panels(SECONDS) if panel != ANONYMIZING]
    return [
        Exhibit(
            "Anonymizing (Figure 5)",
            "The Proposal and ValueAdding, which draw the same sets, take several tens of seconds for 2 million "
            "records; Rating takes longer.",
            f"Seconds for 2,458,285 records on one core, projected from fewer. {_quick(results).because}",
            (Figure(ANONYMIZING, SECONDS, "l", "seconds", log=True),),
        ),
        Exhibit(
            "Reconstructing (Figure 6)",
            "The Proposal takes longer than ValueAdding and Rating, and less than 10 minutes also at q' = 4.",
            f"Seconds for one question, counting the sets included. {_minutes(results).because}",
            tuple(Figure(panel, SECONDS, "l", "seconds", log=True) for panel in panels),
        ),
    ]


STUDY = Study(
    name="sensitive-qids-time",
    title="How long anonymizing and reconstructing take",
    source="Sensitive-QID paper, Figures 5 and 6",
    did=(
        "All 68 attributes of the US Census table (2,458,285 records) are anonymized, and questions about q' random "
        "attributes answered, on a workstation; mean times are drawn over l.",
    ),
    ran=(
        "The same with a tenth of the records, at q' = 4 with a hundredth: of the file where it is given (--data "
        "census=FILE), else of a generated table of its shape, 68 attributes of 2 to 18 values. Times are projected to "
        "all records: anonymizing is done record by record, and reconstruction grows at most in proportion to them. "
        "They are times of the processor, so that what else it does matters little.",
    ),
    grid=grid,
    measure=measure,
    claims=(QUICK, SLOWER, MINUTES, MORE),
    judge=judge,
    exhibits=exhibits,
    edition=5,
    census=True,
    steady=False,
)
