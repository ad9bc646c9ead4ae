from dataclasses import replace

import numpy as np
import pytest
from draws import seeds
from hypothesis import given, settings
from listed_designs import line, plain, report, sequential
from scipy.optimize import minimize

from polyseme.inference.base import Reports
from polyseme.inference.counts import distinct
from polyseme.inference.intervals.intervals import Quadratic
from polyseme.inference.likelihood import (
    CellLikelihoods,
    ContainmentLikelihood,
    Joined,
    SetLikelihood,
    TensorLikelihood,
    _tensor,
    likelihood_of,
)
from polyseme.inference.sets.maximum import MaximumLikelihood, convergence_note
from polyseme.inference.sets.registry import ESTIMATORS
from polyseme.inference.solver import (
    WORK,
    _extrapolated,
    expectation_maximization,
    maximize,
    maximize_stacked,
    nonnegative_minima,
    nonnegative_minimum,
)

CASES = {
    "line": [line(8, 3, 2)],
    "noisy": [line(7, 2, 2, 0.6)],
    "sequential": [sequential(8, 2, 3, 0.9)],
    "pair": [line(5, 2, 2), plain(3, 2, 0.7)],
    "three": [plain(3, 2), plain(2, 1, 0.8), line(5, 2, 2, 0.9)],
}


def sample(mechanisms, n, seed=0):
    rng = np.random.default_rng(seed)
    weights = [np.arange(1.0, m.size + 1) ** -1.2 for m in mechanisms]
    codes = np.stack([rng.choice(m.size, n, p=w / w.sum()) for m, w in zip(mechanisms, weights)], axis=1)
    return report(codes, mechanisms, rng)


def dense(reports, mechanisms):
    """`P(R_i | v)` multiplied out, from each mechanism's listed channel."""
    out = np.ones((len(reports.counts), 1))
    for codes, mechanism in zip(reports.sets, mechanisms):
        sets, channel = mechanism.channel()
        lookup = {tuple(row): place for place, row in enumerate(sets.tolist())}
        rows = channel[:, [lookup[tuple(row)] for row in codes.tolist()]].T
        out = (out[:, :, None] * rows[:, None, :]).reshape(len(out), -1)
    return out


@pytest.mark.parametrize("case", CASES)
def test_likelihood_is_that_of_the_channel(case):
    mechanisms = CASES[case]
    reports = sample(mechanisms, 200)
    matrix = dense(reports, mechanisms)
    likelihood = SetLikelihood.of(reports.sets, reports.counts, mechanisms)
    x = np.random.default_rng(1).dirichlet(np.ones(likelihood.size))
    ratio = likelihood.product(x) / (matrix @ x)
    # The factor of a set is free; everything that is used does not depend on it.
    np.testing.assert_allclose(likelihood.pull(1 / likelihood.product(x)), (matrix / (matrix @ x)[:, None]).sum(0))
    scaled = matrix * ratio[:, None]
    rows = np.random.default_rng(2).random(len(matrix))
    np.testing.assert_allclose(likelihood.information(rows), scaled.T @ (rows[:, None] * scaled), atol=1e-10)


@pytest.mark.parametrize("case", ["pair", "three"])
def test_tensor_form_equals_record_form(case):
    mechanisms = CASES[case]
    reports = sample(mechanisms, 300)
    found = [distinct(codes, m.size) for codes, m in zip(reports.sets, mechanisms)]
    tensor = _tensor(found, reports.counts, mechanisms)
    record = SetLikelihood.of(reports.sets, reports.counts, mechanisms)
    assert isinstance(tensor, TensorLikelihood)
    x = np.random.default_rng(1).dirichlet(np.ones(record.size))

    def slopes_and_information(likelihood):
        f = likelihood.product(x)
        used = likelihood.counts > 0
        ratio = np.divide(likelihood.counts, f, out=np.zeros_like(f), where=used)
        return likelihood.pull(ratio), likelihood.information(ratio / np.where(used, f, 1.0))

    for one, other in zip(slopes_and_information(tensor), slopes_and_information(record)):
        np.testing.assert_allclose(one, other, rtol=1e-9)
    if all(m.p == 1 for m in mechanisms):
        np.testing.assert_allclose(tensor.presence(), record.presence())


def test_many_distinct_pairs_choose_the_tensor_form():
    mechanisms = [plain(7, 3), plain(6, 3)]
    reports = sample(mechanisms, 20_000)
    assert isinstance(likelihood_of(reports.sets, reports.counts, mechanisms), TensorLikelihood)
    few = sample([plain(7, 2), plain(6, 2)], 12)
    mechanisms = [plain(7, 2), plain(6, 2)]
    assert isinstance(likelihood_of(few.sets, few.counts, mechanisms), SetLikelihood)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("n", [1, 3, 40, 2000])
