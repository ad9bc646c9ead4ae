"""What an attacker who learns from the release gains, by the decoys' prior, against error."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from polyseme.demo.walkthrough import INCOME_CLASSES, income_population
from polyseme.designs import make_design
from polyseme.designs.mechanism import Mechanism
from polyseme.kernel.arrays import Floats
from polyseme.kernel.errors import ImpossibleError
from polyseme.kernel.randomness import SystemStream
from polyseme.papers.adult import EXACT_CHECK, income, most_likely
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
    share_row,
    span,
    within,
)
from polyseme.privacy.analysis.learner import Population, success
from polyseme.privacy.analysis.lower_bound import floor
from polyseme.privacy.analysis.success_limit import expected_error
from polyseme.semantics.distances import LineDistance

__all__ = ["STUDY"]

YEARS, RECORDS = 10, 100_000
SETTINGS = ((2, 2), (3, 2), (3, 3), (3, 4))
PAPER, UNIFORM, MARGINAL, CONDITIONAL = "Algorithm 1", "uniform prior", "marginal prior", "conditional prior"
FLOOR, BEFORE, PROMISE = "floor of truthful sets", "without a release", "1/l"
SUCCESS, ERROR, MEASURED, TRADE = "success of a learner", "root mean squared error", "measured success", "trade"
BOTH, BALANCED = "learned and exact posterior", "balanced"
_KINDS = (PAPER, UNIFORM, MARGINAL, CONDITIONAL)
_ALPHAS = (0.0, 0.25, 0.5, 0.75, 1.0)
_RARE = 1e-4
"""The least share of a value in a prior: no person's value may be impossible."""
NEAR, EXACT = 0.03, 1e-6


def grid(quick: bool, _: Sources) -> list[Point]:
    settings = ((2, 2), (3, 2)) if quick else SETTINGS
    points = [Point.of(part="exact", l=l, d=d, seconds=3.0) for l, d in settings]
    points += [] if quick else [Point.of(part="dial", l=l, d=d, seconds=10.0) for l, d in settings]
    records = 5_000 if quick else RECORDS
    return points + [
        Point.of(part="release", l=l, d=d, records=records, repeats=1, seconds=0.5 if quick else 3.0)
        for l, d in settings
    ]


def measure(point: Point, seed: int, _: Sources) -> list[Row]:
    l, d = point.number("l"), point.number("d")
    if point["part"] == "release":
        return _from_release(l, d, point.number("records"), seed)
    return _exact(l, d) if point["part"] == "exact" else _dial(l, d)


def _exact(l: int, d: int) -> list[Row]:
    people, x = income_population(YEARS), f"{l},{d}"
    structure = LineDistance.ranks(people.shares.shape[1]).structure(d)
    floors = [floor(structure, l, shares).value for shares in people.shares]
    rows = [
        Row.exact(SUCCESS, SUCCESS, PROMISE, x, 1.0 / l),
        Row.exact(SUCCESS, SUCCESS, BEFORE, x, float(people.weights @ people.shares.max(axis=1))),
        Row.exact(SUCCESS, SUCCESS, FLOOR, x, float(people.weights @ np.array(floors))),
    ]
    for kind in _KINDS:
        reached, error = _worth(people, _mechanisms(kind, people, l, d))
        rows.append(Row.exact(SUCCESS, SUCCESS, kind, x, reached))
        rows += [] if error is None else [Row.exact(ERROR, ERROR, kind, x, error)]
    return [*rows, *_beside(l, d, rows)]


def _beside(l: int, d: int, rows: Sequence[Row]) -> list[Row]:
    """The exact worst posterior with a uniform prior, beside what a learner reaches."""
    size, x = len(INCOME_CLASSES), f"{l},{d}"
    even = np.full(size, 1.0 / size)
    found = {f"worst posterior, {kind}": _alike(kind, l, d).worst_posterior(even) for kind in (PAPER, BALANCED)}
    found |= {
        row.series if row.series in (PROMISE, FLOOR) else f"learned, {row.series}": row.value
        for row in rows
        if row.panel == SUCCESS and row.series in (PROMISE, FLOOR, PAPER, UNIFORM, CONDITIONAL)
    }
    return [Row.exact(BOTH, SUCCESS, name, x, float(value)) for name, value in found.items()]


def _alike(kind: str, l: int, d: int) -> Mechanism:
    structure = LineDistance.ranks(len(INCOME_CLASSES)).structure(d)
    return Mechanism(make_design("simple" if kind == PAPER else "balanced", structure, l))


