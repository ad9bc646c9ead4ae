import json
import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from draws import generators, seeds
from hypothesis import given, settings
from listed_designs import line, long_form, plain, report, tabulate
from scipy import stats

from polyseme.inference.base import EstimateOptions
from polyseme.inference.counts import Part, merged
from polyseme.inference.sets.estimate import Estimate, estimate_parts, estimate_table
from polyseme.kernel.errors import QuestionError

MECHANISMS = [line(6, 2, 2), plain(3, 2, 0.9)]
LABELS = [[10, 20, 30, 40, 50, 60], ["a", "b", "c"]]
BY = {"sex": ["f", "f", "m", "m"], "zone": [1, 2, 1, 2]}


@pytest.fixture(scope="module")
def made():
    rng = np.random.default_rng(0)
    n = 4000
    cell = rng.integers(0, 4, n)
    left = np.clip(rng.normal(2 + 0.8 * (cell >= 2), 1.2, n).round(), 0, 5).astype(int)
    right = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    codes = np.stack([left, right], axis=1)
    return report(codes, MECHANISMS, rng, cell, 4), tabulate(codes, MECHANISMS, cell, 4)


def estimated(reports, **options) -> Estimate:
    options.setdefault("estimator", "ml")
    return estimate_table(reports, MECHANISMS, ["age", "job"], LABELS, BY, **options)


def test_one_row_for_each_cell(made):
    reports, truth = made
    table = estimated(reports)
    frame = table.to_polars()
    assert frame.columns == ["sex", "zone", "age", "job", "estimate", "stderr", "low", "high"]
    assert frame.height == truth.size
    row = frame.filter((pl.col("sex") == "m") & (pl.col("zone") == 1) & (pl.col("age") == 30) & (pl.col("job") == "b"))
    assert row["estimate"].item() == table.values[2, 2, 1]
    assert table.to_pandas().shape == frame.shape
    assert table.to_arrow().num_rows == frame.height
    assert ((table.low <= truth) & (truth <= table.high)).mean() > 0.9
    honest = estimated(reports, estimator="inverse")
    assert (table.high - table.low).mean() <= 1.3 * (honest.high - honest.low).mean()
    document = json.loads(json.dumps(table.to_dict(), allow_nan=False))
    assert document["estimator"] == "ml"
    assert document["records"] == 4000
    assert len(document["cells"]) == truth.size
    assert document["cells"][0].keys() == {"sex", "zone", "age", "job", "estimate", "stderr", "low", "high"}


@pytest.mark.parametrize("question", [{}, {"estimator": "inverse", "level": 0.8, "population": "super"}])
def test_what_was_written_reads_back(made, question):
    table = estimated(made[0], **question)
    for part in (table, table.margin(of="age", by="sex"), table.margin(by=[])):
        document = json.loads(json.dumps(part.to_dict(), allow_nan=False))
        again = Estimate.from_dict(document)
        assert again.to_dict() == document
        np.testing.assert_array_equal(again.values, part.values)
        assert repr(again) == repr(part)
        assert again.plot().to_dict().keys() == part.plot().to_dict().keys()
        with pytest.raises(QuestionError, match="read from a file"):
            again.margin(of="age", by=[])


