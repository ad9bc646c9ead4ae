"""One earth mover: closed forms against the linear program that defines it, and the same number in every room."""

import numpy as np
import polars as pl
import pytest
from draws import generators
from hypothesis import given, settings
from scipy.optimize import linprog

from polyseme.designs import make_design
from polyseme.designs.mechanism import Mechanism
from polyseme.kernel.errors import PolicyError
from polyseme.models import Background, check_models, sensitive_qids
from polyseme.privacy.analysis.closeness import closeness_reached, exact_distance
from polyseme.scrutiny.attacks import skewness
from polyseme.scrutiny.attacks.scene import Promised, Scene, Shown
from polyseme.scrutiny.metrics.cross_tabulations import emd
from polyseme.semantics.distances import distance_from_policy
from polyseme.semantics.distances.base import Clusters, Distance, recognize
from polyseme.semantics.distances.ground import Equal, Hierarchical, Ordered, ground_from
from polyseme.semantics.distances.line import LineDistance
from polyseme.semantics.distances.tree import TreeDistance
from polyseme.tables.equivalence_classes import Counts


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
        return recognize(self.values >= threshold)

    def parameters(self):
        return {"matrix": self.values.tolist()}


def program(a, b, cost):
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


def random_paths(rng, size):
    """Paths of any length, some with a root that only has one child."""
    paths = []
    for value in range(size):
        above = [f"{level}.{rng.integers(0, 2)}" for level in range(int(rng.integers(0, 4)))]
        paths.append((f"v{value}", *reversed(above), *(["top"] if size % 2 else []), "*"))
    return paths


def heights_of_ancestors(paths):
    """By the definition: height of the lowest common ancestor over the height of the tree, from the labels alone.

    The root is the topmost node with two different children, nodes or values.
    """
    size, tails = len(paths), [[path[k:] for k in range(1, len(path))] for path in paths]
    below = {}
    for own in tails:
        for steps, node in enumerate(own, start=1):
            below[node] = max(below.get(node, 0), steps)
    cost = np.zeros((size, size))
    for u in range(size):
        for v in range(size):
            if u != v:
                cost[u, v] = min(below[node] for node in tails[u] if node in tails[v])
    children = {node: {path[-len(node) - 1 :] for path in paths if path[-len(node) :] == node} for node in below}
    root = min((node for node in below if len(children[node]) > 1), key=len)
    return cost / below[root]


@settings(max_examples=25)
@given(generators())
def test_work_is_the_optimum_of_the_program(rng):
    size = rng.integers(2, 8)
    a, b = rng.dirichlet(np.ones(size)), rng.dirichlet(np.ones(size))
    places, positions = np.arange(size), rng.choice(100, size, replace=False) / 10
    tree, paths = random_tree(rng, size), random_paths(rng, size)
    costs = {
        Equal(): 1.0 - np.eye(size),
        Ordered(): np.abs(places[:, None] - places[None, :]) / (size - 1),
        Ordered(positions): np.abs(positions[:, None] - positions[None, :]) / np.ptp(positions),
        Hierarchical.from_distance(Given(tree)): tree / tree.max(),
        Hierarchical.from_distance(TreeDistance.from_paths(paths)): heights_of_ancestors(paths),
        Hierarchical.from_distance(TreeDistance.from_paths(paths, "path")): heights_of_ancestors(paths),
    }
    for ground, cost in costs.items():
        assert float(ground.work(b - a)) == pytest.approx(program(a, b, cost), abs=1e-9)
        assert float(ground.work(b - a)) <= float(Equal().work(b - a)) + 1e-12


def test_values_that_meet_only_at_the_root_are_1_apart():
    """Li et al.: level / H, however many nodes are written above the root."""
    moves = np.array([[1.0, -1.0, 0.0], [1.0, 0.0, -1.0]])
    for stem in ((), ("*",), ("top", "*"), ("x", "top", "*")):
        paths = [("a", "x", *stem), ("b", "x", *stem), ("c", "y", *stem)]
        ground = ground_from("hierarchical", TreeDistance.from_paths(paths))
        np.testing.assert_allclose(ground.work(moves), [1 / 2, 1.0])
        np.testing.assert_allclose(ground.nearest(3), [1 / 2, 1 / 2, 1.0])