def _mechanisms(kind: str, people: Population, l: int, d: int) -> list[Mechanism]:
    """The mechanism that serves each group."""
    structure = LineDistance.ranks(people.shares.shape[1]).structure(d)
    if kind == PAPER:
        return [Mechanism(make_design("simple", structure, l))] * len(people.weights)
    if kind == CONDITIONAL:
        return [_following(shares, l, d) for shares in people.shares]
    prior = people.margin if kind == MARGINAL else np.ones(structure.size)
    return [_following(prior, l, d)] * len(people.weights)


def _following(shares: Floats, l: int, d: int) -> Mechanism:
    """Balanced for a prior, or of least risk where that does not exist."""
    prior = np.maximum(shares / shares.sum(), _RARE)
    prior = prior / prior.sum()
    structure = LineDistance.ranks(len(prior)).structure(d)
    try:
        return Mechanism(make_design("balanced", structure, l, prior))
    except ImpossibleError:
        return Mechanism(make_design("least-risk", structure, l, prior))


def _worth(people: Population, mechanisms: list[Mechanism]) -> tuple[float, float | None]:
    """How often a learner is right, and the root mean squared error of the overall shares."""
    reached, squares = 0.0, 0.0
    for weight, shares, mechanism in zip(people.weights, people.shares, mechanisms, strict=True):
        right, trace = success(mechanism, shares), expected_error(mechanism, shares)
        reached += float(weight) * float(right or 0.0)
        squares += float("inf") if trace is None else float(weight) * trace
    error = float(np.sqrt(squares / (people.shares.shape[1] * RECORDS)))
    return reached, error if np.isfinite(error) else None


def _dial(l: int, d: int) -> list[Row]:
    """Priors between uniform and conditional: proportional to a power of a group's shares."""
    people, rows = income_population(YEARS), []
    for alpha in _ALPHAS:
        reached, error = _worth(people, [_following(shares**alpha, l, d) for shares in people.shares])
        if error is not None:
            rows.append(Row.exact(TRADE, ERROR, f"({l}, {d})", 100.0 * reached, error))
    return rows


def _from_release(l: int, d: int, records: int, seed: int) -> list[Row]:
    """Publish with uniform decoys, learn incomes by age and sex from the release, and guess."""
    table, stream = income(records), SystemStream.seeded(seed)
    mechanism = _following(np.ones(table.size), l, d)
    sets = mechanism.sample(table.codes, stream)
    learned = most_likely(table, mechanism, sets)
    weight = np.take_along_axis(learned[table.cell], sets, axis=1) * mechanism.design.likelihood(sets)
    guess = sets[np.arange(records), weight.argmax(axis=1)]
    x = f"{l},{d}"
    return [
        share_row(MEASURED, MEASURED, "learned from the release", x, int((guess == table.codes).sum()), records),
        Row.exact(MEASURED, MEASURED, PROMISE, x, 1.0 / l),
        Row.exact(MEASURED, MEASURED, "knows the distribution", x, _known(l, d)),
    ]


def _known(l: int, d: int) -> float:
    people = income_population(YEARS)
    return _worth(people, _mechanisms(UNIFORM, people, l, d))[0]


HIDDEN = Claim(
    "journal, 5.1",
    "An attacker who knows all quasi-identifiers of a person cannot tell the true value from l - 1 dummies",
    "Reproduced if an attacker who also knows the distribution is right with no more than 1/l anywhere (exact, within "
    "1e-6). Else the verdict is outside the paper's model, which does not consider such an attacker.",
)
TEACHES = Claim(
    "ours",
    "The release itself teaches what it takes: who learns from it guesses as well as who knew before",
    f"Reproduced if the interval of each measured share comes within {NEAR} of the exact one; else not reproduced.",
)
LOWERED = Claim(
    "ours",
    "Decoys that follow public statistics lower a learner's success toward the floor",
    "Reproduced if it is lower than with uniform decoys in every setting (exact), and nowhere below the floor; else "
    "not reproduced.",
)
PRICE = Claim(
    "ours",
    "That costs precision",
    "Reproduced if the expected error is larger in every setting; in part of the range if in some; else not "
    "reproduced.",
)


def judge(results: Results) -> list[Finding]:
    return [_hidden(results), _teaches(results), _lowered(results), _price(results)]


def _by_setting(results: Results, panel: str, series: str) -> dict[float | str, float]:
    return {row.x: row.value for row in results.pick(panel, series=series)}


def _hidden(results: Results) -> Finding:
    reached, promised = _by_setting(results, SUCCESS, PAPER), _by_setting(results, SUCCESS, PROMISE)
    words = ", ".join(f"{reached[x]:.2f} instead of {promised[x]:.2f} at ({x})" for x in reached)
    broken = any(reached[x] > promised[x] + EXACT for x in reached)
    ours = _by_setting(results, SUCCESS, UNIFORM)
    beside = ", ".join(f"{ours[x]:.2f} at ({x})" for x in ours)
    return Finding(
        HIDDEN,
        Verdict.OUTSIDE if broken else Verdict.REPRODUCED,
        f"An attacker who knows how incomes go with age and sex guesses right with probability {words} (Algorithm 1). "
        f"Our own default, balanced for a uniform prior, has {beside}.",
    )