def test_margins_are_consistent_and_cover(made):
    reports, truth = made
    for estimator in ("ml", "inverse", "shrink"):
        table = estimated(reports, estimator=estimator)
        ages = table.margin(of="age", by="sex")
        assert ages.by == {"sex": ("f", "m")}
        assert ages.of == ("age",)
        if estimator == "inverse":
            np.testing.assert_allclose(ages.values[0], table.values[:2].sum(axis=(0, 2)))
        one = merged(replace(reports, sets=reports.sets[:1]), reports.cell // 2, 2)
        requested_for = estimate_table(one, MECHANISMS[:1], ["age"], LABELS[:1], {"sex": ["f", "m"]}, estimator)
        for number in ("values", "stderr", "low", "high"):
            np.testing.assert_allclose(getattr(ages, number), getattr(requested_for, number), rtol=1e-5, atol=1e-6)
        true = np.stack([truth[:2].sum(axis=(0, 2)), truth[2:].sum(axis=(0, 2))])
        assert ((ages.low <= true) & (true <= ages.high)).mean() > 0.8
        honest = estimated(reports, estimator="inverse").margin(of="age", by="sex")
        assert (ages.high - ages.low).mean() <= 1.3 * (honest.high - honest.low).mean()
        again = ages.margin(by=[])
        direct = table.margin(of=["age"], by=[])
        np.testing.assert_allclose(again.values, direct.values)
        np.testing.assert_allclose(again.low, direct.low)
        np.testing.assert_allclose(again.stderr, direct.stderr)
        # Cells of one axis add up to the known totals, without error.
        everyone = table.margin(of=[], by="zone")
        np.testing.assert_allclose(everyone.values, everyone.totals, rtol=1e-6)


def test_beyond_counts(made):
    reports, truth = made
    table = estimated(reports)
    positions = np.array(LABELS[0], dtype=float)
    true_means = (truth.sum(axis=2) @ positions) / truth.sum(axis=(1, 2))
    means = table.mean("age")
    assert all(row["low"] - 1e-9 <= mean <= row["high"] + 1e-9 for row, mean in zip(means, true_means))
    shares = table.margin(of="age").proportions()
    np.testing.assert_allclose(shares.values.sum(axis=1), 1.0)
    total = shares.sums(np.ones((1, 4, 6)))
    np.testing.assert_allclose(total[0], 4.0)
    medians = table.quantile(0.5, "age")
    for row, cell in zip(medians, truth.sum(axis=2)):
        median = positions[np.searchsorted(np.cumsum(cell) / cell.sum(), 0.5)]
        assert row["low"] <= median <= row["high"]
        assert row["low"] <= row["estimate"] <= row["high"]
    gap = table.margin(of="age", by="sex").difference({"sex": "m"}, {"sex": "f"})
    true = truth[2:].sum(axis=(0, 2)) / truth[2:].sum() - truth[:2].sum(axis=(0, 2)) / truth[:2].sum()
    assert np.mean([row["low"] <= d <= row["high"] for row, d in zip(gap, true)]) >= 0.8
    assert len(table.top(5)) == 5
    assert table.top(1).value[0] == table.values.max()


def test_independence(made):
    reports, _ = made
    table = estimated(reports)
    assert table.independence("age", "job").p_value > 0.001
    assert table.independence("age", "job").freedom == 10
    assert table.margin(of="age").independence().p_value < 1e-6


def test_independence_keeps_its_level():
    """Under independence about one in twenty tests is significant at 5%: not none, not many."""
    mechanisms = [line(5, 2, 2), plain(3, 2)]
    rng = np.random.default_rng(2)
    rejected = 0
    for _ in range(120):
        codes = np.stack([rng.choice(5, 3000), rng.choice(3, 3000)], axis=1)
        table = estimate_table(
            report(codes, mechanisms, rng), mechanisms, ["a", "b"], [range(5), range(3)], estimator="ml"
        )
        rejected += table.independence().p_value < 0.05
    assert 1 <= rejected <= 14


SPARSE, COMMON = [0.45, 0.25, 0.15, 0.10, 0.04, 0.01], [0.5, 0.3, 0.15, 0.05]


def significant(table) -> bool:
    return table.independence().p_value < 0.05


@pytest.mark.parametrize("estimator", ["ml", "inverse"])
@pytest.mark.parametrize("n", [60, pytest.param(300, marks=pytest.mark.slow)])
def test_independence_keeps_its_level_where_values_are_rare(estimator, n):
    mechanisms, rng = [plain(6, 3), plain(4, 2)], np.random.default_rng(3)
    rejected = 0
    for _ in range(60):
        codes = np.stack([rng.choice(6, n, p=SPARSE), rng.choice(4, n, p=COMMON)], axis=1)
        reports = report(codes, mechanisms, rng)
        rejected += significant(
            estimate_table(reports, mechanisms, ["a", "b"], [range(6), range(4)], estimator=estimator)
        )
    assert rejected <= 9


@pytest.mark.slow
def test_independence_of_groups_keeps_its_level_where_values_are_rare():
    mechanism, rng = plain(6, 3), np.random.default_rng(4)
    rejected = 0
    for _ in range(100):
        codes, cell = rng.choice(6, 300, p=SPARSE), rng.choice(3, 300, p=[0.8, 0.15, 0.05])
        reports = report(codes, [mechanism], rng, cell, 3)
        rejected += significant(
            estimate_table(reports, [mechanism], ["a"], [range(6)], {"g": list("pqr")}, estimator="ml")
        )
    assert rejected <= 12


def stratified(rng, n, dependent):
    """Two kinds of records: the second kind cannot have the last two values of the left attribute."""
    kinds = [(plain(6, 3), plain(4, 2), 6), (plain(4, 2), plain(4, 2), 4)]
    parts = []
    for left, right, values in kinds:
        weights = np.array(SPARSE[:values]) / sum(SPARSE[:values])
        codes = np.stack([rng.choice(values, n, p=weights), rng.choice(4, n, p=COMMON)], axis=1)
        codes[:, 1] = np.where(dependent & (codes[:, 0] == 0), 0, codes[:, 1])
        axes = (np.arange(values), np.arange(4))
        parts.append(Part(report(codes, [left, right], rng), (left, right), np.array([0]), axes))
    labels = [range(6), range(4)]
    return estimate_parts(parts, 1, ["a", "b"], labels, options=EstimateOptions("inverse"))


def test_independence_of_records_with_different_impossible_values():
    rng = np.random.default_rng(5)
    assert sum(significant(stratified(rng, 100, dependent=False)) for _ in range(100)) <= 12
    assert sum(significant(stratified(rng, 400, dependent=True)) for _ in range(20)) >= 18


def test_independence_of_what_is_published_as_it_is_is_pearsons():
    mechanisms, rng = [plain(3, 1), plain(2, 1)], np.random.default_rng(6)
    codes = np.stack([rng.choice(3, 200), rng.choice(2, 200)], axis=1)
    table = estimate_table(report(codes, mechanisms, rng), mechanisms, ["a", "b"], [range(3), range(2)])
    pearson = stats.chi2_contingency(tabulate(codes, mechanisms)[0], correction=False)
    test = table.independence()
    assert test.freedom == pearson.dof
    assert math.isclose(test.statistic, pearson.statistic * 199 / 200)


def test_independence_asks_for_two_different_attributes(made):
    table = estimated(made[0])
    assert table.independence("job") == table.independence("job", "age")
    for question in (lambda: table.independence("age", "age"), lambda: table.margin(of=["age", "age"])):
        with pytest.raises(QuestionError, match="named twice"):
            question()
    with pytest.raises(QuestionError, match="no protected attribute"):
        table.margin(of=[]).independence()


def test_nothing_is_clipped_in_silence(made):
    rng = np.random.default_rng(1)
    reports = report(np.zeros((40, 2), dtype=int), MECHANISMS, rng)
    plainly = estimate_table(reports, MECHANISMS, ["age", "job"], LABELS, estimator="inverse")
    assert plainly.values.min() < 0
    projected = estimate_table(reports, MECHANISMS, ["age", "job"], LABELS, estimator="inverse", nonnegative="project")
    assert projected.values.min() >= 0
    np.testing.assert_allclose(projected.values.sum(), 40)
    assert any("projection" in note for note in projected.notes)


def test_warnings_when_the_data_cannot_carry_the_table(made):
    reports, _ = made
    rng = np.random.default_rng(1)
    few = report(np.stack([rng.choice(6, 30), rng.choice(3, 30)], axis=1), MECHANISMS, rng)
    table = estimate_table(few, MECHANISMS, ["age", "job"], LABELS, estimator="ml")
    assert any("longer than the cell itself" in note for note in table.notes)
    alone = estimate_table(reports_without_groups(reports), MECHANISMS, ["age", "job"], LABELS)
    assert alone.estimator in ("ml", "shrink")
    assert any("chosen" in note or "shrunk" in note for note in alone.notes)


def reports_without_groups(reports):
    from dataclasses import replace

    return replace(reports, cell=np.zeros_like(reports.cell), cells=1)


def test_long_form_says_that_it_is_composite():
    mechanism = line(6, 2, 2)
    rng = np.random.default_rng(3)
    codes = rng.choice(6, 3000, p=[0.3, 0.25, 0.2, 0.1, 0.1, 0.05])
    counts = long_form(report(codes, [mechanism], rng), mechanism)
    table = estimate_table(counts, [mechanism], ["age"], [LABELS[0]])
    assert any("counts only" in note for note in table.notes)
    truth = tabulate(codes, [mechanism])
    assert ((table.low <= truth) & (truth <= table.high)).mean() >= 5 / 6
    honest = estimate_table(counts, [mechanism], ["age"], [LABELS[0]], estimator="inverse")
    assert (table.high - table.low).mean() <= 1.3 * (honest.high - honest.low).mean()
    assert math.isclose(table.values.sum(), 3000, rel_tol=1e-6)


@pytest.mark.parametrize("estimator", ["ml", "inverse"])
def test_sums_without_limits_say_so(estimator):
    """Which values were published together is not known, so sums have values but no limits."""
    mechanism, rng = line(6, 2, 2), np.random.default_rng(3)
    counts = long_form(report(rng.choice(6, 500), [mechanism], rng), mechanism)
    table = estimate_table(counts, [mechanism], ["age"], [LABELS[0]], estimator=estimator)
    for summary in (table.mean(), table.quantile(0.5)):
        assert math.isfinite(summary.value[0])
        assert math.isnan(summary.low[0])
        assert math.isnan(summary.high[0])
        assert "no limits" in repr(summary)
        assert "no limits" in summary._repr_html_()
    with pytest.raises(QuestionError, match="set form"):
        table.independence()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("estimator", ["ml", "inverse"])
def test_groups_without_records_have_no_mean(estimator):
    mechanism = line(6, 2, 2)
    reports = report(np.array([0, 1, 2, 3] * 50), [mechanism], np.random.default_rng(0), np.zeros(200, dtype=int), 2)
    table = estimate_table(reports, [mechanism], ["age"], [LABELS[0]], {"sex": ["f", "m"]}, estimator=estimator)
    assert any("1 group has no records" in note for note in table.notes)
    for summary in (table.mean("age"), table.quantile(0.5, "age")):
        assert not math.isnan(summary.value[0])
        assert math.isnan(summary.value[1])
    assert not table.values[1].any()
    assert not table.high[1].any()


@pytest.mark.parametrize("estimator", ["ml", "shrink", "smooth"])
def test_no_standard_error_where_values_leave_the_same_traces(estimator):
    mechanisms = [plain(4, 3, 0.0), plain(3, 2)]
    codes = np.random.default_rng(2).integers(0, 3, (400, 2))
    reports = report(codes, mechanisms, np.random.default_rng(3))
    table = estimate_table(reports, mechanisms, ["a", "b"], [list("wxyz"), list("abc")], {}, estimator=estimator)
    assert np.isnan(table.stderr).all()
    with pytest.raises(QuestionError, match="independence cannot be tested"):
        table.independence()


def test_shows_itself(made):
    reports, _ = made
    table = estimated(reports)
    assert "4,000 records" in repr(table)
    assert "<table" in table._repr_html_()
    assert "layer" in table.margin(of="age", by=[]).plot().to_dict()
    heat = table.margin(by=[]).plot().to_dict()
    assert heat["layer"][0]["mark"]["type"] == "rect"
    small = table.margin(of="age", by="sex").plot().to_dict()
    assert [part["title"].split(":")[0] for part in small["concat"]] == ["sex = f", "sex = m"]


def test_questions_that_cannot_be_asked(made):
    reports, _ = made
    table = estimated(reports)
    with pytest.raises(QuestionError, match="did you mean 'age'"):
        table.margin(of="agee")
    with pytest.raises(QuestionError, match="not numbers"):
        table.mean("job")
    for q in (-0.1, 1.1, math.nan):
        with pytest.raises(QuestionError, match="between 0 and 1"):
            table.quantile(q, "age")
    with pytest.raises(QuestionError, match="no protected attribute to draw"):
        table.margin(of=[]).plot()
    with pytest.raises(QuestionError, match="a name or an estimator"):
        estimated(reports, estimator=3)
    with pytest.raises(QuestionError, match="no cell"):
        table.difference({"sex": "x"}, {"sex": "f"})
    with pytest.raises(QuestionError, match="margin first"):
        table.proportions().margin(of="age")
    with pytest.raises(QuestionError, match="computed from counts"):
        table.proportions().difference({"sex": "f"}, {"sex": "m"})
    with pytest.raises(QuestionError) as caught:
        estimate_table(reports, MECHANISMS, ["age", "job"], [[1], ["a", "b", "c"]], BY, level=2.0, population="no")
    assert len(caught.value.problems) == 3


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("estimator", ["ml", "inverse", None])
@settings(max_examples=11)
@given(generators(), seeds)
def test_legal_questions_raise_neither_errors_nor_warnings(estimator, drawn, seed):
    """Few records, empty groups, one value for everybody, sets of everything, repeated draws: answers are numbers."""
    rng = np.random.default_rng(seed)
    size = drawn.integers(2, 12)
    width, p = drawn.integers(1, min(size, 4) + 1), drawn.choice([1.0, 0.95, 0.3])
    mechanisms = [plain(size, width, p), line(5, 2, 2)][: drawn.integers(1, 3)]
    n, groups = drawn.choice([1, 2, 30, 1_000]), drawn.choice([1, 4])
    codes = [np.minimum(rng.geometric(drawn.choice([0.2, 0.95]), n) - 1, m.size - 1) for m in mechanisms]
    reports = report(np.stack(codes, axis=1), mechanisms, rng, rng.integers(0, groups, n), groups)
    reports = replace(reports, repeats=drawn.choice([1.0, 3.5]))
    by = {"group": range(groups), "half": [group % 2 for group in range(groups)]}
    labels = [range(m.size) for m in mechanisms]
    population = drawn.choice(["finite", "super"])
    names = ["a", "b"][: len(labels)]
    table = estimate_table(reports, mechanisms, names, labels, by, estimator, population=population)
    assert np.isfinite(table.values).all()
    assert np.isfinite(table.low).all()
    mean = table.margin(of="a", by=[]).mean()
    assert mean.low[0] <= mean.value[0] <= mean.high[0] or width == size
    table.quantile(0.5, "a")
    table.margin(of="a", by="half").top(2)
    if groups > 1:
        table.difference({"half": 0}, {"half": 1})
        table.sums(rng.normal(size=(2, *table.values.shape)))