def test_the_root_of_a_declared_tree_does_not_depend_on_which_values_are_in_the_domain():
    written = {"illness": {"lung": ["flu", "asthma"], "stomach": ["ulcer"]}}
    for tree in (written, written["illness"]):
        lungs = distance_from_policy({"tree": tree}, ["flu", "asthma"], ".")
        assert float(ground_from("hierarchical", lungs).work(np.array([1.0, -1.0]))) == 0.5
    wide = distance_from_policy({"taxonomy": "icd10"}, ["J45.0", "J45.1"], ".")
    assert float(ground_from("hierarchical", wide).work(np.array([1.0, -1.0]))) == 0.25
    stored = TreeDistance(wide.parents, wide.values, wide.names)
    assert float(ground_from("hierarchical", stored).work(np.array([1.0, -1.0]))) == 0.25


@settings(max_examples=20)
@given(generators())
def test_a_hierarchy_of_something_else_is_never_too_small(rng):
    positions = rng.choice(100, 6, replace=False) / 10
    line = LineDistance(positions)
    a, b = rng.dirichlet(np.ones(6)), rng.dirichlet(np.ones(6))
    ground = Hierarchical.from_distance(line)
    assert float(ground.work(b - a)) >= program(a, b, line.matrix() / line.matrix().max()) - 1e-9


@settings(max_examples=20)
@given(generators())
def test_classes_are_as_far_from_the_table_as_their_distributions(rng):
    """`of_classes` looks at the values that occur in a class only; `work` at all of them."""
    size = rng.integers(2, 12)
    codes, classes = rng.integers(0, size, 400) ** 2 // size, np.arange(400) // 20
    counts = Counts.from_codes(classes, codes, size)
    whole = np.bincount(codes, minlength=size) / 400
    shares = np.array([np.bincount(codes[classes == c], minlength=size) / 20 for c in range(20)])
    grounds = (
        Equal(),
        Ordered(),
        Ordered(rng.choice(100, size, replace=False) / 10),
        Hierarchical.from_distance(TreeDistance.from_paths(random_paths(rng, size))),
        Hierarchical.from_distance(LineDistance(rng.choice(100, size, replace=False) / 10)),
    )
    for ground in grounds:
        np.testing.assert_allclose(ground.of_classes(counts), ground.work(shares - whole), atol=1e-12)


def test_work_takes_many_differences_at_once():
    rng = np.random.default_rng(5)
    difference = rng.dirichlet(np.ones(6), size=(3, 4)) - rng.dirichlet(np.ones(6))
    for ground in (Equal(), Ordered(), Hierarchical.from_distance(LineDistance.ranks(6))):
        one_by_one = [[float(ground.work(difference[i, j])) for j in range(4)] for i in range(3)]
        np.testing.assert_allclose(ground.work(difference), one_by_one)


def test_some_of_the_values_are_as_far_apart_as_in_the_whole_domain():
    rng = np.random.default_rng(6)
    kept = np.array([0, 2, 3, 6])
    difference = rng.dirichlet(np.ones(4), 5) - rng.dirichlet(np.ones(4))
    whole = np.zeros((5, 7))
    whole[:, kept] = difference
    for ground in (Equal(), Ordered(), Hierarchical.from_distance(LineDistance.ranks(7))):
        np.testing.assert_allclose(ground.among(kept, 7).work(difference), ground.work(whole))
        assert ground.among(kept, 7).name == ground.name
        assert ground.among(np.arange(7), 7) is ground


PATHS = [("a", "x", "top", "*"), ("b", "x", "top", "*"), ("c", "y", "top", "*"), ("d", "z", "y2", "top", "*")]
TREE = TreeDistance.from_paths(PATHS)
REFERENCE = np.array([0.1, 0.2, 0.3, 0.4])


