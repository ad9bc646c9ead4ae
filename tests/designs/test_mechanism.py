import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyseme.designs import make_design
from polyseme.designs.mechanism import Mechanism
from polyseme.kernel.errors import ImpossibleError, PolicyError
from polyseme.kernel.randomness import StickyStream, SystemStream
from polyseme.semantics.distances import LineDistance
from polyseme.semantics.distances.base import Clusters


def ranks(size, l, d, name="balanced", p=1.0):
    return Mechanism(make_design(name, LineDistance.ranks(size).structure(d), l), p)


@settings(deadline=None, max_examples=40)
@given(
    size=st.integers(4, 12),
    l=st.integers(2, 4),
    d=st.integers(1, 3),
    p=st.sampled_from([1.0, 0.8, 0.3]),
    name=st.sampled_from(["balanced", "simple", "duplicate"]),
)
def test_rows_of_the_channel_add_up_and_give_the_inclusion_matrix(size, l, d, p, name):
    try:
        mechanism = ranks(size, l, d, name, p)
    except ImpossibleError:
        return
    sets, channel = mechanism.channel()
    assert channel.sum(axis=1) == pytest.approx(np.ones(size))
    member = np.zeros((len(sets), size))
    np.put_along_axis(member, sets, 1.0, axis=1)
    assert mechanism.inclusion_matrix() == pytest.approx(channel @ member, abs=1e-9)
    inside, outside = mechanism.weights(sets)
    for column, row in enumerate(sets):
        if channel[:, column].sum() == 0:
            continue
        weights = np.full(size, outside[column])
        weights[row] = inside[column]
        assert weights / weights.sum() == pytest.approx(channel[:, column] / channel[:, column].sum(), abs=1e-9)


def test_a_truth_probability_is_a_probability():
    with pytest.raises(PolicyError, match="between 0 and 1"):
        ranks(8, 2, 2, p=1.5)


@pytest.mark.parametrize("p", [1.0, 0.6])
@pytest.mark.parametrize("name", ["balanced", "simple"])
def test_samples_have_the_expected_containment_counts(p, name):
    mechanism = ranks(10, 3, 3, name, p)
    codes = np.repeat(np.arange(10), 30_000)
    sets = mechanism.sample(codes, SystemStream.seeded(5))
    expected = mechanism.inclusion_matrix()
    for value in range(10):
        counts = np.bincount(sets[codes == value].ravel(), minlength=10)
        spread = np.sqrt(30_000 * expected[value] * (1 - expected[value])) + 1e-9
        assert np.all(np.abs(counts - 30_000 * expected[value]) <= 5 * spread)


def test_a_seeded_stream_repeats_and_a_fresh_one_does_not():
    mechanism = ranks(12, 3, 2, p=0.9)
    codes = np.arange(150_000) % 12
    first = mechanism.sample(codes, SystemStream.seeded(1))
    assert np.array_equal(first, mechanism.sample(codes, SystemStream.seeded(1)))
    assert not np.array_equal(first, mechanism.sample(codes, SystemStream.seeded(2)))
    assert not np.array_equal(first, mechanism.sample(codes, SystemStream()))


@pytest.mark.parametrize("p", [1.0, 0.7])
def test_sticky_decoys_do_not_depend_on_the_batch(p):
    mechanism = ranks(12, 3, 2, p=p)
    codes = np.arange(1_000) % 12
    keys = [str(index).encode() for index in range(1_000)]
    secret = bytes(range(32))
    whole = mechanism.sample(codes, StickyStream(secret, "income", keys, codes))
    half = mechanism.sample(codes[500:], StickyStream(secret, "income", keys[500:], codes[500:]))
    assert np.array_equal(whole[500:], half)
    other = mechanism.sample(codes, StickyStream(secret[::-1], "income", keys, codes))
    assert not np.array_equal(whole, other)


def test_blind_sets_forget_the_value():
    mechanism = ranks(10, 3, 3, p=0.0)
    assert np.ptp(mechanism.inclusion_matrix(), axis=0) == pytest.approx(np.zeros(10))
    assert mechanism.worst_posterior() == pytest.approx(0.1)


def test_no_matrix_for_large_domains():
    mechanism = Mechanism(make_design("balanced", Clusters(np.arange(70_000)), 3))
    with pytest.raises(ImpossibleError, match="refused"):
        mechanism.inclusion_matrix()
    assert mechanism.inclusion_given(np.array([5])).shape == (1, 70_000)
    assert mechanism.worst_posterior() == pytest.approx(1 / 3)


@pytest.mark.parametrize("p", [1.0, 0.5])
@pytest.mark.parametrize("name", ["balanced", "simple"])
def test_sets_that_a_prior_rules_out_do_not_count(name: str, p: float) -> None:
    """A distribution of records in which some values do not occur: sets of those alone are never met."""
    prior = np.array([0.6, 0.4, 0.0, 0.0, 0.0])
    mechanism = Mechanism(make_design(name, LineDistance.ranks(5).structure(1), 2), p)
    _, channel = mechanism.channel()
    joint = channel * prior[:, None]
    seen = joint.sum(axis=0) > 0
    expected = (joint[:, seen] / joint[:, seen].sum(axis=0)).max()
    with np.errstate(all="raise"):
        assert mechanism.worst_posterior(prior) == pytest.approx(expected)


def test_sets_of_no_chance_are_counted() -> None:
    design = make_design("simple", LineDistance.ranks(8).structure(3), 2)
    assert Mechanism(design).never_drawn(np.array([[0, 1], [0, 5]])) == 1
    assert Mechanism(design, 0.5).never_drawn(np.array([[0, 1], [0, 5], [2, 6]])) == 1
