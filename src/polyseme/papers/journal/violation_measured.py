"""Figures 14 and 15: measured violations of plain decoys against Equations 11 and 12.

A database of N records violates (l, d)-semantic diversity where one of its sets does. Equation 12 is its probability
where every record has a value at the end, and a lower bound for all others.
"""

from __future__ import annotations

import numpy as np

from polyseme.designs import make_design
from polyseme.designs.mechanism import Mechanism
from polyseme.kernel.arrays import Bools, Ints
from polyseme.kernel.randomness import SystemStream, experiment
from polyseme.papers.adult import EXACT_CHECK, Coded, income, mechanism_or_none, structure_of, weights
from polyseme.papers.journal.violation_theory import equation_11, room, violation
from polyseme.papers.study import (
    PUT_RIGHT,
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
    away,
    below,
    put_right,
    share_row,
)
from polyseme.semantics.distances.base import Clusters

__all__ = ["STUDY", "equation_12"]

PLAIN, EQUATION, EXACT = "plain decoys, measured", "Equation 11", "plain decoys, exact"
OURS = {"simple": "Algorithm 1", "duplicate": "Algorithm 1 with 3", "balanced": "balanced"}
_RATE = "violation rate"
INCOME, WEIGHT = "income", "Adult fnlwgt"
ALIKE = 0.05
EQUATION_12, ENDS = "Equation 12", "databases of end values"
PEOPLE = "databases of people"
_WHOLE = "databases that violate (l, d)"
_DATABASES = (2, 5, 20)
"""Records of a database."""
_SETTINGS = [(l, 3) for l in range(2, 6)] + [(3, d) for d in (1, 2, 4, 5, 6)]
_WEIGHT_SETTINGS = [(l, 3) for l in range(2, 9)] + [(3, d) for d in (1, 2, 5, 10, 20, 30)]


def grid(quick: bool, sources: Sources) -> list[Point]:
    records, seconds = (5_000, 0.1) if quick else (100_000, 1.5)
    points = [Point.of(data=INCOME, l=l, d=d, records=records, repeats=1, seconds=seconds) for l, d in _SETTINGS]
    if sources.adult is not None:
        chosen = _WEIGHT_SETTINGS[::4] if quick else _WEIGHT_SETTINGS
        points += [Point.of(data=WEIGHT, l=l, d=d, records=30_162, repeats=1, seconds=1.0) for l, d in chosen]
    return points


def _table(point: Point, sources: Sources) -> Coded:
    if point["data"] == INCOME:
        return income(point.number("records"))
    if sources.adult is None:
        raise ValueError("this point needs the Adult table")
    return weights(sources.adult)


def measure(point: Point, seed: int, sources: Sources) -> list[Row]:
    table, l, d = _table(point, sources), point.number("l"), point.number("d")
    if room(table.size, d).min() < l:
        return []
    stream = SystemStream.seeded(seed)
    plain = Mechanism(make_design("balanced", Clusters(np.arange(table.size)), l))
    numbers = {EQUATION: equation_11(table.size, l, d)}
    numbers[EXACT] = float(violation(table.size, l, d)[table.codes].mean())
    counted = {PLAIN: _violating(plain.sample(table.codes, stream), d)}
    for design, name in OURS.items():
        mechanism = mechanism_or_none(design, structure_of(design, table.distance, d), l)
        if mechanism is not None:
            counted[name] = _violating(mechanism.sample(table.codes, stream), d)
    panels = [f"{table.name}, d = 3, over l"] * (d == 3) + [f"{table.name}, l = 3, over d"] * (l == 3)
    rows = [row for panel in panels for row in _rows(panel, l if panel.endswith("l") else d, numbers, counted, table)]
    return rows + _whole_databases(table, plain, d, seed)


