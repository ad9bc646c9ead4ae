import numpy as np
import pytest
from draws import replications
from listed_designs import line, plain, report, tabulate

from polyseme.inference.intervals.intervals import intervals
from polyseme.inference.sets.linear import Inverse
from polyseme.inference.sets.maximum import MaximumLikelihood, Shrink
from polyseme.inference.sets.registry import choose


def sparse_pair(seed, n=400):
    """Two independent attributes, many cells, few records."""
    mechanisms = [line(10, 3, 2), plain(8, 3)]
    rng = np.random.default_rng(seed)
    left = np.clip(rng.normal(4, 2, n).round(), 0, 9).astype(int)
    right = rng.choice(8, n, p=np.array([8, 7, 6, 5, 4, 3, 2, 1]) / 36)
    codes = np.stack([left, right], axis=1)
    return mechanisms, codes, rng


def test_shrinking_wins_where_cells_are_many_and_records_few():
    ratios = []
    for seed in replications(5):
        mechanisms, codes, rng = sparse_pair(seed)
        reports, truth = report(codes, mechanisms, rng), tabulate(codes, mechanisms)
        errors = [
            ((estimator.fit(reports, mechanisms).values - truth) ** 2).sum()
            for estimator in (Shrink(), MaximumLikelihood())
        ]
        ratios.append(errors[0] / errors[1])
    assert np.mean(ratios) < 0.5


def test_strength_zero_is_maximum_likelihood():
    mechanisms, codes, rng = sparse_pair(0)
    reports = report(codes, mechanisms, rng)
    shrunk, plain_fit = Shrink(0.0).fit(reports, mechanisms), MaximumLikelihood().fit(reports, mechanisms)
    np.testing.assert_allclose(shrunk.values, plain_fit.values, atol=1e-2)


def test_a_great_strength_gives_the_product_of_margins():
    mechanisms, codes, rng = sparse_pair(0)
    values = Shrink(1e7).fit(report(codes, mechanisms, rng), mechanisms).expected[0]
    product = np.outer(values.sum(axis=1), values.sum(axis=0)) / values.sum()
    np.testing.assert_allclose(values, product, atol=0.5)


def test_strong_dependence_with_many_records_chooses_maximum_likelihood():
    mechanisms = [plain(3, 2), plain(3, 2)]
    rng = np.random.default_rng(0)
    same = rng.choice(3, 50_000)
    codes = np.stack([same, same], axis=1)
    name, fit = choose(report(codes, mechanisms, rng), mechanisms)
    assert name == "ml"
    assert any("ml was chosen" in note for note in fit.notes)


def test_few_records_choose_shrinking_and_say_so():
    mechanisms, codes, rng = sparse_pair(2)
    name, fit = choose(report(codes, mechanisms, rng), mechanisms)
    assert name == "shrink"
    assert any("shrunk toward" in note for note in fit.notes)


def test_the_choice_is_repeatable():
    mechanisms, codes, rng = sparse_pair(3)
    reports = report(codes, mechanisms, rng)
    first, second = choose(reports, mechanisms), choose(reports, mechanisms)
    assert first[0] == second[0]
    np.testing.assert_array_equal(first[1].values, second[1].values)


def test_limits_hold_the_shrunken_value_and_those_of_maximum_likelihood():
    mechanisms, codes, rng = sparse_pair(1)
    reports = report(codes, mechanisms, rng)
    shrunk, best = Shrink().fit(reports, mechanisms), MaximumLikelihood().fit(reports, mechanisms)
    low, high = shrunk.limits.cells(0.95, "finite")
    inner_low, inner_high = best.limits.cells(0.95, "finite")
    assert (low <= np.minimum(shrunk.values, inner_low) + 1e-9).all()
    assert (high >= np.maximum(shrunk.values, inner_high) - 1e-9).all()
    assert ((low <= tabulate(codes, mechanisms)) & (tabulate(codes, mechanisms) <= high)).mean() > 0.93
    honest_low, honest_high = intervals(Inverse().fit(reports, mechanisms))
    assert (high - low).mean() <= 1.3 * (honest_high - honest_low).mean()


@pytest.mark.parametrize("cells", [1, 3])
def test_one_attribute_shrinks_toward_neighbors_or_all_groups(cells):
    mechanism = line(12, 3, 2)
    errors = np.zeros(2)
    for seed in replications(8):
        rng = np.random.default_rng(seed)
        codes = np.clip(rng.normal(5, 2.5, 300).round(), 0, 11).astype(int)
        cell = rng.integers(0, cells, 300)
        reports, truth = report(codes, [mechanism], rng, cell, cells), tabulate(codes, [mechanism], cell, cells)
        fits = [estimator.fit(reports, [mechanism]) for estimator in (Shrink(), MaximumLikelihood())]
        errors += [((fit.values - truth) ** 2).sum() for fit in fits]
    assert errors[0] < errors[1]


def test_the_people_in_the_table_are_what_their_reports_say_with_the_fit_as_prior():
    mechanism, strength, rng = plain(5, 2, 0.8), 40.0, np.random.default_rng(1)
    reports = report(rng.choice(5, 60), [mechanism], rng)
    fit = Shrink(strength).fit(reports, [mechanism])
    shares = fit.expected[0] / 60
    inside, outside = mechanism.weights(reports.sets[0])
    channel = np.repeat(outside[:, None], 5, axis=1)
    np.put_along_axis(channel, reports.sets[0], inside, axis=1)
    posterior = channel * shares / (channel @ shares)[:, None]
    np.testing.assert_allclose(fit.values[0], reports.counts @ posterior, atol=1e-4)
    assert fit.values.sum() == pytest.approx(60)


def test_a_report_that_leaves_no_doubt_is_not_shrunk():
    mechanism, rng = plain(3, 1), np.random.default_rng(0)
    reports = report(np.repeat([0, 1, 2], [50, 5, 1]), [mechanism], rng)
    np.testing.assert_allclose(Shrink(1000.0).fit(reports, [mechanism]).values[0], [50, 5, 1], atol=1e-6)


@pytest.mark.parametrize(("alike", "gain"), [(True, 0.65), (False, 0.85)])
def test_many_small_groups_learn_from_one_another(alike, gain):
    mechanism, rng = plain(6, 2), np.random.default_rng(7)
    base = np.array([0.3, 0.25, 0.2, 0.15, 0.07, 0.03])
    weights = np.tile(base, (100, 1)) if alike else rng.dirichlet(4.0 * base, 100)
    cell = np.repeat(np.arange(100), np.maximum(rng.poisson(8, 100), 1))
    codes = np.array([rng.choice(6, p=weights[group]) for group in cell])
    reports = report(codes, [mechanism], rng, cell, 100)
    truth = np.zeros((100, 6))
    np.add.at(truth, (cell, codes), 1)
    name, fit = choose(reports, [mechanism])
    assert name == "shrink"
    error = np.linalg.norm(fit.values - truth)
    assert error < gain * np.linalg.norm(MaximumLikelihood().fit(reports, [mechanism]).values - truth)
