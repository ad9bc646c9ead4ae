from __future__ import annotations

import numpy as np
import pytest

from polyseme.kernel.errors import PolicyError
from polyseme.semantics.distances import CircleDistance, LineDistance
from polyseme.semantics.distances.base import Circle, Clusters, Line


def test_line_of_ranks_excludes_d_minus_one_neighbors_each_side() -> None:
    structure = LineDistance.ranks(10).structure(2)
    assert isinstance(structure, Line)
    assert structure.ahead.tolist() == [2, 3, 4, 5, 6, 7, 8, 9, 10, 10]


def test_line_keeps_the_order_of_the_domain_in_codes() -> None:
    structure = LineDistance([30, 10, 20]).structure(15)
    assert isinstance(structure, Line)
    assert structure.order.tolist() == [1, 2, 0]
    assert structure.ahead.tolist() == [2, 3, 3]


def test_line_with_everything_compatible_is_clusters_of_one() -> None:
    structure = LineDistance([0, 1, 3]).structure(1)
    assert isinstance(structure, Clusters)
    assert structure.labels.tolist() == [0, 1, 2]


def test_line_agrees_with_the_difference_to_the_last_bit() -> None:
    positions = np.array([0.0, 0.1, 0.2, 0.3, 0.1 + 0.2, 0.4])
    structure = LineDistance(positions).structure(0.3)
    assert isinstance(structure, Line)
    expected = [next((j for j in range(i + 1, 6) if positions[j] - positions[i] >= 0.3), 6) for i in range(6)]
    assert structure.ahead.tolist() == expected


def test_line_where_rounding_swallows_several_positions() -> None:
    # -1 + 1 = 0 lies beyond all of the tiny negative numbers, though each of them is 1.0 away from -1 as floats go.
    structure = LineDistance([-1.0, -3e-20, -2e-20, -1e-20]).structure(1.0)
    assert isinstance(structure, Line)
    assert structure.ahead.tolist() == [1, 4, 4, 4]


@pytest.mark.parametrize("positions", [[1.0, np.nan], [1.0, np.inf], [[1.0]], ["a", "b"], [-1.7e308, 1.7e308]])
def test_line_refuses_what_is_no_position(positions: list[float]) -> None:
    with pytest.raises(PolicyError):
        LineDistance(positions)


def test_line_counts_repeated_positions() -> None:
    with pytest.raises(PolicyError, match="2 of 4 values repeat"):
        LineDistance([1, 1, 1, 2])


def test_line_does_not_hold_on_to_the_array_it_was_given() -> None:
    positions = np.array([1.0, 2.0])
    distance = LineDistance(positions)
    positions[0] = 2.0
    assert distance.positions.tolist() == [1.0, 2.0]


def test_large_line_needs_no_matrix() -> None:
    structure = LineDistance.ranks(200_000).structure(10)
    assert isinstance(structure, Line)
    assert structure.ahead[0] == 10


def test_circle_goes_the_shorter_way_round() -> None:
    hours = CircleDistance(list(range(24)), 24)
    assert hours.between(np.array([23, 0, 6]), np.array([1, 12, 18])).tolist() == [2, 12, 12]
    assert hours.parameters() == {"circle": "rank"}


def test_circle_takes_positions_modulo_its_length() -> None:
    months = CircleDistance(list(range(1, 13)), 12)
    assert months.positions[-1] == 0
    assert months.between(np.array([11]), np.array([0])).tolist() == [1]
    assert CircleDistance([-1e-20, 3], 24).positions.tolist() == [0, 3]


def test_circle_spacing() -> None:
    hours = CircleDistance(list(range(24)), 24)
    for threshold, spacing in [(1.5, 2), (2, 2), (2.0000001, 3), (12, 12), (12.5, 13), (100, 13)]:
        structure = hours.structure(threshold)
        assert isinstance(structure, Circle)
        assert structure.spacing == spacing
    assert isinstance(hours.structure(1), Clusters)


def test_unequal_circle_has_no_spacing() -> None:
    structure = CircleDistance([0, 1, 5], 12).structure(4)
    assert isinstance(structure, Circle)
    assert structure.spacing is None
    assert structure.threshold == 4


def test_nearly_equal_spacing_is_not_equal_spacing() -> None:
    distance = CircleDistance([0, 1, 2.001, 3], 4)
    assert distance.between(np.array([1, 2]), np.array([2, 3])).tolist() == pytest.approx([1.001, 0.999], abs=1e-12)
    structure = distance.structure(1)
    assert isinstance(structure, Circle)
    assert structure.spacing is None


def test_circle_refuses_what_is_no_circle() -> None:
    for length in (0, -1, np.inf, np.nan):
        with pytest.raises(PolicyError, match="length"):
            CircleDistance([1, 2], length)
    with pytest.raises(PolicyError, match="1 of 2 values repeat"):
        CircleDistance([0, 24], 24)
    with pytest.raises(PolicyError, match="finite"):
        CircleDistance([0, np.nan], 24)
