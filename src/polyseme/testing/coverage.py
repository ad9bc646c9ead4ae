"""How often intervals hold the truth, simulated over the questions that analysts ask.

A scene is a table of people (a distribution of values, groups, strata, records) and a design; a question is what an
analyst asks of its release. Each scene is released many times, with the people fixed and the sets redrawn, and for
every class of answers the share of intervals that hold the truth is counted, with their mean width. An interval of 95%
should hold it in 95% of the cases: less is a lie, much more is information thrown away.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from polyseme.designs import make_design
from polyseme.designs.mechanism import Mechanism
from polyseme.inference.base import EstimateOptions, Reports
from polyseme.inference.counts import Part
from polyseme.inference.sets.auxiliary import Help, with_help
from polyseme.inference.sets.estimate import Estimate, estimate_parts
from polyseme.kernel.arrays import Bools, Floats, Ints
from polyseme.kernel.randomness import experiment
from polyseme.privacy.analysis.learner import Population as People
from polyseme.privacy.analysis.success_limit import calibrate
from polyseme.results.table import Summary
from polyseme.semantics.distances import CircleDistance, Distance, LineDistance
from polyseme.semantics.distances.base import Clusters

__all__ = [
    "DESIGNS",
    "QUESTIONS",
    "TRUTHS",
    "Answers",
    "DesignChoice",
    "Found",
    "Scene",
    "counted",
    "limits_of",
    "share_class",
    "simulate",
]

Generator: TypeAlias = np.random.Generator
Truth: TypeAlias = Callable[[int, Generator], Floats]


def _smooth(size: int, _: Generator) -> Floats:
    return np.asarray(np.exp(-0.5 * ((np.arange(size) - 0.4 * size) / (0.25 * size)) ** 2))


def _steep(size: int, _: Generator) -> Floats:
    return np.power(0.45, np.arange(size, dtype=np.float64))


def _spike(size: int, _: Generator) -> Floats:
    shares = np.full(size, 0.01 / (size - 1))
    shares[-1] = 0.99
    return shares


def _one(size: int, _: Generator) -> Floats:
    return np.asarray(np.eye(size)[0], dtype=np.float64)


def _sparse(size: int, random: Generator) -> Floats:
    shares, some = np.zeros(size), random.choice(size, max(2, size // 5), replace=False)
    shares[some] = random.uniform(0.3, 1.0, len(some))
    return shares


def _bimodal(size: int, _: Generator) -> Floats:
    places = np.arange(size) / size
    return np.asarray(np.exp(-0.5 * ((places - 0.2) / 0.08) ** 2) + np.exp(-0.5 * ((places - 0.8) / 0.08) ** 2))


TRUTHS: Mapping[str, Truth] = MappingProxyType(
    {
        "uniform": lambda size, _: np.ones(size),
        "smooth": _smooth,
        "steep": _steep,
        "spike": _spike,
        "one": _one,
        "sparse": _sparse,
        "bimodal": _bimodal,
    }
)


def _line(size: int) -> Distance:
    return LineDistance.ranks(size)


@dataclass(frozen=True)
class DesignChoice:
    """A design that can also be made for some of the values only."""

    size: int
    l: int
    d: float
    p: float = 1.0
    distance: Callable[[int], Distance] | None = _line
    name: str = "balanced"

    @lru_cache(maxsize=256)  # noqa: B019 - a few frozen choices, kept for the length of a study
    def mechanism(self, excluded: int | None = None) -> tuple[Mechanism, Ints, Floats]:
        """The mechanism without one of the values, its sets and its channel."""
        allowed = np.delete(np.arange(self.size), [] if excluded is None else [excluded])
        near = None if self.distance is None else self.distance(self.size).among(allowed)
        structure = Clusters(np.arange(len(allowed))) if near is None else near.structure(self.d)
        mechanism = Mechanism(make_design(self.name, structure, l=self.l), self.p)
        sets, channel = mechanism.channel()
        return mechanism, sets, channel / channel.sum(axis=1, keepdims=True)


def _randomized(size: int, l: int, epsilon: float) -> DesignChoice:
    """Subsets that keep local differential privacy."""
    odds = (np.exp(epsilon) - 1.0) * l / size
    return DesignChoice(size, l, 1.0, float(odds / (1.0 + odds)), None)


DESIGNS: Mapping[str, DesignChoice] = MappingProxyType(
    {
        "line (3,3)": DesignChoice(12, 3, 3),
        "line (3,4)": DesignChoice(14, 3, 4),
        "line (2,6)": DesignChoice(14, 2, 6),
        "line (2,2)": DesignChoice(14, 2, 2),
        "circle (3,2)": DesignChoice(10, 3, 2, 1.0, CircleDistance.ranks),
        "any 3 of 12": DesignChoice(12, 3, 1.0, 1.0, None),
        "simple (3,3)": DesignChoice(12, 3, 3, 1.0, _line, "simple"),
        "line (3,2), p 0.7": DesignChoice(10, 3, 2, 0.7),
        "epsilon 3": _randomized(10, 1, 3.0),
        "epsilon 1": _randomized(10, 3, 1.0),
    }
)


Answers: TypeAlias = list[tuple[str, Floats, Floats, Floats]]
"""The class of some answers, the true values, and the lower and upper limits."""


@dataclass(frozen=True)
class Scene:
    """Some people and how they are published.

    records    in each group
    strata     of each group: in stratum s the value s is impossible
    repeats    records of each person, all with the same value and the same set
    estimator  a name, or None for the default choice
    population whose numbers are estimated
    help       whether a further column tells something about the values, and is used
    priors     where strata differ in what is expected and not in what is possible: "balanced" for what each expects
               (least-risk where that does not exist), "stale" for something else, or calibrated for a "learner"
    """

    truth: str
    design: str
    records: int
    groups: int = 1
    strata: int = 1
    repeats: int = 1
    estimator: str | None = "ml"
    population: str = "finite"
    help: bool = False
    priors: str = ""

    @property
    def choice(self) -> DesignChoice:
        return DESIGNS[self.design]

    def __str__(self) -> str:
        words = [self.truth, self.design, f"{self.records:,} records"]
        for word, number in (("groups", self.groups), ("strata", self.strata), ("records a person", self.repeats)):
            words += [f"{number} {word}"] if number > 1 else []
        words += ["with help"] if self.help else []
        words += [f"priors {self.priors}"] if self.priors else []
        return ", ".join([*words, self.population, self.estimator or "default"])


@dataclass(frozen=True, eq=False)
class _People:
    """People of one scene: counts by value (groups, strata, F), and the shares they came from."""

    counts: Ints
    shares: Floats


def _people(scene: Scene, random: Generator) -> _People:
    size = scene.choice.size
    base = TRUTHS[scene.truth](size, random)
    shares = np.empty((scene.groups, scene.strata, size))
    for group in range(scene.groups):
        tilt = np.exp(0.3 * random.standard_normal(size)) if scene.groups > 1 else np.ones(size)
        for stratum in range(scene.strata):
            here = base * tilt
            if scene.priors:
                here = here * _leaning(stratum, size)
            elif scene.strata > 1:
                here[stratum % size] = 0.0
                here = here if here.sum() > 0 else 1.0 * (np.arange(size) != stratum % size)
            shares[group, stratum] = here / here.sum()
    people = max(scene.records // (scene.strata * scene.repeats), 1)
    return _People(random.multinomial(people, shares), shares)


def _leaning(stratum: int, size: int) -> Floats:
    """How the people of a stratum differ from others: fixed, since their prior is declared."""
    return np.asarray(np.exp(0.5 * experiment(stratum).standard_normal(size)))


_RARE = 0.02
"""The least share of a value in a prior, beside what it would have if all were alike."""
_LEARNED = 0.5
"""What a learner is allowed, unless the commonest value comes near: then a fifth more than its share."""


@lru_cache(maxsize=256)
def _served(design: str, truth: str, priors: str, stratum: int) -> tuple[Mechanism, Ints, Floats]:
    """The mechanism of a stratum with a prior of its own, its sets and its channel."""
    choice = DESIGNS[design]
    if choice.distance is None:
        raise ValueError("priors are studied for designs with a distance")
    leaning = _leaning(stratum + 100 if priors == "stale" else stratum, choice.size)
    shares = TRUTHS[truth](choice.size, experiment(0)) * leaning
    shares = shares / shares.sum() + _RARE / choice.size
    shares /= shares.sum()
    distance = choice.distance(choice.size)
    if priors == "learner":
        success = max(_LEARNED, 1.2 * float(shares.max()))
        mechanism = calibrate(distance, choice.l, choice.d, People.of(shares), success).strata[0].mechanism
    else:
        # Balanced where that exists.
        mechanism = Mechanism(make_design("least-risk", distance.structure(choice.d), choice.l, shares), choice.p)
    sets, channel = mechanism.channel()
    return mechanism, sets, channel / channel.sum(axis=1, keepdims=True)


def _parts(scene: Scene, counts: Ints, random: Generator) -> list[Part]:
    """One release of these people."""
    parts = []
    for stratum in range(scene.strata):
        excluded = stratum % scene.choice.size if scene.strata > 1 and not scene.priors else None
        mechanism, sets, channel = (
            _served(scene.design, scene.truth, scene.priors, stratum)
            if scene.priors
            else scene.choice.mechanism(excluded)
        )
        allowed = np.delete(np.arange(scene.choice.size), [] if excluded is None else [excluded])
        rows, cells, numbers, kinds = [], [], [], []
        for group in range(scene.groups):
            for value, many in enumerate(counts[group, stratum, allowed]):
                drawn = random.multinomial(many, channel[value])
                # The helping column says whether a value is in the upper half, rightly for four out of five.
                right = random.binomial(drawn, 0.8)
                upper = int(2 * value >= len(allowed))
                for kind, part in ((upper, right), (1 - upper, drawn - right)):
                    seen = np.flatnonzero(part)
                    rows.append(seen)
                    cells.append(np.full(len(seen), group))
                    numbers.append(part[seen] * scene.repeats)
                    kinds.append(np.full(len(seen), kind))
        reports = Reports(
            (sets[np.concatenate(rows)],),
            np.concatenate(cells),
            np.concatenate(numbers),
            scene.groups,
            distances=(_distance(scene, allowed),),
            repeats=float(scene.repeats),
        )
        helping = [Help("hint", np.concatenate(kinds))] if scene.help else []
        reports = with_help(reports, helping, (mechanism,))
        parts.append(Part(reports, (mechanism,), np.arange(scene.groups), (allowed,)))
    return parts


def _distance(scene: Scene, allowed: Ints) -> Distance | None:
    return None if scene.choice.distance is None else scene.choice.distance(scene.choice.size).among(allowed)


# -- questions -------------------------------------------------------------------------------------------------------


def share_class(share: float) -> str:
    """The class of a cell by its share of the records."""
    bounds = ((0.0, "zero"), (0.01, "rare"), (0.1, "middle"), (0.6, "common"))
    return next((name for bound, name in bounds if share <= bound), "dominant")


def _cells(table: Estimate, truth: Floats, _: Generator) -> Answers:
    shares = truth / np.maximum(truth.sum(axis=1, keepdims=True), 1.0)
    names = np.vectorize(share_class)(shares)
    return [
        (f"cell {name}", truth[names == name], table.low[names == name], table.high[names == name])
        for name in np.unique(names)
    ]


def _margin(table: Estimate, truth: Floats, random: Generator) -> Answers:
    if len(truth) == 1:
        return []
    whole = table.margin(by=[])
    sums = truth.sum(axis=0, keepdims=True)
    answers = [*_cells(whole, sums, random), *_means(whole, sums, random)]
    return [(f"margin {name}", true, low, high) for name, true, low, high in answers]


def _means(table: Estimate, truth: Floats, _: Generator) -> Answers:
    true = truth @ np.arange(truth.shape[1]) / truth.sum(axis=1)
    found = table.mean()
    return [("mean", true, np.array(found.low), np.array(found.high))]


def _quantiles(table: Estimate, truth: Floats, _: Generator) -> Answers:
    out: Answers = []
    for q in (0.5, 0.9):
        reached = np.cumsum(truth, axis=1) >= q * truth.sum(axis=1, keepdims=True) - 1e-9
        found = table.quantile(q)
        out.append(("quantile", reached.argmax(axis=1).astype(np.float64), np.array(found.low), np.array(found.high)))
    return out


def _differences(table: Estimate, truth: Floats, _: Generator) -> Answers:
    if len(truth) == 1:
        return []
    sides = [truth[0::2].sum(axis=0), truth[1::2].sum(axis=0)]
    found = table.difference({"side": 0}, {"side": 1})
    true = sides[0] / sides[0].sum() - sides[1] / sides[1].sum()
    return [("difference", true, np.array(found.low), np.array(found.high))]


def _sums(table: Estimate, truth: Floats, random: Generator) -> Answers:
    """Sums of some values, and over groups with weights, as in standardized means."""
    one = np.zeros((4, *truth.shape))
    one[:, 0] = random.random((4, truth.shape[1])) < 0.5
    answers: Answers = [("sum of values", np.tensordot(one, truth, axes=2), *table.sums(one)[2:])]
    if len(truth) > 1:
        weights = random.uniform(0.5, 1.5, (2, len(truth), 1)) / truth.sum()
        contrasts = weights * np.arange(truth.shape[1], dtype=np.float64)
        answers.append(("standardized mean", np.tensordot(contrasts, truth, axes=2), *table.sums(contrasts)[2:]))
    return answers


def _top(table: Estimate, truth: Floats, _: Generator) -> Answers:
    found = table.top(3)
    places = [int(group) for group in found.columns["group"]], [int(value) for value in found.columns["x"]]
    return [("top 3", truth[places], np.array(found.low), np.array(found.high))]


Question: TypeAlias = Callable[[Estimate, Floats, Generator], Answers]

QUESTIONS: Mapping[str, Question] = MappingProxyType(
    {
        "cells": _cells,
        "margins": _margin,
        "means": _means,
        "quantiles": _quantiles,
        "differences": _differences,
        "sums": _sums,
        "top": _top,
    }
)


@dataclass(frozen=True)
class Found:
    """How one class of answers of a scene did.

    effect  the variance of how many intervals of a release hold the truth, by that of as many independent ones; at
            least 1
    """

    scene: Any
    answer: str
    held: float
    width: float
    answers: int
    releases: int
    effect: float

    @property
    def doubt(self) -> float:
        """The standard error of `held`, counted by releases: their answers are alike."""
        return self.doubt_at(min(max(self.held, 0.05), 0.95))

    def doubt_at(self, held: float) -> float:
        """The standard error of a class of which so many are held."""
        return float(np.sqrt(held * (1.0 - held) * self.effect / self.answers))


_ALIKE = 2.0
"""The effect where no interval misses, or all do. Cells of 65 scenes in which some miss had 1.08 in the middle, 1.98 at
the most."""


def design_effect(held: Sequence[Bools]) -> float:
    """The variance of what each release holds, by that of independent answers; at least 1."""
    sizes = np.array([len(part) for part in held if len(part)])
    share = float(np.concatenate(held).mean())
    if len(sizes) < 2 or share in (0.0, 1.0):
        return float(min(_ALIKE, sizes.mean()))
    off = np.array([part.sum() for part in held if len(part)]) - share * sizes
    between = float(off @ off) * len(sizes) / (len(sizes) - 1)
    return max(between / (share * (1.0 - share) * float(sizes.sum())), 1.0)


def simulate(
    scene: Scene, releases: int, seed: int = 0, questions: Iterable[str] = tuple(QUESTIONS), same_people: int = 5
) -> list[Found]:
    """Release the scene so many times, with new people after every few releases."""
    random = experiment(seed)
    released = _releases(scene, releases, same_people, random)
    return counted(scene, (_answers(scene, people, parts, questions, random) for people, parts in released))


def counted(scene: Any, releases: Iterable[Iterable[tuple[str, Floats, Floats, Floats]]]) -> list[Found]:
    """How the answers to some releases did, class by class."""
    held: dict[str, list[Bools]] = defaultdict(list)
    widths: dict[str, list[Floats]] = defaultdict(list)
    for answers in releases:
        here: dict[str, list[Bools]] = defaultdict(list)
        for name, true, low, high in answers:
            close = 1e-6 * (1.0 + np.abs(true))
            here[name].append((low <= true + close) & (true <= high + close))
            widths[name].append(high - low)
        for name, parts in here.items():
            held[name].append(np.concatenate(parts))
    return [
        Found(
            scene,
            name,
            float(np.concatenate(found).mean()),
            float(np.concatenate(widths[name]).mean()),
            sum(len(part) for part in found),
            len(found),
            design_effect(found),
        )
        for name, found in held.items()
        if sum(len(part) for part in found)
    ]


def limits_of(summary: Summary) -> tuple[Floats, Floats]:
    """The lower and the upper limits of answers."""
    return np.array(summary.low), np.array(summary.high)


def _releases(scene: Scene, releases: int, same_people: int, random: Generator) -> Iterator[tuple[_People, list[Part]]]:
    people = _people(scene, random)
    for number in range(releases):
        if number % same_people == 0 and number:
            people = _people(scene, random)
        if scene.population == "super":
            # New people every time: the truth is the distribution they come from.
            people = replace(people, counts=random.multinomial(people.counts.sum(axis=2), people.shares))
        yield people, _parts(scene, people.counts, random)


def _answers(
    scene: Scene, people: _People, parts: Sequence[Part], questions: Iterable[str], random: Generator
) -> Iterator[tuple[str, Floats, Floats, Floats]]:
    truth = scene.repeats * people.counts.sum(axis=1).astype(np.float64)
    if scene.population == "super":
        sizes = people.counts.sum(axis=2, keepdims=True)
        truth = scene.repeats * (sizes * people.shares).sum(axis=1)
    by = {"group": list(range(scene.groups)), "side": [group % 2 for group in range(scene.groups)]}
    table = estimate_parts(
        parts,
        scene.groups,
        ["x"],
        [list(range(scene.choice.size))],
        by,
        EstimateOptions(scene.estimator, population="super" if scene.population == "super" else "finite"),
    )
    for name in questions:
        yield from QUESTIONS[name](table, truth, random)
