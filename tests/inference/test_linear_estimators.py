import numpy as np
import pytest
from listed_designs import Uniforms, clusters, line, long_form, plain, report, sequential, tabulate

from polyseme.designs import make_design
from polyseme.designs.distribution import compatibility
from polyseme.designs.mechanism import Mechanism
from polyseme.inference.axes import ClusterMap, DenseMap, ScaledMap, exact_map
from polyseme.inference.base import Reports
from polyseme.inference.counts import containment
from polyseme.inference.sets.registry import ESTIMATORS, estimator_named
from polyseme.kernel.errors import ImpossibleError, QuestionError
from polyseme.semantics.distances.base import Clusters
from polyseme.semantics.distances.line import LineDistance

TABLE_9 = np.array([[143, 72, 60, 86, 99], [108, 70, 65, 64, 93], [188, 108, 155, 130, 179], [83, 62, 73, 57, 105]])
TABLE_10 = np.array(
    [
        [117.8, 52.5, 11.5, 20.5, 27.8],
        [82.9, 60.3, 30.8, 6.3, 19.9],
        [55.1, 27.8, 105.3, 97.8, 94.1],
        [16.9, 18.3, 44.8, 42.3, 67.9],
    ]
)


def counts_only(table):
    cell, code = np.divmod(np.arange(table.size), table.shape[1])
    return Reports((code[:, None],), cell, table.ravel(), len(table), paired=False)


def test_paper_solves_its_worked_example():
    fit = ESTIMATORS["paper"].fit(counts_only(TABLE_9), [sequential(5, 2, 2)])
    np.testing.assert_allclose(fit.values[0], [117.75, 52.5, 11.5, 20.5, 27.75], rtol=1e-12)
    np.testing.assert_allclose(fit.values, TABLE_10, atol=0.0501)
    np.testing.assert_allclose(fit.values.sum(axis=1), [230, 200, 380, 190])


def test_inverse_equals_paper_for_two_candidates_of_algorithm_1():
    mechanism = sequential(5, 2, 2)
    paper, inverse = (ESTIMATORS[name].fit(counts_only(TABLE_9), [mechanism]) for name in ("paper", "inverse"))
    np.testing.assert_allclose(paper.values, inverse.values, rtol=1e-10)


def test_simple_and_existing_are_their_formulas():
    reports, w = counts_only(TABLE_9), TABLE_9.astype(float)
    mechanism = sequential(5, 2, 2)
    np.testing.assert_allclose(ESTIMATORS["simple"].fit(reports, [mechanism]).values, w / 2)
    n, q = w.sum(axis=1, keepdims=True) / 2, 1 / 4
    np.testing.assert_allclose(ESTIMATORS["existing"].fit(reports, [mechanism]).values, (w - q * n) / (1 - q))


def test_valueadding_is_equation_18():
    mechanisms = [plain(4, 2, 0.7), plain(3, 2)]
    rng = np.random.default_rng(1)
    reports = report(np.stack([rng.integers(0, 4, 50), rng.integers(0, 3, 50)], 1), mechanisms, rng)
    w = containment(reports, mechanisms)
    held = (0.7 + 0.3 * 2 / 4) * 1.0
    expected = w * held / 4 + (50 - w) * (1 - held) / (12 - 4)
    np.testing.assert_allclose(ESTIMATORS["valueadding"].fit(reports, mechanisms).values, expected)


@pytest.mark.parametrize("p", [1.0, 0.6])
def test_cluster_map_is_the_inverse_of_q(p):
    labels = np.array([0, 0, 1, 2, 2, 2, 3, 4, 4, 5])
    weight = np.random.default_rng(0).uniform(0.7, 1.3, 10)
    for target in (None, 3 * weight / weight.sum()):
        mechanism = clusters(labels, 3, p, target)
        axis_map = ClusterMap.of(mechanism, labels)
        inverse = np.linalg.inv(mechanism.inclusion_matrix().T)
        np.testing.assert_allclose(axis_map.apply(np.eye(10), 0), inverse, atol=1e-9)
        np.testing.assert_allclose(axis_map.transpose(np.eye(10), 0), inverse.T, atol=1e-9)
        sets = mechanism.design.sets()
        counts = np.arange(len(sets)) % 7
        squares = (counts[:, None] * DenseMap(inverse).contributions(sets) ** 2).sum(axis=0)
        np.testing.assert_allclose(axis_map.squares(sets, counts), squares, rtol=1e-9)
        np.testing.assert_allclose(axis_map.contributions(sets), DenseMap(inverse).contributions(sets), atol=1e-9)


