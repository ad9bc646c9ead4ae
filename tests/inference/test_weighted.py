"""Weighted tables: unbiased by enumeration, exact for equal weights, and their intervals hold the truth."""

from dataclasses import replace

import numpy as np
import pytest
from listed_designs import line, plain

from polyseme.inference.base import Reports
from polyseme.inference.counts import merged
from polyseme.inference.intervals.limits import Sampled, Unbiased
from polyseme.inference.intervals.unbiased import unbiased_map, unbiased_table
from polyseme.inference.sets.estimate import estimate_table
from polyseme.kernel.errors import QuestionError
from polyseme.testing.record_coverage import WeightedScene, weighted_coverage

QUESTIONS = ("cells", "margin", "shares", "mean", "sums", "differences")


def drawn(mechanism, values, weights, seed, cell=None, cells=1):
    """One release of these records."""
    rng = np.random.default_rng(seed)
    sets, channel = mechanism.channel()
    channel = channel / channel.sum(axis=1, keepdims=True)
    rows = np.array([rng.choice(len(sets), p=channel[value]) for value in values])
    cell = np.zeros(len(values), dtype=np.int64) if cell is None else cell
    counts = np.ones(len(values), dtype=np.int64)
    return Reports((sets[rows],), cell, counts, cells, weights=None if weights is None else np.asarray(weights))


def people(size, records, seed):
    rng = np.random.default_rng(seed)
    values = np.minimum(rng.geometric(0.3, records) - 1, size - 1)
    return values, np.exp(0.7 * rng.standard_normal(records)) * (1.0 + values / size)


def test_the_weighted_sum_of_contributions_is_unbiased_and_so_is_its_variance():
    """By enumeration over all sets that two records of different weights can publish."""
    mechanism = line(6, 2, 2)
    sets, channel = mechanism.channel()
    channel = channel / channel.sum(axis=1, keepdims=True)
    maps = (unbiased_map(mechanism, np.array([3.0, 2.0, 1.0, 1.0, 1.0, 2.0])),)
    values, weights = (1, 4), np.array([2.0, 7.0])
    truth, contrast = np.zeros(6), np.array([[0.0, 1.0, 2.0, 0.0, -1.0, 3.0]])
    np.add.at(truth, list(values), weights)
    mean, variance, found = np.zeros(6), 0.0, 0.0
    for left in range(len(sets)):
        for right in range(len(sets)):
            chance = channel[values[0], left] * channel[values[1], right]
            if chance > 0:
                table = unbiased_table(maps, (sets[[left, right]],), np.ones(2, dtype=np.int64), weights)
                mean += chance * table.values
                variance += chance * ((contrast @ (table.values - truth)) ** 2).item()
                # Without the floor at zero, which no single table obeys on average.
                second = (contrast @ table.second @ contrast.T).item()
                found += chance * (second - (contrast**2 @ table.sampled.squares).item())
    assert mean == pytest.approx(truth, abs=1e-9)
    assert found == pytest.approx(variance, rel=1e-9)


def test_the_variance_about_a_population_is_that_of_draws_with_replacement():
    """Of true values without any decoys, the textbook's sums."""
    rng = np.random.default_rng(4)
    values, weights = rng.integers(0, 3, 400), np.exp(rng.standard_normal(400))
    added = np.eye(3)[values]
    table = Unbiased(
        weights @ added,
        (added * weights[:, None] ** 2).T @ added,
        sampled=Sampled(weights**2 @ added, 400.0),
    )
    contrast = np.array([1.0, -2.0, 0.5])
    each = weights * (added @ contrast)
    expected = ((each - each.mean()) ** 2).sum()
    assert table.variance(contrast[None], "super", 1.0)[0] == pytest.approx(expected)
    assert table.variance(contrast[None], "finite", 1.0)[0] == pytest.approx(0.0, abs=1e-9)
    mean = each.sum() / weights.sum()
    given = replace(table, sampled=replace(table.sampled, given=True))
    residuals = weights * (added @ contrast - mean)
    assert given.variance(contrast[None], "super", 1.0)[0] == pytest.approx((residuals**2).sum())


@pytest.mark.parametrize("population", ["finite", "super"])
def test_equal_weights_give_the_ordinary_table_times_the_weight(population):
    values, _ = people(9, 600, 1)
    cell = np.arange(600) % 2
    mechanism = line(9, 2, 2)
    heavy = drawn(mechanism, values, np.full(600, 12.5), 2, cell, 2)
    options = {"by_cells": {"group": [0, 1]}, "population": population}
    light = estimate_table(replace(heavy, weights=None), [mechanism], ["x"], [range(9)], **options)
    table = estimate_table(heavy, [mechanism], ["x"], [range(9)], **options)
    assert table.estimator == light.estimator
    assert table.records == light.records == 600
    for ours, theirs in ((table, light), (table.margin(by=[]), light.margin(by=[]))):
        for name in ("values", "stderr", "low", "high", "totals"):
            assert getattr(ours, name) == pytest.approx(12.5 * getattr(theirs, name), rel=1e-12, abs=1e-9), name
    assert table.mean().value == pytest.approx(light.mean().value)
    assert table.mean().high == pytest.approx(light.mean().high)
    assert table.proportions().low == pytest.approx(light.proportions().low)
    assert table.top(3).low == pytest.approx([12.5 * low for low in light.top(3).low])


