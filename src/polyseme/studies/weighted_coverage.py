"""How often the intervals of weighted tables hold the truth, simulated.

Weights are lognormal, and may lean on the value. About the people in a table, these and their weights stay the same and
only sets are redrawn; about a population, people and weights are redrawn too, and the truth is what they are
expected to add up to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.random import Generator

from polyseme.arrays import Floats, Ints
from polyseme.estimators.base import Reports
from polyseme.estimators.estimate import Estimate, estimate_parts
from polyseme.estimators.options import EstimateOptions
from polyseme.estimators.parts import Part
from polyseme.randomness import experiment
from polyseme.results.summary import Summary
from polyseme.results.table import Population
from polyseme.studies.choices import DESIGNS, TRUTHS

__all__ = ["WeightedScene", "weighted_coverage"]

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
    asked: int = 0

    def add(self, true: Floats, low: Floats, high: Floats) -> None:
        close = _CLOSE * (1.0 + np.abs(true))
        self.held += int(((low <= true + close) & (true <= high + close)).sum())
        self.asked += true.size


@dataclass(frozen=True)
class Coverage:
    """The share of intervals that held the truth, by question."""

    scene: WeightedScene
    questions: Mapping[str, float] = field(default_factory=dict)


def weighted_coverage(scene: WeightedScene, releases: int, seed: int) -> Coverage:
    """The coverage of 95% intervals in a scene: cells, margins, shares, means, sums and differences."""
    random = experiment(seed)
    shares = TRUTHS[scene.truth](scene.size, random)
    shares = np.asarray(shares / shares.sum())
    held: dict[str, _Held] = {}
    sample = _drawn(scene, shares, random)
    for number in range(releases):
        if scene.population == "super" or (number and number % 20 == 0):
            sample = _drawn(scene, shares, random)
        table = _estimated(scene, sample, random)
        for name, true, low, high in _answers(table, _truth(scene, sample, shares), random):
            held.setdefault(name, _Held()).add(true, low, high)
    return Coverage(scene, {name: found.held / found.asked for name, found in held.items()})


def _drawn(scene: WeightedScene, shares: Floats, random: Generator) -> _Sample:
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


def _estimated(scene: WeightedScene, sample: _Sample, random: Generator) -> Estimate:
    mechanism, sets, channel = DESIGNS[scene.design].mechanism()
    edges = np.cumsum(channel, axis=1)
    drawn = (random.random(scene.records)[:, None] > edges[sample.value]).sum(axis=1)
    rows = sets[np.minimum(drawn, len(sets) - 1)]
    counts = np.ones(scene.records, dtype=np.int64)
    reports = Reports((rows,), sample.group, counts, 2, weights=sample.weight)
    options = EstimateOptions(scene.estimator, population=scene.population)
    labels = [list(range(scene.size))]
    return estimate_parts([Part.whole(reports, [mechanism])], 2, ["x"], labels, {"group": [0, 1]}, options)


def _answers(table: Estimate, truth: Floats, random: Generator) -> Iterator[tuple[str, Floats, Floats, Floats]]:
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
