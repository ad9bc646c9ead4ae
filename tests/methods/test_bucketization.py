"""Buckets: no method can suppress less, and every group passes the model it was made for."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import polars as pl
import pytest
from draws import generators
from hypothesis import given, settings
from hypothesis import strategies as st

import polyseme as ps
from polyseme.kernel.errors import ImpossibleError, PolicyError
from polyseme.kernel.randomness import SystemStream
from polyseme.methods.bucketization import Grouping, bucketize, compose, dissimilar, distinct, largest_set
from polyseme.methods.bucketization.bucketize import _settled, shuffled_by_kind
from polyseme.methods.bucketization.compositions import compatible_pairs
from polyseme.models import diversity, le_diversity, semantic_diversity
from polyseme.semantics.distances.base import Circle, Clusters, Distance, Graph, Line, Structure
from polyseme.semantics.distances.circle import CircleDistance
from polyseme.semantics.distances.line import LineDistance
from polyseme.semantics.distances.tree import TreeDistance
from polyseme.tables.equivalence_classes import Counts

DISEASES = TreeDistance.from_paths(
    [
        ("flu", "respiratory infection", "respiratory", "disease"),
        ("pneumonia", "respiratory infection", "respiratory", "disease"),
        ("cancer", "tumour", "growths", "disease"),
        ("carcinoid", "tumour", "growths", "disease"),
        ("gastric ulcer", "stomach", "digestive", "disease"),
        ("dyspepsia", "stomach", "digestive", "disease"),
        ("gastritis", "stomach", "digestive", "disease"),
    ],
    measure="path",
)
PATIENTS = np.array([0, 1, 0, 3, 2, 2, 4, 5, 6])
"""Table I of the (l, e) paper."""

UNEVEN = TreeDistance.from_paths(
    [
        ("a", "*"),
        ("b", "x", "*"),
        ("c", "x", "*"),
        ("d", "y", "x", "*"),
        ("e", "y", "x", "*"),
        ("f", "z", "*"),
        ("g", "w", "z", "*"),
    ],
    measure="path",
)
"""Leaves of different depth: at 2.5, a and b are similar, b and d are, a and d are not."""


def seeded(seed: int = 1) -> SystemStream:
    return SystemStream.seeded(seed)


def counts_of(made: Grouping, codes: np.ndarray, size: int) -> Counts:
    kept = ~made.suppressed
    return Counts.from_codes(made.groups[kept], codes[kept], size)


@pytest.mark.parametrize("algorithm", ["exact", "mbf"])
def test_nine_patients_make_three_groups(algorithm):
    made = bucketize(PATIENTS, dissimilar(DISEASES, 1), 3, seeded(), algorithm)
    assert made.count == 3
    assert not made.suppressed.any()
    organ = np.array([0, 0, 1, 1, 2, 2, 2])[PATIENTS]
    for group in range(3):
        assert sorted(organ[made.groups == group]) == [0, 1, 2]
    assert le_diversity.check(counts_of(made, PATIENTS, 7), DISEASES, 3, 1).holds
    # Anatomy alone, as in Tables II and III, may put all three stomach diseases together: no such promise.
    plain = bucketize(PATIENTS, distinct(7), 3, seeded(), algorithm)
    assert (plain.count, int(plain.suppressed.sum())) == (3, 0)
    assert diversity.check_distinct(counts_of(plain, PATIENTS, 7), 3).holds


def fewest_suppressed(counts: list[int], pairs: np.ndarray, l: int) -> int:
    """By trying every set of values for the next group."""
    sets = [
        chosen
        for size in range(l, 2 * l)
        for chosen in itertools.combinations(range(len(counts)), size)
        if all(pairs[u, v] for u, v in itertools.combinations(chosen, 2))
    ]

    @cache
    def most(left: tuple[int, ...], start: int) -> int:
        best = 0
        for number in range(start, len(sets)):
            chosen = sets[number]
            if all(left[v] for v in chosen):
                rest = tuple(n - (v in chosen) for v, n in enumerate(left))
                best = max(best, len(chosen) + most(rest, number))
        return best

    return sum(counts) - most(tuple(counts), 0)


def check_valid(made: Grouping, codes: np.ndarray, structure: Structure, l: int) -> None:
    pairs = compatible_pairs(structure, np.arange(structure.size))
    assert sorted(set(made.groups.tolist()) - {-1}) == list(range(made.count))
    for group in range(made.count):
        members = codes[made.groups == group]
        assert len(members) >= l
        assert all(pairs[u, v] for u, v in itertools.combinations(members, 2))


small = st.lists(st.integers(0, 4), min_size=4, max_size=6)


@given(small, st.lists(st.integers(0, 3), min_size=6, max_size=6), st.integers(1, 3))
@settings(max_examples=150)
def test_clusters_equal_brute_force(counts, labels, l):
    labels = np.unique(labels[: len(counts)], return_inverse=True)[1]
    check_least(counts, Clusters(labels), l)


@given(small, st.lists(st.integers(0, 12), min_size=6, max_size=6, unique=True), st.integers(1, 4), st.integers(1, 3))
@settings(max_examples=150)
def test_lines_equal_brute_force(counts, positions, d, l):
    structure = LineDistance([float(p) for p in positions[: len(counts)]]).structure(d)
    check_least(counts, structure, l)


@given(small, st.lists(st.integers(0, 12), min_size=6, max_size=6, unique=True), st.integers(1, 4), st.integers(1, 3))
@settings(max_examples=60)
def test_circles_equal_brute_force(counts, positions, d, l):
    structure = CircleDistance([float(p) for p in positions[: len(counts)]], 13.0).structure(d)
    check_least(counts, structure, l)


@given(small, st.lists(st.booleans(), min_size=15, max_size=15), st.integers(1, 3))
@settings(max_examples=150)
def test_graphs_equal_brute_force(counts, edges, l):
    pairs = np.zeros((len(counts), len(counts)), dtype=bool)
    for (u, v), edge in zip(itertools.combinations(range(len(counts)), 2), edges):
        pairs[u, v] = pairs[v, u] = edge
    check_least(counts, Graph(pairs), l)


def check_least(counts: list[int], structure: Structure, l: int) -> None:
    pairs = compatible_pairs(structure, np.arange(len(counts)))
    least = fewest_suppressed(counts, pairs, l)
    places = compose(np.array(counts), structure, l)
    assert places.suppressed == least
    assert places.gap == 0
    codes = np.repeat(np.arange(len(counts)), counts)
    if places.count:
        made = bucketize(codes, structure, l, seeded())
        check_valid(made, codes, structure, l)
        assert int(made.suppressed.sum()) == least
        assert made.sizes.max() <= 2 * l - 1
        check_simple(codes, structure, l, made)


def check_simple(codes: np.ndarray, structure: Structure, l: int, exact: Grouping) -> None:
    """Maximal-bucket first is valid, and as good on clusters; elsewhere it may find no group where there is one."""
    try:
        simple = bucketize(codes, structure, l, seeded(), "mbf")
    except ImpossibleError:
        assert not isinstance(structure, Clusters)
        return
    check_valid(simple, codes, structure, l)
    assert simple.suppressed.sum() >= exact.suppressed.sum()
    if isinstance(structure, Clusters):
        assert (simple.count, simple.suppressed.sum()) == (exact.count, exact.suppressed.sum())


@settings(max_examples=20)
@given(generators())
def test_structures_that_are_clusters_agree_in_every_form(rng):
    """The closed forms and the program are independent of each other."""
    counts = rng.integers(1, 60, 12)
    labels = np.sort(rng.integers(0, 6, 12))
    labels = np.unique(labels, return_inverse=True)[1]
    ends = np.searchsorted(labels, labels, side="right")
    forms = [
        Clusters(labels),
        Line(np.arange(12), ends),
        Graph(labels[:, None] != labels[None, :]),
    ]
    found = [compose(counts, form, 3) for form in forms]
    assert len({places.suppressed for places in found}) == 1
    assert [places.gap for places in found] == [0, 0, 0]
    assert len({places.count for places in found}) == 1


def test_similarity_that_is_not_transitive():
    assert isinstance(UNEVEN.structure(2.5), Graph)
    rng = np.random.default_rng(3)
    codes = rng.choice(7, 3_000, p=[0.1, 0.1, 0.1, 0.2, 0.2, 0.15, 0.15])
    for l, e in ((2, 1.0), (2, 2.0), (3, 1.5)):
        made = bucketize(codes, dissimilar(UNEVEN, e), l, seeded())
        assert le_diversity.check(counts_of(made, codes, 7), UNEVEN, l, e).holds
        assert made.gap is not None
        assert made.gap <= 7


def test_the_program_stays_near_its_bound():
    """A million records, twenty values: everything but a few records of the bound is placed."""
    rng = np.random.default_rng(5)
    counts = rng.multinomial(1_000_000, rng.dirichlet(np.full(20, 2.0)))
    pairs = np.triu(rng.random((20, 20)) < 0.6, 1)
    places = compose(counts, Graph(pairs | pairs.T), 4)
    assert places.gap is not None
    assert places.gap <= 50
    assert np.all(places.taken <= np.bincount(places.kinds, weights=counts))
    assert places.sizes.min() >= 4


@pytest.mark.parametrize("distance", [LineDistance.ranks(30), CircleDistance.ranks(12), DISEASES, UNEVEN])
@pytest.mark.parametrize("algorithm", ["exact", "mbf"])
def test_the_verifier_accepts_every_group(distance: Distance, algorithm):
    rng = np.random.default_rng(7)
    codes = rng.integers(0, distance.size, 2_000)
    for l, d in ((2, 2.0), (3, 1.0), (2, 3.0)):
        made = bucketize(codes, distance.structure(d), l, seeded(), algorithm)
        counts = counts_of(made, codes, distance.size)
        assert diversity.check_distinct(counts, l).holds
        assert semantic_diversity.check(counts, distance, l, d, "strict").holds
        assert diversity.check_frequency(counts, l).holds
        made = bucketize(codes, dissimilar(distance, d - 1), l, seeded(), algorithm)
        assert le_diversity.check(counts_of(made, codes, distance.size), distance, l, d - 1, "frequency").holds


def test_who_takes_which_place_is_drawn():
    """Each record of a value is suppressed, or meets each other, equally often, wherever it stands in the table."""
    codes = np.array([0, 0, 0, 0, 1, 1])
    met = np.zeros((6, 6))
    runs = 3_000
    stream = seeded(11)
    for _ in range(runs):
        groups = bucketize(codes, distinct(2), 2, stream).groups
        met += (groups[:, None] == groups[None, :]) & (groups >= 0)[:, None]
    # Each of the four meets each of the two in a quarter of the runs: 750, with a standard deviation of 24.
    assert np.abs(met[:4, 4:] - runs / 4).max() < 100
    assert np.abs(np.diag(met)[:4] - runs / 2).max() < 120


def test_records_that_draw_the_same_bits_are_ordered_afresh():
    stream = seeded(2)
    found: dict[tuple[int, ...], int] = {}
    for _ in range(1_200):
        # 7 stands alone; 0, 1 and 2 drew the same, and so did 8 and 9.
        order = _settled(np.array([7, 0, 1, 2, 8, 9]), np.array([False, True, True, False, True]), stream)
        assert order[0] == 7
        assert sorted(order[1:4]) == [0, 1, 2]
        found[tuple(order.tolist())] = found.get(tuple(order.tolist()), 0) + 1
    assert len(found) == 12
    assert max(abs(times - 100) for times in found.values()) < 50  # 9.6 is one standard deviation


@pytest.mark.parametrize("kinds", [1, 5, 1 << 34, 1 << 50])
def test_shuffling_by_kind(kinds):
    """With so many kinds few random bits are left, or none."""
    rng = np.random.default_rng(4)
    codes = rng.integers(0, min(kinds, 5), 3_000)
    order = shuffled_by_kind(codes, kinds, seeded())
    assert sorted(order.tolist()) == list(range(3_000))
    assert np.all(np.diff(codes[order]) >= 0)
    # In random order: records of the first kind are not where they were.
    first = order[: int((codes == 0).sum())]
    assert abs(np.mean(np.diff(first) > 0) - 0.5) < 0.1


def test_the_same_stream_makes_the_same_groups():
    codes = np.random.default_rng(1).integers(0, 9, 500)
    one, other = (bucketize(codes, distinct(9), 3, seeded(4)).groups for _ in range(2))
    assert np.array_equal(one, other)
    assert not np.array_equal(one, bucketize(codes, distinct(9), 3, seeded(5)).groups)


def test_one_value_too_frequent_is_suppressed_only_as_far_as_needed():
    codes = np.repeat([0, 1, 2], [90, 10, 10])
    made = bucketize(codes, distinct(3), 2, seeded())
    assert (made.count, int(made.suppressed.sum())) == (20, 70)
    assert set(codes[made.suppressed]) == {0}


@pytest.mark.parametrize("structure", [distinct(3), Line(np.arange(3), np.array([2, 3, 3])), Graph(np.eye(3) > 1)])
def test_no_group_says_the_largest_l(structure):
    codes = np.array([0, 0, 1, 2])
    largest = largest_set(np.array([2, 1, 1]), structure, 9)
    with pytest.raises(ImpossibleError, match=f"l = {largest} is the largest possible"):
        bucketize(codes, structure, 4, seeded())
    assert bucketize(codes, structure, largest, seeded()).count >= 1


def test_empty_and_malformed():
    for algorithm in ("exact", "mbf"):
        assert bucketize(np.zeros(0, int), distinct(3), 2, seeded(), algorithm).count == 0
    with pytest.raises(PolicyError, match="unknown algorithm 'mfb'"):
        bucketize(np.array([0, 1]), distinct(2), 2, seeded(), "mfb")  # type: ignore[arg-type]
    with pytest.raises(PolicyError, match="at least one record"):
        bucketize(np.array([0, 1]), distinct(2), 0, seeded())


def test_too_many_sets_are_refused_with_a_way_out():
    circle = CircleDistance.ranks(300).structure(2)
    assert isinstance(circle, Circle)
    with pytest.raises(ImpossibleError, match="too many for the exact algorithm") as caught:
        compose(np.full(300, 5), circle, 4)
    assert "mbf" in str(caught.value)
    assert compose(np.full(300, 5), circle, 4, "mbf").suppressed == 0


def test_evaluate_has_the_measures_of_the_paper() -> None:
    """Equations 6 and 10 of the (l, e) paper: sums over records and over pairs, by hand."""
    kinds = {"flu": "lung", "cold": "lung", "rash": "skin", "burn": "skin"}
    ill = ["flu", "flu", "cold", "rash", "rash", "burn", "flu", "burn"]
    table = pl.DataFrame({"age": list(range(len(ill))), "ill": ill})
    policy = """
