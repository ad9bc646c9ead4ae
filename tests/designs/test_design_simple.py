import numpy as np
import pytest
from design_structures import STRUCTURES, naive_simple, valid_sets

from polyseme.designs import make_design
from polyseme.distances import LineDistance
from polyseme.errors import ImpossibleError


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
