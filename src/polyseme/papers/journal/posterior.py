"""Where the promise of 1/l breaks: exact worst posteriors of the papers' and our designs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from polyseme.papers.adult import mechanism_or_none, structure_of
from polyseme.papers.study import (
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
    in_part,
)
from polyseme.privacy.analysis.summary import paper_matrix
from polyseme.semantics.distances import LineDistance

__all__ = ["STUDY"]

VALUES = 14
PLAIN, PRINTED, WITH_3 = "Algorithm 1", "Algorithm 1, check as printed", "Algorithm 1 with 3"
DESIGNS = {"simple": PLAIN, "simple-printed": PRINTED, "duplicate": WITH_3, "balanced": "balanced"}
PROMISE = "1/l"
WORST, MEAN, OFF = "worst posterior", "mean success", "off Equation 2"
EXACT, ROUNDING = 1e-6, 1e-9
_FEW = 4
"""Settings that a sentence lists one by one."""


def grid(quick: bool, _: Sources) -> list[Point]:
    largest = 4 if quick else 6
    return [
        Point.of(l=l, d=d, seconds=0.03 if l < 4 else 0.2)
        for l in range(2, largest + 1)
        for d in range(1, VALUES // l + 1)
    ]


def measure(point: Point, _: int, __: Sources) -> list[Row]:
    l, d = point.number("l"), point.number("d")
    line, even = LineDistance.ranks(VALUES), np.full(VALUES, 1.0 / VALUES)
    rows = [Row.exact(f"l = {l}", WORST, PROMISE, d, 1.0 / l)]
    for design, name in DESIGNS.items():
        mechanism = mechanism_or_none(design, structure_of(design, line, d), l)
        if mechanism is None:
            continue
        rows.append(Row.exact(f"l = {l}", WORST, name, d, float(mechanism.worst_posterior(even))))
        mean = mechanism.design.success(even, even, 1.0)
        rows += [] if mean is None else [Row.exact(f"l = {l}", MEAN, name, d, float(mean))]
        off = float(np.abs(mechanism.inclusion_matrix() - paper_matrix(mechanism)).max())
        rows += [Row.exact(f"l = {l}", OFF, name, d, off if off > ROUNDING else 0.0)] if design != "balanced" else []
    return rows


_AS_PROMISED = "Reproduced if no worst posterior, which is exact, is more than 1e-6 above 1/l; else not reproduced."
SIMPLE = Claim(
    "journal, 5.1", "An attacker who sees a set cannot tell which of its l values is true (Algorithm 1)", _AS_PROMISED
)
DUPLICATE = Claim("journal, 5.3", "The same with duplicate processing (Algorithm 3)", _AS_PROMISED)
AS_PRINTED = Claim(
    "journal, 5.1 and Eq. 5-10",
    "The same for Algorithm 1 with the check of section 5.4 to the letter, which counts round a circle",
    _AS_PROMISED,
)
_BY_EQUATION = (
    "Reproduced if every exact selection probability is that of Equation 2 within 1e-9; in part of the range if so in "
    "some settings; else not reproduced."
)
EQUATION = Claim(
    "journal, Eq. 2 and 5.3",
    "With duplicate processing every dummy is chosen with the probability of Equation 2",
    _BY_EQUATION,
)
AT_TWO = Claim(
    "journal, Eq. 2",
    "At l = 2, where there is one dummy, Algorithm 1 needs no duplicate processing for that",
    f"{_BY_EQUATION} At l = 2, for the exact check and for the printed one.",
)
BALANCED = Claim(
    "ours",
    "The balanced design keeps 1/l exactly, wherever l d <= F",
    "Reproduced if every worst posterior is within 1e-6 of 1/l; else not reproduced.",
)


def judge(results: Results) -> list[Finding]:
    return [
        _promised(results, SIMPLE, PLAIN),
        _promised(results, AS_PRINTED, PRINTED),
        _promised(results, DUPLICATE, WITH_3),
        _equation(results, EQUATION, results.pick(measure=OFF, series=WITH_3)),
        _equation(results, AT_TWO, [row for name in (PLAIN, PRINTED) for row in results.pick("l = 2", OFF, name)]),
        _kept(results),
    ]


def _equation(results: Results, claim: Claim, rows: Sequence[Row]) -> Finding:
    off = [row for row in rows if row.value > 0]
    words = f"Equation 2 is exact in {len(rows) - len(off)} of {len(rows)} settings."
    if off:
        worst = max(off, key=lambda row: row.value)
        where = ", ".join(dict.fromkeys(f"{row.panel}, d = {row.x}" for row in off))
        words += f" Not at {where}" if len(off) <= _FEW else f" It is exact {_where_exact(rows)}"
        words += (
            f"; some dummy is off it by up to {worst.value:.3f} at {worst.panel}, d = {worst.x}, for {worst.series}."
        )
        plain = results.line(worst.panel, OFF, PLAIN).get(worst.x)
        words += f" Without duplicate processing: {plain.value:.3f} there." if plain and worst.series == WITH_3 else ""
    return Finding(claim, in_part([not row.value for row in rows]), words)


def _where_exact(rows: Sequence[Row]) -> str:
    """The l at which all settings are exact, and the d at which some others are."""
    panels = dict.fromkeys(row.panel for row in rows)
    whole = [panel for panel in panels if not any(row.value for row in rows if row.panel == panel)]
    others = sorted({float(row.x) for row in rows if not row.value and row.panel not in whole})
    words = [f"at {', '.join(whole)}"] if whole else []
    words += [f"at d = {', '.join(f'{d:g}' for d in others)} for some other l"] if others else []
    return " and ".join(words) or "nowhere"


def _promised(results: Results, claim: Claim, series: str) -> Finding:
    rows = results.pick(measure=WORST, series=series)
    over = [row for row in rows if row.value > results.value(row.panel, WORST, PROMISE, row.x) + EXACT]
    if not over:
        return Finding(claim, Verdict.REPRODUCED, f"1/l holds in all {len(rows)} settings.")
    worst = max(over, key=lambda row: row.value / results.value(row.panel, WORST, PROMISE, row.x))
    words = (
        "An attacker who knows the algorithm and has a uniform prior does better than 1/l in "
        f"{len(over)} of "
        f"{len(rows)} settings: up to {worst.value:.3f} instead of "
        f"{results.value(worst.panel, WORST, PROMISE, worst.x):.3f} at {worst.panel}, d = {worst.x}."
    )
    return Finding(claim, Verdict.NOT_REPRODUCED, words)


def _kept(results: Results) -> Finding:
    rows = results.pick(measure=WORST, series="balanced")
    off = max(abs(row.value - results.value(row.panel, WORST, PROMISE, row.x)) for row in rows)
    words = f"In {len(rows)} settings the worst posterior is at most {off:.0e} from 1/l."
    return Finding(BALANCED, Verdict.REPRODUCED if off <= EXACT else Verdict.NOT_REPRODUCED, words)


def _highest(results: Results, measure: str) -> str:
    """For every design the largest number beside 1/l, and where."""
    words = []
    for name in DESIGNS.values():
        rows = results.pick(measure=measure, series=name)
        if rows:
            ratios = {(row.panel, row.x): row.value * int(row.panel.split()[-1]) for row in rows}
            panel, x = max(ratios, key=lambda place: ratios[place])
            words.append(f"{name} {ratios[panel, x]:.2f} ({panel}, d = {x})")
    return f"As a multiple of 1/l, at most: {'; '.join(words)}."


def _exactness(results: Results) -> str:
    words = []
    for name in (PLAIN, PRINTED, WITH_3):
        rows = results.pick(measure=OFF, series=name)
        words += [f"{name} {_where_exact(rows)}"] if rows else []
    return f"Equation 2 is exact for {'; for '.join(words)}."


def exhibits(results: Results) -> list[Exhibit]:
    def figures(measure: str, about: str) -> tuple[Figure, ...]:
        return tuple(Figure(panel, measure, "d", about) for panel in results.panels(measure))

    return [
        Exhibit(
            "The worst case: the surest guess from any set",
            "Privacy is preserved because an attacker who knows all quasi-identifiers of a person cannot know which "
            "of the published values is the person's.",
            _highest(results, WORST),
            figures(WORST, "worst posterior, uniform prior"),
        ),
        Exhibit(
            "The average over all sets",
            "The paper does not say.",
            _highest(results, MEAN),
            figures(MEAN, "share of right guesses"),
        ),
        Exhibit(
            "How far Equation 2 is from the truth",
            "Duplicate processing makes the probability of every dummy the one that the estimate takes it to be.",
            _exactness(results),
            figures(OFF, "largest error of a selection probability"),
        ),
    ]


STUDY = Study(
    name="posterior",
    title="What a set tells an attacker who knows the algorithm",
    source="Ours, about sections 5.1 and 5.3 of the journal paper",
    did=(
        "The paper argues that l values which are far apart leave an attacker with l possibilities. It does not "
        "compute how likely each of them is to an attacker who knows how decoys are drawn, which is public.",
    ),
    ran=(
        f"For {VALUES} ordered values and every (l, d) with l d <= {VALUES}, the exact probability of every set given "
        "every true value, and from it the surest guess by Bayes' rule, with a uniform prior. Algorithm 1 has "
        "the check of section 5.4 in two variants: with an exact count on the line (`check: exact`, which all other "
        "studies use), and with Equations 5 to 10 to the letter, which count round a circle and reject more (`check: "
        "printed`). Later dummies depend on earlier ones, and how likely a set is on which member is true. Algorithm 3 "
        "runs out of values from "
        "(l-1)(2d-1) >= F on, so its lines are shorter.",
    ),
    grid=grid,
    measure=measure,
    claims=(SIMPLE, AS_PRINTED, DUPLICATE, EQUATION, AT_TWO, BALANCED),
    judge=judge,
    exhibits=exhibits,
    edition=2,
)
