"""The closed forms of the earth mover's distance against the linear programme that defines it."""

import numpy as np
import pytest
from scipy.optimize import linprog

from polyseme.distances.base import Distance, recognise
from polyseme.distances.line import LineDistance
from polyseme.distances.tree import TreeDistance
from polyseme.errors import PolicyError
from polyseme.models.closeness import equal_distances, hierarchical_distances, ordered_distances
from polyseme.recipes.ground import Equal, Hierarchical, Ordered, ground_from
from polyseme.tables.classes import Counts


class Given(Distance):
    """A distance from a matrix."""

    kind = "given"

    def __init__(self, matrix):
        self.values = matrix

    @property
    def size(self):
        return len(self.values)

    def between(self, left, right):
        return self.values[left, right]

    def structure(self, threshold):
        return recognise(self.values >= threshold)

    def parameters(self):
        return {"matrix": self.values.tolist()}


def programme(a, b, cost):
    """Definition 5: the cheapest flow from a to b."""
    size = len(a)
    rows, columns = np.kron(np.eye(size), np.ones(size)), np.kron(np.ones(size), np.eye(size))
    solved = linprog(cost.ravel(), A_eq=np.vstack([rows, columns]), b_eq=np.concatenate([a, b]), method="highs")
    return solved.fun


def random_tree(rng, size):
    """Heights of common ancestors in a random tree with equally deep leaves."""
    matrix = np.zeros((size, size))
    labels = np.arange(size)
    for height in (1, 2, 3):
        groups = 1 if height == 3 else int(rng.integers(1, len(np.unique(labels)) + 1))
        merged = rng.integers(0, groups, size)[labels]
        apart = (matrix == 0) & (merged[:, None] == merged[None, :])
        matrix[apart] = height
        labels = merged
    np.fill_diagonal(matrix, 0.0)
    return matrix


@pytest.mark.parametrize("seed", range(25))
def test_work_is_the_optimum_of_the_programme(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 8))
    a, b = rng.dirichlet(np.ones(size)), rng.dirichlet(np.ones(size))
    places = np.arange(size)
    tree = random_tree(rng, size)
    costs = {
        Equal(): 1.0 - np.eye(size),
        Ordered(): np.abs(places[:, None] - places[None, :]) / (size - 1),
        Hierarchical.from_distance(Given(tree)): tree / tree.max(),
    }
    for ground, cost in costs.items():
        assert float(ground.work(b - a)) == pytest.approx(programme(a, b, cost), abs=1e-9)
        assert float(ground.work(b - a)) <= float(Equal().work(b - a)) + 1e-12


@pytest.mark.parametrize("seed", range(10))
def test_a_hierarchy_of_something_else_is_never_too_small(seed):
    rng = np.random.default_rng(seed)
    positions = rng.uniform(0, 10, 6)
    line = LineDistance(positions)
    a, b = rng.dirichlet(np.ones(6)), rng.dirichlet(np.ones(6))
    ground = Hierarchical.from_distance(line)
    assert float(ground.work(b - a)) >= programme(a, b, line.matrix() / line.matrix().max()) - 1e-9


def test_a_tree_agrees_with_the_model_of_ordinary_tables():
    """The same distance by another route: ancestors level by level."""
    rng = np.random.default_rng(9)
    paths = [(f"v{v}", f"a{v // 2}", f"b{v // 5}", "*") for v in range(10)]
    # Every value of a pair has the same grandparent, as a tree must.
    paths = [(leaf, parent, f"b{int(parent[1:]) // 2}", root) for leaf, parent, _, root in paths]
    codes, classes = rng.integers(0, 10, 400) ** 2 // 10, np.arange(400) // 20
    counts = Counts.from_codes(classes, codes, 10)
    levels = np.array([[int(parent[1:]), int(grand[1:]), 0] for _, parent, grand, _ in paths])
    whole = np.bincount(codes, minlength=10) / 400
    shares = np.array([np.bincount(codes[classes == c], minlength=10) / 20 for c in range(20)])
    ground = Hierarchical.from_distance(TreeDistance.from_paths(paths))
    np.testing.assert_allclose(ground.work(shares - whole), hierarchical_distances(counts, levels), atol=1e-12)
    np.testing.assert_allclose(Ordered().work(shares - whole), ordered_distances(counts), atol=1e-12)
    np.testing.assert_allclose(Equal().work(shares - whole), equal_distances(counts), atol=1e-12)


def test_work_takes_many_differences_at_once():
    rng = np.random.default_rng(5)
    difference = rng.dirichlet(np.ones(6), size=(3, 4)) - rng.dirichlet(np.ones(6))
    for ground in (Equal(), Ordered(), Hierarchical.from_distance(LineDistance.ranks(6))):
        one_by_one = [[float(ground.work(difference[i, j])) for j in range(4)] for i in range(3)]
        np.testing.assert_allclose(ground.work(difference), one_by_one)


def test_names():
    assert isinstance(ground_from("equal"), Equal)
    assert isinstance(ground_from("ordered"), Ordered)
    assert isinstance(ground_from("hierarchical", LineDistance.ranks(3)), Hierarchical)
    with pytest.raises(PolicyError, match="did you mean 'ordered'"):
        ground_from("orderd")
    with pytest.raises(PolicyError, match="needs a distance"):
        ground_from("hierarchical")
    # No matrix of all distances for a large domain: the equal ground is never smaller.
    assert isinstance(ground_from("hierarchical", LineDistance.ranks(10_000)), Equal)
    assert float(Hierarchical.from_distance(LineDistance.ranks(1)).work(np.zeros(1))) == 0.0