def _whole_databases(table: Coded, plain: Mechanism, d: int, seed: int) -> list[Row]:
    """Databases of random people, and of records that all have the first value."""
    panel, stream = f"{table.name} at ({plain.l}, {d})", SystemStream.seeded(seed + 1)
    drawn = {
        PEOPLE: table.codes[experiment(seed).permutation(table.records)],
        ENDS: np.zeros(table.records, dtype=np.int64),
    }
    bad = {name: _too_near(plain.sample(codes, stream), d) for name, codes in drawn.items()}
    rows = []
    for size in _DATABASES:
        many = table.records // size
        hits = {name: int(found[: many * size].reshape(many, size).any(axis=1).sum()) for name, found in bad.items()}
        rows += [share_row(panel, _WHOLE, name, size, hit, many) for name, hit in hits.items()]
        bound = equation_12(equation_11(table.size, plain.l, d), size)
        rows.append(Row.exact(panel, _WHOLE, EQUATION_12, size, bound))
    return rows


def equation_12(rho: float, records: int) -> float:
    """The lower bound for a database, where each record violates with at least this probability.

    >>> equation_12(0.5, 2)
    0.75
    """
    return 1.0 - float((1.0 - rho) ** records)


def _rows(panel: str, x: int, numbers: dict[str, float], counted: dict[str, int], table: Coded) -> list[Row]:
    rows = [share_row(panel, _RATE, name, x, hits, table.records) for name, hits in counted.items()]
    return rows + [Row.exact(panel, _RATE, name, x, value) for name, value in numbers.items()]


def _violating(sets: Ints, d: int) -> int:
    return int(_too_near(sets, d).sum())


def _too_near(sets: Ints, d: int) -> Bools:
    """Sets with two values nearer than d: rows are ascending, so neighbors are the nearest."""
    return np.asarray(np.diff(sets, axis=1).min(axis=1) < d)


BOUND = Claim(
    "journal, Fig. 14-15",
    "Equation 11 is a lower bound of the measured violation rate",
    "Reproduced if no measured rate lies below it beyond its interval; else not reproduced.",
)
ALMOST = Claim(
    "journal, Fig. 14-15",
    "Measured and mathematical results are almost the same",
    f"{PUT_RIGHT} Almost the same is at most {ALIKE} apart everywhere, a twentieth of the axis that rates are drawn "
    "on. As printed: Equation 11. Put right: the exact mean over the people, each with the probability of their own "
    "value.",
)
ZERO = Claim(
    "journal, 7.3",
    "The proposed algorithms always achieve (l, d)-semantic diversity",
    "Reproduced if none of their sets violates it; else not reproduced.",
)
WHOLE = Claim(
    "journal, Theorem 5.2, Eq. 12",
    "A database of N records violates with probability 1 - (1 - rho)^N at least",
    "Reproduced if no measured share of databases of people lies below it beyond its interval, and no share of "
    "databases of end values lies off it on either side; else not reproduced. The second part fails a bound that is "
    "too low.",
)


def judge(results: Results) -> list[Finding]:
    return [_bound(results), _almost(results), _zero(results), _whole(results)]


def _bound(results: Results) -> Finding:
    rows = results.pick(measure=_RATE, series=PLAIN)
    under = sum(below(row, results.value(row.panel, _RATE, EQUATION, row.x)) for row in rows)
    words = f"Of {len(rows)} measured rates {under or 'none'} lies below it."
    return Finding(BOUND, Verdict.REPRODUCED if not under else Verdict.NOT_REPRODUCED, words)


def _gaps(results: Results, series: str) -> dict[tuple[str, float | str], float]:
    """How far the measured rates are from what a formula says."""
    rows = results.pick(measure=_RATE, series=PLAIN)
    return {(row.panel, row.x): abs(row.value - results.value(row.panel, _RATE, series, row.x)) for row in rows}


