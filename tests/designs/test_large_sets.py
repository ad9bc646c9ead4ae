"""Sets of hundreds of candidates: closed forms where all values are alike, a refusal where numbers would run over."""

import numpy as np
import pytest

from polyseme.designs import make_design
from polyseme.designs.chain import Chain, EvenChain, Steps
from polyseme.designs.circle import Lines, Rooted
from polyseme.kernel.errors import ImpossibleError
from polyseme.semantics.distances import CircleDistance, LineDistance
from polyseme.semantics.distances.base import Circle, Clusters, Graph


def steps(size):
    return Steps(np.arange(1, size + 1), np.empty(0, dtype=np.int64))


@pytest.mark.parametrize(("size", "l"), [(size, l) for size in range(1, 8) for l in range(1, size + 1)])
def test_alike_places_have_closed_forms(size, l):
    rng = np.random.default_rng(size * 10 + l)
    filled, closed = Chain(steps(size), l, np.zeros(size)), EvenChain(steps(size), l)
    vector, cost = rng.normal(size=size), rng.random(size)
    places = np.sort(rng.permutation(size)[:l])[None, :]
    np.testing.assert_allclose(closed.inclusion, filled.inclusion)
    np.testing.assert_allclose(closed.joint_matrix(), filled.joint_matrix())
    np.testing.assert_allclose(closed.covariance_times(vector), filled.covariance_times(vector), atol=1e-12)
    np.testing.assert_allclose(closed.lightest(cost), filled.lightest(cost))
    np.testing.assert_allclose(closed.log_probability(places), filled.log_probability(places), atol=1e-12)
    assert closed.log_partition == pytest.approx(filled.log_partition)


@pytest.mark.parametrize(("size", "l"), [(2_000, 900), (10_000, 3_077), (40_000, 250)])
def test_large_sets_are_drawn_evenly(size, l):
    design = make_design("balanced", Clusters(np.arange(size)), l)
    np.testing.assert_allclose(design.inclusion(), l / size)
    codes = np.full(400, 7)
    sets = design.sample(codes, np.random.default_rng(1).random((design.draws, 400)))
    assert np.all(np.diff(sets, axis=1) > 0)
    assert np.all((sets == 7).any(axis=1))
    others = np.delete(np.bincount(sets.ravel(), minlength=size), 7)
    share = (l - 1) / (size - 1)
    assert others.mean() == pytest.approx(400 * share)
    # Draws without replacement: by tenths of the domain, within five standard errors.
    for tenth in np.array_split(others, 10):
        spread = np.sqrt(400 * len(tenth) * share * (1 - share))
        assert abs(tenth.sum() - 400 * len(tenth) * share) < 5 * spread


def test_numbers_that_run_over_are_never_drawn_from():
    with pytest.raises(ImpossibleError, match="too large for values with unequal probabilities"):
        Chain(steps(4_000), 1_800, np.linspace(0, 1, 4_000)).inclusion  # noqa: B018


def test_tables_that_would_fill_the_memory_are_refused_before_they_are_made():
    with pytest.raises(ImpossibleError, match="too large"):
        Chain(steps(50_000), 25_000, np.zeros(50_000))
    circle = CircleDistance.ranks(900).structure(2)
    assert isinstance(circle, Circle)
    with pytest.raises(ImpossibleError, match="around a circle are too large"):
        Rooted(Lines(circle), 400, np.zeros(900))


@pytest.mark.parametrize("name", ["simple", "duplicate"])
def test_sequential_designs_have_a_largest_set(name):
    """Their likelihoods go through all subsets of a set: 2 to the power of l."""
    ranks = LineDistance.ranks(60).structure(2)
    with pytest.raises(ImpossibleError, match=r"too large for the .* design \(limit 12\)"):
        make_design(name, ranks, 13)
    design = make_design(name, ranks, 12)
    sets = design.sample(np.arange(60), np.random.default_rng(2).random((design.draws, 60)))
    assert np.all(design.likelihood(sets).max(axis=1) > 0)


def test_subsets_of_sets_on_a_graph_are_not_listed_without_end():
    compatible = ~np.eye(22, dtype=bool)
    compatible[0, 1] = compatible[1, 0] = False
    with pytest.raises(ImpossibleError, match="too many subsets"):
        make_design("simple", Graph(compatible), 11)
