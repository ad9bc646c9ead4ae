import math

import numpy as np
import pytest

from polyseme.designs import make_design
from polyseme.designs.mechanism import Mechanism
from polyseme.inference.sets.registry import ESTIMATORS
from polyseme.kernel.errors import PolicyError
from polyseme.kernel.randomness import SystemStream
from polyseme.privacy.analysis import facts, frontier, nearest_settings, spectrum
from polyseme.privacy.analysis.summary import paper_matrix
from polyseme.semantics.distances import LineDistance
from polyseme.semantics.distances.base import Circle, Clusters

REPRESENTATIVE = LineDistance([*range(1, 11), 15, 20, 25, 30])
RANKS = LineDistance.ranks(14)
FAMILIES = Clusters(np.array([0, 0, 1, 2, 3, 3, 4, 1]))


def ranks(l, d, name="balanced", p=1.0, prior=None):
    return Mechanism(make_design(name, RANKS.structure(d), l, prior), p)


def even_circle(size, spacing):
    return Circle(np.arange(size), np.arange(size, dtype=float), float(size), float(spacing), spacing)


def skewed(size):
    weights = 1.0 + 0.3 * np.sin(np.arange(size))
    return weights / weights.sum()


MECHANISMS = {
    "balanced": ranks(3, 4),
    "balanced-p": ranks(3, 3, p=0.7),
    "balanced-prior": ranks(3, 2, prior=skewed(14)),
    "least-risk": Mechanism(make_design("least-risk", REPRESENTATIVE.structure(7), 3)),
    "simple": ranks(3, 3, "simple"),
    "simple-p": ranks(3, 3, "simple", 0.6),
    "duplicate": ranks(3, 2, "duplicate"),
    "circle": Mechanism(make_design("balanced", even_circle(11, 3), 3), 0.8),
    "clusters": Mechanism(make_design("balanced", FAMILIES, 3)),
    "clusters-prior": Mechanism(make_design("balanced", FAMILIES, 2, skewed(8)), 0.9),
    "singletons": Mechanism(make_design("balanced", Clusters(np.arange(7)), 3), 0.5),
}


PRIORS = {
    "uniform": lambda size: np.full(size, 1 / size),
    "skewed": skewed,
    "zero": lambda size: np.arange(size) / (size * (size - 1) / 2),
}


@pytest.fixture(params=MECHANISMS)
def mechanism(request):
    return MECHANISMS[request.param]


@pytest.mark.parametrize("kind", PRIORS)
def test_vulnerabilities_and_epsilon_from_the_channel(mechanism, kind):
    size = mechanism.size
    prior = PRIORS[kind](size)
    found = facts(mechanism, prior)
    _, channel = mechanism.channel()
    joint = prior[:, None] * channel
    joint = joint[:, joint.sum(axis=0) > 0]
    assert found.average_posterior == pytest.approx(joint.max(axis=0).sum(), rel=1e-9)
    assert found.worst_posterior == pytest.approx((joint / joint.sum(axis=0)).max(), rel=1e-9)
    assert found.prior_vulnerability == pytest.approx(prior.max())
    if mechanism.p == 1.0:
        assert found.epsilon == math.inf
    else:
        occurs = channel.max(axis=0) > 0
        ratio = np.log(channel[:, occurs].max(axis=0) / channel[:, occurs].min(axis=0)).max()
        assert found.epsilon == pytest.approx(ratio, rel=1e-9)


def test_rank_and_condition_from_the_matrix(mechanism):
    values = np.linalg.svd(mechanism.inclusion_matrix(), compute_uv=False)
    found = spectrum(mechanism)
    assert found.identifiable
    assert found.condition == pytest.approx(values.max() / values.min(), rel=1e-6)


