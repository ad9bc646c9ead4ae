"""What an attacker who knows the distribution learns: against enumeration, linear programs and measured figures."""

from contextlib import suppress
from functools import cache

import numpy as np
import pytest
from draws import generators
from hypothesis import given, settings
from hypothesis import strategies as st
from learner_structures import STRUCTURES, circle_of, even_circle, line_of, maximal_cliques

from polyseme.demo.walkthrough import income_population
from polyseme.designs import distribution, make_design
from polyseme.designs import leaders as leading
from polyseme.designs.mechanism import Mechanism
from polyseme.kernel.errors import ImpossibleError, PolicyError
from polyseme.privacy.analysis.learner import (
    Population,
    misjudged_posterior,
    misjudged_success,
    range_success,
    range_success_in_groups,
    ranges_of,
    success,
    success_in_groups,
)
from polyseme.semantics.distances import LineDistance
from polyseme.semantics.distances.base import Clusters

RANKS = LineDistance.ranks(14)
DESIGNS = ["balanced", "least-risk", "simple", "duplicate"]


@cache
def designs(name, kind):
    structure, l = STRUCTURES[kind]
    rng = np.random.default_rng(len(kind))
    made = []
    for prior in (None, rng.dirichlet(np.full(structure.size, 8.0))):
        with suppress(ImpossibleError):
            made.append(make_design(name, structure, l, prior))
    return made


def mechanisms(name, kind):
    return [Mechanism(design, p) for design in designs(name, kind) for p in (1.0, 0.7, 0.2)]


@pytest.mark.parametrize("kind", STRUCTURES)
@pytest.mark.parametrize("name", DESIGNS)
def test_success_by_enumeration(name, kind):
    rng = np.random.default_rng(len(kind) + len(name))
    for mechanism in mechanisms(name, kind):
        sets, channel = mechanism.channel()
        shares, belief = rng.dirichlet(np.full(mechanism.size, 0.7), 2)
        joint = shares[:, None] * channel
        assert success(mechanism, shares) == pytest.approx(joint.max(axis=0).sum(), abs=1e-12)
        guess = (belief[:, None] * channel).argmax(axis=0)
        right = joint[guess, np.arange(len(sets))].sum()
        assert success(mechanism, shares, belief) == pytest.approx(right, abs=1e-12)


@pytest.mark.parametrize(("size", "spacing", "l"), [(60, 4, 5), (40, 3, 6)])
def test_circles_with_too_many_sets_to_list_agree_with_the_line_they_are_cut_from(size, spacing, l, monkeypatch):
    monkeypatch.setattr(distribution, "SET_LIMIT", 0)
    rng = np.random.default_rng(size)
    mechanism = Mechanism(make_design("balanced", even_circle(size, spacing), l), 0.9)
    shares = rng.dirichlet(np.ones(size))
    found = success(mechanism, shares)
    codes = rng.choice(size, 40_000, p=shares)
    uniforms = rng.random((mechanism.design.draws, len(codes)))
    sets = mechanism.design.sample(codes, uniforms)
    truthful = rng.random(len(codes)) < 0.9
    sets[~truthful] = mechanism.design.sample_blind(rng.random((mechanism.design.draws + 1, int((~truthful).sum()))))
    inside, outside = mechanism.weights(sets)
    score = shares[sets] * inside
    guess = np.where(
        score.max(axis=1) >= outside * shares.max(), sets[np.arange(len(sets)), score.argmax(axis=1)], shares.argmax()
    )
    assert found == pytest.approx(np.mean(guess == codes), abs=4 * 0.5 / np.sqrt(len(codes)))


@pytest.mark.parametrize("kind", ["circle", "circle-uneven", "circle-tight"])
def test_a_cut_circle_is_the_listed_one(kind, monkeypatch):
    structure, l = STRUCTURES[kind]
    rng = np.random.default_rng(5)
    shares = rng.dirichlet(np.ones(structure.size))
    try:
        design = make_design("balanced", structure, l)
    except ImpossibleError:
        pytest.skip("no balanced design")
    if design.__class__.__name__ == "EnumeratedDesign":
        from polyseme.designs.circle import fit_rooted

        design = fit_rooted(structure, l, design.inclusion())
    listed = success(Mechanism(design, 0.8), shares)
    monkeypatch.setattr(distribution, "SET_LIMIT", 0)
    assert success(Mechanism(design, 0.8), shares) == pytest.approx(listed, abs=1e-12)


