"""Laws of estimators, judged on reports that are drawn from mechanisms of every kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType

import numpy as np

from polyseme.designs import make_design
from polyseme.designs.mechanism import Mechanism
from polyseme.inference.base import Estimator, Reports
from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.randomness import experiment
from polyseme.semantics.distances import LineDistance
from polyseme.semantics.distances.base import Circle, Clusters, Graph
from polyseme.testing.distances import agree, hold

__all__ = [
    "MECHANISMS",
    "Sample",
    "Traits",
    "check_estimator",
    "ignores_names_of_values",
    "ignores_order_and_batches",
    "keeps_totals",
    "long_form",
    "recovers_the_truth",
    "report",
    "sample_of",
    "serves_odd_cells",
    "tabulate",
]


@dataclass(frozen=True)
class Traits:
    """What kind of estimator it is: the laws it is held to follow from that.

    reordered    by how many records an estimate may move when the same records come in another order or in parts
    renamed      the same when the values get other names
    totals       whether the estimates of a cell add up to its records
    nonnegative  whether no estimate is ever below zero
    several      whether it estimates tables of several protected attributes
    consistent   whether, with many records, it recovers the truth within six of its own standard errors
    """

    reordered: float = 1e-8
    renamed: float = 1e-6
    totals: bool = True
    nonnegative: bool = False
    several: bool = True
    consistent: bool = False


def _ranks(design: str, size: int, l: int, d: float, p: float = 1.0) -> Mechanism:
    return Mechanism(make_design(design, LineDistance.ranks(size).structure(d), l), p)


def _plain(size: int, l: int, p: float = 1.0) -> Mechanism:
    return Mechanism(make_design("balanced", Clusters(np.arange(size)), l), p)


def _circle(size: int, l: int, spacing: int) -> Mechanism:
    places = np.arange(size, dtype=np.float64)
    return Mechanism(make_design("balanced", Circle(np.arange(size), places, float(size), float(spacing), spacing), l))


def _graph() -> Mechanism:
    compatible = ~np.eye(7, dtype=bool)
    for one, other in ((0, 1), (1, 2), (3, 4), (5, 6)):
        compatible[one, other] = compatible[other, one] = False
    return Mechanism(make_design("balanced", Graph(compatible), 2))


MECHANISMS: Mapping[str, Callable[[], list[Mechanism]]] = MappingProxyType(
    {
        "balanced line": lambda: [_ranks("balanced", 9, 3, 2)],
        "algorithm 1": lambda: [_ranks("simple", 9, 3, 2)],
        "algorithm 3": lambda: [_ranks("duplicate", 9, 2, 2)],
        "circle": lambda: [_circle(9, 2, 3)],
        "clusters": lambda: [Mechanism(make_design("balanced", Clusters(np.array([0, 0, 1, 1, 2, 2, 3, 3, 3])), 2))],
        "graph": lambda: [_graph()],
        "plain, noisy": lambda: [_plain(5, 2, 0.7)],
        "line, noisy": lambda: [_ranks("balanced", 8, 2, 2, 0.8)],
        "line x plain": lambda: [_ranks("balanced", 6, 2, 2), _plain(3, 2)],
        "four plain, mixed": lambda: [_plain(3, 2), _plain(2, 1), _plain(3, 2, 0.9), _plain(4, 2)],
    }
)
"""Mechanisms of every kind, for one protected attribute and for several."""


@dataclass(frozen=True, eq=False)
class Sample:
    """True values (n, attributes) in cells (n,), and what a release reports of them."""

    mechanisms: Sequence[Mechanism]
    codes: Ints
    cell: Ints
    reports: Reports


class _Uniforms:
    """A stream of an ordinary generator: the experiment can be repeated."""

    def __init__(self, generator: np.random.Generator) -> None:
        self._generator = generator

    def uniforms(self, draws: int, records: int) -> Floats:
        return self._generator.random((draws, records))


def sample_of(mechanisms: Sequence[Mechanism], records: int = 900) -> Sample:
    """Skewed values in three cells of uneven size."""
    generator = experiment(3)
    weights = [np.arange(1.0, mechanism.size + 1) ** -0.7 for mechanism in mechanisms]
    columns = [generator.choice(m.size, records, p=w / w.sum()) for m, w in zip(mechanisms, weights)]
    codes = np.stack(columns, axis=1)
    cell = generator.choice(3, records, p=[0.6, 0.35, 0.05])
    return Sample(mechanisms, codes, cell, report(codes, mechanisms, generator, cell, 3))


def report(
    codes: Ints,
    mechanisms: Sequence[Mechanism],
    generator: np.random.Generator,
    cell: Ints | None = None,
    cells: int = 1,
    grouped: bool = True,
) -> Reports:
    """Reports of true values `codes`, one column for each mechanism."""
    codes = np.asarray(codes).reshape(len(codes), -1)
    cell = np.zeros(len(codes), dtype=np.int64) if cell is None else np.asarray(cell)
    stream = _Uniforms(generator)
    sets = [mechanism.sample(codes[:, place], stream) for place, mechanism in enumerate(mechanisms)]
    counts = np.ones(len(codes), dtype=np.int64)
    if grouped and len(codes):
        rows, counts = np.unique(np.hstack([cell[:, None], *sets]), axis=0, return_counts=True)
        widths = np.cumsum([1, *[mechanism.l for mechanism in mechanisms]]).tolist()
        cell, sets = rows[:, 0], [rows[:, start:end] for start, end in pairwise(widths)]
    return Reports(tuple(sets), cell, counts, cells)


def tabulate(codes: Ints, mechanisms: Sequence[Mechanism], cell: Ints | None = None, cells: int = 1) -> Floats:
    """The true table: (cells, F_1, ..., F_q)."""
    codes = np.asarray(codes).reshape(len(codes), -1)
    cell = np.zeros(len(codes), dtype=np.int64) if cell is None else np.asarray(cell)
    table = np.zeros((cells, *[mechanism.size for mechanism in mechanisms]))
    np.add.at(table, (cell, *codes.T), 1.0)
    return table


def long_form(reports: Reports, mechanism: Mechanism) -> Reports:
    """The same reports as containment counts only."""
    flat = reports.cell[:, None] * mechanism.size + reports.sets[0]
    weights = np.repeat(reports.counts, mechanism.l)
    counts = np.bincount(flat.ravel(), weights=weights, minlength=reports.cells * mechanism.size).astype(np.int64)
    cell, codes = np.divmod(np.arange(len(counts)), mechanism.size)
    return Reports((codes[:, None],), cell, counts, reports.cells, paired=False)


def check_estimator(estimator: Estimator, traits: Traits | None = None) -> None:
    """Every law of estimators, on every one of `MECHANISMS`."""
    traits = traits or Traits()
    for make in MECHANISMS.values():
        mechanisms = make()
        if len(mechanisms) > 1 and not traits.several:
            continue
        sample = sample_of(mechanisms)
        keeps_totals(estimator, sample, traits)
        ignores_order_and_batches(estimator, sample, traits)
        serves_odd_cells(estimator, mechanisms)
        if traits.consistent:
            recovers_the_truth(estimator, mechanisms)
    for design in ("balanced", "simple"):
        ignores_names_of_values(estimator, design, traits)


def keeps_totals(estimator: Estimator, sample: Sample, traits: Traits) -> None:
    """Shapes, numbers of records and signs are right."""
    fit = estimator.fit(sample.reports, sample.mechanisms)
    shape = (3, *[mechanism.size for mechanism in sample.mechanisms])
    hold(fit.values.shape == shape, f"the table has the shape {shape}")
    hold(fit.variance.shape == shape, f"the variances have the shape {shape}")
    hold(not (fit.variance < 0).any(), "no variance is negative")
    records = np.bincount(sample.cell)
    agree(np.asarray(fit.totals), records, "`totals` are the numbers of records of the cells", rtol=1e-7)
    if traits.totals:
        sums = fit.values.reshape(3, -1).sum(axis=1)
        agree(sums, records, "the estimates of a cell add up to its records", rtol=1e-8)
    if traits.nonnegative:
        hold(fit.values.min() >= 0.0, "no estimate is negative")


def ignores_order_and_batches(estimator: Estimator, sample: Sample, traits: Traits) -> None:
    """The same records in another order, some counted in two parts, give the same estimate."""
    reports, generator = sample.reports, experiment(1)
    split = generator.binomial(reports.counts, 0.5)
    order = generator.permutation(2 * len(split))
    shuffled = Reports(
        tuple(np.vstack([sets, sets])[order] for sets in reports.sets),
        np.concatenate([reports.cell, reports.cell])[order],
        np.concatenate([split, reports.counts - split])[order],
        reports.cells,
    )
    first, second = (estimator.fit(which, sample.mechanisms) for which in (reports, shuffled))
    law = "does not depend on the order of the records or on how they are counted together"
    agree(second.values, first.values, f"an estimate {law}", rtol=1e-7, atol=traits.reordered)
    if traits.reordered <= 1e-6:
        agree(second.variance, first.variance, f"a variance {law}", rtol=1e-7, atol=1e-7)


def ignores_names_of_values(estimator: Estimator, design: str, traits: Traits) -> None:
    """The same values in another order: the estimate moves with them."""
    size, generator = 8, experiment(5)
    new = generator.permutation(size)
    positions = np.empty(size)
    positions[new] = np.arange(size)
    mechanism = _ranks(design, size, 2, 2)
    renamed = Mechanism(make_design(design, LineDistance(positions).structure(2), 2))
    sets = mechanism.sample(generator.choice(size, 500), _Uniforms(generator))
    zeros, ones = np.zeros(500, dtype=np.int64), np.ones(500, dtype=np.int64)
    first = estimator.fit(Reports((sets,), zeros, ones, 1), [mechanism])
    second = estimator.fit(Reports((np.sort(new[sets], axis=1),), zeros, ones, 1), [renamed])
    law = "an estimate does not depend on the names of the values"
    agree(second.values[0, new], first.values[0], law, rtol=1e-7, atol=traits.renamed)


def serves_odd_cells(estimator: Estimator, mechanisms: Sequence[Mechanism]) -> None:
    """Cells without a record, with one, with three, and a release without any."""
    codes = np.zeros((4, len(mechanisms)), dtype=np.int64)
    reports = report(codes, mechanisms, experiment(0), np.array([1, 3, 3, 3]), 4)
    fit = estimator.fit(reports, mechanisms)
    hold(np.isfinite(fit.values).all(), "estimates are finite, however few records there are")
    hold(not fit.values[[0, 2]].any(), "a cell without records is estimated as empty")
    agree(np.asarray(fit.totals), [0, 1, 0, 3], "`totals` count the records of small cells too")
    none = np.zeros(0, dtype=np.int64)
    empty = Reports(tuple(np.zeros((0, m.l), dtype=np.int64) for m in mechanisms), none, none, 2)
    hold(not estimator.fit(empty, mechanisms).values.any(), "a release without records is estimated as empty")


def recovers_the_truth(estimator: Estimator, mechanisms: Sequence[Mechanism], records: int = 200_000) -> None:
    """With many records the truth lies within six of the estimator's standard errors."""
    generator = experiment(9)
    codes = np.stack([generator.choice(mechanism.size, records) for mechanism in mechanisms], axis=1)
    reports, truth = report(codes, mechanisms, generator), tabulate(codes, mechanisms)
    fit = estimator.fit(reports, mechanisms)
    hold(np.isfinite(fit.variance).all(), "variances are finite where there are many records")
    error = np.sqrt(fit.variance)
    hold((np.abs(fit.values - truth) <= 6 * error + 1e-6).all(), "the truth lies within six standard errors")
    # Otherwise an estimator that claims to know nothing would pass.
    hold(error.max() < records / 25, "standard errors are small where there are many records")
