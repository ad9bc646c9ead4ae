"""Smooth tables: their functions, the search, what they gain, and when they are chosen."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from draws import replications
from listed_designs import line, plain, report, tabulate
from scipy.optimize import minimize
from scipy.stats import t as student

import polyseme
from polyseme.inference.intervals.intervals import intervals
from polyseme.inference.likelihood import CellLikelihoods, likelihood_of
from polyseme.inference.sets import loglinear as effects_module
from polyseme.inference.sets.estimate import estimate_table
from polyseme.inference.sets.loglinear import contrast, functions, make_effects, terms
from polyseme.inference.sets.maximum import MaximumLikelihood
from polyseme.inference.sets.registry import choose
from polyseme.inference.sets.smooth import Smooth, _cells_themselves, _effects, _Search, smoothed
from polyseme.kernel.errors import ImpossibleError, QuestionError
from polyseme.semantics.distances import CircleDistance, LineDistance

UNEVEN = np.array([0.0, 1.0, 1.5, 4.0, 9.0, 10.0, 30.0])


@pytest.mark.parametrize("places", [np.arange(12.0), UNEVEN, UNEVEN[::-1] * 1e6 - 5.0])
def test_slope_and_bends_are_straight_and_not(places):
    slope, bends = functions(len(places), LineDistance(places))
    assert abs(np.corrcoef(slope[:, 0], places)[0, 1]) == pytest.approx(1.0)
    straight = np.column_stack([np.ones(len(places)), places / np.abs(places).max()])
    np.testing.assert_allclose(bends.T @ straight, 0.0, atol=1e-8)
    assert (slope**2).mean() == pytest.approx(1.0)
    assert (bends**2).sum(axis=1).mean() == pytest.approx(1.0)
    variances = (bends**2).sum(axis=0)
    assert variances.max() > 3 * np.sort(variances)[-2]


def test_the_first_bends_are_those_of_a_smoothing_spline():
    """The posterior mean of evenly weighted data is the natural cubic spline that minimizes the penalized error."""
    x = np.linspace(0.0, 1.0, 30)
    data = np.sin(5 * x) + 0.1 * np.random.default_rng(0).normal(size=30)
    slope, bends = functions(30, LineDistance(x))
    near, far = np.minimum.outer(x, x), np.maximum.outer(x, x)
    kernel = near**2 * (3 * far - near) / 6
    line_ = np.column_stack([np.ones(30), x])
    off = np.eye(30) - line_ @ np.linalg.pinv(line_)
    scale = np.trace(off @ kernel @ off) / 30
    basis, sizes = np.hstack([np.ones((30, 1)), slope, bends]), np.r_[1e9, 1e9, np.full(bends.shape[1], 0.3)]
    ours = basis @ np.linalg.solve(basis.T @ basis + 0.1 * np.diag(1 / sizes), basis.T @ data)
    whole = 0.3 / scale * kernel + 1e6 * (line_ @ line_.T)
    np.testing.assert_allclose(ours, whole @ np.linalg.solve(whole + 0.1 * np.eye(30), data), atol=5e-3)


def test_waves_go_round():
    hours = CircleDistance(np.arange(24.0), 24.0)
    (waves,) = functions(24, hours)
    np.testing.assert_allclose(waves.sum(axis=0), 0.0, atol=1e-9)
    variances = np.sort((waves**2).sum(axis=0))[::-1]
    # Sine and cosine of each frequency are equally large, and fall with its fourth power (folded at 24 values).
    np.testing.assert_allclose(variances[0:8:2], variances[1:8:2], rtol=1e-9)
    np.testing.assert_allclose(variances[0:6:2] / variances[0], np.arange(1, 4.0) ** -4, rtol=0.01)
    turned = CircleDistance(np.roll(np.arange(24.0), 7), 24.0)
    (again,) = functions(24, turned)
    np.testing.assert_allclose(again @ again.T, np.roll(waves @ waves.T, (7, 7), axis=(0, 1)), atol=1e-9)


def test_few_values_have_few_functions():
    assert [group.shape for group in functions(2, LineDistance.ranks(2))] == [(2, 1)]
    assert [group.shape for group in functions(3, LineDistance.ranks(3))] == [(3, 1), (3, 1)]
    assert [group.shape for group in functions(4, None)] == [(4, 3)]


def test_terms_of_unordered_attributes_describe_every_table_once():
    found = terms((3, 4), (None, None))
    assert [(order, columns.shape[1]) for order, columns in found] == [(1, 3), (1, 2), (2, 6)]
    columns = np.hstack([columns for _, columns in found])
    assert np.linalg.matrix_rank(np.hstack([columns, np.ones((12, 1))])) == 12


def written_out(effects):
    """Every weight as a function of groups and values: (groups, values, weights)."""
    return np.array([effects.logs(weight) for weight in np.eye(len(effects.term))]).transpose(1, 2, 0)


def test_groups_may_differ_in_every_way():
    effects = make_effects((3, 4), (None, None), 2, [contrast(np.arange(2), 2)])
    columns = written_out(effects).reshape(24, -1)
    assert columns.shape == (24, 22)  # all but the totals of the two groups
    assert np.linalg.matrix_rank(np.hstack([columns, np.kron(np.eye(2), np.ones((12, 1)))])) == 24


def test_helping_columns_may_differ_in_main_effects_only():
    kinds = np.array([0, 1, 2, 0, 1, 2])
    effects = make_effects((3, 4), (None, None), 6, [contrast(kinds, 1)])
    assert len(effects.term) == 11 + 2 * 5
    assert np.bincount(effects.term).tolist() == [3, 2, 6, 6, 4]
    assert contrast(np.zeros(6, dtype=int), 1) is None
    logs = effects.logs(np.random.default_rng(0).normal(size=21)).reshape(6, 3, 4)
    np.testing.assert_allclose(logs[:3], logs[3:])
    apart = logs[0] - logs[1]  # the sum of a function of the rows and one of the columns
    np.testing.assert_allclose(apart - apart[:1] - apart[:, :1] + apart[0, 0], 0.0, atol=1e-12)


def test_derivatives_by_the_weights_are_those_of_the_functions_written_out(monkeypatch):
    rng = np.random.default_rng(1)
    effects = make_effects((5, 3), (LineDistance.ranks(5), None), 4, [contrast(np.array([0, 0, 1, 2]), 1)])
    whole = written_out(effects)
    slopes = rng.normal(size=(4, 15))
    np.testing.assert_allclose(effects.slope(slopes), np.einsum("cvw,cv->w", whole, slopes), atol=1e-12)
    squares = rng.normal(size=(4, 15, 15))
    squares += squares.transpose(0, 2, 1)
    expected = sum(whole[group].T @ squares[group] @ whole[group] for group in (1, 2, 3))
    for at_once in (8_000_000, 1):
        monkeypatch.setattr(effects_module, "_AT_ONCE", at_once)
        found = effects.curvature((group, squares[group]) for group in (1, 2, 3))
        np.testing.assert_allclose(found, expected, atol=1e-10)
    np.testing.assert_allclose(effects.moving(2), whole[2], atol=1e-12)


def test_an_attribute_of_one_value_has_no_effect():
    ((order, columns),) = terms((1, 3), (LineDistance.ranks(1), None))
    assert (order, columns.shape) == (1, (3, 2))


@pytest.mark.parametrize("groups", [1, 2])
def test_a_table_in_which_nothing_can_vary(groups, capfd):
    mechanism = plain(1, 1)
    reports = replace(report(np.zeros((9, 1), dtype=int), [mechanism], np.random.default_rng(0), cells=groups))
    reports = replace(reports, distances=(LineDistance.ranks(1),))
    assert Smooth().fit(reports, [mechanism]).values.sum() == 9
    assert smoothed(CellLikelihoods(reports, [mechanism])) is None
    assert capfd.readouterr() == ("", "")


# -- the search ------------------------------------------------------------------------------------------------------


def ordered_pair(seed, n, dependent=True, size=12, others=5):
    """An ordered and an unordered attribute; when dependent, each value of the second has its own middle."""
    mechanisms = [line(size, 3 if size > 9 else 2, 2), plain(others, 2)]
    rng = np.random.default_rng(seed)
    right = rng.choice(others, n, p=np.arange(others, 0.0, -1) / np.arange(1, others + 1).sum())
    middle = 0.3 * size + 0.1 * size * (right if dependent else np.ones(n))
    left = np.clip(rng.normal(middle, 0.2 * size).round(), 0, size - 1).astype(int)
    codes = np.stack([left, right], axis=1)
    reports = replace(report(codes, mechanisms, rng), distances=(LineDistance.ranks(size), None))
    return mechanisms, codes, reports


def search_of(reports, mechanisms):
    likelihoods = [likelihood_of(sets, counts, mechanisms) for _, sets, counts in reports.by_cell()]
    return _Search(
        likelihoods, _effects(reports, mechanisms, _cells_themselves(reports)), np.arange(reports.cells), reports.cells
    )


def test_the_weights_are_those_of_greatest_density():
    mechanisms, _, reports = ordered_pair(0, 500, size=7, others=3)
    search = search_of(reports, mechanisms)
    sizes = np.linspace(0.05, 0.6, search.term.max() + 1)
    point, _, _ = search.settle(search.at(np.zeros(len(search.term))), sizes)
    other = minimize(lambda w: -search.density(search.at(w), sizes), point.weights + 0.05, method="BFGS")
    assert search.density(point, sizes) >= -other.fun - 1e-4
    np.testing.assert_allclose(search.at(other.x).x, point.x, atol=2e-3)


def test_new_sizes_make_the_reports_more_likely():
    mechanisms, _, reports = ordered_pair(1, 800)
    search = search_of(reports, mechanisms)
    sizes = np.full(search.term.max() + 1, 0.1)
    _, information, pull = search.settle(search.at(np.zeros(len(search.term))), sizes)

    def evidence(sizes):
        """Of the pseudo-data that the normal approximation stands for, in the plain form of a normal density."""
        root = np.linalg.cholesky(information + 1e-9 * np.eye(len(information)))
        data = np.linalg.solve(root, pull)
        covariance = np.eye(len(data)) + root.T @ np.diag(sizes[search.term]) @ root
        return -0.5 * data @ np.linalg.solve(covariance, data) - 0.5 * np.linalg.slogdet(covariance)[1]

    found, gained = search.resize(sizes, information, pull)
    assert evidence(found) - evidence(sizes) == pytest.approx(gained, abs=1e-3)
    assert gained > 1.0
    for place in range(len(sizes)):
        for factor in (0.7, 1.4):
            if 1e-4 < found[place] < 50.0:
                other = found.copy()
                other[place] *= factor
                assert evidence(other) <= evidence(found) + 1e-3


def test_leaving_out_agrees_with_fits_that_do_leave_out():
    mechanisms, _, reports = ordered_pair(2, 400, size=6, others=3)
    found = smoothed(CellLikelihoods(reports, mechanisms))
    rows = np.random.default_rng(0).permutation(len(reports.counts))[:60]
    optimism = []
    for row in rows:
        counts = reports.counts.copy()
        counts[row] -= 1
        without = smoothed(CellLikelihoods(replace(reports, counts=counts), mechanisms))
        single = likelihood_of([sets[[row]] for sets in reports.sets], np.ones(1, dtype=int), mechanisms)
        optimism.append(single.value(found.expected.ravel()) - single.value(without.expected.ravel()))
    everyone = np.average(optimism, weights=reports.counts[rows]) * reports.counts.sum()
    assert found.used == pytest.approx(everyone, rel=0.3)


# -- what it gains ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [300, 3000, 30_000])
def test_ordered_attributes_are_estimated_much_better(n):
    ratios = []
    for seed in replications(4):
        mechanisms, codes, reports = ordered_pair(seed, n)
        truth = tabulate(codes, mechanisms)
        errors = [((e.fit(reports, mechanisms).values - truth) ** 2).sum() for e in (Smooth(), MaximumLikelihood())]
        ratios.append(errors[0] / errors[1])
    assert np.mean(ratios) < 0.6


def test_a_rough_table_with_many_records_is_not_smoothed_away():
    mechanisms = [line(8, 2, 2), plain(4, 2)]
    rng = np.random.default_rng(5)
    cells = rng.gamma(0.7, size=32)
    codes = np.stack(np.unravel_index(rng.choice(32, 200_000, p=cells / cells.sum()), (8, 4)), axis=1)
    reports = replace(report(codes, mechanisms, rng), distances=(LineDistance.ranks(8), None))
    truth = tabulate(codes, mechanisms)
    errors = [((e.fit(reports, mechanisms).values - truth) ** 2).sum() for e in (Smooth(), MaximumLikelihood())]
    assert errors[0] < 1.25 * errors[1]


def test_what_the_reports_do_not_show_costs_nothing():
    used = {}
    for dependent in (False, True):
        mechanisms, _, reports = ordered_pair(3, 20_000, dependent)
        used[dependent] = smoothed(CellLikelihoods(reports, mechanisms)).used
    assert used[False] < 14
    assert used[True] > used[False] + 5


def test_the_names_of_values_do_not_matter():
    mechanisms = [plain(7, 2), plain(4, 2)]
    rng = np.random.default_rng(6)
    codes = np.stack([rng.binomial(6, 0.4, 2000), rng.integers(0, 4, 2000)], axis=1)
    turn = rng.permutation(7)
    first = replace(report(codes, mechanisms, np.random.default_rng(1)), distances=(LineDistance(UNEVEN), None))
    sets = (np.sort(turn[first.sets[0]], axis=1), first.sets[1])
    places = np.empty(7)
    places[turn] = UNEVEN
    second = replace(first, sets=sets, distances=(LineDistance(places), None))
    one, two = smoothed(CellLikelihoods(first, mechanisms)), smoothed(CellLikelihoods(second, mechanisms))
    np.testing.assert_allclose(one.people, two.people[:, turn], atol=0.2)


def test_groups_borrow_from_each_other_and_an_empty_one_stays_empty():
    mechanisms = [line(10, 3, 2)]
    rng = np.random.default_rng(7)
    cell = rng.choice(3, 600, p=[0.9, 0.1, 0.0])
    codes = np.clip(rng.normal(4, 2, 600).round(), 0, 9).astype(int)[:, None]
    reports = replace(report(codes, mechanisms, rng, cell, 3), distances=(LineDistance.ranks(10),))
    truth = tabulate(codes, mechanisms, cell, 3)
    fit, plain_fit = (estimator.fit(reports, mechanisms) for estimator in (Smooth(), MaximumLikelihood()))
    assert not fit.values[2].any()
    np.testing.assert_allclose(fit.values.sum(axis=1), np.bincount(cell, minlength=3), rtol=1e-9)
    assert ((fit.values[1] - truth[1]) ** 2).sum() < 0.5 * ((plain_fit.values[1] - truth[1]) ** 2).sum()


def test_a_table_of_one_cell():
    mechanisms = [plain(1, 1), plain(1, 1)]
    reports = replace(
        report(np.zeros((7, 2), dtype=int), mechanisms, np.random.default_rng(0)),
        distances=(LineDistance.ranks(1), None),
    )
    assert Smooth().fit(reports, mechanisms).values.ravel() == pytest.approx([7.0])


def test_hours_of_the_day_are_estimated_better_too():
    mechanisms = [plain(24, 3)]
    hours, ratios = CircleDistance(np.arange(24.0), 24.0), []
    for seed in replications(5):
        rng = np.random.default_rng(seed)
        codes = (rng.normal(23, 4, 600).round() % 24).astype(int)[:, None]
        reports = replace(report(codes, mechanisms, rng), distances=(hours,))
        truth = tabulate(codes, mechanisms)
        errors = [((e.fit(reports, mechanisms).values - truth) ** 2).sum() for e in (Smooth(), MaximumLikelihood())]
        ratios.append(errors[0] / errors[1])
    assert np.mean(ratios) < 0.5


def test_limits_are_those_of_maximum_likelihood_and_hold_the_value():
    mechanisms, _, reports = ordered_pair(4, 1000)
    fit, best = Smooth().fit(reports, mechanisms), MaximumLikelihood().fit(reports, mechanisms)
    for population in ("finite", "super"):
        low, high = fit.limits.cells(0.95, population)
        inner = best.limits.cells(0.95, population)
        values = fit.about(population).values
        assert (low <= np.minimum(values, inner[0]) + 1e-9).all()
        assert (high >= np.maximum(values, inner[1]) - 1e-9).all()


def test_variances_are_those_of_weights_drawn_at_random():
    mechanisms, _, reports = ordered_pair(6, 3000, size=7, others=3)
    search = search_of(reports, mechanisms)
    sizes = np.full(search.term.max() + 1, 0.2)
    point, information, pull = search.settle(search.at(np.zeros(len(search.term))), sizes)
    root = 1e-2 * search.solve(sizes, information, pull).root  # small, so that it is a matter of first order
    covariance = root.T @ root
    expected = np.linalg.inv(information + np.diag(1 / sizes[search.term]))
    np.testing.assert_allclose(covariance, 1e-4 * expected, atol=1e-12)
    drawn = np.random.default_rng(0).multivariate_normal(point.weights, covariance, size=4000, method="eigh")
    tables = 3000 * np.array([search.at(weights).x[0] for weights in drawn])
    np.testing.assert_allclose(search.variances(point, root)[0], tables.var(axis=0), rtol=0.12)


@pytest.mark.parametrize("population", ["finite", "super"])
def test_errors_and_limits_are_those_of_maximum_likelihood(population):
    """To the last digit, but for a value outside: a limit that is moved to hold it lies 5% of the length beyond it."""
    mechanisms, _, reports = ordered_pair(7, 300)
    fit, best = Smooth().fit(reports, mechanisms), MaximumLikelihood().fit(reports, mechanisms)
    np.testing.assert_allclose(fit.variance, best.variance)
    values, (left, right) = fit.about(population).values, intervals(best, 0.95, population)
    low, high = intervals(fit.about(population), 0.95, population)
    room = 0.05 * (right - left)
    # No limit lies beyond what is possible, whatever room there should be.
    below, above = (
        values < np.where(left > 0.0, left + room, 0.0),
        values > np.where(right < 300.0, right - room, 300.0),
    )
    assert (below.sum(), (values < left).sum(), (values > right).sum()) == (1, 1, 0)
    np.testing.assert_allclose(low[~below], left[~below])
    np.testing.assert_allclose(high[~above], right[~above])
    np.testing.assert_allclose(low[below], (values - room)[below])
    np.testing.assert_allclose(high[above], (values + room)[above])
    # No standard error is larger than half of its interval.
    table = estimate_table(reports, mechanisms, ["a", "b"], [range(m.size) for m in mechanisms], estimator="smooth")
    assert (table.stderr <= (table.high - table.low) / 2 + 1e-9).all()


def unbiased_limits(table, reports, population):
    """Value, standard error and reach of each cell, written out from what each report of each half adds to it."""
    shape, n = table.values.shape[1:], float(reports.counts.sum())
    value, second, assumed = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    (halves,) = table._unbiased.halves
    assert sum(half.counts for half in halves).tolist() == reports.counts.tolist()
    for half in halves:
        left, right = (axis.contributions(sets) for axis, sets in zip(half.maps, reports.sets))
        for count, row, column in zip(half.counts, left, right):
            added = np.outer(row, column)
            value += count * added
            second += count * added**2
        squares, shares = [], [axis.working for axis in half.maps]
        for axis, share in zip(half.maps, shares):
            sets, channel = axis.mechanism.channel()
            squares.append((share @ channel) @ axis.contributions(sets) ** 2)
        assumed += half.counts.sum() * (np.outer(*squares) - np.outer(*shares))
    variance = second - value + (value - value**2 / n if population == "super" else 0.0)
    error = np.sqrt(np.maximum(variance, 0.0) + 20.0 / (20.0 + n) * assumed)
    return value, error, student.ppf(0.975, n) * error


@pytest.mark.parametrize("population", ["finite", "super"])
def test_cells_away_from_zero_have_the_limits_of_their_unbiased_estimates(population):
    """Those of `smooth` and of `ml` are the same, each widened where needed to hold its own value."""
    mechanisms, _, reports = ordered_pair(7, 1_500, size=7, others=3)
    labels, inside = [range(m.size) for m in mechanisms], {}
    reported = np.zeros((7, 3))
    for left, right, count in zip(*reports.sets, reports.counts):
        reported[np.ix_(left, right)] += count
    tables = {
        name: estimate_table(reports, mechanisms, ["a", "b"], labels, estimator=name, population=population)
        for name in ("smooth", "ml")
    }
    for name, table in tables.items():
        value, error, reach = unbiased_limits(table, reports, population)
        shown, low, high = table.values[0], table.low[0], table.high[0]
        inside[name] = (error >= 2.0) & (shown >= 3.0 * error)
        assert 3 <= inside[name].sum() <= 18
        room = 0.1 * reach
        below, above = np.minimum(value - reach, shown - room), np.maximum(value + reach, shown + room)
        if population == "finite":
            above = np.minimum(above, np.maximum(reported, shown))
        np.testing.assert_allclose(low[inside[name]], np.maximum(below, 0.0)[inside[name]], rtol=1e-6)
        np.testing.assert_allclose(high[inside[name]], above[inside[name]], rtol=1e-6)
        np.testing.assert_allclose(table.stderr[0][inside[name]], error[inside[name]], rtol=1e-6)
        assert ((low <= shown) & (shown <= high)).all()
    # Elsewhere they are those of the fits.
    fit, best = Smooth().fit(reports, mechanisms).about(population), MaximumLikelihood().fit(reports, mechanisms)
    for name, found in (("smooth", fit), ("ml", best)):
        left, right = intervals(found, 0.95, population)
        np.testing.assert_allclose(tables[name].low[0][~inside[name]], left[0][~inside[name]], rtol=1e-6, atol=1e-9)
        if population == "finite":
            np.testing.assert_allclose(tables[name].high[0][~inside[name]], right[0][~inside[name]], rtol=1e-6)
        else:
            assert (tables[name].high[0] >= right[0] - 1e-9)[~inside[name]].all()


def test_distances_that_do_not_fit_are_refused():
    mechanisms, _, reports = ordered_pair(0, 50)
    for wrong in ((LineDistance.ranks(12),), (LineDistance.ranks(11), None)):
        with pytest.raises(QuestionError, match="distances"):
            Smooth().fit(replace(reports, distances=wrong), mechanisms)


def test_too_large_a_table_is_refused_with_a_way_out():
    mechanisms = [plain(40, 2), plain(40, 2)]
    codes = np.zeros((5, 2), dtype=int)
    with pytest.raises(ImpossibleError, match=r"(?s)1,600 cells.*shrink"):
        Smooth().fit(report(codes, mechanisms, np.random.default_rng(0)), mechanisms)


# -- when it is chosen -----------------------------------------------------------------------------------------------


def test_it_is_chosen_where_values_stand_on_a_line():
    mechanisms, _, reports = ordered_pair(5, 3000)
    name, fit = choose(reports, mechanisms)
    assert name == "smooth"
    assert any("smoothed along" in note for note in fit.notes)
    assert choose(replace(reports, distances=None), mechanisms)[0] != "smooth"
    assert choose(replace(reports, distances=(None, None)), mechanisms)[0] != "smooth"


def test_it_is_not_chosen_for_a_rough_table():
    mechanisms = [line(8, 2, 2), plain(4, 2)]
    rng = np.random.default_rng(8)
    cells = np.where(rng.random(32) < 0.3, 10.0, 0.1)
    codes = np.stack(np.unravel_index(rng.choice(32, 20_000, p=cells / cells.sum()), (8, 4)), axis=1)
    reports = replace(report(codes, mechanisms, rng), distances=(LineDistance.ranks(8), None))
    assert choose(reports, mechanisms)[0] != "smooth"


POLICY = """
attributes:
  age:
    role: sensitive-qid
    {age}
    protect: {{diversity: {{l: 3}}}}
  job:
    role: sensitive-qid
    domain: [a, b, c, d]
    protect: {{diversity: {{l: 2}}}}
"""


@pytest.mark.parametrize(
    ("age", "smooth"),
    [
        ("bins: [0, 10, 20, 30, 40, 50, 60, 70, 80, 90]", True),
        ("domain: [5, 15, 25, 35, 45, 55, 65, 75, 85]\n    distance: {line: value}", True),
        ("domain: [5, 15, 25, 35, 45, 55, 65, 75, 85]", False),
    ],
)
def test_a_release_knows_which_attributes_are_ordered(tmp_path, age, smooth):
    rng = np.random.default_rng(9)
    job = rng.integers(0, 4, 4000)
    ages = np.clip(rng.normal(2 + job, 1.5).round(), 0, 8) * 10 + 5
    table = pl.DataFrame({"age": ages.astype(int), "job": np.array(list("abcd"))[job]})
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY.format(age=age), encoding="utf-8")
    release = polyseme.anonymize(table, policy, seed=1, warn=lambda text: None)
    answer = polyseme.estimate(release, of=["age", "job"])
    assert (answer.estimator == "smooth") is smooth
    assert polyseme.estimate(release, of=["age"], estimator="smooth").estimator == "smooth"
