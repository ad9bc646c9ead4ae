from __future__ import annotations

import numpy as np
import pytest

from polyseme.kernel.errors import ImpossibleError, PolicyError
from polyseme.semantics.distances import MatrixDistance, function_distance
from polyseme.semantics.distances.base import Clusters, Graph


def test_structure_is_recognized() -> None:
    distance = MatrixDistance([[0, 1, 2, 2], [1, 0, 2, 2], [2, 2, 0, 1], [2, 2, 1, 0]])
    structure = distance.structure(2)
    assert isinstance(structure, Clusters)
    assert structure.labels.tolist() == [0, 0, 1, 1]
    chain = MatrixDistance([[0, 1, 2], [1, 0, 1], [2, 1, 0]])
    assert isinstance(chain.structure(2), Graph)
    assert isinstance(chain.structure(1), Clusters)


def test_all_problems_at_once() -> None:
    with pytest.raises(PolicyError) as caught:
        MatrixDistance([[1, 2, np.nan], [3, 0, 0], [1, -1, 0]])
    problems = [problem.what for problem in caught.value.problems]
    assert problems == [
        "1 entry is not a finite number, first at row 1, column 3",
        "1 entry is not zero on the diagonal, first at row 1, column 1",
        "2 entries are not positive off the diagonal, first at row 2, column 3",
        "2 entries are not the same in both directions, first at row 1, column 2",
    ]


@pytest.mark.parametrize("given", [[[0, 1]], [[0, 1], [1]], [["a"]], [0, 1]])
def test_not_a_matrix(given: list[list[float]]) -> None:
    with pytest.raises(PolicyError):
        MatrixDistance(given)


def test_any_function() -> None:
    distance = function_distance(lambda u, v: (u - v) ** 2, [1, 2, 4])
    assert distance.matrix().tolist() == [[0, 1, 9], [1, 0, 4], [9, 4, 0]]
    with pytest.raises(PolicyError, match="both directions"):
        function_distance(lambda u, v: u + 2 * v if u != v else 0, [1, 2])
    with pytest.raises(ImpossibleError, match=r"5,001 values"):
        function_distance(lambda u, v: 1.0, range(5_001))


def test_does_not_hold_on_to_the_array_it_was_given() -> None:
    given = np.array([[0.0, 1.0], [1.0, 0.0]])
    distance = MatrixDistance(given)
    given[0, 1] = 5
    assert distance.distances[0, 1] == 1