def limits(mechanism, prior, records):
    """Error of the inverse estimator and the limit of any, straight from the channel."""
    sets, channel = mechanism.channel()
    member = np.zeros((len(sets), mechanism.size))
    np.put_along_axis(member, sets, 1.0, axis=1)
    marginal = prior @ channel
    occurs = marginal > 0
    information = (channel[:, occurs] / marginal[occurs]) @ channel[:, occurs].T
    limit = (np.trace(np.linalg.inv(information)) - 1) / (mechanism.size * records)
    matrix = channel @ member
    covariance = sum(
        weight * (np.einsum("r,ri,rj->ij", row, member, member) - np.outer(row @ member, row @ member))
        for weight, row in zip(prior, channel)
    )
    inverse = np.linalg.inv(matrix.T)
    return np.trace(inverse @ covariance @ inverse.T) / (mechanism.size * records), limit


@pytest.mark.parametrize("kind", ["uniform", "skewed"])
def test_expected_errors_from_the_channel(mechanism, kind):
    prior = np.full(mechanism.size, 1 / mechanism.size) if kind == "uniform" else skewed(mechanism.size)
    found = facts(mechanism, prior, records=1000)
    inverse, limit = limits(mechanism, prior, 1000)
    assert found.mse_inverse == pytest.approx(inverse, rel=1e-6)
    assert found.mse_limit == pytest.approx(limit, rel=1e-6)
    assert found.mse_limit <= found.mse_inverse * (1 + 1e-6)
    assert found.expected_mse == found.mse_limit


@pytest.mark.parametrize("name", ["balanced", "simple", "balanced-p", "simple-p"])
def test_expected_errors_by_simulation(name):
    """What `plan` expects of `inverse` and `paper` is what the estimators themselves do, with p = 1 and below."""
    mechanism = MECHANISMS[name]
    records, repeats = 2_000, 600
    prior = skewed(mechanism.size)
    truth = np.round(prior * records).astype(int)
    codes = np.repeat(np.arange(mechanism.size), truth)
    found = facts(mechanism, truth / truth.sum(), records=len(codes))
    stream = SystemStream.seeded(7)
    counts = np.array(
        [np.bincount(mechanism.sample(codes, stream).ravel(), minlength=mechanism.size) for _ in range(repeats)]
    )
    for estimator, expected in (("inverse", found.mse_inverse), ("paper", found.mse_paper)):
        shares = ESTIMATORS[estimator].axis_map(mechanism).apply(counts.astype(float), 1) / len(codes)
        errors = ((shares - truth / len(codes)) ** 2).mean(axis=1)
        assert abs(errors.mean() - expected) <= 4 * errors.std() / np.sqrt(repeats)


@pytest.mark.parametrize("p", [1.0, 0.7])
def test_equation_two_pair_by_pair(p):
    """Written out from the paper: a compatible value is a decoy with (l - 1) / |extract|, a blind one with l / F."""
    mechanism = ranks(3, 4, p=p)
    for v in range(14):
        extract = [u for u in range(14) if abs(u - v) >= 4]
        for u in range(14):
            decoy = 1.0 if u == v else 2 / len(extract) if u in extract else 0.0
            assert paper_matrix(mechanism)[v, u] == pytest.approx(p * decoy + (1 - p) * 3 / 14, rel=1e-12)


def test_fourteen_ranks():
    good = facts(ranks(3, 4))
    assert good.worst_posterior == pytest.approx(1 / 3)
    assert good.identifiable
    bad = facts(ranks(2, 7), records=1000)
    assert not bad.identifiable
    assert bad.confounded == tuple((k, k + 7) for k in range(7))
    assert bad.expected_mse is None
    assert bad.worst_posterior == pytest.approx(1 / 2)


def test_a_tree_split_in_two_cannot_be_estimated_with_two_candidates():
    found = facts(Mechanism(make_design("balanced", Clusters(np.array([0, 1, 0, 1])), 2)))
    assert found.identifiable is False
    assert found.confounded == ((0, 1, 2, 3),)


def test_an_even_circle_that_confounds_opposite_values():
    found = facts(Mechanism(make_design("balanced", even_circle(8, 4), 2)))
    assert found.confounded == tuple((k, k + 4) for k in range(4))


