"""How often intervals hold the truth, record by record: large domains, weights, pairs.

As in `coverage`, each scene is released many times with the same people and other sets. Here every record is drawn by
itself, so that it can have a weight, share its set with other records of a person, and have a second attribute.

In weighted tables, weights are lognormal, and may lean on the value. About the people in a table, these and their
weights stay the same and only sets are redrawn; about a population, people and weights are redrawn too, and the truth
is what they are expected to add up to.

Regressions are fitted to the same kind of records. One truth is the coefficients that the people are drawn with, the
other those of a fit to the true values of the people in the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType

import numpy as np
from numpy.random import Generator
from scipy import special

from polyseme.designs import make_design
from polyseme.designs.mechanism import Mechanism
from polyseme.inference.base import EstimateOptions, Reports
from polyseme.inference.counts import Part, merged
from polyseme.inference.regression import FormulaDesign
from polyseme.inference.regression.formula import Frame, Variable, parse_formula
from polyseme.inference.regression.scores import Family, Fitted, NoRoot, ScoreData, fit_scores
from polyseme.inference.regression.working import SetScores, fitted_shares, folds_of
from polyseme.inference.sets.estimate import Estimate, estimate_parts
from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.randomness import SystemStream, experiment
from polyseme.results.table import Population, Summary
from polyseme.semantics.distances import LineDistance
from polyseme.strata import Strata, Stratum
from polyseme.testing.coverage import DESIGNS, TRUTHS, Answers, Found, counted, limits_of, share_class

__all__ = [
    "LINES",
    "RECORD_QUESTIONS",
    "REGRESSIONS",
    "RecordScene",
    "RegressionScene",
    "WeightedScene",
    "simulate_records",
    "simulate_regression",
    "weighted_coverage",
]

_CLOSE = 1e-9
"""Relative rounding with which a limit holds the truth."""


@dataclass(frozen=True)
class WeightedScene:
    """People in two groups and how they are published.

    records  of both groups together
    spread   the standard deviation of the logarithm of a weight
    lean     how much larger that logarithm is for the last value than for the first
    """

    truth: str
    design: str
    records: int
    spread: float
    lean: float = 0.0
    population: Population = "finite"
    estimator: str | None = None

    def __str__(self) -> str:
        leaning = f", leaning {self.lean:g}" if self.lean else ""
        about = f"{self.population}, {self.estimator or 'default'}"
        return f"{self.truth}, {self.design}, {self.records:,} records, spread {self.spread:g}{leaning}, {about}"

    @property
    def size(self) -> int:
        return DESIGNS[self.design].size

    @property
    def level(self) -> Floats:
        """The median weight of each value."""
        return np.asarray(100.0 * np.exp(self.lean * np.arange(self.size) / (self.size - 1)))


@dataclass(frozen=True, eq=False)
class _Sample:
    """The group, value and weight of each record."""

    group: Ints
    value: Ints
    weight: Floats


@dataclass
class _Held:
    """How many intervals of one question held the truth."""

    held: int = 0
    intervals: int = 0

    def add(self, true: Floats, low: Floats, high: Floats) -> None:
        close = _CLOSE * (1.0 + np.abs(true))
        self.held += int(((low <= true + close) & (true <= high + close)).sum())
        self.intervals += true.size


@dataclass(frozen=True)
class Coverage:
    """The share of intervals that held the truth, by question."""

    scene: WeightedScene
    questions: Mapping[str, float] = field(default_factory=dict)


def weighted_coverage(scene: WeightedScene, releases: int, seed: int) -> Coverage:
    """The coverage of 95% intervals in a scene: cells, margins, shares, means, sums, ..."""
    random = experiment(seed)
    shares = TRUTHS[scene.truth](scene.size, random)
    shares = np.asarray(shares / shares.sum())
    held: dict[str, _Held] = {}
    sample = _drawn_weighted(scene, shares, random)
    for number in range(releases):
        if scene.population == "super" or (number and number % 20 == 0):
            sample = _drawn_weighted(scene, shares, random)
        table = _estimated_weighted(scene, sample, random)
        for name, true, low, high in _answers_weighted(table, _truth(scene, sample, shares), random):
            held.setdefault(name, _Held()).add(true, low, high)
    return Coverage(scene, {name: found.held / found.intervals for name, found in held.items()})


def _drawn_weighted(scene: WeightedScene, shares: Floats, random: Generator) -> _Sample:
    group = (np.arange(scene.records) % 3 == 0).astype(np.int64)
    value = random.choice(scene.size, scene.records, p=shares)
    noise = np.exp(scene.spread * random.standard_normal(scene.records))
    return _Sample(group, value, scene.level[value] * noise)


def _truth(scene: WeightedScene, sample: _Sample, shares: Floats) -> Floats:
    """What is estimated: (groups, F)."""
    if scene.population == "finite":
        table = np.zeros((2, scene.size))
        np.add.at(table, (sample.group, sample.value), sample.weight)
        return table
    records = np.bincount(sample.group, minlength=2)
    return np.asarray(np.outer(records, shares * scene.level * np.exp(scene.spread**2 / 2.0)))


def _estimated_weighted(scene: WeightedScene, sample: _Sample, random: Generator) -> Estimate:
    mechanism, sets, channel = DESIGNS[scene.design].mechanism()
    edges = np.cumsum(channel, axis=1)
    drawn = (random.random(scene.records)[:, None] > edges[sample.value]).sum(axis=1)
    rows = sets[np.minimum(drawn, len(sets) - 1)]
    counts = np.ones(scene.records, dtype=np.int64)
    reports = Reports((rows,), sample.group, counts, 2, weights=sample.weight)
    options = EstimateOptions(scene.estimator, population=scene.population)
    labels = [list(range(scene.size))]
    return estimate_parts([Part.whole(reports, [mechanism])], 2, ["x"], labels, {"group": [0, 1]}, options)


def _answers_weighted(
    table: Estimate, truth: Floats, random: Generator
) -> Iterator[tuple[str, Floats, Floats, Floats]]:
    """Questions to a table: their names, true answers and limits."""
    size, totals = truth.shape[1], truth.sum(axis=1)
    yield "cells", truth, table.low, table.high
    margin = table.margin(by=[])
    yield "margin", truth.sum(axis=0)[None], margin.low, margin.high
    shown = table.proportions()
    yield "shares", truth / totals[:, None], shown.low, shown.high
    places = np.arange(size)
    mean = table.mean()
    yield "mean", truth @ places / totals, *_limits(mean)
    contrasts = (random.random((4, 2, size)) < 0.5).astype(np.float64)
    _, _, low, high = table.sums(contrasts)
    yield "sums", np.tensordot(contrasts, truth, axes=2), low, high
    difference = table.difference({"group": 0}, {"group": 1})
    yield "differences", truth[0] / totals[0] - truth[1] / totals[1], *_limits(difference)


def _limits(summary: Summary) -> tuple[Floats, Floats]:
    return np.array(summary.low), np.array(summary.high)


LINES: Mapping[str, tuple[int, int, int, float]] = MappingProxyType(
    {
        "12 (3,3)": (12, 3, 3, 1.0),
        "14 (2,2)": (14, 2, 2, 1.0),
        "10 (3,2) p 0.7": (10, 3, 2, 0.7),
        "120 (3,5)": (120, 3, 5, 1.0),
        "250 (4,8)": (250, 4, 8, 1.0),
    }
)
"""Ranks on a line, and the sets that are drawn: values, l, d and the truth probability."""

RECORD_QUESTIONS = ("cells", "means", "sums", "quantiles", "differences")

_BUSY, _RECORDS, _WEIGHT = 0.1, 20, 5.0
"""The share of people with many records, how many these have, and what one of them weighs."""
_HEAVY, _HEAVIEST = 0.02, 1_000.0
"""The share of records that weigh so much, where the others weigh 1."""


@dataclass(frozen=True)
class RecordScene:
    """Some people, and how their records are published.

    people   in all groups together
    weights  "" for none, "spread" for lognormal ones, "heavy" where 2% weigh 1,000, "busy" where 10% of the people have
             20 records with one set and five times the weight
    pair     whether a second attribute of 6 ranks goes with the first
    level    of the intervals
    """

    truth: str
    line: str
    people: int
    groups: int = 1
    weights: str = ""
    pair: bool = False
    level: float = 0.95
    estimator: str | None = None
    population: Population = "finite"

    @property
    def size(self) -> int:
        """How many values the first attribute has."""
        return LINES[self.line][0]

    def __str__(self) -> str:
        words = [self.truth, f"ranks {self.line}", f"{self.people:,} people"]
        words += [f"{self.groups} groups"] if self.groups > 1 else []
        words += [f"weights {self.weights}"] if self.weights else []
        words += ["two attributes"] if self.pair else []
        words += [f"level {self.level:g}"] if self.level != 0.95 else []
        return ", ".join([*words, self.population, self.estimator or "default"])


@dataclass(frozen=True, eq=False)
class _People:
    """Group, value, second value, records and weight of each person."""

    group: Ints
    value: Ints
    second: Ints
    times: Ints
    weight: Floats

    def truth(self, scene: RecordScene) -> Floats:
        """What the table is to say: (groups, F), or with a second axis."""
        axes = (self.group, self.value, self.second) if scene.pair else (self.group, self.value)
        table = np.zeros((scene.groups, scene.size, 6) if scene.pair else (scene.groups, scene.size))
        np.add.at(table, axes, self.times * self.weight)
        return table


@lru_cache(maxsize=16)
def _mechanism(size: int, l: int, d: int, p: float) -> Mechanism:
    return Mechanism(make_design("balanced", LineDistance.ranks(size).structure(d), l=l), p)


def _drawn(scene: RecordScene, random: Generator) -> _People:
    shares = TRUTHS[scene.truth](scene.size, random)
    value = random.choice(scene.size, scene.people, p=shares / shares.sum())
    near = np.minimum(6 * value // scene.size, 5)
    second = np.where(random.random(scene.people) < 0.7, near, random.integers(0, 6, scene.people))
    chosen = np.arange(scene.people) < scene.people * (_BUSY if scene.weights == "busy" else _HEAVY)
    times = np.where(chosen & (scene.weights == "busy"), _RECORDS, 1)
    weight = {
        "": np.ones(scene.people),
        "spread": np.exp(0.8 * random.standard_normal(scene.people)),
        "heavy": np.where(chosen, _HEAVIEST, 1.0),
        "busy": np.where(chosen, _WEIGHT, 1.0),
    }[scene.weights]
    return _People(np.arange(scene.people) % scene.groups, value, second, times, weight)


def _estimated(scene: RecordScene, people: _People, seed: int) -> Estimate:
    """The table from one release."""
    mechanisms, stream = [_mechanism(*LINES[scene.line])], SystemStream.seeded(seed)
    sets = [mechanisms[0].sample(people.value, stream)]
    if scene.pair:
        mechanisms.append(_mechanism(6, 2, 2, 1.0))
        sets.append(mechanisms[1].sample(people.second, stream))
    reports = Reports(
        tuple(sets),
        people.group,
        people.times,
        scene.groups,
        distances=tuple(LineDistance.ranks(mechanism.size) for mechanism in mechanisms),
        repeats=float(people.times @ people.times / people.times.sum()),
        weights=people.weight if scene.weights else None,
    )
    part = Part.whole(merged(reports, reports.cell, scene.groups), mechanisms)
    labels = [list(range(mechanism.size)) for mechanism in mechanisms]
    options = EstimateOptions(scene.estimator, scene.level, scene.population)
    return estimate_parts(
        [part], scene.groups, ["x", "y"][: len(sets)], labels, {"group": range(scene.groups)}, options
    )


def _cells(table: Estimate, truth: Floats, usual: Floats) -> Answers:
    """Cells by their share; those well away from zero by themselves, as their usual errors say.

    usual  the mean standard error of each cell over releases of the same people: chosen by those of the release itself,
           cells whose errors are too small by luck would be counted here and the others there
    """
    interior = (usual >= 2.0) & (truth >= 3.0 * usual)
    totals = truth.reshape(len(truth), -1).sum(axis=1).reshape(-1, *[1] * (truth.ndim - 1))
    names = np.where(interior, "interior", np.vectorize(share_class)(truth / np.maximum(totals, 1.0)))
    return [
        (f"cell {name}", truth[names == name], table.low[names == name], table.high[names == name])
        for name in np.unique(names)
    ]


def _means(table: Estimate, truth: Floats, _: Generator) -> Answers:
    return [("mean", truth @ np.arange(truth.shape[1]) / truth.sum(axis=1), *limits_of(table.mean()))]


def _sums(table: Estimate, truth: Floats, random: Generator) -> Answers:
    """Of the lower half of the values, and of some of them."""
    contrasts = np.zeros((3, *truth.shape))
    contrasts[0, 0, : truth.shape[1] // 2] = 1.0
    contrasts[1:, 0] = random.random((2, truth.shape[1])) < 0.5
    return [("sum of values", np.tensordot(contrasts, truth, axes=2), *table.sums(contrasts)[2:])]


def _quantiles(table: Estimate, truth: Floats, _: Generator) -> Answers:
    reached = np.cumsum(truth, axis=1) >= 0.5 * truth.sum(axis=1, keepdims=True) - 1e-9
    return [("quantile", reached.argmax(axis=1).astype(np.float64), *limits_of(table.quantile(0.5)))]


def _differences(table: Estimate, truth: Floats, _: Generator) -> Answers:
    if len(truth) == 1:
        return []
    shares = truth[:2] / truth[:2].sum(axis=1, keepdims=True)
    return [("difference", shares[0] - shares[1], *limits_of(table.difference({"group": 0}, {"group": 1})))]


_ANSWERS = {"means": _means, "sums": _sums, "quantiles": _quantiles, "differences": _differences}


def _answers(
    scene: RecordScene, people: _People, seeds: Iterable[int], questions: Iterable[str], random: Generator
) -> Iterator[Answers]:
    """The answers to each of some releases of the same people."""
    wholes, truth = [_estimated(scene, people, seed) for seed in seeds], people.truth(scene)
    tables, true = ([table.margin(of="x") for table in wholes], truth.sum(axis=2)) if scene.pair else (wholes, truth)
    usual, usual_pairs = (np.mean([table.stderr for table in each], axis=0) for each in (tables, wholes))
    for whole, table in zip(wholes, tables):
        found: Answers = []
        if "cells" in questions:
            pairs = _cells(whole, truth, usual_pairs) if scene.pair else []
            found += [(f"{name} of pairs", at, low, high) for name, at, low, high in pairs]
            found += _cells(table, true, usual)
        for name in questions:
            found += _ANSWERS[name](table, true, random) if name in _ANSWERS else []
        yield found


def simulate_records(
    scene: RecordScene, releases: int, seed: int = 0, questions: Iterable[str] = RECORD_QUESTIONS, same_people: int = 10
) -> list[Found]:
    """Release the scene so many times, with new people after every few releases."""
    random, wanted = experiment(seed), tuple(questions)

    def released() -> Iterator[Answers]:
        for start in range(0, releases, same_people):
            numbers = range(start, min(start + same_people, releases))
            yield from _answers(scene, _drawn(scene, random), [1_000_000 * seed + n for n in numbers], wanted, random)

    return [replace(found, scene=scene) for found in counted(scene, released())]


@dataclass(frozen=True)
class _Model:
    """A regression, and the coefficients that records are drawn with."""

    formula: str
    family: Family
    truth: tuple[float, ...]
    further: str = ""


REGRESSIONS: Mapping[str, _Model] = MappingProxyType(
    {
        "linear, protected covariate": _Model("y ~ v + x + g", "linear", (1.0, 0.5, 0.3, -0.4)),
        "logistic, protected covariate": _Model("y ~ v + x + g", "logistic", (-1.0, 0.5, 0.3, -0.4)),
        "poisson, protected covariate": _Model("y ~ v + x + g", "poisson", (-0.5, 0.3, 0.2, -0.3)),
        "logistic, protected outcome": _Model("v >= 2 ~ x + g", "logistic", (-0.4, 0.6, 0.5)),
        "values follow x inside the outcome": _Model("v >= 2 ~ x + g", "logistic", (-0.4, 0.6, 0.5), "inside"),
        "omitted interaction": _Model("y ~ v*g + x", "linear", (1.0, 0.5, -0.4, 0.3, 0.4), "v*g"),
        "omitted square": _Model("y ~ v + x + g + I(x**2)", "linear", (1.0, 0.5, 0.3, -0.4, 0.3), "x**2"),
        "two protected attributes": _Model("y ~ v + w + x + g", "linear", (1.0, 0.5, 0.3, 0.3, -0.4), "w"),
    }
)
"""Regressions by what they are about. The working distributions are linear in x, g and y in all of them."""
_SECOND = 4
"""Values of the second protected attribute."""
_TIMES = 3
"""Records of a person, where people repeat."""


@dataclass(frozen=True)
class RegressionScene:
    """Records, how their values are published, and a regression on them.

    model    one of `REGRESSIONS`
    records  where people repeat, three of each person
    l, d, p  of the sets of 8 values, which are 0.5 apart
    kind     "strata": some records cannot have the last value; "weights", "repeated"; or none of them
    """

    model: str
    records: int
    l: int = 2
    d: float = 1.0
    p: float = 1.0
    kind: str = ""

    def __str__(self) -> str:
        words = [self.model, f"{self.records:,} records", f"l {self.l}, d {self.d:g}"]
        words += [f"p {self.p:g}"] if self.p < 1.0 else []
        return ", ".join([*words, self.kind] if self.kind else words)


def simulate_regression(scene: RegressionScene, releases: int, seed: int) -> list[Found]:
    """How the intervals of coefficients did, for both targets; each release has new records.

    Their widths are those of the fit to the true values, whose ratio is the answer `width`.
    """
    random, stream = experiment(seed), SystemStream.seeded(seed)
    made = (_regression_answers(scene, random, stream) for _ in range(releases))
    return counted(scene, (answers for answers in made if answers))


def _regression_answers(
    scene: RegressionScene, random: Generator, stream: SystemStream
) -> list[tuple[str, Floats, Floats, Floats]]:
    """Truth and limits of every coefficient; nothing where the fit is refused."""
    model, size = REGRESSIONS[scene.model], 8
    open_, values = _regression_records(scene, random)
    strata, place = _regression_strata(scene, open_["g"])
    sets, features = list[SetScores](), np.column_stack(list(open_.values()))
    counts = np.ones(scene.records, dtype=np.int64)
    people = np.arange(scene.records) // _TIMES if scene.kind == "repeated" else None
    for (_, codes), each, where in zip(values.items(), strata, place):
        drawn = np.empty((scene.records, each.members[0].mechanism.l), dtype=np.int64)
        first = np.arange(scene.records) if people is None else _TIMES * people
        for number, member in enumerate(each.members):
            rows = np.flatnonzero(where == number)
            drawn[rows] = member.widen(member.mechanism.sample(member.narrow(codes[rows]), stream))
        sets.append(fitted_shares(each, drawn[first], where, features, counts, folds_of(counts, people)))
    weights = np.exp(0.5 * random.standard_normal(scene.records)) if scene.kind == "weights" else None
    frame = {name: Variable(name, None, column) for name, column in open_.items()}
    numbers = {"v": np.arange(size) / 2.0, "w": np.arange(_SECOND, dtype=np.float64)}
    hidden = {name: Variable(name, axis, numbers[name]) for axis, name in enumerate(values)}
    known = {name: Variable(name, None, numbers[name][codes]) for name, codes in values.items()}
    formula, sizes = parse_formula(model.formula)[0], tuple(each.size for each in strata)
    try:
        design = FormulaDesign(formula, Frame({**frame, **hidden}, sizes), scene.records)
        found = fit_scores(ScoreData(design, tuple(sets), counts, weights, people), model.family)
    except NoRoot:
        return []
    design = FormulaDesign(formula, Frame({**frame, **known}), scene.records)
    true = fit_scores(ScoreData(design, (), counts, weights, people), model.family)
    if people is not None:
        # Records of a person share a set: about the people in the table, errors are those of so many fewer records.
        found = replace(found, finite=_TIMES * found.finite)
    return list(_coefficients(found, true, np.array(model.truth)))


def _coefficients(found: Fitted, true: Fitted, drawn_with: Floats) -> Iterator[tuple[str, Floats, Floats, Floats]]:
    estimate, quantile = found.coefficients[0], special.stdtrit(found.freedom, 0.975)
    for name, variance, truth in (
        ("super", found.population, drawn_with),
        ("finite", found.finite, true.coefficients[0]),
    ):
        reach = quantile * np.sqrt(np.diag(variance))
        yield f"coefficient {name}", truth, estimate - reach, estimate + reach
    ratio = np.sqrt(np.diag(found.population) / np.diag(true.population))
    yield "width", np.zeros(len(ratio)), np.zeros(len(ratio)), ratio


def _regression_strata(scene: RegressionScene, g: Floats) -> tuple[list[Strata], list[Ints]]:
    none = np.zeros(scene.records, dtype=np.int64)
    strata, place = [Strata.alone(_mechanism(8, scene.l, scene.d, scene.p))], [none]
    if scene.kind == "strata":
        alone = strata[0].members[0]
        strata[0] = Strata((), (alone, Stratum((7,), 8, _mechanism(7, scene.l, scene.d, scene.p))))
        place[0] = g.astype(np.int64)
    if REGRESSIONS[scene.model].further == "w":
        strata.append(Strata.alone(_mechanism(_SECOND, 2, 1, 1.0)))
        place.append(none)
    return strata, place


def _regression_records(scene: RegressionScene, random: Generator) -> tuple[dict[str, Floats], dict[str, Ints]]:
    """The open columns, and the codes of the protected ones."""
    model, times = REGRESSIONS[scene.model], _TIMES if scene.kind == "repeated" else 1
    people, b = -(-scene.records // times), model.truth
    x, g = random.standard_normal(people), (random.random(people) < 0.4).astype(np.float64)
    ranks = np.arange(8)
    linear = -0.5 * ((ranks - 3.0 - 0.8 * x[:, None] - 0.7 * g[:, None]) / 1.8) ** 2
    if scene.kind == "strata":
        linear[g > 0.0, 7] = -np.inf
    if "outcome" in scene.model:
        high = random.random(people) < special.expit(b[0] + b[1] * x + b[2] * g)
        slope = 0.8 if model.further == "inside" else 0.0
        linear = slope * x[:, None] * ranks - 0.1 * (ranks - 3.5) ** 2
        linear = np.where((ranks >= 4) == high[:, None], linear, -np.inf)
    shares = np.exp(linear - linear.max(axis=1, keepdims=True))
    edges = np.cumsum(shares / shares.sum(axis=1, keepdims=True), axis=1)
    value = np.minimum((random.random(people)[:, None] > edges).sum(axis=1), 7)
    second = random.binomial(_SECOND - 1, special.expit(0.5 * x))
    x, g, value, second = (np.repeat(column, times)[: scene.records] for column in (x, g, value, second))
    if "outcome" in scene.model:
        return {"x": x, "g": g}, {"v": value}
    v, codes = value / 2.0, {"v": value, "w": second} if model.further == "w" else {"v": value}
    terms = {
        "": (1.0, v, x, g),
        "v*g": (1.0, v, g, x, v * g),
        "x**2": (1.0, v, x, g, x**2),
        "w": (1.0, v, second, x, g),
    }[model.further]
    mean = np.asarray(sum(number * term for number, term in zip(b, terms)))
    if model.family == "linear":
        y = mean + random.standard_normal(scene.records)
    elif model.family == "logistic":
        y = (random.random(scene.records) < special.expit(mean)).astype(np.float64)
    else:
        y = random.poisson(np.exp(mean)).astype(np.float64)
    return {"x": x, "g": g, "y": y}, codes