def test_maximum_equals_plain_em_and_brute_force(case, n):
    mechanisms = CASES[case]
    reports = sample(mechanisms, n, seed=n)
    likelihood = likelihood_of(reports.sets, reports.counts, mechanisms)
    fast = maximize(likelihood, 1e-9)
    assert fast.gap <= 1e-9
    slow = expectation_maximization(likelihood, 1e-5)
    assert likelihood.value(fast.x) >= likelihood.value(slow.x) - 1e-7 * n
    assert likelihood.value(fast.x) - likelihood.value(slow.x) <= slow.gap * n + 1e-9
    if likelihood.size <= 8:
        brute = minimize(
            lambda z: -likelihood.value(np.exp(z - z.max()) / np.exp(z - z.max()).sum()) / n,
            np.zeros(likelihood.size),
            method="L-BFGS-B",
            options={"maxiter": 2000, "ftol": 1e-15, "gtol": 1e-10},
        )
        assert likelihood.value(fast.x) / n >= -brute.fun - 1e-9
        assert likelihood.value(fast.x) / n <= -brute.fun + 1e-4


@pytest.mark.parametrize("case", CASES)
def test_extrapolated_em_reaches_the_same_maximum(case):
    mechanisms = CASES[case]
    reports = sample(mechanisms, 500)
    likelihood = SetLikelihood.of(reports.sets, reports.counts, mechanisms)
    solution = _extrapolated(likelihood, 1e-6, 10_000, None)
    assert solution.gap <= 1e-6
    assert abs(likelihood.value(solution.x) - likelihood.value(maximize(likelihood, 1e-9).x)) <= 1e-6 * 500


def test_gap_bounds_what_is_missing():
    mechanisms = CASES["line"]
    reports = sample(mechanisms, 5000)
    likelihood = SetLikelihood.of(reports.sets, reports.counts, mechanisms)
    best = likelihood.value(maximize(likelihood, 1e-10).x)
    for steps in (1, 10, 100):
        early = expectation_maximization(likelihood, 0.0, limit=steps)
        assert 0 <= best - likelihood.value(early.x) <= early.gap * 5000
    assert convergence_note(1e-3)
    assert not convergence_note(1e-7)


def test_thinned_curvature_reaches_the_same_gap(monkeypatch):
    monkeypatch.setattr("polyseme.inference.solver.WORK", 200)
    mechanisms = [line(14, 3, 2)]
    reports = sample(mechanisms, 20_000)
    likelihood = SetLikelihood.of(reports.sets, reports.counts, mechanisms)
    assert likelihood.thinning(200) > 3
    assert maximize(likelihood, 1e-9).gap <= 1e-9


@settings(max_examples=50)
@given(seeds)
def test_nonnegative_minimum_meets_its_conditions(seed):
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(12, 9))
    matrix, linear = half.T @ half + 1e-6 * np.eye(9), rng.normal(size=9)
    y = nonnegative_minimum(matrix, linear, rng.random(9) < 0.5)
    slack = matrix @ y - linear
    assert y.min() >= 0
    assert slack.min() >= -1e-8
    assert abs(y @ slack) < 1e-8


@settings(max_examples=20)
@given(seeds)
def test_stacked_minima_meet_their_conditions(seed):
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(3, 9, 7))
    matrix, linear = half.transpose(0, 2, 1) @ half + 1e-6 * np.eye(7), rng.normal(size=(3, 20, 7))
    for sides in (linear, linear[:, :1]):
        y = nonnegative_minima(matrix, sides, rng.random((3, 7)) < 0.5)
        slack = y @ matrix - sides
        assert y.min() >= 0
        assert slack.min() >= -1e-8
        assert np.abs((y * slack).sum(axis=2)).max() < 1e-7


@pytest.mark.parametrize("mechanism", [line(8, 3, 2), line(7, 2, 2, 0.6)])
def test_groups_together_are_each_at_their_maximum(mechanism):
    rng = np.random.default_rng(3)
    codes = rng.binomial(mechanism.size - 1, 0.3, 900)[:, None]
    drawn = report(codes, [mechanism], rng)
    reports = Reports(drawn.sets, np.arange(len(drawn.counts)) % 3, drawn.counts, 3)
    ((cells, stack),) = CellLikelihoods(reports, [mechanism]).stacks(2 * WORK, 1e6)
    prior = np.full((3, mechanism.size), 0.5)
    for weights in (None, prior):
        joined = stack if weights is None else stack.with_prior(weights)
        found = maximize_stacked(joined, np.full(3, 1e-9), start=np.full(prior.shape, 1.0 / mechanism.size))
        for group in cells:
            some = replace(reports, **_rows(reports, group), cells=1)
            channel, counts = dense(some, [mechanism]), some.counts.astype(float)
            x = found.x[group]
            slopes, total = channel.T @ (counts / (channel @ x)), counts.sum()
            if weights is not None:
                slopes, total = slopes + weights[group] / x, total + weights[group].sum()
            assert slopes.max() / total - 1.0 <= 1e-8
            assert x.sum() == pytest.approx(1.0)


