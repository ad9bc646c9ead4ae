"""Calibrating a learner's success, and the dials alpha and p on the demo."""

import time

import numpy as np
import pytest
from learner_structures import STRUCTURES, circle_of, line_of, random_graph, valid_sets

from polyseme.demo.walkthrough import INCOME_CLASSES, income_population
from polyseme.designs import make_design
from polyseme.designs.balanced import near_floor, tempered, tempered_prior
from polyseme.designs.mechanism import Mechanism
from polyseme.kernel.errors import ImpossibleError
from polyseme.kernel.randomness import experiment
from polyseme.privacy.analysis.learner import Population, success, success_in_groups
from polyseme.privacy.analysis.lower_bound import floor
from polyseme.privacy.analysis.success_limit import calibrate, learner_frontier
from polyseme.semantics.distances import LineDistance, MatrixDistance

RANKS = LineDistance.ranks(14)
DECADES = np.arange(100) // 20 * 2 + np.arange(100) % 2
"""The stratum of each year of age and sex: ten years of age and sex."""


# The figures of the demo: a learner knows single years of age; strata are decades of age by sex.


@pytest.mark.parametrize(
    ("l", "d", "alpha", "p", "learner", "error"),
    [
        (2, 2, 0.0, 1.0, 0.827, 6.8),
        (2, 2, 0.45, 1.0, 0.651, 9.1),
        (2, 2, 0.75, 0.8, 0.494, 15.9),
        (2, 2, 0.0, 0.5, 0.485, 22.2),
        (3, 2, 0.3, 1.0, 0.537, 15.7),
        (3, 2, 0.0, 0.7, 0.538, 20.5),
    ],
)
def test_the_dials_on_the_demo(l, d, alpha, p, learner, error):
    point = learner_frontier(RANKS.structure(d), l, income_population(), [alpha], [p], DECADES)[0]
    assert point.success == pytest.approx(learner, abs=1.5e-3)
    # Errors of the dial were simulated, so they are known to a few percent; those of lying alone are exact.
    assert point.root_error(14, 100_000) * 1e4 == pytest.approx(error, abs=0.03 * error if alpha > 0 else 0.06)


def test_the_frontier_needs_both_dials():
    points = learner_frontier(
        RANKS.structure(2), 2, income_population(), [0.0, 0.25, 0.5, 0.75, 1.0], [1.0, 0.9, 0.8, 0.65, 0.5], DECADES
    )
    best = [one for one in points if not any(o.success < one.success and o.error < one.error for o in points)]
    assert any(point.alpha > 0 and point.p < 1 for point in best)


# Calibration


@pytest.fixture(scope="module")
def calibrated():
    return calibrate(RANKS, 2, 2, income_population(), 0.5, strata=DECADES)


def test_every_stratum_keeps_the_promise(calibrated):
    population = income_population()
    for stratum, found in enumerate(calibrated.strata):
        part = population.part(np.flatnonzero(stratum == DECADES))
        reached = success_in_groups(found.mechanism, part)
        assert reached.average == pytest.approx(found.success, abs=1e-12)
        assert reached.average <= 0.5 + 1e-9
    assert calibrated.worst <= 0.5 + 1e-9
    assert "the least expected error that keeps the promise" in calibrated.lines()[1]


def test_both_dials_have_a_quarter_less_error_than_lying_alone(calibrated):
    alone = [
        point
        for point in learner_frontier(
            RANKS.structure(2), 2, income_population(), [0.0], np.linspace(0.3, 1.0, 29), DECADES
        )
        if point.success <= 0.5
    ]
    lying = min(point.root_error(14, 100_000) for point in alone)
    assert calibrated.root_error(100_000) <= 0.75 * lying


def test_who_knows_the_true_distribution_is_held_to_the_promise(calibrated):
    """100,000 people with sets of the calibrated mechanisms; guessed is the likeliest value given age, sex and set."""
    population, rng = income_population(), np.random.default_rng(8)
    people = rng.multinomial(100_000, population.weights)
    right, total = np.zeros(10), np.zeros(10)
    for group, count in enumerate(people):
        shares, mechanism = population.shares[group], calibrated.strata[DECADES[group]].mechanism
        codes = rng.choice(14, count, p=shares)
        sets = mechanism.sample(codes, experiment_stream(group))
        inside, outside = mechanism.weights(sets)
        score = shares[sets] * inside
        member = sets[np.arange(count), score.argmax(axis=1)]
        guess = np.where(score.max(axis=1) >= outside * shares.max(), member, shares.argmax())
        right[DECADES[group]] += np.sum(guess == codes)
        total[DECADES[group]] += count
    assert right.sum() / total.sum() <= 0.5 + 3 * 0.5 / np.sqrt(total.sum())
    assert np.all(right / total <= 0.5 + 4 * 0.5 / np.sqrt(total))