def _almost(results: Results) -> Finding:
    gaps, exact = _gaps(results, EQUATION), max(_gaps(results, EXACT).values())
    panel, x = max(gaps, key=lambda place: gaps[place])
    words = (
        f"They are up to {gaps[panel, x]:.3f} apart ({panel} at {x}: {results.value(panel, _RATE, PLAIN, x):.3f} "
        f"measured, {results.value(panel, _RATE, EQUATION, x):.3f} by the equation). From the exact mean over the "
        "people, "
        f"each with the probability of their own value, they are at most {exact:.3f} apart."
    )
    return Finding(ALMOST, put_right(gaps[panel, x] <= ALIKE, exact <= ALIKE), words)


def _zero(results: Results) -> Finding:
    rows = [row for name in OURS.values() for row in results.pick(measure=_RATE, series=name)]
    hits, sets = sum(round(row.value * row.repeats) for row in rows), sum(row.repeats for row in rows)
    words = (
        f"Of {sets:,} sets drawn by Algorithm 1, by Algorithm 1 with Algorithm 3 and by the balanced design, "
        f"{hits or 'none'} violates it."
    )
    return Finding(ZERO, Verdict.REPRODUCED if not hits else Verdict.NOT_REPRODUCED, words)


def _whole(results: Results) -> Finding:
    def beside(series: str) -> list[tuple[Row, float]]:
        rows = results.pick(measure=_WHOLE, series=series)
        return [(row, results.value(row.panel, _WHOLE, EQUATION_12, row.x)) for row in rows]

    under = sum(below(row, bound) for row, bound in beside(PEOPLE))
    off = sum(away(row, bound) for row, bound in beside(ENDS))
    row, bound = max(beside(PEOPLE), key=lambda pair: pair[0].value - pair[1])
    words = (
        f"Of {len(beside(PEOPLE))} shares of databases of people {under or 'none'} lies below it, and of "
        f"{len(beside(ENDS))} of end values {off or 'none'} lies off it. People exceed it by most at "
        f"N = {row.x} for {row.panel}: {row.value:.3f} where the equation has {bound:.3f}."
    )
    return Finding(WHOLE, Verdict.NOT_REPRODUCED if under or off else Verdict.REPRODUCED, words)


def exhibits(results: Results) -> list[Exhibit]:
    whole = tuple(
        Figure(panel, _WHOLE, "N, records of a database", "share of databases that violate (l, d)")
        for panel in results.panels(_WHOLE)[:4]
    )
    figures = tuple(
        Figure(panel, _RATE, panel[-1], "share of records that violate (l, d)") for panel in results.panels(_RATE)
    )
    return [
        Exhibit(
            "Measured violation against Equation 11 (Figures 14 and 15)",
            "With any parameters the mathematical and the measured results are almost the same, the mathematical ones "
            "below; the proposed algorithms have no violation.",
            f"{_bound(results).because} {_almost(results).because} {_zero(results).because}",
            figures,
        ),
        Exhibit(
            "Whole databases (Equation 12)",
            "A database violates (l, d) where one of its N records does: with probability 1 - (1 - rho)^N at least.",
            _whole(results).because,
            whole,
        ),
    ]


STUDY = Study(
    name="violation-measured",
    title="Measured violations of plain l-diversity decoys",
    source="Journal paper, section 7.3, Figures 14 and 15, Equation 12",
    did=(
        "Decoys of plain l-diversity, which ignore distance, are drawn for every record; the share of records whose "
        "set violates (l, d)-semantic diversity is measured over l at d = 3 and over d at l = 3, and drawn beside "
        "Equation 11.",
    ),
    ran=(
        "The same for our generated incomes (14 classes, distance in ranks) and, where the Adult table is at hand, for "
        "fnlwgt in 148 classes; and the sets of the paper's two algorithms and of the balanced design are counted too. "
        f"Equation 11 is for a value at the end. {EXACT_CHECK}",
        "Plain decoys are drawn again for databases of 2, 5 and 20 records: for people in random order, and for as "
        "many records that all have the first value.",
    ),
    grid=grid,
    measure=measure,
    claims=(BOUND, ALMOST, ZERO, WHOLE),
    judge=judge,
    exhibits=exhibits,
    edition=2,
    adult="some",
)
