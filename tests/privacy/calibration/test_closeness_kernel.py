"""Limits on the odds of truth: safe, tightened, and what Algorithm 1 finds by search."""

from itertools import combinations
from math import comb

import numpy as np
import pytest
from draws import generators
from hypothesis import assume, given, settings

from polyseme.papers.baselines import algorithm_one, largest_p, posteriors
from polyseme.privacy.analysis.closeness import (
    closeness_of_epsilon,
    exact_distance,
    exact_odds,
    probability,
    safe_odds,
    subsets,
    uniform_distance,
    uniform_odds,
)
from polyseme.privacy.calibration import expected_l2
from polyseme.semantics.distances.ground import Equal, Hierarchical, Ordered
from polyseme.semantics.distances.line import LineDistance

SLACK = 1e-12


def grounds(size):
    return [Equal(), Ordered(), Hierarchical.from_distance(LineDistance(np.arange(size) ** 2.0))]


def random_case(rng, largest):
    size = int(rng.integers(2, largest + 1))
    prior = rng.dirichlet(np.full(size, rng.choice([0.1, 0.5, 1.0, 10.0])))
    if rng.random() < 0.1:
        prior[int(rng.integers(size))] = 0.0
        prior /= prior.sum()
    t = float(rng.choice([rng.uniform(0.001, 0.999), 0.1, 0.2, 0.5]))
    return size, prior, int(rng.integers(1, size)), t


def worst(prior, eta, p, ground):
    """The largest distance over every set, from Equation 12."""
    return float(ground.work(posteriors(prior, eta, p) - prior).max())


@pytest.mark.parametrize(("size", "eta"), [(1, 1), (5, 1), (5, 3), (6, 6), (9, 4), (9, 7), (12, 6), (5, 0)])
def test_subsets(size, eta):
    assert subsets(size, eta).tolist() == [list(members) for members in combinations(range(size), eta)]


@pytest.mark.parametrize("p", [0.0, 0.3, 0.9])
def test_posteriors_are_those_of_equation_12(p):
    """With kappa_c and kappa_d as the paper writes them, binomials and all."""
    size, eta = 6, 3
    prior = np.random.default_rng(0).dirichlet(np.ones(size))
    kept = p + (1 - p) * eta / size
    kappa_c, kappa_d = kept / comb(size - 1, eta - 1), (1 - kept) / comb(size - 1, eta)
    for members, posterior in zip(subsets(size, eta), posteriors(prior, eta, p), strict=True):
        joint = np.where(np.isin(np.arange(size), members), kappa_c, kappa_d) * prior
        np.testing.assert_allclose(posterior, joint / joint.sum())


@pytest.mark.slow
def test_ten_thousand_cases_never_exceed_t():
    """The safe form never exceeds t; the tightened one neither, and tells the truth at least as often."""
    rng = np.random.default_rng(20)
    reached = 0
    for case in range(10_000):
        size, prior, eta, t = random_case(rng, 8)
        ground = grounds(size)[case % 3]
        safe = float(probability(safe_odds(t, eta / size)))
        tight = float(probability(uniform_odds(prior, np.array([eta]), t, ground)[0]))
        assert worst(prior, eta, safe, ground) <= t + SLACK
        distance = worst(prior, eta, tight, ground)
        assert distance <= t + SLACK
        assert tight >= safe - SLACK
        assert expected_l2(1, size, eta, tight) <= expected_l2(1, size, eta, safe) * (1 + 1e-9)
        # A truth probability that is 2% of the way to 1 too large is caught: the limit is exact here.
        if tight < 1.0 - 1e-9:
            reached += 1
            assert worst(prior, eta, tight + 0.02 * (1 - tight), ground) > t
    assert reached > 5_000


def test_large_domains_stay_safe():
    """Beyond listing, a bound: checked on the heaviest, the lightest and many random sets."""
    rng = np.random.default_rng(3)
    for size in (30, 500, 10_000):
        prior = rng.dirichlet(np.full(size, 0.3))
        for eta in (1, size // 3, size - 1):
            for t in (0.05, 0.3):
                odds = float(uniform_odds(prior, np.array([eta]), t)[0])
                assert odds >= float(safe_odds(t, eta / size)) * (1 - 1e-12)
                order = np.argsort(prior)
                some = [order[:eta], order[-eta:], *(rng.permutation(size)[:eta] for _ in range(30))]
                sets = np.sort(np.array(some), axis=1)
                pull = np.full(sets.shape, size / eta)
                assert exact_distance(sets, pull, prior, odds, Equal()) <= t + SLACK
                assert uniform_distance(prior, eta, odds) <= t + SLACK


@settings(max_examples=40)
@given(generators())
def test_closed_form_agrees_with_algorithm_one(rng):
    size, prior, _, t = random_case(rng, 7)
    for ground in grounds(size):
        etas = np.arange(1, size)
        odds = uniform_odds(prior, etas, t, ground)
        # Odds beyond 1e12 cannot be told apart by a truth probability in double precision.
        assume((odds[np.isfinite(odds)] < 1e12).all())
        searched = [largest_p(prior, eta, t, ground) for eta in etas.tolist()]
        np.testing.assert_allclose(probability(odds), searched, atol=1e-9)
        p, eta = algorithm_one(prior, t, ground)
        error = expected_l2(1.0, size, etas, probability(odds))
        assert float(expected_l2(1.0, size, eta, p)) == pytest.approx(float(error.min()), rel=1e-6)
        for eta, limit in zip(etas.tolist(), odds.tolist(), strict=True):
            reached = uniform_distance(prior, eta, limit, ground)
            p = float(probability(limit))
            assert reached == pytest.approx(worst(prior, eta, p, ground), abs=1e-9 if limit < 1e6 else 1e-3)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.0, 5.0])
