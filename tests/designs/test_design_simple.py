from fractions import Fraction
from itertools import combinations, pairwise
from math import floor

import numpy as np
import pytest
from design_structures import STRUCTURES, circle_of, even_circle, line_of, naive_simple, valid_sets
from draws import generators
from hypothesis import given, settings

from polyseme.designs import make_design
from polyseme.kernel.errors import ImpossibleError
from polyseme.semantics.distances import LineDistance
from polyseme.semantics.distances.base import Clusters


@pytest.mark.parametrize("name", STRUCTURES)
def test_channel_is_the_sum_over_all_orders_of_draws(name):
    structure, l = STRUCTURES[name]
    design = make_design("simple", structure, l)
    expected = naive_simple(structure, l)
    sets = design.sets()
    assert np.array_equal(sets, valid_sets(structure, l))
    found = design.likelihood(sets)
    for row, values in zip(sets.tolist(), found):
        for value, probability in zip(row, values):
            assert probability == pytest.approx(expected.get((frozenset(row), value), 0.0), rel=1e-12)


@pytest.mark.parametrize(
    ("l", "d", "worst"), [(2, 3, 0.550), (2, 6, 0.727), (2, 7, 0.875), (3, 2, 0.365), (3, 4, 0.506), (4, 3, 0.393)]
)
def test_worst_posterior_on_14_ranks(l, d, worst):
    design = make_design("simple", LineDistance.ranks(14).structure(d), l)
    assert design.worst_posterior(np.full(14, 1 / 14), 1.0) == pytest.approx(worst, abs=5e-4)


def test_a_value_without_room_is_named():
    with pytest.raises(ImpossibleError, match="value"):
        make_design("simple", LineDistance.ranks(14).structure(7), 3)


STRUCTURE_OF = {
    "line": lambda rng, size: line_of(rng.random(size), rng.uniform(0.05, 0.3)),
    "circle": lambda rng, size: circle_of(rng.random(size), 1.0, rng.uniform(0.05, 0.25)),
    "even circle": lambda rng, size: even_circle(size, rng.integers(1, 4)),
    "clusters": lambda rng, size: Clusters(np.unique(rng.integers(0, size, size), return_inverse=True)[1]),
}


@pytest.mark.parametrize("kind", STRUCTURE_OF)
@settings(max_examples=25)
@given(generators())
def test_channel_on_random_structures(kind, rng):
    size, l = rng.integers(4, 10), rng.integers(2, 5)
    structure = STRUCTURE_OF[kind](rng, size)
    sets = valid_sets(structure, l)
    if len(np.unique(sets)) < size:
        with pytest.raises(ImpossibleError):
            make_design("simple", structure, l)
        return
    expected = naive_simple(structure, l)
    found = make_design("simple", structure, l).likelihood(sets)
    for row, values in zip(sets.tolist(), found):
        assert values == pytest.approx([expected[frozenset(row), value] for value in row], rel=1e-12)


def printed_channel(size, l, d):
    """P(R | v) of Algorithm 1 with line 10 repeated until Inequality 10 holds: Equations 5 to 9 as they are printed.

    Values are 1 to F; drawing again until something passes is a uniform draw among what passes.
    """

    def apart(i, j):
        return Fraction(j - i) if i < j else Fraction((size - 1) - abs(i - j) + 1)

    def most(members):
        found = sorted(members)
        return sum(floor(apart(e, found[(i + 1) % len(found)]) / d - 1) for i, e in enumerate(found))

    channel = {}

    def draw(true, members, chance):
        if len(members) == l:
            place = (frozenset(members), true)
            channel[place] = channel.get(place, 0) + chance
            return
        extract = [v for v in range(1, size + 1) if all(abs(v - m) >= d for m in members)]
        passing = [v for v in extract if most([*members, v]) >= l - len(members) - 1]
        for v in passing:
            draw(true, [*members, v], chance / len(passing))

    for true in range(1, size + 1):
        draw(true, [true], Fraction(1))
    return channel


def surest(channel, size):
    """The largest posterior with a uniform prior."""
    sets = {one for one, _ in channel}
    return max(max(channel.get((one, v), 0) for v in one) / sum(channel.get((one, v), 0) for v in one) for one in sets)


