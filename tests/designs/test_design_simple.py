import numpy as np
import pytest
from design_structures import STRUCTURES, circle_of, even_circle, line_of, naive_simple, valid_sets

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


@pytest.mark.parametrize("seed", range(40))
def test_channel_on_random_structures(seed):
    rng = np.random.default_rng(seed)
    size, l = int(rng.integers(4, 10)), int(rng.integers(2, 5))
    structure = [
        line_of(rng.random(size), rng.uniform(0.05, 0.3)),
        circle_of(rng.random(size), 1.0, rng.uniform(0.05, 0.25)),
        even_circle(size, int(rng.integers(1, 4))),
        Clusters(np.unique(rng.integers(0, size, size), return_inverse=True)[1]),
    ][seed % 4]
    sets = valid_sets(structure, l)
    if len(np.unique(sets)) < size:
        with pytest.raises(ImpossibleError):
            make_design("simple", structure, l)
        return
    expected = naive_simple(structure, l)
    found = make_design("simple", structure, l).likelihood(sets)
    for row, values in zip(sets.tolist(), found):
        assert values == pytest.approx([expected[frozenset(row), value] for value in row], rel=1e-12)


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