def test_tanh_of_a_quarter_epsilon_is_the_worst_case(epsilon):
    """It is reached by a set of prior mass 1 / (1 + sqrt r), and no prior does worse."""
    size, eta = 6, 2
    ratio = np.exp(epsilon)
    p = float(probability((ratio - 1) * eta / size))
    mass = 1 / (1 + np.sqrt(ratio))
    prior = np.array([mass / 2, mass / 2, *np.full(4, (1 - mass) / 4)])
    assert worst(prior, eta, p, Equal()) == pytest.approx(closeness_of_epsilon(epsilon), rel=1e-12)

    @settings(max_examples=300)
    @given(generators())
    def no_prior_does_worse(rng):
        prior = rng.dirichlet(np.full(size, rng.choice([0.2, 1.0, 5.0])))
        assert worst(prior, eta, p, Equal()) <= closeness_of_epsilon(epsilon) + SLACK

    no_prior_does_worse()
    t = closeness_of_epsilon(epsilon)
    assert ((1 + t) / (1 - t)) ** 2 == pytest.approx(ratio)
    assert float(safe_odds(t, eta / size)) == pytest.approx((ratio - 1) * eta / size)


@settings(max_examples=60)
@given(generators())
def test_any_design(rng):
    """Sets with unequal probabilities: the largest ratio is safe, listing is exact."""
    size, prior, eta, t = random_case(rng, 7)
    sets = subsets(size, eta)
    sets = sets[rng.random(len(sets)) < 0.8] if rng.random() < 0.5 else sets
    assume(len(sets))
    weight = rng.dirichlet(np.ones(len(sets)))
    rho = np.bincount(sets.ravel(), weights=np.repeat(weight, eta), minlength=size)
    possible = rho > 0
    prior = np.where(possible, prior, 0.0)
    if prior.sum() == 0.0:
        return
    prior /= prior.sum()
    pull = 1.0 / rho[sets]
    for ground in grounds(size):
        safe, exact = float(safe_odds(t, rho[possible].min())), exact_odds(sets, pull, prior, t, ground)
        assert exact >= safe * (1 - 1e-12)
        for odds in (safe, exact):
            p = float(probability(odds))
            channel = np.full((size, len(sets)), 1 - p) * weight
            for column, members in enumerate(sets):
                channel[members, column] += p * weight[column] / rho[members]
            joint = channel * prior[:, None]
            seen = joint.sum(axis=0) > 0
            shift = (joint[:, seen] / joint[:, seen].sum(axis=0)).T - prior
            distance = float(ground.work(shift).max())
            assert distance <= t + SLACK
            assert distance == pytest.approx(exact_distance(sets, pull, prior, odds, ground), abs=1e-9)
        if np.isfinite(exact):
            assert distance == pytest.approx(t, abs=1e-9)


def test_ends_of_the_scale():
    prior = np.array([0.5, 0.3, 0.2])
    etas = np.array([1, 2])
    assert uniform_odds(prior, etas, 0.0).tolist() == [0.0, 0.0]
    assert np.isinf(uniform_odds(prior, etas, 1.0)).all()
    assert np.isinf(safe_odds(1.0, 0.5))
    assert float(safe_odds(0.0, 0.5)) == 0.0
    assert float(probability(np.inf)) == 1.0
    assert uniform_distance(prior, 1, np.inf) == pytest.approx(0.8)
    assert uniform_distance(prior, 3, np.inf) == 0.0
    assert uniform_distance(np.array([0.6, 0.4, 0.0, 0.0]), 2, np.inf) == pytest.approx(0.6)


def test_probabilities_are_rounded_down():
    """Near 1 the odds of a rounded p can be far above what was allowed."""
    for epsilon in np.linspace(20, 200, 500):
        odds = float(np.expm1(epsilon))
        p = float(probability(odds))
        assert p < 1.0
        assert p / (1 - p) <= odds
