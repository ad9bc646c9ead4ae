"""Choices made into mechanisms: what was promised, seen from the exact channel."""

import math

import numpy as np
import polars as pl
import pytest
from draws import generators
from hypothesis import given

from polyseme.kernel.errors import ImpossibleError
from polyseme.kernel.randomness import SystemStream
from polyseme.models import sensitive_qids as sq
from polyseme.privacy import calibration
from polyseme.privacy.calibration import expected_l2, mechanism_for
from polyseme.privacy.promises import read_promises
from polyseme.semantics.distances.ground import Equal, Ordered
from polyseme.semantics.distances.line import LineDistance

SIZE = 9


def choose(size, distance, promises, *more, **options):
    """With promises as a policy says them."""
    return calibration.choose(size, distance, read_promises(promises), *more, **options)


def worst_distance(mechanism, prior, ground):
    """The largest distance between prior and posterior over every set, from the channel."""
    _, channel = mechanism.channel()
    joint = channel * prior[:, None]
    seen = joint.sum(axis=0) > 0
    return float(ground.work((joint[:, seen] / joint[:, seen].sum(axis=0)).T - prior).max())


def channel_epsilon(mechanism):
    _, channel = mechanism.channel()
    possible = channel.max(axis=0) > 0
    with np.errstate(divide="ignore"):
        return float(np.log(channel[:, possible].max(axis=0) / channel[:, possible].min(axis=0)).max())


@pytest.mark.parametrize(("size", "l"), [(2, 1), (5, 2), (7, 4), (6, 5)])
def test_diversity_is_uniform_over_sets(size, l):
    mechanism = mechanism_for(choose(size, None, {"diversity": {"l": l}}))
    sets, channel = mechanism.channel()
    assert len(sets) == math.comb(size, l)
    np.testing.assert_allclose(channel[channel > 0], 1 / math.comb(size - 1, l - 1))
    np.testing.assert_allclose(mechanism.design.blind_inclusion(), l / size)
    assert mechanism.worst_posterior() == pytest.approx(1 / l)


@pytest.mark.parametrize("name", ["balanced", "simple", "duplicate"])
@pytest.mark.parametrize("t", [0.1, 0.4])
@pytest.mark.parametrize("ground", ["equal", "ordered"])
def test_semantic_diversity_with_closeness(name, t, ground):
    """Far apart and close at once, for the reference; without one, for every prior."""
    line = LineDistance.ranks(SIZE)
    promises = {
        "semantic-diversity": {"l": 3, "d": 2, "mechanism": name},
        "closeness": {"t": t, "ground": ground},
    }
    measure = Equal() if ground == "equal" else Ordered()
    prior = np.random.default_rng(8).dirichlet(np.ones(SIZE))
    known = choose(SIZE, line, promises, reference=prior)
    safe = choose(SIZE, line, promises)
    assert known.p >= safe.p
    mechanism = mechanism_for(known)
    assert np.all(np.diff(mechanism.design.sets(), axis=1) >= 2)
    assert known.p == 1.0 or known.t == pytest.approx(t, abs=1e-9)
    assert known.t <= t + 1e-12
    assert worst_distance(mechanism, prior, measure) == pytest.approx(known.t, abs=1e-9)
    assert channel_epsilon(mechanism) <= known.epsilon + 1e-9
    mechanism = mechanism_for(safe)

    @given(generators())
    def whatever_the_prior(rng):
        prior = rng.dirichlet(np.full(SIZE, rng.choice([0.2, 1.0, 5.0])))
        assert worst_distance(mechanism, prior, measure) <= t + 1e-12

    whatever_the_prior()
    assert channel_epsilon(mechanism) <= safe.epsilon + 1e-9


@pytest.mark.parametrize("name", ["balanced", "simple"])
def test_semantic_diversity_with_ldp(name):
    line = LineDistance.ranks(SIZE)
    promises = {"semantic-diversity": {"l": 2, "d": 3, "mechanism": name}, "ldp": {"epsilon": 1.5}}
    choice = choose(SIZE, line, promises)
    assert (choice.l, choice.binding) == (2, "ldp")
    assert channel_epsilon(mechanism_for(choice)) == pytest.approx(1.5, abs=1e-9)


def test_a_balanced_design_for_a_prior():
    """Unequal inclusion: the smallest one decides."""
    prior = np.array([0.3, 0.25, 0.2, 0.15, 0.1])
    choice = choose(5, None, {"diversity": {"l": 2}, "ldp": {"epsilon": 1.0}}, prior=prior)
    mechanism = mechanism_for(choice)
    np.testing.assert_allclose(mechanism.design.blind_inclusion(), 2 * prior, rtol=1e-6)
    assert channel_epsilon(mechanism) == pytest.approx(1.0, abs=1e-6)
    assert choice.expected_l2(100) is None


