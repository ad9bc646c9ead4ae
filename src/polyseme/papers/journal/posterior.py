"""Where the promise of 1/l breaks: exact worst posteriors of the papers' and our designs."""

from __future__ import annotations

import numpy as np

from polyseme.papers.adult import mechanism_or_none, structure_of
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
from polyseme.privacy.analysis.summary import paper_matrix
from polyseme.semantics.distances import LineDistance

__all__ = ["STUDY"]

VALUES = 14
DESIGNS = {"simple": "Algorithm 1", "duplicate": "Algorithm 1 with 3", "balanced": "balanced"}
PROMISE = "1/l"
WORST, MEAN, OFF = "worst posterior", "mean success", "off Equation 2"
EXACT, ROUNDING = 1e-6, 1e-9


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
EQUATION = Claim(
    "journal, Eq. 2 and 5.3",
    "With duplicate processing every dummy is chosen with the probability of Equation 2",
    f"{PUT_RIGHT} As printed: every exact selection probability is that of Equation 2 within 1e-9. Put right: at l = 2 "
    "every one is.",
)
BALANCED = Claim(
    "ours",
    "The balanced design keeps 1/l exactly, wherever l d <= F",
    "Reproduced if every worst posterior is within 1e-6 of 1/l; else not reproduced.",
)


def judge(results: Results) -> list[Finding]:
    return [
        _promised(results, SIMPLE, "Algorithm 1"),
        _promised(results, DUPLICATE, "Algorithm 1 with 3"),
        _equation(results),
        _kept(results),
    ]


def _equation(results: Results) -> Finding:
    rows = results.pick(measure=OFF, series="Algorithm 1 with 3")
    off = [row for row in rows if row.value > 0]
    if not off:
        return Finding(EQUATION, Verdict.REPRODUCED, f"Equation 2 is exact in all {len(rows)} settings.")
    worst = max(off, key=lambda row: row.value)
    plain = results.line(worst.panel, OFF, "Algorithm 1")[worst.x].value
    two = not any(row.panel == "l = 2" for row in off)
    words = (
        f"{'It is exact at l = 2. ' if two else ''}In {len(off)} of {len(rows)} settings some dummy is chosen with "
        f"another probability, by up to {worst.value:.3f} at {worst.panel}, d = {worst.x} ({plain:.3f} without "
        "duplicate processing): it lessens the error and does not remove it."
    )
    return Finding(EQUATION, put_right(False, two), words)


def _promised(results: Results, claim: Claim, series: str) -> Finding:
    rows = results.pick(measure=WORST, series=series)
    over = [row for row in rows if row.value > results.value(row.panel, WORST, PROMISE, row.x) + EXACT]
    if not over:
        return Finding(claim, Verdict.REPRODUCED, f"1/l holds in all {len(rows)} settings.")
    worst = max(over, key=lambda row: row.value / results.value(row.panel, WORST, PROMISE, row.x))
    words = (
        f"An attacker who knows the algorithm and has a uniform prior does better than 1/l in {len(over)} of "
        f"{len(rows)} settings: up to {worst.value:.3f} instead of "
        f"{results.value(worst.panel, WORST, PROMISE, worst.x):.3f} at {worst.panel}, d = {worst.x}."
    )
    return Finding(claim, Verdict.NOT_REPRODUCED, words)


def _kept(results: Results) -> Finding:
    rows = results.pick(measure=WORST, series="balanced")
    off = max(abs(row.value - results.value(row.panel, WORST, PROMISE, row.x)) for row in rows)
    words = f"In {len(rows)} settings the worst posterior is at most {off:.0e} from 1/l."
    return Finding(BALANCED, Verdict.REPRODUCED if off <= EXACT else Verdict.NOT_REPRODUCED, words)


def exhibits(results: Results) -> list[Exhibit]:
    def figures(measure: str, about: str) -> tuple[Figure, ...]:
        return tuple(Figure(panel, measure, "d", about) for panel in results.panels(measure))

    return [
        Exhibit(
            "The worst case: the surest guess from any set",
            "Privacy is preserved because an attacker who knows all quasi-identifiers of a person cannot know which "
            "of the published values is the person's.",
            "Decoys drawn one after the other give some members of a set away: how likely the set is depends on which "
            "of its members is true. The balanced design makes it the same for all.",
            figures(WORST, "worst posterior, uniform prior"),
        ),
        Exhibit(
            "The average over all sets",
            "The paper does not say.",
            "The mean success of the best guess is nearer to 1/l than the worst case, but above it for the paper's "
            "algorithms.",
            figures(MEAN, "share of right guesses"),
        ),
        Exhibit(
            "How far Equation 2 is from the truth",
            "Duplicate processing makes the probability of every dummy the one that the estimate takes it to be.",
            "At l = 2 Equation 2 is exact for both. From l = 3 on it is exact for neither, because later dummies "
            "depend on earlier ones.",
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
        "every true value, and from it the surest guess by Bayes' rule, with a uniform prior. Algorithm 1 is "
        "the one with the check of section 5.4, so that it always finishes. Algorithm 3 runs out of values from "
        "(l-1)(2d-1) >= F on, so its lines are shorter.",
    ),
    grid=grid,
    measure=measure,
    claims=(SIMPLE, DUPLICATE, EQUATION, BALANCED),
    judge=judge,
    exhibits=exhibits,
)
