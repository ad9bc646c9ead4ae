"""What every estimator must do on every mechanism."""

from itertools import product

import numpy as np
import pytest
from listed_designs import Uniforms, long_form, plain, report, tabulate

from polyseme.designs import make_design
from polyseme.distances.line import LineDistance
from polyseme.distances.structure import Circle, Clusters, Graph
from polyseme.estimators.base import Reports
from polyseme.estimators.registry import ESTIMATORS
from polyseme.mechanism import Mechanism

LINEAR = ("simple", "existing", "paper", "inverse", "valueadding")
ITERATED = ("bayes", "ml", "shrink", "smooth")


def ranks(name, size, l, d, p=1.0):
    return Mechanism(make_design(name, LineDistance.ranks(size).structure(d), l), p)


def circle(size, l, spacing):
    structure = Circle(np.arange(size), np.arange(size, dtype=float), float(size), float(spacing), spacing)
    return Mechanism(make_design("balanced", structure, l))


def graph():
    compatible = ~np.eye(7, dtype=bool)
    for u, v in ((0, 1), (1, 2), (3, 4), (5, 6)):
        compatible[u, v] = compatible[v, u] = False
    return Mechanism(make_design("balanced", Graph(compatible), 2))


MECHANISMS = {
    "balanced line": lambda: [ranks("balanced", 9, 3, 2)],
    "algorithm 1": lambda: [ranks("simple", 9, 3, 2)],
    "algorithm 3": lambda: [ranks("duplicate", 9, 2, 2)],
    "circle": lambda: [circle(9, 2, 3)],
    "clusters": lambda: [Mechanism(make_design("balanced", Clusters(np.array([0, 0, 1, 1, 2, 2, 3, 3, 3])), 2))],
    "graph": lambda: [graph()],
    "plain, noisy": lambda: [plain(5, 2, 0.7)],
    "line, noisy": lambda: [ranks("balanced", 8, 2, 2, 0.8)],
    "line x plain": lambda: [ranks("balanced", 6, 2, 2), plain(3, 2)],
    "four plain, mixed": lambda: [plain(3, 2), plain(2, 1), plain(3, 2, 0.9), plain(4, 2)],
}
CASES = list(product(ESTIMATORS, MECHANISMS))


@pytest.fixture(scope="module")
def data():
    made = {}
    for name, make in MECHANISMS.items():
        mechanisms = make()
        rng = np.random.default_rng(3)
        weights = [np.arange(1.0, m.size + 1) ** -0.7 for m in mechanisms]
        codes = np.stack([rng.choice(m.size, 900, p=w / w.sum()) for m, w in zip(mechanisms, weights)], axis=1)
        cell = rng.choice(3, 900, p=[0.6, 0.35, 0.05])
        made[name] = (mechanisms, codes, cell, report(codes, mechanisms, rng, cell, 3))
    return made


@pytest.mark.parametrize(("estimator", "case"), CASES)
def test_totals_shapes_and_signs(estimator, case, data):
    mechanisms, _, cell, reports = data[case]
    fit = ESTIMATORS[estimator].fit(reports, mechanisms)
    assert fit.values.shape == fit.variance.shape == (3, *[m.size for m in mechanisms])
    np.testing.assert_allclose(fit.totals, np.bincount(cell))
    if estimator != "valueadding":
        np.testing.assert_allclose(fit.values.reshape(3, -1).sum(axis=1), np.bincount(cell), rtol=1e-8)
    if estimator in ITERATED:
        assert fit.values.min() >= 0.0
        assert fit.gap is None if estimator == "smooth" else fit.gap <= 1e-6
    assert not (fit.variance < 0).any()