def experiment_stream(seed):
    class Stream:
        def __init__(self):
            self.random = experiment(seed)

        def uniforms(self, draws, count):
            return self.random.random((draws, count))

    return Stream()


def test_truthful_sets_keep_what_the_floor_allows():
    population = income_population(years=10).part(np.array([4, 6]))
    found = calibrate(RANKS, 2, 2, population, 0.52, truthful=True)
    assert all(each.p == 1.0 for each in found.strata)
    assert found.worst <= 0.52
    assert found.root_error(100_000) < 0.01


def test_a_target_near_the_floor_is_reached_by_a_design_near_it():
    shares = np.array([0.05, 0.38, 0.4, 0.05, 0.04, 0.04, 0.04])
    structure, line = LineDistance.ranks(7).structure(2), LineDistance.ranks(7)
    least = floor(structure, 2, shares).value
    found = calibrate(line, 2, 2, Population.of(shares), least + 0.004, truthful=True)
    assert least <= found.worst <= least + 0.004


def test_below_the_floor_truthful_sets_are_refused_by_name():
    with pytest.raises(ImpossibleError) as caught:
        calibrate(RANKS, 3, 4, income_population(), 0.5, truthful=True, labels=INCOME_CLASSES)
    message = str(caught.value)
    assert "0.9272" in message
    assert "a set holds only one of the values <1M, 1-2M, 2-3M, 3-4M, which 92.7% of the people have" in message
    assert "(3, 1)" in message
    assert "truthful: false" in message


def test_what_is_known_without_a_release_cannot_be_promised():
    with pytest.raises(ImpossibleError, match=r"0\.3835 in one stratum without any release"):
        calibrate(RANKS, 2, 2, income_population(), 0.3)


def test_one_distribution_for_everybody_and_a_uniform_one():
    found = calibrate(RANKS, 2, 2, Population.of(np.full(14, 1 / 14)), 0.5)
    assert found.strata[0].p == 1.0
    assert found.strata[0].alpha == 0.0
    assert found.success == pytest.approx(0.5)


def test_any_distance_will_do():
    rng = np.random.default_rng(0)
    places = rng.random((9, 2))
    between = np.abs(places[:, None] - places).sum(axis=2).round(3)
    shares = rng.dirichlet(np.ones(9), 2)
    found = calibrate(MatrixDistance(between), 2, 0.4, Population(np.array([0.4, 0.6]), shares), 0.6)
    assert found.worst <= 0.6


def test_a_hundred_and_fifty_values_take_seconds():
    """Some 400,000 valid sets: success and error without a list of them."""
    places = np.arange(150)
    shares = np.array([np.exp(-(((places - center) / 20) ** 2)) + 0.02 for center in (45, 90)])
    population = Population(np.array([0.5, 0.5]), shares / shares.sum(axis=1, keepdims=True))
    start = time.perf_counter()
    found = calibrate(LineDistance.ranks(150), 3, 8, population, 0.45)
    assert found.worst <= 0.45 + 1e-9
    assert time.perf_counter() - start < 60


# The designs


@pytest.mark.parametrize("kind", STRUCTURES)
@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_tempered_designs_are_balanced_where_that_is_possible(kind, alpha):
    structure, l = STRUCTURES[kind]
    rng = np.random.default_rng(len(kind))
    shares = rng.dirichlet(np.ones(structure.size))
    try:
        design = tempered(structure, l, shares, alpha)
    except ImpossibleError:
        assert len(np.unique(valid_sets(structure, l))) < structure.size or kind.endswith("tight")
        return
    prior = tempered_prior(shares, alpha)
    if design.name == "balanced":
        np.testing.assert_allclose(design.inclusion(), l * prior, rtol=1e-8)
        assert success(Mechanism(design), prior) == pytest.approx(1 / l)
    else:
        with pytest.raises(ImpossibleError):
            make_design("balanced", structure, l, prior)
        assert success(Mechanism(design), shares) >= floor(structure, l, shares).value - 1e-9


@pytest.mark.parametrize("kind", ["line", "circle", "graph"])
def test_near_the_floor(kind):
    rng = np.random.default_rng(3)
    structure = {
        "line": line_of(np.arange(9), 2),
        "circle": circle_of(np.arange(9), 9.0, 2.0),
        "graph": random_graph(9, 0.75, 3),
    }[kind]
    shares = rng.dirichlet(np.full(9, 0.8))
    least = floor(structure, 3, shares).value
    reached = [success(Mechanism(near_floor(structure, 3, shares, step)), shares) for step in (0.3, 0.03, 0.003)]
    assert reached[0] >= reached[1] >= reached[2] >= least - 1e-4
    assert reached[2] <= least + 0.01