attributes:
  age: {role: quasi-identifier}
  ill: {role: sensitive, distance: {tree: {all: {lung: [flu, cold], skin: [rash, burn]}}}}
"""
    for method, apart in (("{buckets: {l: 2, e: 1}}", 2.0), ("{anatomy: {l: 2}}", None)):
        release = ps.anonymize(table, ps.Policy.loads(f"{policy}method: {method}\n"), seed=1, warn=lambda _: None)
        found = ps.evaluate(release, table, of=["ill"]).to_dict()
        groups: dict[int, list[str]] = {}
        for row in release.to_polars().rows(named=True):
            number = next(value for name, value in row.items() if name not in ("age", "ill"))
            groups[number] = list(row["ill"])
        losses, degrees = [], []
        for held in groups.values():
            shares = {value: held.count(value) / len(held) for value in held}
            losses += [(1 - shares[v]) ** 2 + sum(s * s for u, s in shares.items() if u != v) for v in held]
            pairs = [(a, b) for at, a in enumerate(held) for b in held[:at]]
            degrees.append(sum(0 if a == b else 1 if kinds[a] == kinds[b] else 2 for a, b in pairs) / len(held))
        assert found["information_loss"] == pytest.approx(sum(losses), abs=1e-9)
        assert found["diversity_degree"] == pytest.approx(np.mean(degrees), abs=1e-9)
        assert apart is None or all(degree == pytest.approx(apart / 2) for degree in degrees)