@pytest.mark.parametrize("name", ["equal", "ordered", "hierarchical"])
def test_every_room_gives_the_same_distance(name):
    """How far a set of two can move the reference: the promise, the attack, and the model of published sets."""
    ground = ground_from(name, TREE)
    mechanism = Mechanism(make_design("balanced", Clusters(np.arange(4)), 2))
    sets, _ = mechanism.channel()
    worst = closeness_reached(mechanism, REFERENCE, ground)
    (found,) = skewness.attack(Scene(Shown(sets, mechanism, prior=REFERENCE), Promised(ground=ground)))
    assert found.success == pytest.approx(worst, rel=1e-12)
    shown = [["abcd"[code] for code in row] for row in sets.tolist()]
    table = pl.DataFrame({"person": range(len(sets)), "s": shown})
    public = {"s": sensitive_qids.Public(domain=list("abcd"), reference=REFERENCE, ground=ground)}
    (verdict,) = sensitive_qids.check(table, {"s": {"closeness": {"t": 1.0}}}, public)
    assert verdict.worst == pytest.approx(worst, rel=1e-12)


@pytest.mark.parametrize("name", ["equal", "ordered", "hierarchical"])
def test_models_metrics_and_promises_agree_on_a_table(name):
    values = list("abbcccddddd") + list("aabcd")
    table = pl.DataFrame({"q": [0] * 11 + [1] * 5, "s": values})
    whole = np.array([values.count(v) for v in "abcd"]) / len(values)
    parts = [np.array([part.count(v) for v in "abcd"]) for part in (values[:11], values[11:])]
    background = Background(domains={"s": list("abcd")}, distances={"s": TREE})
    spec = [{"closeness": {"t": 1.0, "ground": name}}]
    (verdict,) = check_models(table, ["q"], spec, sensitive=["s"], background=background)
    ground = ground_from(name, TREE)
    distances = [float(ground.work(part / part.sum() - whole)) for part in parts]
    assert verdict.worst == pytest.approx(max(distances), rel=1e-12)
    if name != "hierarchical":
        positions = np.arange(4) if name == "ordered" else None
        for part, distance in zip(parts, distances):
            assert emd(part, whole, positions=positions) == pytest.approx(distance, rel=1e-12)
    # A set that moves the reference all the way to a class is as far as the class.
    pull = (parts[1] / whole)[None, :]
    far = exact_distance(np.arange(4)[None, :], pull, whole, np.inf, ground)
    assert far == pytest.approx(distances[1], rel=1e-9)


def test_names():
    assert isinstance(ground_from("equal"), Equal)
    assert isinstance(ground_from("ordered"), Ordered)
    assert isinstance(ground_from("hierarchical", LineDistance.ranks(3)), Hierarchical)
    with pytest.raises(PolicyError, match="did you mean 'ordered'"):
        ground_from("orderd")
    with pytest.raises(PolicyError, match="needs a distance"):
        ground_from("hierarchical")
    # No matrix of all distances for a large domain: the equal ground is never smaller. A tree needs no matrix.
    assert isinstance(ground_from("hierarchical", LineDistance.ranks(10_000)), Equal)
    large = TreeDistance.from_paths([(f"v{v}", f"a{v % 90}", "*") for v in range(10_000)])
    assert isinstance(ground_from("hierarchical", large), Hierarchical)
    assert float(Hierarchical.from_distance(LineDistance.ranks(1)).work(np.zeros(1))) == 0.0


@pytest.mark.parametrize("stem", [(), ("all",), ("all", "all", "*")])
def test_closeness_does_not_depend_on_the_end_of_the_paths(stem):
    """No record has the third value of the hierarchy: its root is above it all the same."""
    paths = [("a", "A", "any", *stem), ("b", "A", "any", *stem), ("c", "C", "any", *stem)]
    table = pl.DataFrame({"q": [1, 1, 2, 2], "s": list("aabb")})
    spec = [{"closeness": {"t": 0.4, "ground": "hierarchical"}}]
    (verdict,) = check_models(table, ["q"], spec, sensitive=["s"], background=Background(hierarchies={"s": paths}))
    assert (verdict.worst, verdict.holds) == (0.25, True)