@pytest.mark.parametrize(("estimator", "case"), CASES)
def test_order_and_batches_of_records_do_not_matter(estimator, case, data):
    mechanisms, _, _, reports = data[case]
    rng = np.random.default_rng(1)
    split = rng.binomial(reports.counts, 0.5)
    order = rng.permutation(2 * len(split))
    shuffled = Reports(
        tuple(np.vstack([sets, sets])[order] for sets in reports.sets),
        np.concatenate([reports.cell, reports.cell])[order],
        np.concatenate([split, reports.counts - split])[order],
        reports.cells,
    )
    first, second = (ESTIMATORS[estimator].fit(which, mechanisms) for which in (reports, shuffled))
    # Likelihood estimates are known up to the certified gap.
    tolerance = 1e-8 if estimator in LINEAR else 0.5
    np.testing.assert_allclose(first.values, second.values, atol=tolerance)
    if estimator in LINEAR:
        np.testing.assert_allclose(first.variance, second.variance, atol=1e-7)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("design", ["balanced", "simple"])
def test_names_of_values_do_not_matter(estimator, design):
    """The same values in another order: the estimate moves with them."""
    size, rng = 8, np.random.default_rng(5)
    new = rng.permutation(size)
    positions = np.empty(size)
    positions[new] = np.arange(size)
    mechanism = ranks(design, size, 2, 2)
    renamed = Mechanism(make_design(design, LineDistance(positions).structure(2), 2))
    sets = mechanism.sample(rng.choice(size, 500), Uniforms(rng))
    zeros, ones = np.zeros(500, dtype=np.int64), np.ones(500, dtype=np.int64)
    first = ESTIMATORS[estimator].fit(Reports((sets,), zeros, ones, 1), [mechanism])
    second = ESTIMATORS[estimator].fit(Reports((np.sort(new[sets], axis=1),), zeros, ones, 1), [renamed])
    # Held-out parts are drawn by the order of the sets, so a chosen strength may differ by a step.
    tolerance = {"shrink": 25.0}.get(estimator, 1e-6 if estimator in LINEAR else 0.2)
    np.testing.assert_allclose(first.values[0], second.values[0, new], atol=tolerance)


@pytest.mark.parametrize(("estimator", "case"), CASES)
def test_odd_cells(estimator, case):
    """Cells without a record, with one, with three, and a release without any."""
    mechanisms = MECHANISMS[case]()
    rng = np.random.default_rng(0)
    codes = np.zeros((4, len(mechanisms)), dtype=np.int64)
    reports = report(codes, mechanisms, rng, np.array([1, 3, 3, 3]), 4)
    fit = ESTIMATORS[estimator].fit(reports, mechanisms)
    assert np.isfinite(fit.values).all()
    assert not fit.values[[0, 2]].any()
    np.testing.assert_allclose(fit.totals, [0, 1, 0, 3])
    empty = Reports(
        tuple(np.zeros((0, m.l), dtype=np.int64) for m in mechanisms),
        np.zeros(0, dtype=np.int64),
        np.zeros(0, dtype=np.int64),
        2,
    )
    assert not ESTIMATORS[estimator].fit(empty, mechanisms).values.any()


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("case", ["balanced line", "algorithm 1", "plain, noisy", "clusters"])
def test_counts_only(estimator, case, data):
    mechanisms, _, cell, reports = data[case]
    counts = long_form(reports, mechanisms[0])
    fit = ESTIMATORS[estimator].fit(counts, mechanisms)
    np.testing.assert_allclose(fit.totals, np.bincount(cell))
    if estimator in LINEAR:
        np.testing.assert_allclose(fit.values, ESTIMATORS[estimator].fit(reports, mechanisms).values, atol=1e-8)
    if estimator in ("ml", "shrink"):
        assert any("counts only" in note for note in fit.notes)


@pytest.mark.parametrize("case", MECHANISMS)
def test_many_records_recover_the_truth(case):
    """With 200,000 records `inverse` and `ml` lie within six of their own standard errors, everywhere."""
    mechanisms = MECHANISMS[case]()
    rng = np.random.default_rng(9)
    codes = np.stack([rng.choice(m.size, 200_000) for m in mechanisms], axis=1)
    reports, truth = report(codes, mechanisms, rng), tabulate(codes, mechanisms)
    for name in ("inverse", "ml"):
        fit = ESTIMATORS[name].fit(reports, mechanisms)
        assert np.isfinite(fit.variance).all()
        assert (np.abs(fit.values - truth) <= 6 * np.sqrt(fit.variance) + 1e-6).all()
        assert np.sqrt(fit.variance).max() < 8_000
