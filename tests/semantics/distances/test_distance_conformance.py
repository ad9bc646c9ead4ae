"""Laws that hold for every distance."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyseme.semantics.distances import (
    CircleDistance,
    Distance,
    LatticeDistance,
    LineDistance,
    MatrixDistance,
    TreeDistance,
    distance_from,
    function_distance,
    taxonomy_distance,
)
from polyseme.semantics.distances.base import Circle, Clusters, Graph, Structure
from polyseme.testing import check_distance
from polyseme.testing.distances import (
    broadcasts,
    compatible_pairs,
    finds_clusters,
    ignores_the_order_of_values,
    is_a_distance,
    pairs,
    shows_no_values,
    structure_agrees,
    survives_json,
    thresholds,
)

ADULT = [
    "Bachelors", "Some-college", "11th", "HS-grad", "Prof-school", "Assoc-acdm", "Assoc-voc", "9th", "7th-8th", "12th",
    "Masters", "1st-4th", "10th", "Doctorate", "5th-6th", "Preschool",
]  # fmt: skip

EQUAL_PATHS = [(f"v{i}", f"g{i // 2}", f"h{i // 5}", "*") for i in range(13)]
UNEQUAL_PATHS = [
    ("a", "p", "*"), ("b", "p", "*"), ("c", "q", "p", "*"), ("d", "q", "p", "*"), ("e", "*"), ("f", "r", "s", "t", "*"),
    ("g", "r", "s", "t", "*"), ("q", "p", "*"), ("t", "*"), ("h", "u", "t", "*"),
]  # fmt: skip
PARENTS = {
    "10": ["10-20", "0-10"], "20": ["10-20", "20-30"], "30": ["20-30", "30-40"], "40": ["30-40"],
    "0-10": ["low"], "10-20": ["low", "middle"], "20-30": ["middle", "high"], "30-40": ["high"],
    "low": ["all"], "middle": ["all"], "high": ["all"], "odd": [],
}  # fmt: skip

Case = tuple[Callable[[Sequence[int]], Distance], int]


def _positions(values: Sequence[float], make: Callable[[list[float]], Distance]) -> Case:
    return lambda order: make([values[i] for i in order]), len(values)


def _paths(paths: Sequence[tuple[str, ...]], measure: str) -> Case:
    return lambda order: TreeDistance.from_paths([paths[i] for i in order], measure), len(paths)  # type: ignore[arg-type]


def _labels(labels: Sequence[str], make: Callable[[list[str]], Distance]) -> Case:
    return lambda order: make([labels[i] for i in order]), len(labels)


RANDOM = np.random.default_rng(5).integers(1, 6, (9, 9)).astype(float)
SYMMETRIC = np.triu(RANDOM, 1) + np.triu(RANDOM, 1).T

CASES: dict[str, Case] = {
    "line ranks": _positions(list(range(14)), LineDistance),
    "line uneven": _positions([*range(1, 11), 15, 20, 25, 30], LineDistance),
    "line floats": _positions([0.1 * i for i in range(12)], LineDistance),
    "line unsorted": _positions([3.5, -2, 7, 0.25, 7.1], LineDistance),
    "line of one": _positions([4.0], LineDistance),
    "circle hours": _positions(list(range(24)), lambda x: CircleDistance(x, 24)),
    "circle even floats": _positions([0.1 * i for i in range(10)], lambda x: CircleDistance(x, 1)),
    "circle odd count": _positions([i * 360 / 7 for i in range(7)], lambda x: CircleDistance(x, 360)),
    "circle uneven": _positions([0, 1, 1.5, 6, 11.9], lambda x: CircleDistance(x, 12)),
    "circle of one": _positions([3.0], lambda x: CircleDistance(x, 12)),
    "circle of two": _positions([3.0, 9.0], lambda x: CircleDistance(x, 12)),
    "tree ancestor": _paths(EQUAL_PATHS, "ancestor"),
    "tree path": _paths(EQUAL_PATHS, "path"),
    "tree unequal ancestor": _paths(UNEQUAL_PATHS, "ancestor"),
    "tree unequal path": _paths(UNEQUAL_PATHS, "path"),
    "lattice": _labels(["10", "20", "30", "40", "middle", "odd"], lambda v: LatticeDistance.from_parents(PARENTS, v)),
    "matrix": (lambda order: MatrixDistance(SYMMETRIC[np.ix_(order, order)]), 9),
    "function": _labels(
        ["a", "bb", "ccc", "dd"], lambda v: function_distance(lambda x, y: abs(len(x) - len(y)) + (x != y), v)
    ),
    "education": _labels(ADULT, lambda v: taxonomy_distance("education", v)),
    "icd10": _labels(
        ["J45.0", "J45.1", "J45", "J44.9", "J30-J39", "K02.9", "C4A.1", "XI"], lambda v: taxonomy_distance("icd10", v)
    ),
}


@pytest.fixture(params=CASES, ids=str)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


def test_symmetric_and_zero_only_on_the_diagonal(case: Case) -> None:
    make, size = case
    is_a_distance(make(range(size)))


def test_structure_says_the_same_as_the_distance(case: Case) -> None:
    make, size = case
    distance = make(range(size))
    for threshold in thresholds(distance):
        structure_agrees(distance, threshold)


def test_clusters_are_found_whenever_closeness_is_an_equivalence(case: Case) -> None:
    make, size = case
    finds_clusters(make(range(size)))


def test_parameters_round_trip_through_json(case: Case) -> None:
    make, size = case
    survives_json(make(range(size)))


def test_order_of_the_values_does_not_matter(case: Case) -> None:
    make, size = case
    ignores_the_order_of_values(make, size)


def test_shows_itself_without_its_values(case: Case) -> None:
    make, size = case
    shows_no_values(make(range(size)))


def test_between_broadcasts(case: Case) -> None:
    make, size = case
    broadcasts(make(range(size)))


def test_the_whole_suite_holds(case: Case) -> None:
    make, size = case
    check_distance(make(range(size)), make)


class Lopsided(MatrixDistance):
    """Farther one way than the other."""

    def between(self, left, right):  # type: ignore[no-untyped-def]
        return super().between(left, right) + 0.5 * (left < right)


class Rounded(LineDistance):
    """A structure that is made at another threshold than it is asked for."""

    def structure(self, threshold: float) -> Structure:
        return super().structure(np.ceil(threshold))


class Forgetful(LineDistance):
    """Parameters that say less than is needed."""

    def parameters(self) -> dict[str, str]:
        return {"line": "rank"}


class Graphic(MatrixDistance):
    """Clusters that are given as a graph."""

    def structure(self, threshold: float) -> Structure:
        return Graph(compatible_pairs(super().structure(threshold)))


@pytest.mark.parametrize(
    ("distance", "law"),
    [
        (Lopsided(SYMMETRIC), "symmetric"),
        (Rounded([0, 1, 2.5, 7]), "the structure says what the distance says"),
        (Forgetful([0, 1, 2.5, 7]), "restored from its parameters"),
        (Graphic(SYMMETRIC), "not given as a graph"),
    ],
    ids=lambda part: type(part).__name__ if isinstance(part, Distance) else "",
)
def test_a_distance_that_breaks_a_law_is_told_which(distance: Distance, law: str) -> None:
    with pytest.raises(AssertionError, match=law):
        check_distance(distance, restore=lambda parameters, size: _again(distance, parameters, size))


def _again(distance: Distance, parameters: Mapping[str, Any], size: int) -> Distance:
    """The stored distance in the class of the one under test."""
    stored = distance_from(parameters, size)
    return type(distance)(*((stored.matrix(),) if isinstance(stored, MatrixDistance) else (stored.matrix()[0],)))


finite = st.floats(-1e6, 1e6, allow_nan=False)
tenths = st.integers(-30, 30).map(lambda i: i * 0.1)
tiny = st.sampled_from([0.0, -1.0, 1.0, 1e-20, -1e-20, -2e-20, -3e-20, 1e-300, 5e-324, 0.1 + 0.2, 0.3, 1 / 3])


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(st.one_of(finite, tenths, tiny), min_size=1, max_size=9, unique=True), st.one_of(finite, tenths, tiny))
def test_line_agrees_at_any_threshold(positions: list[float], threshold: float) -> None:
    distance = LineDistance(positions)
    for t in (threshold, *thresholds(distance)[::3]):
        structure_agrees(distance, t)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    st.lists(st.one_of(st.floats(0, 11.99), st.integers(0, 119).map(lambda i: i * 0.1)), min_size=1, max_size=9),
    st.sampled_from([12.0, 12.3]),
)
def test_circle_agrees_at_any_threshold(positions: list[float], length: float) -> None:
    distance = CircleDistance(sorted(set(positions)), length)
    for threshold in thresholds(distance):
        structure_agrees(distance, threshold)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.integers(1, 40), st.floats(0.01, 1000), st.integers(0, 22), st.integers(1, 10))
def test_equally_spaced_circles_count_in_steps(size: int, length: float, steps: int, start: int) -> None:
    """Whatever the rounding of positions, pairs so many steps apart are compatible at exactly that many steps."""
    positions = [(i + start / 16) * length / size for i in range(size)]
    distance = CircleDistance(positions, length)
    structure = distance.structure(steps * length / size)
    if steps <= 1 or size == 1:
        assert isinstance(structure, Clusters)
    else:
        assert isinstance(structure, Circle)
        assert structure.spacing == min(steps, size // 2 + 1)


@st.composite
def trees(draw: st.DrawFn) -> list[tuple[str, ...]]:
    """Paths of unequal depth: some values inner nodes of others."""
    parents = draw(st.lists(st.integers(0, 1000), min_size=0, max_size=8))
    nodes: list[tuple[str, ...]] = [("*",)]
    for number, parent in enumerate(parents):
        nodes.append((f"n{number}", *nodes[parent % len(nodes)]))
    hung = draw(st.lists(st.integers(0, 1000), min_size=2, max_size=10))
    leaves = [(f"v{number}", *nodes[place % len(nodes)]) for number, place in enumerate(hung)]
    inner = draw(st.lists(st.sampled_from(nodes), max_size=3, unique=True))
    return leaves + [node for node in inner if len(node) > 1]


def slow_tree_distance(paths: list[tuple[str, ...]], measure: str) -> np.ndarray:
    """The definitions, written with sets of ancestors."""
    inner = {path[k:] for path in paths for k in range(1, len(path))}
    above = [{path[k:] for k in range(len(path)) if path[k:] in inner} for path in paths]
    depth = [max(len(node) for node in nodes) for nodes in above]
    height = {
        node: max(d - len(node) + 1 for d, nodes in zip(depth, above) if node in nodes) for node in set().union(*above)
    }
    matrix = np.zeros((len(paths), len(paths)))
    for u in range(len(paths)):
        for v in range(len(paths)):
            if u != v:
                meet = max(above[u] & above[v], key=len)
                mean = ((depth[u] + 1 - len(meet)) + (depth[v] + 1 - len(meet))) / 2
                matrix[u, v] = height[meet] if measure == "ancestor" else mean
    return matrix


@settings(max_examples=200, deadline=None, derandomize=True)
@given(trees(), st.sampled_from(["ancestor", "path"]))
def test_tree_follows_its_definition(paths: list[tuple[str, ...]], measure: str) -> None:
    distance = TreeDistance.from_paths(paths, measure)  # type: ignore[arg-type]
    np.testing.assert_array_equal(pairs(distance), slow_tree_distance(paths, measure))
    for threshold in thresholds(distance):
        structure_agrees(distance, threshold)
        if measure == "ancestor":
            assert isinstance(distance.structure(threshold), Clusters)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(trees())
def test_lattice_of_a_tree_is_the_tree(paths: list[tuple[str, ...]]) -> None:
    names = {path: "/".join(path) for path in paths}
    parents = {"/".join(path[k:]): ["/".join(path[k + 1 :])] for path in paths for k in range(len(path) - 1)}
    lattice = LatticeDistance.from_parents(parents, [names[path] for path in paths])
    np.testing.assert_array_equal(pairs(lattice), pairs(TreeDistance.from_paths(paths)))


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.integers(2, 7), st.integers(0, 10_000))
def test_matrix_agrees_at_any_threshold(size: int, seed: int) -> None:
    raw = np.random.default_rng(seed).integers(1, 4, (size, size)).astype(float)
    distance = MatrixDistance(np.triu(raw, 1) + np.triu(raw, 1).T)
    for threshold in thresholds(distance):
        structure_agrees(distance, threshold)
