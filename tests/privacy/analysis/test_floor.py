"""The floor of a learner's success, against the linear program that defines it."""

import time

import numpy as np
import pytest
from draws import generators
from hypothesis import assume, given, settings
from learner_structures import circle_of, line_of, random_graph, valid_sets
from scipy.optimize import linprog

from polyseme.demo.walkthrough import INCOME_CLASSES, income_population
from polyseme.designs import make_design
from polyseme.designs.balanced import floor_posterior, reach_of
from polyseme.designs.mechanism import Mechanism
from polyseme.kernel.errors import ImpossibleError
from polyseme.privacy.analysis import lower_bound as floors
from polyseme.privacy.analysis.learner import success
from polyseme.privacy.analysis.lower_bound import floor
from polyseme.semantics.distances import LineDistance
from polyseme.semantics.distances.base import Clusters

KINDS = ["line", "circle", "clusters", "graph"]


def random_structure(kind, rng):
    size = int(rng.integers(5, 13))
    if kind == "line":
        return line_of(rng.permutation(rng.random(size)), float(rng.uniform(0.05, 0.45)))
    if kind == "circle":
        return circle_of(rng.random(size), 1.0, float(rng.uniform(0.05, 0.3)))
    if kind == "clusters":
        return Clusters(np.unique(rng.integers(0, 5, size), return_inverse=True)[1].astype(np.int64))
    return random_graph(size, 0.6, int(rng.integers(1_000)))


def members(sets, size):
    matrix = np.zeros((size, len(sets)))
    matrix[sets.T, np.arange(len(sets))] = 1.0
    return matrix


@pytest.mark.parametrize("kind", KINDS)
def test_the_floor_is_the_least_cover_and_its_bets_prove_it(kind):
    rng = np.random.default_rng(KINDS.index(kind))
    done = 0
    while done < 60:
        structure, l = random_structure(kind, rng), int(rng.integers(1, 5))
        shares = rng.dirichlet(np.full(structure.size, rng.choice([0.3, 1.0, 3.0])))
        sets = valid_sets(structure, l)
        if len(np.unique(sets)) < structure.size:
            with pytest.raises(ImpossibleError):
                floor(structure, l, shares)
            continue
        matrix = members(sets, structure.size)
        cover = linprog(np.ones(len(sets)), A_ub=-matrix, b_ub=-shares, method="highs").fun
        found = floor(structure, l, shares)
        # A linear program keeps its conditions to 1e-7.
        assert found.value == pytest.approx(cover, abs=2e-7)
        assert found.exact
        assert (matrix.T @ found.bets).max() <= 1.0 + 1e-9
        assert shares @ found.bets == pytest.approx(found.value, rel=1e-9)
        done += 1


def test_windows_that_cover_a_line_prove_more_than_a_clique():
    # Values 1 and 4 are far enough apart, but no set of three holds both.
    shares = np.array([0.01, 0.48, 0.01, 0.01, 0.48, 0.01])
    found = floor(line_of(np.arange(6), 2), 3, shares)
    assert found.value == pytest.approx(0.96)
    assert found.clique.codes.tolist() == [1, 4]
    assert found.why() == "a set holds only one of the values 1, 4, which 96.0% of the people have"


def test_several_members_of_a_covering():
    # Nine values, four apart by two: of 1, 3, 5, 7 a set of four holds at most .. as the program says.
    shares = np.array([0.01, 0.24, 0.01, 0.24, 0.0, 0.24, 0.01, 0.24, 0.01])
    structure = line_of(np.arange(9), 2)
    sets = valid_sets(structure, 4)
    cover = linprog(np.ones(len(sets)), A_ub=-members(sets, 9), b_ub=-shares, method="highs").fun
    assert floor(structure, 4, shares).value == pytest.approx(cover)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=10)
@given(generators())
def test_no_design_goes_below_and_one_attains_it(kind, rng):
    structure = random_structure(kind, rng)
    shares = rng.dirichlet(np.ones(structure.size)) + 1e-3
    shares /= shares.sum()
    sets = valid_sets(structure, 2)
    assume(len(np.unique(sets)) == structure.size)
    value = floor(structure, 2, shares).value
    for name in ("balanced", "least-risk", "simple"):
        try:
            design = make_design(name, structure, 2, shares)
        except ImpossibleError:
            continue
        assert success(Mechanism(design), shares) >= value - 1e-9
    # Any distribution over sets with rho >= pi / V* attains it.
    matrix = members(sets, structure.size)
    weights = linprog(np.ones(len(sets)), A_ub=-matrix, b_ub=-shares, method="highs").x
    chance = weights / weights.sum()
    rho = matrix @ chance
    attained = sum(chance[r] * (shares / rho)[row].max() for r, row in enumerate(sets) if chance[r] > 0)
    assert attained == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize("size", [40, 2_000])
def test_long_lines_against_the_program_of_sums(size):
    rng = np.random.default_rng(size)
    positions = np.sort(rng.random(size))
    structure = line_of(positions, 0.07) if size < 100 else LineDistance.ranks(size).structure(90)
    shares = rng.dirichlet(np.full(size, 0.3))
    assert floor(structure, 5, shares).value == pytest.approx(floor_posterior(reach_of(structure, 5), shares), rel=1e-6)


def test_seventy_thousand_values_take_seconds():
    rng = np.random.default_rng(0)
    start = time.perf_counter()
    floor(LineDistance.ranks(70_000).structure(3_000), 5, rng.dirichlet(np.ones(70_000)))
    assert time.perf_counter() - start < 20


def test_beyond_what_is_listed_it_is_a_bound(monkeypatch):
    monkeypatch.setattr(floors, "LISTED_LIMIT", 3)
    rng = np.random.default_rng(7)
    structure, shares = circle_of(rng.random(9), 1.0, 0.2), rng.dirichlet(np.ones(9))
    found = floor(structure, 2, shares)
    monkeypatch.undo()
    assert not found.exact
    assert found.value <= floor(structure, 2, shares).value + 1e-9


@pytest.mark.parametrize(
    ("l", "d", "expected"), [(2, 2, 0.511), (3, 2, 0.431), (3, 3, 0.571), (3, 4, 0.699)], ids=lambda x: str(x)
)
def test_the_floors_of_the_demo(l, d, expected):
    population = income_population()
    structure = LineDistance.ranks(14).structure(d)
    found = [floor(structure, l, shares) for shares in population.shares]
    average = population.weights @ [each.value for each in found]
    assert average == pytest.approx(expected, abs=5.1e-4)
    worst = max(found, key=lambda each: each.value)
    if (l, d) == (3, 4):
        assert worst.why(INCOME_CLASSES).startswith("a set holds only one of the values <1M, 1-2M, 2-3M, 3-4M, which")
