"""Columns that help: which records they tell apart, what they gain, and when they are not used."""

from dataclasses import replace

import numpy as np
import pytest
from draws import replications
from listed_designs import plain, report, tabulate

from polyseme.inference.base import Fit
from polyseme.inference.counts import distinct
from polyseme.inference.likelihood import CellLikelihoods, likelihood_of
from polyseme.inference.sets.auxiliary import MOST_KINDS, Help, with_help
from polyseme.inference.sets.estimate import estimate_table
from polyseme.inference.sets.maximum import MaximumLikelihood
from polyseme.inference.sets.registry import _is_far, choose
from polyseme.inference.sets.smooth import PARTS, Smooth, Smoothed, _effects, _Search, smoothed
from polyseme.semantics.distances import LineDistance

MECHANISMS = [plain(8, 3), plain(6, 3)]


def world(rng, how, kinds=(3, 4), size=0.8):
    """Shares of (first column, second column, 8 values, 6 values)."""
    first, second = kinds
    logs = 0.7 * rng.normal(size=(8, 1)) + 0.7 * rng.normal(size=6) + 0.5 * rng.normal(size=(8, 6))
    logs = logs + 0.5 * rng.normal(size=(first, second, 1, 1))
    if how == "one by one":
        logs = logs + size * rng.normal(size=(first, 1, 8, 1)) + size * rng.normal(size=(1, second, 1, 6))
    if how == "together":
        sign = np.sign(rng.normal(size=(first, second, 1, 1)))
        logs = logs + sign * (rng.normal(size=(8, 1)) + rng.normal(size=6))
    shares = np.exp(logs)
    return shares / shares.sum()


