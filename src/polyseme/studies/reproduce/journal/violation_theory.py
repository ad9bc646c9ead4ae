"""Figure 6, Theorems 5.1 and 5.2: what holds of them, exactly."""

from __future__ import annotations

from itertools import pairwise

from polyseme.distances import LineDistance
from polyseme.studies.reproduce.journal.violation import equation_11, room, violation
from polyseme.studies.reproduce.pipelines import mechanism_or_none
from polyseme.studies.reproduce.study import (
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
)

__all__ = ["STUDY"]

EQUATION, LEAST, MEAN, OURS = "Equation 11", "least over true values", "mean over true values", "ours"
_RATE = "violation probability"
_EXACT = 1e-12
_FEASIBLE = "settings"
_LS, _DS = range(2, 7), range(1, 11)


def grid(quick: bool, _: Sources) -> list[Point]:
    sizes = (14, 50) if quick else (10, 14, 20, 50, 100, 148)
    rates = [Point.of(part="rates", F=size, seconds=0.05) for size in sizes]
    largest = 10 if quick else 16
    return [*rates, *(Point.of(part="theorem", F=size, seconds=0.02 * size) for size in range(4, largest + 1))]


def measure(point: Point, _: int, __: Sources) -> list[Row]:
    size = point.number("F")
    return _rates(size) if point["part"] == "rates" else _theorem(size)


def _rates(size: int) -> list[Row]:
    over_d = [_row for d in _DS for _row in _at(size, 3, d, f"F = {size}, l = 3, over d", d)]
    over_l = [_row for l in _LS for _row in _at(size, l, 3, f"F = {size}, d = 3, over l", l)]
    return over_d + over_l


def _at(size: int, l: int, d: int, panel: str, x: int) -> list[Row]:
    """None where (l, d) does not exist for some true value: there nobody can keep it."""
    if room(size, d).min() < l:
        return []
    found = violation(size, l, d)
    numbers = {EQUATION: equation_11(size, l, d), LEAST: float(found.min()), MEAN: float(found.mean()), OURS: 0.0}
    return [Row.exact(panel, _RATE, series, x, value) for series, value in numbers.items()]


def _theorem(size: int) -> list[Row]:
    """All (l, d) of a domain: whether Algorithm 1 can keep the promise, and what the theorem says of it."""
    tally = dict.fromkeys(
        ("in all", "kept by Algorithm 1", "printed rule right", "balanced exists", "l d <= F right"), 0
    )
    for l in range(2, size + 1):
        for d in range(1, size):
            structure = LineDistance.ranks(size).structure(d)
            possible = bool(room(size, d).min() >= l)
            if (mechanism_or_none("simple", structure, min(l, 12)) is not None) != bool(
                room(size, d).min() >= min(l, 12)
            ):
                raise ValueError("the closed form and the algorithm disagree on which sets exist")
            balanced = mechanism_or_none("balanced", structure, l) is not None
            tally["in all"] += 1
            tally["kept by Algorithm 1"] += possible
            tally["printed rule right"] += possible == (l * d >= size)
            tally["balanced exists"] += balanced
            tally["l d <= F right"] += balanced == (l * d <= size)
    return [Row.exact("Theorem 5.1", _FEASIBLE, series, size, float(many)) for series, many in tally.items()]


BOUND = Claim("journal, Theorem 5.2, Eq. 11-17", "Equation 11 is the least violation probability over true values")
ZERO = Claim("journal, Fig. 6", "The proposed algorithms never violate (l, d)-semantic diversity")
GROWS = Claim("journal, Fig. 6", "The baseline's violation grows with l and with d")
THEOREM = Claim("journal, Theorem 5.1", "Algorithm 1 achieves (l, d) if and only if l d >= F")


def judge(results: Results) -> list[Finding]:
    return [_bound(results), _zero(results), _grows(results), _feasible(results)]


def _bound(results: Results) -> Finding:
    pairs = [
        (row, results.value(row.panel, _RATE, LEAST, row.x)) for row in results.pick(measure=_RATE, series=EQUATION)
    ]
    equal = sum(abs(row.value - least) <= _EXACT for row, least in pairs)
    words = (
        f"In {equal} of {len(pairs)} settings the equation, with its m read as F and the binomial symbol that "
        "Equation 17 lost, is exactly the probability of an end value, and no true value has less."
    )
    return Finding(BOUND, Verdict.CORRECTED if equal == len(pairs) else Verdict.NOT_REPRODUCED, words)