@pytest.mark.parametrize("p", [1.0, 0.7])
def test_paper_over_clusters_is_equation_2(p):
    labels = np.repeat(np.arange(30), np.arange(30) % 4 + 1)
    mechanism = Mechanism(make_design("simple", Clusters(labels), 2), p)
    axis_map = ESTIMATORS["paper"].axis_map(mechanism)
    assert isinstance(axis_map, ClusterMap)
    far = compatibility(mechanism.design.structure)
    q = np.where(far, 1 / far.sum(axis=1)[:, None], 0.0) + np.eye(len(labels))
    q = p * q + (1 - p) * 2 / len(labels)
    np.testing.assert_allclose(axis_map.apply(q.T, 0), np.eye(len(labels)), atol=1e-8)


def test_tens_of_thousands_of_values_need_no_matrix():
    labels = np.repeat(np.arange(500), 40)
    mechanism = Mechanism(make_design("balanced", Clusters(labels), 3))
    rng = np.random.default_rng(0)
    codes = np.minimum(rng.geometric(0.002, 20_000) * 7, 19_999)
    sets = mechanism.sample(codes, Uniforms(rng))
    reports = Reports((sets,), np.zeros(20_000, dtype=np.int64), np.ones(20_000, dtype=np.int64), 1)
    truth = np.bincount(codes, minlength=20_000)
    off, said = {}, {}
    for name in ("simple", "existing", "paper", "inverse", "valueadding", "ml"):
        fit = ESTIMATORS[name].fit(reports, [mechanism])
        assert np.isfinite(fit.values).all()
        if name in ("inverse", "ml"):
            inside = np.abs(fit.values[0] - truth) <= 4 * np.sqrt(fit.variance[0]) + 1e-6
            assert inside.mean() > 0.99
            off[name] = np.sqrt(((fit.values[0] - truth) ** 2).mean())
            said[name] = np.sqrt(fit.variance[0].mean())
    # Nor are standard errors needlessly large: `inverse` is as far off as it says, and `ml` says the same.
    assert said["inverse"] <= 1.3 * off["inverse"]
    assert said["ml"] <= 1.3 * said["inverse"]


def test_a_long_line_has_no_matrix_but_a_maximum():
    mechanism = Mechanism(make_design("balanced", LineDistance.ranks(6_000).structure(3), 2))
    rng = np.random.default_rng(0)
    sets = mechanism.sample(rng.integers(0, 50, 500) * 7, Uniforms(rng))
    reports = Reports((sets,), np.zeros(500, dtype=np.int64), np.ones(500, dtype=np.int64), 1)
    fit = ESTIMATORS["ml"].fit(reports, [mechanism])
    assert np.isnan(fit.variance).all()
    assert any("no standard errors" in note for note in fit.notes)
    for name in ("inverse", "paper", "bayes"):
        with pytest.raises(ImpossibleError, match="refused"):
            ESTIMATORS[name].fit(reports, [mechanism])


@pytest.mark.parametrize("p", [1.0, 0.4])
def test_plain_mechanism_has_a_scaled_map(p):
    mechanism = plain(6, 3, p)
    axis_map = exact_map(mechanism)
    assert isinstance(axis_map, ScaledMap)
    np.testing.assert_allclose(axis_map.apply(np.eye(6), 0), np.linalg.inv(mechanism.inclusion_matrix().T), atol=1e-9)
    squares = axis_map.contributions(mechanism.design.sets()) ** 2
    indicator = np.zeros((20, 6))
    np.put_along_axis(indicator, mechanism.design.sets(), 1.0, axis=1)
    np.testing.assert_allclose(axis_map.squares(3).apply(indicator, 1), squares, atol=1e-9)


LINEAR_CASES = {
    "line": [line(8, 3, 2)],
    "sequential": [sequential(8, 2, 3)],
    "noisy line": [line(7, 2, 2, 0.7)],
    "plain pair": [plain(4, 2), plain(5, 3, 0.8)],
    "mixed": [line(6, 2, 2), plain(3, 2)],
}


def skewed_codes(mechanisms, n, rng):
    columns = []
    for mechanism in mechanisms:
        weight = np.arange(1, mechanism.size + 1.0) ** -1.5
        columns.append(rng.choice(mechanism.size, n, p=weight / weight.sum()))
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("case", LINEAR_CASES)
def test_inverse_is_unbiased_and_knows_its_variance(case):
    """The mean over many runs lies within sampling error of the truth; a bias of a tenth of a standard error would not.

    With r runs the mean has standard error 1/sqrt(r) of a run's; the test rejects beyond 4.5 of these, and a shift of
    0.1 is 0.1 sqrt(r) = 9 of them.
    """
    mechanisms, runs, n = LINEAR_CASES[case], 8000, 40
    rng = np.random.default_rng(11)
    codes = skewed_codes(mechanisms, n, rng)
    truth = tabulate(codes, mechanisms)
    # All runs are cells of one table: a run is then one row of the estimate.
    everyone, run = np.tile(codes, (runs, 1)), np.repeat(np.arange(runs), n)
    fit = ESTIMATORS["inverse"].fit(report(everyone, mechanisms, rng, run, runs), mechanisms)
    error = fit.values - truth
    deviation = error.std(axis=0)
    score = error.mean(axis=0) / deviation * np.sqrt(runs)
    assert np.abs(score).max() < 4.5
    assert np.abs(score + 0.1 * np.sqrt(runs)).min() > 4.5
    np.testing.assert_allclose(fit.variance.mean(axis=0), deviation**2, rtol=0.15)