def test_what_no_design_can_do():
    with pytest.raises(ImpossibleError):
        mechanism_for(choose(SIZE, LineDistance.ranks(SIZE), {"semantic-diversity": {"l": 5, "d": 4}}))


@pytest.mark.parametrize("promises", [{"closeness": {"t": 0.3}}, {"ldp": {"epsilon": 1.0}}, {"diversity": {"l": 3}}])
def test_expected_error_is_met(promises):
    """Sets really drawn, counted and inverted: Equation 9 within 3% of the root mean square."""
    size, records, runs = 8, 300, 2_500
    choice = choose(size, None, promises)
    mechanism = mechanism_for(choice)
    truth = np.arange(records) ** 2 % size
    shares = np.bincount(truth, minlength=size) / records
    stream = SystemStream.seeded(5)
    inverse = np.linalg.inv(mechanism.inclusion_matrix().T)
    sets = mechanism.sample(np.tile(truth, runs), stream).reshape(runs, -1)
    counts = np.array([np.bincount(row, minlength=size) for row in sets])
    squared = ((counts @ inverse.T / records - shares) ** 2).sum(axis=1)
    assert np.sqrt(squared.mean()) == pytest.approx(choice.expected_l2(records), rel=0.03)
    assert choice.expected_l2(records) == float(expected_l2(records, size, choice.l, choice.p))


def test_a_release_of_three_attributes_verifies():
    """Semantic, close and plain attributes side by side; the verifier works from the cells and public numbers."""
    rng = np.random.default_rng(2)
    shares = rng.dirichlet(np.ones(6))
    line = LineDistance.ranks(SIZE)
    choices = {
        "far": choose(SIZE, line, {"semantic-diversity": {"l": 3, "d": 2}, "closeness": {"t": 0.3}}),
        "near": choose(6, None, {"closeness": {"t": 0.2}, "diversity": {"l": 2}}, reference=shares),
        "plain": choose(5, None, {"diversity": {"l": 4}}),
    }
    mechanisms = {name: mechanism_for(choice) for name, choice in choices.items()}
    codes = {
        "far": rng.integers(0, SIZE, 300),
        "near": rng.choice(6, 300, p=shares),
        "plain": rng.integers(0, 5, 300),
    }
    stream = SystemStream.seeded(3)
    table = pl.DataFrame({name: mechanisms[name].sample(codes[name], stream).tolist() for name in choices})
    promises = {
        "far": {"diversity": {"l": 3}, "entropy-diversity": {"l": 3}, "closeness": {"t": 0.3}},
        "near": {"diversity": {"l": 2}, "closeness": {"t": 0.2}},
        "plain": {"diversity": {"l": 4}, "k-anonymity": {"k": 4}},
    }
    public = {
        "far": sq.Public(SIZE, np.full(SIZE, 1 / SIZE), weights=mechanisms["far"].weights),
        "near": sq.Public(6, shares, choices["near"].p),
        "plain": sq.Public(5),
    }
    verdicts = sq.check(table, promises, public)
    assert all(verdict.holds for verdict in verdicts), verdicts
    # Twice the odds of truth are noticed.
    loose = sq.Public(6, shares, 2 * choices["near"].p / (1 + choices["near"].p))
    classes = sq.classes_for(table, "near", ["near", "far"], 6)
    assert sq.closeness(classes, 0.2, loose).worst > sq.closeness(classes, 0.2, public["near"]).worst


def test_no_truth_at_all():
    """At t = 0 the sets are the same for every value."""
    mechanism = mechanism_for(choose(5, None, {"closeness": {"t": 0}, "diversity": {"l": 2}}))
    _, channel = mechanism.channel()
    np.testing.assert_allclose(channel, channel[0][None, :].repeat(5, axis=0))


def test_one_value():
    mechanism = mechanism_for(choose(1, None, {"closeness": {"t": 0.1}}))
    assert mechanism.sample(np.zeros(3, dtype=np.int64), SystemStream.seeded(1)).tolist() == [[0], [0], [0]]


def test_ten_thousand_values():
    choice = choose(10_000, None, {"diversity": {"l": 5}, "closeness": {"t": 0.3, "size": 5}})
    mechanism = mechanism_for(choice)
    codes = np.arange(2_000)
    sets = mechanism.sample(codes, SystemStream.seeded(1))
    assert sets.shape == (2_000, 5)
    assert np.all(np.diff(sets, axis=1) > 0)
    held = (sets == codes[:, None]).any(axis=1).mean()
    expected = choice.p + (1 - choice.p) * 5 / 10_000
    assert abs(held - expected) <= 5 * math.sqrt(expected / 2_000) + 1e-3