def test_large_domains_give_an_upper_bound_close_by(monkeypatch):
    rng = np.random.default_rng(3)
    labels = np.unique(rng.integers(0, 200, 3_000), return_inverse=True)[1].astype(np.int64)
    mechanism = Mechanism(make_design("balanced", Clusters(labels), 3))
    shares = rng.dirichlet(np.ones(3_000))
    exact = success(mechanism, shares)
    monkeypatch.setattr(leading, "_WORK", 200 * 3 * 400)
    bound = success(mechanism, shares)
    assert exact <= bound <= exact * 1.01


def test_a_uniform_domain_of_seventy_thousand_values():
    mechanism = Mechanism(make_design("balanced", Clusters(np.arange(70_000)), 4))
    assert success(mechanism, np.full(70_000, 1 / 70_000)) == pytest.approx(0.25)


@given(seed=st.integers(0, 10_000), p=st.floats(0.0, 1.0))
@settings(max_examples=40, deadline=None)
def test_a_release_never_makes_a_learner_worse_and_lying_never_makes_him_better(seed, p):
    rng = np.random.default_rng(seed)
    structure = line_of(rng.random(8), 0.12)
    try:
        design = make_design("least-risk", structure, 2)
    except ImpossibleError:
        return
    shares = rng.dirichlet(np.ones(8))
    found = success(Mechanism(design, p), shares)
    assert shares.max() - 1e-12 <= found <= success(Mechanism(design), shares) + 1e-12


def test_groups_average_and_worst():
    population = Population(np.array([0.25, 0.75]), np.array([[0.5, 0.3, 0.1, 0.1], [0.25, 0.25, 0.25, 0.25]]))
    found = success_in_groups(Mechanism(make_design("balanced", Clusters(np.arange(4)), 2)), population)
    assert found.average_before == pytest.approx(0.25 * 0.5 + 0.75 * 0.25)
    assert found.after[1] == pytest.approx(0.5)
    assert found.worst_group == 0
    assert found.average == pytest.approx(0.25 * found.worst + 0.75 * 0.5)
    np.testing.assert_allclose(population.margin, [0.3125, 0.2625, 0.2125, 0.2125])


def test_a_population_is_checked():
    with pytest.raises(PolicyError, match="a share for each group"):
        Population(np.array([0.5, 0.4]), np.full((2, 2), 0.5))


# Ranges


@pytest.mark.parametrize("kind", STRUCTURES)
def test_ranges_are_the_largest_crowds(kind):
    structure, _ = STRUCTURES[kind]
    found = ranges_of(structure)
    cliques = {frozenset(codes.tolist()) for codes in np.split(found.codes, found.first[1:-1])}
    assert cliques == maximal_cliques(structure)
    assert len(found) == len(cliques)
    assert found.within(structure)


@pytest.mark.parametrize("kind", STRUCTURES)
@pytest.mark.parametrize("name", ["balanced", "simple"])
def test_range_success_by_enumeration(name, kind):
    rng = np.random.default_rng(len(kind) + len(name))
    for mechanism in mechanisms(name, kind):
        _, channel = mechanism.channel()
        shares = rng.dirichlet(np.ones(mechanism.size))
        for structure in (mechanism.design.structure, *(line_of(np.arange(mechanism.size), d) for d in (2, 5))):
            ranges = ranges_of(structure)
            right = (ranges.members().toarray().T @ (shares[:, None] * channel)).max(axis=0).sum()
            assert range_success(mechanism, ranges, shares) == pytest.approx(right, abs=1e-12)


# A misjudged prior


@pytest.mark.parametrize("p", [1.0, 0.6])
@pytest.mark.parametrize("delta", [0.05, 0.3, 1.0])
def test_the_bound_for_a_misjudged_prior_holds_and_is_reached(delta, p):
    assumed = np.random.default_rng(1).dirichlet(np.full(9, 20.0))
    mechanism = Mechanism(make_design("balanced", LineDistance.ranks(9).structure(2), 3, assumed), p)
    bound = misjudged_posterior(3, delta)
    _, channel = mechanism.channel()

    def largest(off):
        true = assumed * np.exp(off)
        posterior = true[:, None] * channel
        posterior /= posterior.sum(axis=0)
        assert success(mechanism, true / true.sum()) <= bound + 1e-12
        return posterior.max()

    @settings(max_examples=200)
    @given(generators())
    def the_bound_holds(rng):
        assert largest(rng.uniform(-delta, delta, 9)) <= bound + 1e-12

    the_bound_holds()
    # One member raised, the rest lowered: the worst there is.
    worst = max(largest(np.where(np.arange(9) == member, delta, -delta)) for member in range(9))
    assert worst <= bound + 1e-12
    if p == 1.0:
        assert worst == pytest.approx(bound)