def _zero(results: Results) -> Finding:
    words = (
        "By construction: all sets of every design here are valid, and `violation-measured` counts none that is not. "
        "It holds where valid sets exist for every true value; see Theorem 5.1."
    )
    zero = all(row.value == 0 for row in results.pick(measure=_RATE, series=OURS))
    return Finding(ZERO, Verdict.REPRODUCED if zero else Verdict.NOT_REPRODUCED, words)


def _grows(results: Results) -> Finding:
    lines = [
        sorted((row.x, row.value) for row in results.pick(panel, _RATE, EQUATION)) for panel in results.panels(_RATE)
    ]
    steps = [later[1] - before[1] for line in lines for before, later in pairwise(line)]
    falls = sum(step < -_EXACT for step in steps)
    words = f"It rises in {len(steps) - falls} of {len(steps)} steps of the grid and falls in {falls}."
    return Finding(GROWS, Verdict.REPRODUCED if not falls else Verdict.NOT_REPRODUCED, words)


def _feasible(results: Results) -> Finding:
    def total(series: str) -> int:
        return int(sum(row.value for row in results.pick("Theorem 5.1", _FEASIBLE, series)))

    every, printed, corrected = total("in all"), total("printed rule right"), total("l d <= F right")
    words = (
        f"As printed it is right in {printed} of {every} settings of up to {max(_sizes(results))} values: the "
        f"inequality is the wrong way round. l d <= F is exactly the condition for a balanced design ({corrected} of "
        f"{every}); Algorithm 1 itself needs 1 + floor((i-1)/d) + floor((F-i)/d) >= l for every value i "
        f"({total('kept by Algorithm 1')} settings)."
    )
    return Finding(THEOREM, Verdict.CORRECTED if corrected == every else Verdict.NOT_REPRODUCED, words)


def _sizes(results: Results) -> list[int]:
    return [int(float(row.x)) for row in results.pick("Theorem 5.1", _FEASIBLE, "in all")]


def exhibits(results: Results) -> list[Exhibit]:
    panels = results.panels(_RATE)
    rates = tuple(Figure(p, _RATE, "d" if p.endswith("d") else "l", "probability of a record") for p in panels)
    return [
        Exhibit(
            "Violation by decoys that ignore distance (Figure 6)",
            "The violation probability of plain l-diversity decoys grows with l and d, and Equation 11 bounds it from "
            "below; the proposed algorithms have zero.",
            "Equation 11 is what an end value has, and it is the least. An average value violates more often: the mean "
            "lies above it everywhere.",
            rates,
        ),
        Exhibit(
            "Which (l, d) exist at all (Theorem 5.1)",
            "Algorithm 1 always achieves (l, d)-semantic diversity if and only if l d >= F.",
            "The opposite is near the truth: many or distant candidates need many values. l d <= F is exactly when "
            "every value can be equally likely to appear.",
            (Figure("Theorem 5.1", _FEASIBLE, "F, number of values", "settings (l, d)"),),
        ),
    ]


STUDY = Study(
    name="violation-theory",
    title="How often plain decoys violate (l, d), and which (l, d) exist",
    source="Journal paper, Figure 6, Theorems 5.1 and 5.2, Equations 11 to 17",
    did=(
        "Section 5.4 derives the probability that decoys drawn without regard to distance come too near to each other, "
        "and Figure 6 draws it over the number of values F, over l and over d. The printed values of F, l and d are "
        "not in the text.",
    ),
    ran=(
        "The probability of every true value is counted exactly, in closed form, and compared with Equation 11. For "
        "every (l, d) of small domains we try to build the paper's algorithm and the balanced design, and compare "
        "with what Theorem 5.1 says.",
    ),
    grid=grid,
    measure=measure,
    judge=judge,
    exhibits=exhibits,
    thresholds={"Equation 11": "equal to the least violation within 1e-12"},
)