@pytest.mark.parametrize(
    ("size", "l", "d"), [(14, 2, 6), (14, 2, 7), (14, 3, 4), (9, 3, 2), (11, 3, 3), (10, 4, 2), (13, 4, 3)]
)
def test_the_printed_check_is_that_of_equations_5_to_10(size, l, d):
    expected = printed_channel(size, l, d)
    design = make_design("simple-printed", LineDistance.ranks(size).structure(d), l)
    sets = [one for one in combinations(range(size), l) if all(b - a >= d for a, b in pairwise(one))]
    found = design.likelihood(np.array(sets))
    for one, values in zip(sets, found):
        key = frozenset(v + 1 for v in one)
        assert values == pytest.approx([float(expected.get((key, v + 1), 0)) for v in one], abs=1e-12)
    assert design.worst_posterior(np.full(size, 1 / size), 1.0) == pytest.approx(float(surest(expected, size)))
    generator = np.random.default_rng(1)
    drawn = design.sample(np.repeat(np.arange(size), 3000), generator.random((l - 1, 3000 * size)))
    assert {frozenset(row) for row in (drawn + 1).tolist()} <= {key for key, _ in expected}
    seen = np.array(
        [
            [(drawn[true * 3000 : (true + 1) * 3000] == v).any(axis=1).mean() for v in range(size)]
            for true in range(size)
        ]
    )
    assert np.abs(seen - design.conditional_inclusion(np.arange(size))).max() < 0.05


@pytest.mark.parametrize(
    ("l", "d", "exact", "printed"),
    [
        (2, 3, 0.550, 0.550),
        (2, 6, 0.727, 0.625),
        (2, 7, 0.875, 0.500),
        (3, 2, 0.365, 0.365),
        (3, 4, 0.506, 0.455),
        (4, 3, 0.393, 0.393),
    ],
)
def test_what_the_two_checks_reveal_on_14_ranks(l, d, exact, printed):
    structure, even = LineDistance.ranks(14).structure(d), np.full(14, 1 / 14)
    assert make_design("simple", structure, l).worst_posterior(even, 1.0) == pytest.approx(exact, abs=5e-4)
    assert make_design("simple-printed", structure, l).worst_posterior(even, 1.0) == pytest.approx(printed, abs=5e-4)
    assert float(surest(printed_channel(14, l, d), 14)) == pytest.approx(printed, abs=5e-4)


def test_the_printed_check_never_ends_where_a_set_of_l_does_not_fit_round_a_circle():
    for size, l, d in [(7, 2, 4), (8, 3, 3), (9, 2, 5)]:
        assert printed_channel(size, l, d) == {}
        with pytest.raises(ImpossibleError, match="rejects every decoy"):
            make_design("simple-printed", LineDistance.ranks(size).structure(d), l)
    for structure in (even_circle(9, 2), LineDistance([0, 1, 3, 4, 9]).structure(2)):
        with pytest.raises(ImpossibleError, match="equally spaced values in a row"):
            make_design("simple-printed", structure, 2)


def naive_duplicate(size, d, l):
    """K(R | v) of Algorithm 3, excluding rank by rank in the order of the members."""
    channel = {}

    def excluded(members):
        gone = set()
        for member in members:
            rank, new = member - d + 1, 0
            while new < 2 * d - 1:
                if rank % size not in gone:
                    gone.add(rank % size)
                    new += 1
                rank += 1
        return gone

    def draw(true, members, probability):
        if len(members) == l:
            channel[frozenset(members), true] = channel.get((frozenset(members), true), 0.0) + probability
            return
        candidates = sorted(set(range(size)) - excluded(members))
        for candidate in candidates:
            draw(true, [*members, candidate], probability / len(candidates))

    for value in range(size):
        draw(value, [value], 1.0)
    return channel


@pytest.mark.parametrize(("size", "d", "l"), [(9, 2, 3), (11, 2, 4), (12, 3, 3), (8, 1, 4), (10, 2, 3), (7, 3, 2)])
def test_duplicate_channel_follows_the_algorithm_rank_by_rank(size, d, l):
    expected = naive_duplicate(size, d, l)
    for structure in (LineDistance.ranks(size).structure(d), even_circle(size, d)):
        design = make_design("duplicate", structure, l)
        sets = design.sets()
        listed = {frozenset(row) for row in sets.tolist()}
        assert {members for members, _ in expected} <= listed
        for row, values in zip(sets.tolist(), design.likelihood(sets)):
            wanted = [expected.get((frozenset(row), value), 0.0) for value in row]
            assert values == pytest.approx(wanted, rel=1e-12, abs=1e-15)
