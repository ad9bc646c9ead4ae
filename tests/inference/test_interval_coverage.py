"""Nominal 95% intervals hold the truth at least 93% of the time, and 90% for every class of cells of every truth.

They are not needlessly long either: on the same reports, at most `WIDEST` times the honest intervals of `inverse`, and
those at most `WIDEST` times the normal interval of an analyst who knows how much the estimate varies.
"""

from dataclasses import replace

import numpy as np
import pytest
from listed_designs import line, plain, report

from polyseme.inference.base import Fit
from polyseme.inference.intervals.intervals import intervals, project, standard_errors, sum_intervals
from polyseme.inference.sets.estimate import estimate_table
from polyseme.inference.sets.registry import ESTIMATORS

WIDEST = 1.3
"""Times the mean width of a reference that is known to be honest; measured are 0.2 to 1.17."""


def truths(size, rng):
    places = np.arange(size)
    sparse = np.zeros(size)
    chosen = rng.choice(size, max(2, size // 5), replace=False)
    sparse[chosen] = rng.uniform(0.3, 1.0, len(chosen))
    shapes = {
        "smooth": np.exp(-0.5 * ((places - 0.4 * size) / (0.25 * size)) ** 2),
        "skewed": 0.55**places,
        "sparse": sparse,
    }
    return {name: weight / weight.sum() for name, weight in shapes.items()}


def coverage(name, mechanisms, n, runs, population="finite", seed=0):
    """(covered, width, share, name of the truth, width of the reference) for each run, cell and truth."""
    rng = np.random.default_rng(seed)
    shape = [m.size for m in mechanisms]
    size = int(np.prod(shape))
    out = []
    for truth, weight in truths(size, rng).items():
        if population == "finite":
            target = rng.multinomial(n, weight)
            values = np.tile(np.repeat(np.arange(size), target), runs)
        else:
            target = n * weight
            values = rng.choice(size, n * runs, p=weight)
        codes = np.stack(np.unravel_index(values, shape), axis=1)
        reports = report(codes, mechanisms, rng, np.repeat(np.arange(runs), n), runs)
        fit = ESTIMATORS[name].fit(reports, mechanisms)
        low, high = (limit.reshape(runs, size) for limit in intervals(fit, 0.95, population))
        if name == "inverse":
            honest = np.tile(2 * 1.96 * fit.values.reshape(runs, size).std(axis=0), (runs, 1))
        else:
            lower, upper = intervals(ESTIMATORS["inverse"].fit(reports, mechanisms), 0.95, population)
            honest = (upper - lower).reshape(runs, size)
        held = (low <= target + 1e-6) & (high >= target - 1e-6)
        share = np.broadcast_to(target / n, held.shape)
        out.append((held, (high - low) / n, share, np.full(held.shape, truth), honest / n))
    return [np.concatenate([part[place].ravel() for part in out]) for place in range(5)]


def judge(held, width, share, truth, honest):
    classes = {
        "zero": share == 0,
        "rare": (share > 0) & (share < 0.01),
        "middle": (share >= 0.01) & (share < 0.1),
        "common": share >= 0.1,
    }
    parts = {f"{name} of {of}": here & (truth == of) for name, here in classes.items() for of in np.unique(truth)}
    rows = {name: (held[here].mean(), width[here].mean()) for name, here in parts.items() if here.any()}
    print(
        f"all {held.mean():.3f} width {width.mean():.4f}; "
        + ", ".join(f"{k} {c:.3f} {w:.4f}" for k, (c, w) in rows.items())
    )
    assert held.mean() >= 0.93
    assert all(covered >= 0.90 for covered, _ in rows.values())
    for of in np.unique(truth):
        here = truth == of
        assert width[here].mean() <= WIDEST * honest[here].mean(), of
        # An interval from nothing to everybody would not pass.
        assert WIDEST * honest[here].mean() < 1.0


QUICK = {
    "line": ([line(14, 3, 3)], 1000, 30),
    "noisy": ([line(10, 3, 2, 0.7)], 3000, 30),
    "pair": ([line(6, 2, 2), plain(4, 2)], 600, 25),
    "few records": ([line(14, 2, 4)], 30, 120),
    "few noisy records": ([line(10, 3, 2, 0.7)], 30, 150),
    "ten records": ([line(10, 3, 2, 0.7)], 10, 150),
    "noise above all": ([plain(8, 4, 0.5)], 100, 150),
    "few in a pair": ([plain(4, 2, 0.8), plain(4, 2)], 30, 80),
    "more cells than profiles": ([plain(50, 3), plain(30, 2)], 500, 30),
}


@pytest.mark.slow
@pytest.mark.parametrize("population", ["finite", "super"])
@pytest.mark.parametrize("case", QUICK)
def test_profile_limits_cover(case, population):
    judge(*coverage("ml", *QUICK[case], population))


def test_finite_limits_are_narrower_than_those_about_the_population():
    _, finite, *_ = coverage("ml", [line(14, 2, 4)], 5000, 10)
    _, superpopulation, *_ = coverage("ml", [line(14, 2, 4)], 5000, 10, "super")
    assert finite.mean() < 0.8 * superpopulation.mean()


@pytest.mark.parametrize("population", ["finite", "super"])
def test_normal_limits_of_inverse_cover(population):
    judge(*coverage("inverse", [line(14, 3, 3)], 2000, 40, population))


@pytest.mark.slow
@pytest.mark.parametrize("population", ["finite", "super"])
def test_profile_limits_cover_widely(population):
    cases = [
        ([line(14, 2, 2)], 1000, 100),
        ([line(14, 2, 4)], 30_000, 60),
        ([line(14, 3, 3)], 300, 100),
        ([line(14, 3, 4)], 10_000, 60),
        ([line(14, 5, 2)], 3000, 60),
        ([line(14, 3, 2, 0.7)], 3000, 60),
        ([plain(8, 4, 0.5)], 3000, 60),
        ([line(8, 2, 2), plain(5, 2)], 3000, 30),
        ([plain(3, 2, 0.8), plain(3, 2), plain(4, 2)], 1000, 30),
        ([plain(30, 3), plain(20, 2)], 5000, 10),
    ]
    parts = [coverage("ml", *case, population, seed=place) for place, case in enumerate(cases)]
    judge(*(np.concatenate(column) for column in zip(*parts)))


@pytest.mark.slow
def test_sums_of_cells_cover():
    mechanisms, n, runs = [line(6, 2, 2), plain(4, 2, 0.9)], 800, 150
    rng = np.random.default_rng(1)
    shares = rng.dirichlet(np.full(24, 0.4))
    target = rng.multinomial(n, shares)
    codes = np.stack(np.unravel_index(np.repeat(np.arange(24), target), (6, 4)), axis=1)
    contrasts = np.zeros((7, 1, 6, 4))
    contrasts[np.arange(6), 0, np.arange(6)] = 1.0
    contrasts[6, 0] = np.arange(6)[:, None] / n
    truth = np.tensordot(contrasts, target.reshape(1, 6, 4), axes=3)
    held, widths, honest = [], [], []
    for _ in range(runs):
        reports = report(codes, mechanisms, rng)
        _, errors, low, high = sum_intervals(ESTIMATORS["ml"].fit(reports, mechanisms), contrasts)
        held.append((low <= truth + 1e-9) & (high >= truth - 1e-9))
        widths.append(high - low)
        assert (errors >= 0).all()
        _, _, low, high = sum_intervals(ESTIMATORS["inverse"].fit(reports, mechanisms), contrasts)
        honest.append(high - low)
    assert np.mean(held) >= 0.93
    assert np.mean(held, axis=0).min() >= 0.90
    assert (np.mean(widths, axis=0) <= WIDEST * np.mean(honest, axis=0)).all()


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ["ml", "inverse"])
def test_sums_over_groups_of_random_size_cover(estimator):
    """About a population the sizes of the groups that are summed over are random too; those of the others are known."""
    mechanism, n, rng = plain(3, 2), 400, np.random.default_rng(4)
    by = {"sex": ["f", "f", "m", "m"], "zone": [1, 2, 1, 2]}
    shares = np.array([[0.9, 0.1, 0.0], [0.0, 0.1, 0.9]])
    truth = shares.mean(axis=0)
    counts, means, differences, widths, answers = [], [], [], [], []
    for _ in range(80):
        cell = rng.integers(0, 4, n)
        codes = (rng.random(n)[:, None] > np.cumsum(shares, axis=1)[cell % 2]).sum(axis=1)
        table = estimate_table(
            report(codes, [mechanism], rng, cell, 4), [mechanism], ["a"], [range(3)], by, estimator, population="super"
        )
        people = table.margin(by="sex")
        expected = people.totals[:, None] * truth
        counts.append((people.low <= expected) & (expected <= people.high))
        mean, difference = list(people.mean()), list(table.difference({"sex": "f"}, {"sex": "m"}))
        means.append([row["low"] <= truth @ np.arange(3) <= row["high"] for row in mean])
        differences.append([row["low"] <= 0 <= row["high"] for row in difference])
        rows = [*mean, *difference]
        widths.append([*(people.high - people.low).ravel(), *(row["high"] - row["low"] for row in rows)])
        answers.append([*(people.values - expected).ravel(), *(row["estimate"] for row in rows)])
    for held in (counts, means, differences):
        assert np.mean(held) >= 0.92
    # 80 repetitions know the spread of an answer to 8%.
    varies = 2 * 1.96 * np.std(answers, axis=0)
    assert (np.mean(widths, axis=0) <= WIDEST * varies).all()


def test_the_error_of_a_margin_is_that_of_the_table_without_groups():
    mechanism, rng = plain(3, 2), np.random.default_rng(5)
    cell = rng.integers(0, 2, 500)
    reports = report(2 * cell, [mechanism], rng, cell, 2)
    alone = replace(reports, cell=np.zeros_like(reports.cell), cells=1)
    options = {"estimator": "inverse", "population": "super"}
    margin = estimate_table(reports, [mechanism], ["a"], [range(3)], {"g": ["p", "q"]}, **options).margin(by=[])
    direct = estimate_table(alone, [mechanism], ["a"], [range(3)], **options)
    np.testing.assert_allclose(margin.stderr, direct.stderr)
    np.testing.assert_allclose(margin.high, direct.high)


def test_the_total_is_known():
    mechanisms = [line(6, 2, 2), plain(4, 2, 0.9)]
    rng = np.random.default_rng(1)
    codes = np.stack([rng.choice(6, 500), rng.choice(4, 500)], axis=1)
    for name in ("ml", "inverse"):
        fit = ESTIMATORS[name].fit(report(codes, mechanisms, rng), mechanisms)
        value, error, low, high = sum_intervals(fit, np.ones((1, 1, 6, 4)))
        np.testing.assert_allclose([value[0], low[0], high[0]], 500, atol=1e-3)
        assert error[0] < 1e-2


def test_a_higher_level_is_wider_and_limits_hold_the_estimate():
    rng = np.random.default_rng(2)
    reports = report(rng.choice(14, 500), [line(14, 3, 3)], rng)
    for name in ESTIMATORS:
        fit = ESTIMATORS[name].fit(reports, [line(14, 3, 3)])
        widths = []
        for level in (0.5, 0.9, 0.99):
            low, high = intervals(fit, level)
            inside = np.clip(fit.values, 0, 500)
            assert (low <= inside + 1e-6).all()
            assert (inside <= high + 1e-6).all()
            widths.append((high - low).sum())
        assert widths[0] < widths[1] < widths[2]
        assert (standard_errors(fit, "super") >= standard_errors(fit) - 1e-9).all()


def test_projection_is_the_nearest_table():
    rng = np.random.default_rng(0)
    values, totals = rng.normal(1.0, 2.0, (20, 3, 4)), rng.uniform(1.0, 20.0, 20)
    out = project(values, totals)
    assert out.min() >= 0
    np.testing.assert_allclose(out.sum(axis=(1, 2)), totals)
    others = rng.dirichlet(np.ones(12), (200, 20)).reshape(200, 20, 3, 4) * totals[:, None, None]
    assert (((values - out) ** 2).sum((1, 2)) <= ((values - others) ** 2).sum((2, 3)) + 1e-9).all()
    assert not project(np.ones((1, 2)), np.zeros(1)).any()


def test_missing_standard_errors_give_the_widest_limits():
    fit = Fit(np.array([[3.0, 1.0]]), np.full((1, 2), np.nan), totals=np.array([4.0]))
    low, high = intervals(fit)
    np.testing.assert_allclose(low, 0)
    np.testing.assert_allclose(high, 4)