@settings(max_examples=50)
@given(generators())
def test_a_success_grows_by_at_most_the_ratio_of_the_shares(rng):
    mechanism = Mechanism(make_design("balanced", RANKS.structure(2), 2), 0.8)
    assumed = rng.dirichlet(np.ones(14))
    true = assumed * np.exp(rng.uniform(-0.2, 0.2, 14))
    true /= true.sum()
    delta = np.abs(np.log(true / assumed)).max()
    assert success(mechanism, true) <= misjudged_success(success(mechanism, assumed), delta) + 1e-12
    apart = np.maximum(true - assumed, 0.0).sum()
    assert success(mechanism, true) <= success(mechanism, assumed) + apart + 1e-12


# The demo: incomes given single years of age and sex, from the law they are generated by


@pytest.mark.parametrize(
    ("l", "d", "learner"), [(2, 2, 0.827), (3, 2, 0.702), (3, 3, 0.733), (3, 4, 0.755)], ids=lambda x: str(x)
)
def test_the_uniform_balanced_design_on_the_demo(l, d, learner):
    mechanism = Mechanism(make_design("balanced", RANKS.structure(d), l))
    found = success_in_groups(mechanism, income_population())
    assert found.average == pytest.approx(learner, abs=5.1e-4)
    assert found.average_before == pytest.approx(0.224, abs=5e-4)


def test_the_three_people_of_the_demo():
    mechanism, population = Mechanism(make_design("balanced", RANKS.structure(4), 3)), income_population()
    assert success(mechanism, np.full(14, 1 / 14)) == pytest.approx(1 / 3)
    assert population.margin.max() == pytest.approx(0.181, abs=5e-4)
    assert success(mechanism, population.margin) == pytest.approx(0.698, abs=5e-4)
    # Who believes the margin in every group is right as often as who sees no groups.
    believer = success_in_groups(mechanism, population, belief=population.margin)
    assert believer.average == pytest.approx(success(mechanism, population.margin), abs=1e-12)
    conditional = success_in_groups(mechanism, population)
    assert conditional.worst == pytest.approx(0.956, abs=5e-4)
    assert conditional.worst_group == 1  # women of 20


@pytest.mark.parametrize(("l", "d", "after"), [(2, 2, 0.92), (3, 4, 0.75)])
def test_guessing_a_range_of_four_classes_on_the_demo(l, d, after):
    mechanism = Mechanism(make_design("balanced", RANKS.structure(d), l))
    found = range_success_in_groups(mechanism, ranges_of(RANKS.structure(4)), income_population())
    assert found.average_before == pytest.approx(0.70, abs=5e-3)
    assert found.average == pytest.approx(after, abs=5e-3)


def test_the_law_of_the_demo_is_that_of_its_table():
    from polyseme.demo.walkthrough import INCOME_CLASSES, income_table

    table = income_table(200_000, seed=4)
    codes = table["income"].replace_strict({name: code for code, name in enumerate(INCOME_CLASSES)}).to_numpy()
    group = (table["age"].to_numpy() - 20) // 10 * 2 + (table["sex"] == "F").to_numpy()
    counts = np.zeros((10, 14))
    np.add.at(counts, (group, codes), 1.0)
    expected = income_population(years=10)
    expected = 200_000 * expected.weights[:, None] * expected.shares
    usual = expected > 5
    deviation = ((counts - expected) ** 2 / np.maximum(expected, 1e-9))[usual]
    assert abs(deviation.mean() - 1.0) < 4 * np.sqrt(2 / usual.sum())


def test_uneven_circles_are_covered():
    structure = circle_of([0, 1, 2.5, 4, 6, 7], 9.0, 2.0)
    design = make_design("balanced", structure, 2)
    assert success(Mechanism(design), np.full(6, 1 / 6)) == pytest.approx(0.5)