@pytest.mark.parametrize("name", ["simple", "existing", "paper", "valueadding", "inverse"])
def test_variance_is_that_of_repeated_runs(name):
    mechanisms, runs = [line(7, 2, 2)], 3000
    rng = np.random.default_rng(5)
    codes = skewed_codes(mechanisms, 200, rng)
    everyone, run = np.tile(codes, (runs, 1)), np.repeat(np.arange(runs), 200)
    fit = ESTIMATORS[name].fit(report(everyone, mechanisms, rng, run, runs), mechanisms)
    np.testing.assert_allclose(fit.variance.mean(axis=0), fit.values.var(axis=0), rtol=0.12)


def test_variance_from_counts_alone_agrees_with_that_from_sets():
    mechanism = line(8, 3, 2)
    rng = np.random.default_rng(8)
    reports = report(skewed_codes([mechanism], 20_000, rng), [mechanism], rng)
    paired = ESTIMATORS["inverse"].fit(reports, [mechanism])
    counts = ESTIMATORS["inverse"].fit(long_form(reports, mechanism), [mechanism])
    np.testing.assert_allclose(paired.values, counts.values)
    np.testing.assert_allclose(paired.variance, counts.variance, rtol=0.05)


def test_spread_of_single_cells_and_of_the_total():
    mechanisms = LINEAR_CASES["mixed"]
    rng = np.random.default_rng(2)
    for name in ("inverse", "paper", "simple"):
        fit = ESTIMATORS[name].fit(report(skewed_codes(mechanisms, 400, rng), mechanisms, rng), mechanisms)
        unit = np.eye(18).reshape(18, 1, 6, 3)
        np.testing.assert_allclose(fit.spread(unit, "finite"), fit.variance.ravel(), atol=1e-7)
        if name == "inverse":
            np.testing.assert_allclose(fit.spread(np.ones((1, 1, 6, 3)), "finite"), 0.0, atol=1e-6)


def test_unidentifiable_values_are_named_not_guessed():
    mechanism = line(4, 2, 2, balanced=False)
    reports = report(np.array([0, 1, 2, 3] * 20), [mechanism], np.random.default_rng(0))
    fit = ESTIMATORS["inverse"].fit(reports, [mechanism])
    assert np.isnan(fit.variance).all()
    assert any("cannot distinguish" in note for note in fit.notes)


def test_wrong_input_says_everything_at_once():
    reports = Reports((np.array([[0, 9]]),), np.array([3]), np.array([1]), 1)
    with pytest.raises(QuestionError) as caught:
        ESTIMATORS["inverse"].fit(reports, [line(5, 2, 2)])
    assert len(caught.value.problems) == 2
    with pytest.raises(QuestionError, match="did you mean 'inverse'"):
        estimator_named("invers")


def expected_error(estimator, mechanism):
    """The largest error of an estimate from expected set counts, by the definition of the channel: P(R | v)."""
    sets, channel = mechanism.channel()
    truth = np.linspace(1.0, 2.0, mechanism.size) * 1e6
    often = np.rint(truth @ channel).astype(np.int64)
    fit = estimator.fit(Reports((sets,), np.zeros(len(sets), dtype=np.int64), often, 1, True), [mechanism])
    return float(np.abs(fit.values[0] - truth).max() / 1e6), fit.notes


@pytest.mark.parametrize(
    ("estimator", "design", "l", "d", "exact"),
    [
        ("paper", "simple", 2, 2, True),
        ("paper", "simple", 3, 2, False),
        ("paper", "balanced", 2, 4, False),
        ("existing", "simple", 3, 1, True),
        ("existing", "simple", 3, 2, False),
        ("simple", "simple", 2, 2, False),
    ],
)
def test_an_estimator_calls_itself_biased_exactly_where_it_is(estimator, design, l, d, exact):
    """Equation 2 is exact at l = 2 with even decoys, uniform decoys where there is no distance."""
    mechanism = Mechanism(make_design(design, LineDistance.ranks(9).structure(d), l))
    error, notes = expected_error(ESTIMATORS[estimator], mechanism)
    assert (error < 1e-4) == exact
    assert any("biased" in note for note in notes) == (not exact)