def test_almost_equal_weights_give_almost_the_unbiased_table():
    """The way for different weights agrees with counting where weights hardly differ."""
    values, _ = people(8, 4_000, 3)
    mechanism = plain(8, 3)
    nearly = np.where(np.arange(4_000) % 2, 1.0, 1.0 + 1e-9)
    table = estimate_table(drawn(mechanism, values, nearly, 5), [mechanism], ["x"], [range(8)])
    light = estimate_table(drawn(mechanism, values, None, 5), [mechanism], ["x"], [range(8)], estimator="ml")
    assert table.estimator == "weighted"
    assert np.abs(table.values - light.values).max() < 0.5 * light.stderr.max()
    assert table.stderr == pytest.approx(light.stderr, rel=0.2)


def test_the_order_and_the_grouping_of_rows_do_not_matter():
    values, weights = people(8, 500, 6)
    mechanism, weights = line(8, 2, 2), np.round(weights)
    reports = drawn(mechanism, values, weights, 7)
    shuffled = np.random.default_rng(8).permutation(500)
    other = replace(reports, sets=(reports.sets[0][shuffled],), weights=weights[shuffled])
    one, two = (estimate_table(merged(each, each.cell, 1), [mechanism], ["x"], [range(8)]) for each in (reports, other))
    assert one.values == pytest.approx(two.values)
    assert one.low == pytest.approx(two.low)
    assert one.values.sum() == pytest.approx(weights.sum())
    assert one.records == 500


def test_records_that_weigh_nothing_say_nothing_about_sums():
    values, weights = people(6, 900, 9)
    weights[300:] = 0.0
    mechanism = line(6, 2, 2)
    table = estimate_table(drawn(mechanism, values, weights, 10), [mechanism], ["x"], [range(6)])
    truth = np.bincount(values[:300], weights[:300], minlength=6)
    assert table.values.sum() == pytest.approx(weights.sum())
    assert (np.abs(table.values[0] - truth) < 4 * table.stderr[0] + 1e-9).all()


def test_two_attributes_at_once():
    rng = np.random.default_rng(11)
    left, right = line(6, 2, 2), plain(4, 2)
    values, weights = rng.integers(0, 6, 3_000), np.exp(0.5 * rng.standard_normal(3_000))
    second = (values + rng.integers(0, 2, 3_000)) % 4
    a, b = drawn(left, values, weights, 12), drawn(right, second, weights, 13)
    both = replace(a, sets=(a.sets[0], b.sets[0]))
    table = estimate_table(both, [left, right], ["x", "y"], [range(6), range(4)])
    truth = np.zeros((6, 4))
    np.add.at(truth, (values, second), weights)
    inside = (table.low[0] <= truth) & (truth <= table.high[0])
    assert inside.mean() > 0.85
    assert table.margin(of=["x"]).values.sum() == pytest.approx(weights.sum())


def test_what_cannot_be_weighted_is_refused():
    values, weights = people(8, 200, 14)
    mechanism = line(8, 2, 2)
    reports = drawn(mechanism, values, weights, 15)
    for name in ("ml", "shrink", "smooth", "bayes", "simple", "paper", "existing", "valueadding"):
        with pytest.raises(QuestionError, match="knows no weights"):
            estimate_table(reports, [mechanism], ["x"], [range(8)], estimator=name)
    table = estimate_table(reports, [mechanism], ["x"], [range(8)], estimator="inverse")
    assert table.values.sum() == pytest.approx(weights.sum())
    long = replace(reports, sets=(reports.sets[0][:, :1],), paired=False)
    with pytest.raises(QuestionError, match="long form"):
        estimate_table(long, [mechanism], ["x"], [range(8)])
    with pytest.raises(QuestionError, match="same traces"):
        estimate_table(drawn(plain(3, 3), values % 3, weights, 16), [plain(3, 3)], ["x"], [range(3)])
    with pytest.raises(QuestionError, match="is not tested"):
        replace(table, weight="w").independence()


@pytest.mark.parametrize(
    "scene",
    [
        WeightedScene("smooth", "line (3,3)", 300, 0.8),
        pytest.param(WeightedScene("steep", "line (2,2)", 300, 0.6, 1.5, "super"), marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_intervals_hold_the_truth(scene):
    found = weighted_coverage(scene, 40, 20).questions
    assert 0.92 <= found["cells"] <= 0.99
    assert 0.91 <= found["margin"] <= 0.995
    assert 0.92 <= np.mean([found[name] for name in QUESTIONS]) <= 0.99


@pytest.mark.slow
@pytest.mark.parametrize("population", ["finite", "super"])
@pytest.mark.parametrize("records", [300, 5_000])
@pytest.mark.parametrize(
    ("truth", "design"),
    [
        ("smooth", "line (3,3)"),
        ("steep", "line (2,2)"),
        ("bimodal", "line (2,6)"),
        ("smooth", "line (3,2), p 0.7"),
        ("steep", "epsilon 3"),
    ],
)
def test_intervals_hold_the_truth_for_all_kinds_of_weights(truth, design, records, population):
    """Of nearly equal weights, skewed ones and those that lean on the value, together and one by one."""
    kinds = [(0.3, 0.0), (0.8, 0.0), (0.6, 1.5)]
    scenes = [WeightedScene(truth, design, records, spread, lean, population) for spread, lean in kinds]
    found = [weighted_coverage(scene, 120, 21).questions for scene in scenes]
    for name in QUESTIONS:
        each = [one[name] for one in found]
        assert 0.92 <= np.mean(each) <= 0.99, (name, each)
        # A mean is asked 240 times in one scene, so that chance alone moves it by 1.4%.
        assert min(each) >= 0.90, (name, each)
