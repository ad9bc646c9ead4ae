"""How often decoys of plain l-diversity violate (l, d)-semantic diversity, exactly.

Equations 11 to 17, Figure 6, and Theorems 5.1 and 5.2: which of them hold.

On F values in a row, any l - 1 of the other values are equally likely decoys. A set is valid when any two of its values
are d or more apart. Valid sets of l that hold value i (from 1):

    valid(i) = sum over a + b = l - 1 of C(i - d - (a-1)(d-1), a) * C(F + 1 - i - d - (b-1)(d-1), b)

with a of the decoys below i and b above: a values among n places, d or more apart, can be chosen in
C(n - (a-1)(d-1), a) ways. The violation of value i is 1 - valid(i) / C(F-1, l-1); Equation 11 is that of the first
value.
"""

from __future__ import annotations

from itertools import pairwise
from math import comb

import numpy as np

from polyseme.kernel.arrays import Floats
from polyseme.papers.adult import mechanism_or_none
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
    put_right,
)
from polyseme.semantics.distances import LineDistance
from polyseme.semantics.distances.base import Structure

__all__ = ["STUDY", "equation_11", "equation_17", "room", "violation"]


def equation_11(size: int, l: int, d: int) -> float:
    """The printed lower bound, with `m` read as F.

    >>> round(equation_11(14, 3, 3), 6)
    0.538462
    """
    top = size - (l - 1) * d - 1 + l - 1
    achieving = comb(top, l - 1) if size - (l - 1) * d - 1 >= 0 else 0
    return 1.0 - achieving / comb(size - 1, l - 1)


def equation_17(size: int, l: int, d: int) -> float:
    """The last step of the proof as it is printed, with no binomial symbol above the line.

    >>> round(equation_17(14, 3, 3), 6)
    0.884615
    """
    return 1.0 - (size + l + d - d * l - 2) / comb(size - 1, l - 1)


def violation(size: int, l: int, d: int) -> Floats:
    """The violation probability of a record with each true value: (F,)."""
    every = comb(size - 1, l - 1)
    return np.array([1.0 - _valid(size, l, d, place) / every for place in range(1, size + 1)])


def _valid(size: int, l: int, d: int, place: int) -> int:
    below, above = place - d, size + 1 - place - d
    return sum(_spread(below, a, d) * _spread(above, l - 1 - a, d) for a in range(l))


def _spread(places: int, many: int, d: int) -> int:
    """In how many ways values can be chosen among places in a row, any two at least d apart."""
    if many == 0:
        return 1
    free = places - (many - 1) * (d - 1)
    return comb(free, many) if free >= many else 0