def test_nearest_settings_on_fourteen_ranks():
    assert (3, 4) in nearest_settings(RANKS, 4, 5)
    assert (4, 3) in nearest_settings(RANKS, 4, 5)
    assert (2, 5) in nearest_settings(RANKS, 4, 5)
    assert nearest_settings(RANKS, 2, 7)[0] == (2, 6)
    for l, d in nearest_settings(REPRESENTATIVE, 3, 7):
        assert facts(Mechanism(make_design("balanced", REPRESENTATIVE.structure(d), l))).identifiable


def test_frontier_marks_every_setting():
    rows = {(row.l, row.d): row for row in frontier(ranks, range(2, 5), range(1, 8), records=10_000)}
    assert len(rows) == 21
    assert rows[3, 4].status == "feasible"
    assert rows[3, 4].facts.expected_mse > 0
    assert rows[2, 7].status == "unestimable"
    assert rows[4, 5].status == "infeasible"
    assert "mutually too close" in rows[4, 5].reason


def test_large_domains_have_facts_without_a_matrix():
    labels = np.arange(70_000) % 900
    found = facts(Mechanism(make_design("balanced", Clusters(labels), 3)), records=10**6)
    assert found.worst_posterior == pytest.approx(1 / 3)
    assert found.average_posterior == pytest.approx(1 / 3)
    assert found.identifiable
    assert found.mse_limit > 0
    plain = facts(Mechanism(make_design("balanced", Clusters(np.arange(70_000)), 3), 0.9), records=10**6)
    assert plain.identifiable
    assert plain.mse_limit > 0
    line = facts(Mechanism(make_design("balanced", LineDistance.ranks(10_000).structure(10), 3)), records=10**6)
    assert line.worst_posterior == pytest.approx(1 / 3)
    assert line.identifiable is None
    assert any("rank" in note for note in line.notes)
    simple = facts(Mechanism(make_design("simple", LineDistance.ranks(1_000).structure(10), 3)), records=10**6)
    assert simple.worst_posterior is None
    assert len(simple.notes) >= 3


def test_equal_clusters_agree_with_the_dense_way(monkeypatch):
    mechanism = Mechanism(make_design("balanced", Clusters(np.arange(12) % 6), 3), 0.8)
    dense = facts(mechanism, records=100)
    monkeypatch.setattr("polyseme.designs.ring.DENSE", 5)
    monkeypatch.setattr("polyseme.privacy.analysis.summary.DENSE", 5)
    quick = facts(mechanism, records=100)
    assert quick.condition == pytest.approx(dense.condition)
    assert quick.mse_limit == pytest.approx(dense.mse_limit)


def test_bad_priors_are_refused():
    with pytest.raises(PolicyError, match="prior"):
        facts(ranks(3, 4), np.ones(3))


def test_against_an_independent_library():
    qif = pytest.importorskip("qif", reason="qif is not installed: pip install qif for this oracle")
    for mechanism in MECHANISMS.values():
        prior = skewed(mechanism.size)
        _, channel = mechanism.channel()
        found = facts(mechanism, prior)
        occurs = channel.max(axis=0) > 0
        assert found.average_posterior == pytest.approx(
            qif.measure.bayes_vuln.posterior(prior, np.ascontiguousarray(channel[:, occurs])), rel=1e-9
        )
        assert found.prior_vulnerability == pytest.approx(qif.measure.bayes_vuln.prior(prior), rel=1e-12)


def test_the_limit_where_sets_are_too_many_to_list(monkeypatch):
    """The same figure with and without going through the sets one by one."""
    from polyseme.privacy.analysis import summary

    prior = np.linspace(1, 3, 14) / np.linspace(1, 3, 14).sum()
    for p in (1.0, 0.7):
        mechanism = Mechanism(make_design("least-risk", REPRESENTATIVE.structure(7), 3), p)
        listed = facts(mechanism, prior, 1_000)
        monkeypatch.setattr(summary, "SET_LIMIT", 10)
        unlisted = facts(mechanism, prior, 1_000)
        monkeypatch.undo()
        assert unlisted.mse_inverse is None
        assert unlisted.mse_limit == pytest.approx(listed.mse_limit, rel=1e-7)