def people(seed, how, records, kinds=(3, 4), **options):
    """Reports of people drawn from a world, told apart by both columns, and the true table."""
    rng = np.random.default_rng(seed)
    shares = world(rng, how, kinds, **options)
    first, second, *codes = np.unravel_index(rng.choice(shares.size, records, p=shares.ravel()), shares.shape)
    codes = np.column_stack(codes)
    cell = first * kinds[1] + second
    rows = report(codes, MECHANISMS, rng, cell, kinds[0] * kinds[1])
    helping = [Help("first", rows.cell // kinds[1]), Help("second", rows.cell % kinds[1])]
    rows = replace(rows, cell=np.zeros_like(rows.cell), cells=1)
    return rows, helping, tabulate(codes, MECHANISMS)


def loss(fit, truth):
    return float(((fit.values - truth) ** 2).sum())


# -- telling records apart -------------------------------------------------------------------------------------------


def test_the_parts_hold_the_same_reports():
    rows, helping, _ = people(0, "one by one", 3000)
    helped = with_help(rows, helping, MECHANISMS)
    assert helped.finer.names == ("first", "second")
    assert helped.counts.sum() == helped.finer.reports.counts.sum() == 3000
    for reports in (helped, helped.finer.reports):
        keys = np.column_stack([reports.cell, *reports.sets])
        assert len(np.unique(keys, axis=0)) == len(keys)
    merged = np.column_stack(helped.finer.reports.sets)
    everyone, place = distinct(merged, 8)
    np.testing.assert_array_equal(np.bincount(place, helped.finer.reports.counts), helped.counts)
    np.testing.assert_array_equal(everyone, np.column_stack(helped.sets))


def test_kinds_that_are_alike_become_one():
    """Twelve names for three kinds of people."""
    rng = np.random.default_rng(1)
    shares = world(rng, "one by one", (3, 1), size=1.5)[:, 0].reshape(3, -1)
    kind = rng.integers(0, 3, 20_000)
    drawn = np.array([rng.choice(48, p=shares[number] / shares[number].sum()) for number in kind])
    names = kind + 3 * rng.integers(0, 4, 20_000)
    rows = report(np.column_stack(np.unravel_index(drawn, (8, 6))), MECHANISMS, rng, names, 12)
    names = rows.cell
    helped = with_help(replace(rows, cell=np.zeros_like(names), cells=1), [Help("name", names)], MECHANISMS)
    assert helped.finer.groups.tolist() == [[0], [1], [2]]
    records = np.bincount(helped.finer.reports.cell, helped.finer.reports.counts)
    np.testing.assert_array_equal(np.sort(records), np.sort(np.bincount(kind)))


def test_columns_without_a_say_are_left_out():
    left = 0
    for seed in replications(40):
        rows, helping, _ = people(seed, "nothing", 2000, kinds=(20, 15))
        left += len(with_help(rows, helping, MECHANISMS).finer.idle)
    assert left >= 76  # of 80; one in a thousand should pass, a few times that with few records in a kind


def test_a_column_of_one_kind_is_idle():
    rows, helping, _ = people(0, "one by one", 500)
    helped = with_help(rows, [Help("same", np.zeros_like(helping[0].kinds)), helping[0]], MECHANISMS)
    assert helped.finer.idle == ("same",)
    assert helped.finer.names == ("first",)


def test_there_are_never_more_parts_than_there_is_room_for():
    rows, helping, _ = people(2, "one by one", 60_000, kinds=(20, 24), size=1.5)
    helped = with_help(rows, helping, MECHANISMS)
    assert 20 < len(helped.finer.whole) <= PARTS
    assert _effects(helped, MECHANISMS, helped.finer) is not None
    assert smoothed(CellLikelihoods(helped, MECHANISMS), helped.finer).people.sum() == pytest.approx(60_000)


def test_cells_keep_their_own_records():
    rng = np.random.default_rng(3)
    rows, helping, _ = people(3, "one by one", 4000)
    cell = rng.integers(0, 3, len(rows.counts))
    helped = with_help(replace(rows, cell=cell, cells=3), helping, MECHANISMS)
    records = np.bincount(cell, rows.counts, minlength=3)
    np.testing.assert_array_equal(
        np.bincount(helped.finer.whole[helped.finer.reports.cell], helped.finer.reports.counts), records
    )
    more = with_help(replace(rows, cell=cell, cells=5), helping, MECHANISMS)
    assert not Smooth().fit(more, MECHANISMS).values[3:].any()
    fit = Smooth().fit(helped, MECHANISMS)
    np.testing.assert_allclose(fit.values.sum(axis=(1, 2)), records, rtol=1e-9)
    np.testing.assert_allclose(fit.expected.sum(axis=(1, 2)), records, rtol=1e-9)


def test_the_order_of_rows_does_not_matter():
    rows, helping, _ = people(4, "one by one", 2000)
    turn = np.random.default_rng(0).permutation(len(rows.counts))
    turned = replace(rows, sets=tuple(sets[turn] for sets in rows.sets), counts=rows.counts[turn])
    one = choose(with_help(rows, helping, MECHANISMS), MECHANISMS)[1]
    two = choose(with_help(turned, [column.among(turn) for column in helping], MECHANISMS), MECHANISMS)[1]
    np.testing.assert_allclose(one.values, two.values, atol=1e-6)


def test_one_report_and_none():
    rows, helping, _ = people(0, "one by one", 1)
    assert choose(with_help(rows, helping, MECHANISMS), MECHANISMS)[1].values.sum() == pytest.approx(1.0)
    nobody = replace(rows, sets=tuple(sets[:0] for sets in rows.sets), cell=rows.cell[:0], counts=rows.counts[:0])
    none = with_help(nobody, [column.among(np.arange(0)) for column in helping], MECHANISMS)
    assert choose(none, MECHANISMS)[1].values.sum() == 0.0


# -- what they gain --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("records", "most"), [(3000, 0.9), (30_000, 0.75)])
def test_columns_make_the_table_more_exact(records, most):
    errors = []
    for seed in replications(4):
        rows, helping, truth = people(seed, "one by one", records)
        helped = with_help(rows, helping, MECHANISMS)
        errors.append(
            [loss(choose(reports, MECHANISMS)[1], truth) for reports in (helped, replace(helped, finer=None))]
        )
    with_columns, without = np.mean(errors, axis=0)
    assert with_columns < most * without


def test_a_copy_of_the_attribute_tells_nearly_all():
    """A column that says the first attribute leaves only the second in doubt."""
    rng = np.random.default_rng(5)
    codes = np.column_stack([rng.choice(8, 5000, p=np.arange(1, 9) / 36), rng.integers(0, 6, 5000)])
    rows = report(codes, MECHANISMS, rng, codes[:, 0], 8)
    copy = Help("copy", rows.cell)
    helped = with_help(replace(rows, cell=np.zeros_like(rows.cell), cells=1), [copy], MECHANISMS)
    truth = tabulate(codes, MECHANISMS)
    fit = Smooth().fit(helped, MECHANISMS)
    plain_fit = Smooth().fit(replace(helped, finer=None), MECHANISMS)
    margins = [((table.values - truth).sum(axis=2) ** 2).sum() for table in (fit, plain_fit)]
    assert margins[0] < 0.1 * margins[1]


def test_columns_that_say_nothing_do_no_harm():
    errors = []
    for seed in replications(8):
        rows, helping, truth = people(seed, "nothing", 2000)
        helped = with_help(rows, helping, MECHANISMS)
        errors.append(
            [loss(choose(reports, MECHANISMS)[1], truth) for reports in (helped, replace(helped, finer=None))]
        )
    with_columns, without = np.mean(errors, axis=0)
    assert with_columns < 1.05 * without


def test_where_columns_act_only_together_many_records_show_it():
    """The model lets them act one by one. With 300,000 records the table would be wrong by more than its noise."""
    rows, helping, truth = people(0, "together", 300_000)
    helped = with_help(rows, helping, MECHANISMS)
    forced = loss(Smooth().fit(helped, MECHANISMS), truth)
    _, fit = choose(helped, MECHANISMS)
    assert any("would lower the likelihood" in note for note in fit.notes)
    assert loss(fit, truth) < 0.5 * forced


# -- what is said of it ----------------------------------------------------------------------------------------------


def test_the_notes_name_the_columns():
    rows, helping, _ = people(0, "one by one", 5000)
    idle = Help("idle", np.zeros_like(helping[0].kinds))
    name, fit = choose(with_help(rows, [*helping, idle], MECHANISMS), MECHANISMS)
    assert name == "smooth"
    assert any(note.startswith("smoothed with the help of first, second:") for note in fit.notes)
    assert "without the help of idle: it adds too little" in fit.notes
    name, fit = choose(with_help(rows, [idle], MECHANISMS), MECHANISMS)
    assert "without the help of idle: it adds too little" in fit.notes
    assert not any("smoothed with" in note for note in fit.notes)


def test_a_table_too_large_says_so_and_is_estimated_without():
    mechanisms = [plain(40, 2), plain(40, 2)]
    rng = np.random.default_rng(0)
    rows = report(rng.integers(0, 40, (300, 2)), mechanisms, rng)
    helped = with_help(rows, [Help("first", np.arange(len(rows.counts)) % MOST_KINDS)], mechanisms)
    _, fit = choose(helped, mechanisms)
    assert "without the help of first: the table is too large for that" in fit.notes
    np.testing.assert_allclose(fit.values, choose(replace(helped, finer=None), mechanisms)[1].values)


def test_a_column_without_room_is_not_called_idle():
    """A copy of the attribute in 100 groups: the groups alone take nearly all the weights."""
    mechanism = plain(6, 2)
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 6, (4000, 1))
    group = rng.integers(0, 100, 4000)
    rows = report(codes, [mechanism], rng, group * 6 + codes[:, 0], 600)
    grouped = replace(rows, cell=rows.cell // 6, cells=100)
    helped = with_help(grouped, [Help("copy", rows.cell % 6)], [mechanism])
    assert helped.finer.concentrated == ("copy",)
    assert helped.finer.idle == ()
    _, fit = choose(helped, [mechanism])
    assert "without the help of copy: the table would become too large with it" in fit.notes


def test_many_columns_are_brought_down_to_the_room_there_is():
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 6, (30_000, 1))
    rows = report(codes, [plain(6, 2)], rng, np.arange(30_000), 30_000)
    person = rows.cell
    rows = replace(rows, cell=np.zeros_like(person), cells=1)
    own = [
        np.where(rng.random(30_000) < 0.3, codes[:, 0] * 3 + rng.integers(0, 3, 30_000), rng.integers(0, 18, 30_000))
        for _ in range(20)
    ]
    helped = with_help(rows, [Help(f"c{number}", column[person]) for number, column in enumerate(own)], [plain(6, 2)])
    assert len(helped.finer.whole) <= PARTS
    assert len(helped.finer.names) + len(helped.finer.concentrated) == 20
    assert helped.finer.reports.counts.sum() == 30_000


def test_the_distance_to_maximum_likelihood_is_judged_where_its_variance_is_known():
    shares = np.full((2, 1, 4), 0.25)
    table = np.array([[[25.0, 25.0, 25.0, 25.0]], [[1.0, 0.0, 0.0, 0.0]]])
    variance = np.array([[[100.0] * 4], [[np.nan] * 4]])
    helped = Smoothed(shares, table, np.full((2, 1, 4), 50.0), 0.0, 3.0, True)
    totals = np.array([100.0, 1.0])
    sides = np.array([[[1.0, -1.0, 1.0, -1.0]], [[0.0] * 4]])
    # With 11 records off: 4 x 121 = 484 against 2 x 4 (100 - 50 + 25 - 6.25 - 1.21) = 540; with 12: 576 against 538.
    assert not _is_far(helped, Fit(table + 11.0 * sides, variance), totals)
    assert _is_far(helped, Fit(table + 12.0 * sides, variance), totals)
    assert _is_far(helped, Fit(table, np.full((2, 1, 4), np.nan)), totals)


def test_limits_are_those_of_maximum_likelihood_and_hold_the_value():
    rows, helping, _ = people(6, "one by one", 2000)
    helped = with_help(rows, helping, MECHANISMS)
    fit, best = Smooth().fit(helped, MECHANISMS), MaximumLikelihood().fit(helped, MECHANISMS)
    for population in ("finite", "super"):
        low, high = fit.limits.cells(0.95, population)
        inner = best.limits.cells(0.95, population)
        values = fit.about(population).values
        np.testing.assert_allclose(low, np.minimum(values, inner[0]), atol=1e-9)
        np.testing.assert_allclose(high, np.maximum(values, inner[1]), atol=1e-9)
    assert (fit.variance >= best.variance).all()


# Of the records themselves "a column that helps" in test_coverage_of_questions.py tells, sooner.
@pytest.mark.slow
@pytest.mark.parametrize("population", ["finite", "super"])
def test_intervals_cover(population):
    inside, widths, honest = [], [], []
    for seed in replications(6 if population == "super" else 12):
        rng = np.random.default_rng(seed)
        rows, helping, truth = people(seed, "one by one", 1500)
        if population == "super":
            truth = 1500 * world(rng, "one by one").sum(axis=(0, 1))[None]
        helped = with_help(rows, helping, MECHANISMS)
        labels = [list(range(mechanism.size)) for mechanism in MECHANISMS]
        table = estimate_table(helped, MECHANISMS, ["a", "b"], labels, population=population)
        inside.append((table.low - 1e-6 <= truth) & (truth <= table.high + 1e-6))
        widths.append(table.high - table.low)
        alone = estimate_table(rows, MECHANISMS, ["a", "b"], labels, estimator="inverse", population=population)
        honest.append(alone.high - alone.low)
    assert np.mean(inside) > 0.93
    assert np.mean(widths) <= 1.3 * np.mean(honest)


@pytest.mark.slow
def test_variances_of_sums_over_parts_are_those_of_weights_drawn_at_random():
    rows, helping, _ = people(7, "one by one", 3000)
    finer = with_help(rows, helping, MECHANISMS).finer
    likelihoods = [likelihood_of(sets, counts, MECHANISMS) for _, sets, counts in finer.reports.by_cell()]
    finer_rows = replace(rows, finer=finer)
    search = _Search(likelihoods, _effects(finer_rows, MECHANISMS, finer_rows.finer), finer.whole, 1)
    sizes = np.full(search.term.max() + 1, 0.2)
    point, information, pull = search.settle(search.at(np.zeros(len(search.term))), sizes)
    root = 1e-2 * search.solve(sizes, information, pull).root  # small, so that it is a matter of first order
    drawn = np.random.default_rng(0).multivariate_normal(point.weights, root.T @ root, size=3000, method="eigh")
    records = np.array([likelihood.records for likelihood in likelihoods])
    tables = np.array([records @ search.at(weights).x for weights in drawn])
    np.testing.assert_allclose(search.variances(point, root)[0], tables.var(axis=0), rtol=0.15)


def test_unordered_attributes_alone_are_helped_too():
    rows, helping, _ = people(8, "one by one", 20_000)
    assert rows.distances is None
    assert choose(with_help(rows, helping, MECHANISMS), MECHANISMS)[0] == "smooth"
    ordered = replace(rows, distances=(LineDistance.ranks(8), None))
    assert choose(with_help(ordered, helping, MECHANISMS), MECHANISMS)[0] == "smooth"