def room(size: int, d: int) -> np.ndarray:
    """The most values, d or more apart, that a set with each value can hold: (F,).

    >>> room(14, 6).tolist()
    [3, 3, 2, 2, 2, 2, 3, 3, 2, 2, 2, 2, 3, 3]
    """
    places = np.arange(size)
    return np.asarray(1 + places // d + (size - 1 - places) // d)


EQUATION, LEAST, MEAN, OURS = "Equation 11", "least over true values", "mean over true values", "ours"
AS_PRINTED = "Equation 17 as printed"
_RATE = "violation probability"
_EXACT = 1e-12
_LISTED = 12
_FEASIBLE = "settings"
_LS, _DS = range(2, 7), range(1, 11)


def grid(quick: bool, _: Sources) -> list[Point]:
    sizes = (14, 50) if quick else (10, 14, 20, 50, 100, 148)
    rates = [Point.of(part="rates", F=size, seconds=0.05) for size in sizes]
    largest = 10 if quick else 16
    return [*rates, *(Point.of(part="theorem", F=size, seconds=0.02 * size) for size in range(2, largest + 1))]


def measure(point: Point, _: int, __: Sources) -> list[Row]:
    size = point.number("F")
    return _rates(size) if point["part"] == "rates" else _theorem(size)


def _rates(size: int) -> list[Row]:
    over_d = [_row for d in _DS for _row in _at(size, 3, d, f"F = {size}, l = 3, over d", d)]
    over_l = [_row for l in _LS for _row in _at(size, l, 3, f"F = {size}, d = 3, over l", l)]
    return over_d + over_l


def _at(size: int, l: int, d: int, panel: str, x: int) -> list[Row]:
    """None where (l, d) does not exist for some true value: there no method can keep it."""
    if room(size, d).min() < l:
        return []
    found = violation(size, l, d)
    numbers = {EQUATION: equation_11(size, l, d), LEAST: float(found.min()), MEAN: float(found.mean()), OURS: 0.0}
    rows = [Row.exact(panel, _RATE, series, x, value) for series, value in numbers.items()]
    return [*rows, Row.exact(panel, AS_PRINTED, AS_PRINTED, x, equation_17(size, l, d))]


def _theorem(size: int) -> list[Row]:
    """All (l, d) of a domain: whether Algorithm 1 keeps the promise, and the theorem's answer."""
    tally = dict.fromkeys(
        (
            "in all",
            "kept by Algorithm 1",
            "built",
            "printed rule right",
            "l d <= F right",
            "balanced exists",
            "l d <= F right about balanced",
        ),
        0,
    )
    for l in range(2, size + 1):
        for d in range(1, size):
            structure = LineDistance.ranks(size).structure(d)
            possible = bool(room(size, d).min() >= l)
            balanced = mechanism_or_none("balanced", structure, l) is not None
            tally["in all"] += 1
            tally["kept by Algorithm 1"] += possible
            tally["built"] += possible and _built(structure, l)
            tally["printed rule right"] += possible == (l * d >= size)
            tally["balanced exists"] += balanced
            tally["l d <= F right"] += possible == (l * d <= size)
            tally["l d <= F right about balanced"] += balanced == (l * d <= size)
    return [Row.exact("Theorem 5.1", _FEASIBLE, series, size, float(many)) for series, many in tally.items()]


def _built(structure: Structure, l: int) -> bool:
    """Whether Algorithm 1 has a mechanism; its sets are listed up to a dozen values only."""
    return mechanism_or_none("simple", structure, min(l, _LISTED)) is not None


BOUND = Claim(
    "journal, Theorem 5.2, Eq. 11-17",
    "Equation 17 is the least violation probability over true values",
    f"{PUT_RIGHT} As printed: without a binomial symbol above the line. Put right: with it, and with the m of Equation "
    "11 read as F. It holds if it is the least of the exact probabilities within 1e-12 everywhere.",
)
ZERO = Claim(
    "journal, Fig. 6",
    "The proposed algorithms never violate (l, d)-semantic diversity",
    "Reproduced if Algorithm 1 can be built in every setting where each true value has a valid set, with valid sets "
    "only; else not reproduced. Sets that were drawn are counted in `violation-measured`.",
)
GROWS = Claim(
    "journal, Fig. 6",
    "The baseline's violation grows with l and with d",
    "Reproduced if it falls from no value of l or d to the next; else not reproduced.",
)
THEOREM = Claim(
    "journal, Theorem 5.1",
    "Algorithm 1 achieves (l, d) if and only if l d >= F",
    f"{PUT_RIGHT} As printed: l d >= F tells for every (l, d) of small domains whether Algorithm 1 can keep it, that "
    "is, "
    "whether each value is in some valid set. Put "
    "right: the sign is turned, l d <= F.",
)


def judge(results: Results) -> list[Finding]:
    return [_bound(results), _zero(results), _grows(results), _feasible(results)]


def _bound(results: Results) -> Finding:
    rows = results.pick(measure=_RATE, series=EQUATION)
    least = {(row.panel, row.x): results.value(row.panel, _RATE, LEAST, row.x) for row in rows}
    equal = sum(abs(row.value - least[row.panel, row.x]) <= _EXACT for row in rows)
    printed = results.pick(measure=AS_PRINTED)
    right = sum(abs(row.value - least[row.panel, row.x]) <= _EXACT for row in printed)
    words = (
        f"With the binomial symbol, Equation 11 is the least probability of any true value in {equal} of {len(rows)} "
        f"settings. Equation 17 as it is printed is right in {right}, and says {min(row.value for row in printed):.3g} "
        "at least."
    )
    return Finding(BOUND, put_right(right == len(printed), equal == len(rows)), words)


def _above(results: Results) -> str:
    """The mean over true values beside Equation 11."""
    rows = results.pick(measure=_RATE, series=MEAN)
    gaps = [row.value - results.value(row.panel, _RATE, EQUATION, row.x) for row in rows]
    above = sum(gap > _EXACT for gap in gaps)
    return f"The mean over true values is above it in {above} of {len(gaps)} settings, by up to {max(gaps):.3f}."


def _total(results: Results, series: str) -> int:
    return int(sum(row.value for row in results.pick("Theorem 5.1", _FEASIBLE, series)))


def _zero(results: Results) -> Finding:
    kept, every = _total(results, "kept by Algorithm 1"), _total(results, "built")
    words = (
        f"It can be built in {every} of the {kept} settings where every true value has a valid set. A set that is not "
        "valid cannot come out of it; `violation-measured` counts those that were drawn."
    )
    return Finding(ZERO, Verdict.REPRODUCED if kept == every else Verdict.NOT_REPRODUCED, words)


def _grows(results: Results) -> Finding:
    lines = [
        sorted((row.x, row.value) for row in results.pick(panel, _RATE, EQUATION)) for panel in results.panels(_RATE)
    ]
    steps = [later[1] - before[1] for line in lines for before, later in pairwise(line)]
    falls = sum(step < -_EXACT for step in steps)
    words = f"It rises in {len(steps) - falls} of {len(steps)} steps of the grid and falls in {falls}."
    return Finding(GROWS, Verdict.REPRODUCED if not falls else Verdict.NOT_REPRODUCED, words)


def _feasible(results: Results) -> Finding:
    names = ("in all", "printed rule right", "l d <= F right", "l d <= F right about balanced")
    every, printed, corrected, balanced = (_total(results, name) for name in names)
    turned = "the sign is turned" if corrected == every else "turning the sign does not put it right"
    words = (
        f"As printed it is right about Algorithm 1 in {printed} of {every} settings of up to {max(_sizes(results))} "
        f"values. l d <= F is right in {corrected} of {every}: {turned}. It is the same as 1 + floor((i-1)/d) + "
        f"floor((F-i)/d) >= l for every value i, which {_total(results, 'kept by Algorithm 1')} settings have. About "
        f"balanced designs it is right in {balanced}."
    )
    return Finding(THEOREM, put_right(printed == every, corrected == every), words)


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
            f"{_bound(results).because} {_above(results)}",
            rates,
        ),
        Exhibit(
            "Which (l, d) exist at all (Theorem 5.1)",
            "Algorithm 1 always achieves (l, d)-semantic diversity if and only if l d >= F.",
            _feasible(results).because,
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
    claims=(BOUND, ZERO, GROWS, THEOREM),
    judge=judge,
    exhibits=exhibits,
    edition=3,
)