def _rows(reports, group):
    rows = np.flatnonzero(reports.cell == group)
    sets = tuple(codes[rows] for codes in reports.sets)
    return {"sets": sets, "cell": np.zeros(len(rows), dtype=int), "counts": reports.counts[rows]}


def test_bayes_is_the_limit_of_equation_26():
    mechanisms = [plain(4, 2, 0.7), plain(3, 2)]
    reports = sample(mechanisms, 400)
    fit = ESTIMATORS["bayes"].fit(reports, mechanisms)
    delta = np.kron(*(m.inclusion_matrix() for m in mechanisms))
    from polyseme.inference.counts import containment

    w = containment(reports, mechanisms)[0].ravel()
    x = w.copy()
    for _ in range(20_000):
        x = x * (delta @ (w / (x @ delta)))
    # One step of (26) multiplies the sum by prod(eta) once; (27) divides it out.
    x *= 400 / x.sum()
    np.testing.assert_allclose(fit.values[0].ravel(), x, atol=0.3)
    assert fit.gap <= 1e-6


def test_composite_information():
    mechanisms = [plain(4, 2, 0.7), plain(3, 2)]
    inclusion = tuple(m.inclusion_matrix() for m in mechanisms)
    likelihood = ContainmentLikelihood(inclusion, np.ones(12), (4, 3))
    rows = np.random.default_rng(0).random(12)
    matrix = np.kron(*inclusion)
    np.testing.assert_allclose(likelihood.information(rows), matrix @ np.diag(rows) @ matrix.T)
    np.testing.assert_allclose(likelihood.product(rows), rows @ matrix)


def test_joined_adds_known_records():
    mechanisms = CASES["noisy"]
    reports = sample(mechanisms, 50)
    likelihood = SetLikelihood.of(reports.sets, reports.counts, mechanisms)
    weights = np.arange(1.0, 8.0)
    x = maximize(Joined.of(likelihood, 1e6 * weights), 1e-9).x
    np.testing.assert_allclose(x, weights / weights.sum(), atol=1e-3)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_profile_path_equals_a_general_solver(sign):
    """How far a sum can go at a given loss, by another route: a constrained minimizer and bisection."""
    reports = sample(CASES["line"], 60, seed=4)
    fit = MaximumLikelihood().fit(reports, CASES["line"])
    quadratic = fit.limits.fits[0].quadratic
    assert isinstance(quadratic, Quadratic)
    assert (quadratic.x == 0).any()
    path = quadratic.path()
    size = len(quadratic.x)

    def loss_at(contrast, rise):
        result = minimize(
            lambda e: e @ quadratic.information @ e - 2 * quadratic.score @ e,
            np.zeros(size),
            jac=lambda e: 2 * quadratic.information @ e - 2 * quadratic.score,
            method="SLSQP",
            bounds=[(-x, None) for x in quadratic.x],
            constraints=[
                {"type": "eq", "fun": lambda e: e.sum()},
                {"type": "eq", "fun": lambda e: contrast @ e - rise},
            ],
            options={"maxiter": 500, "ftol": 1e-12},
        )
        return result.fun if result.success else np.inf

    rng = np.random.default_rng(0)
    contrasts = [*np.eye(size), rng.normal(size=size), (np.arange(size) < 3).astype(float)]
    for contrast in contrasts:
        rise, table = path.reach(sign * contrast, 3.84)
        assert table.min() >= 0
        assert abs(table.sum() - 60) < 1e-6
        assert abs(sign * contrast @ (table - quadratic.x) - rise) < 1e-6
        if rise > 1e-6:
            assert loss_at(sign * contrast, rise) <= 3.84 + 1e-3
            assert loss_at(sign * contrast, rise + 0.05) > 3.84


def test_values_that_were_not_reported_are_zero():
    sets = np.array([[0, 2], [0, 3]])
    reports = Reports((sets,), np.zeros(2, dtype=np.int64), np.array([5, 6]), 1)
    fit = ESTIMATORS["ml"].fit(reports, [line(5, 2, 2)])
    np.testing.assert_allclose(fit.values[0], [11, 0, 0, 0, 0], atol=1e-4)
    low, high = fit.limits.cells(0.95, "finite")
    assert high[0, 1] == high[0, 4] == 0
    assert high[0, 2] <= 5
    assert low[0, 0] > 3