def _teaches(results: Results) -> Finding:
    found, known = (
        _by_setting(results, MEASURED, "learned from the release"),
        _by_setting(results, MEASURED, "knows the distribution"),
    )
    words = ", ".join(f"{found[x]:.3f} against {known[x]:.3f} at ({x})" for x in found)
    rows = results.pick(MEASURED, MEASURED, "learned from the release")
    near = all(within(row, known[row.x] - NEAR, known[row.x] + NEAR) for row in rows)
    return Finding(TEACHES, Verdict.REPRODUCED if near else Verdict.NOT_REPRODUCED, f"Right guesses: {words}.")


def _lowered(results: Results) -> Finding:
    uniform, conditional = _by_setting(results, SUCCESS, UNIFORM), _by_setting(results, SUCCESS, CONDITIONAL)
    low = _by_setting(results, SUCCESS, FLOOR)
    words = ", ".join(f"({x}): {uniform[x]:.2f} to {conditional[x]:.2f}, floor {low[x]:.2f}" for x in uniform)
    good = all(low[x] - EXACT <= conditional[x] < uniform[x] for x in uniform)
    return Finding(LOWERED, Verdict.REPRODUCED if good else Verdict.NOT_REPRODUCED, f"{words}.")


def _price(results: Results) -> Finding:
    uniform, conditional = _by_setting(results, ERROR, UNIFORM), _by_setting(results, ERROR, CONDITIONAL)
    words = ", ".join(f"({x}): {conditional[x] / uniform[x]:.1f} times" for x in uniform if x in conditional)
    dearer = [conditional[x] > uniform[x] for x in uniform if x in conditional]
    text = f"The error with conditional against uniform priors: {words or 'unbounded'}."
    return Finding(PRICE, in_part(dearer), text)


def _multiples(results: Results, panel: str) -> str:
    """The success of every series beside 1/l."""
    promised = _by_setting(results, panel, PROMISE)
    names = [name for name in dict.fromkeys(row.series for row in results.pick(panel)) if name != PROMISE]
    lines = {name: _by_setting(results, panel, name) for name in names}
    return ", ".join(f"{name}: {span(line[x] / promised[x] for x in line)}" for name, line in lines.items())


def exhibits(results: Results) -> list[Exhibit]:
    return [
        Exhibit(
            "In one chart",
            "Which of the l published values is true cannot be told.",
            f"As a multiple of 1/l, {_multiples(results, BOTH)}.",
            (
                Figure(
                    BOTH, SUCCESS, "l, d", "probability of a right guess", title="What a set gives away", joined=False
                ),
            ),
        ),
        Exhibit(
            "How often an attacker who has learned the distribution is right",
            "Which of the l published values is true cannot be told.",
            f"As a multiple of 1/l, {_multiples(results, SUCCESS)}. {_teaches(results).because}",
            (
                Figure(SUCCESS, SUCCESS, "l, d", "share of right guesses"),
                Figure(MEASURED, MEASURED, "l, d", "share of right guesses, sets with uniform decoys"),
            ),
        ),
        Exhibit(
            "What it costs",
            "The paper does not say.",
            f"{_price(results).because} The second chart has priors proportional to powers of the public shares.",
            (
                Figure(ERROR, ERROR, "l, d", "root mean squared error of shares", log=True),
                Figure(TRADE, ERROR, "right guesses of a learner, %", "root mean squared error", log=True),
            ),
        ),
    ]


STUDY = Study(
    name="learnt",
    title="What an attacker who learns from the release gains",
    source="Ours, about section 5.1 of the journal paper",
    did=(
        "The paper's attacker knows the quasi-identifiers of a person and sees the set. What the attacker knows about "
        "how values go with quasi-identifiers, which the release is published to teach, is left out.",
    ),
    ran=(
        "Generated incomes in 14 classes, with ten-year age and sex untouched. The exact share of right guesses of "
        "an attacker who knows the distribution given age and sex, for sets by Algorithm 1 and for designs balanced "
        "for a uniform, a marginal and a conditional prior (of least risk where none is balanced); the least error of "
        "100,000 records beside it. And measured: guesses of an attacker who learns the distribution from the release "
        f"alone. Nothing truthful goes below the floor. {EXACT_CHECK}",
    ),
    grid=grid,
    measure=measure,
    edition=2,
    claims=(HIDDEN, TEACHES, LOWERED, PRICE),
    judge=judge,
    exhibits=exhibits,
)
