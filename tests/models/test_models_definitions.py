"""Every model against a slow, literal transcription of its definition in plain Python."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from draws import generators
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from polyseme.models import (
    closeness,
    diversity,
    far_apart,
    k_anonymity,
    le_diversity,
    semantic_diversity,
)
from polyseme.semantics.distances.base import Circle, Clusters, Distance, Graph, recognize
from polyseme.semantics.distances.circle import CircleDistance
from polyseme.semantics.distances.ground import ground_from
from polyseme.semantics.distances.line import LineDistance
from polyseme.semantics.distances.tree import TreeDistance
from polyseme.tables.equivalence_classes import Counts, PublishedSets, classes_of

F = 6
DOMAIN = list("abcdef")

# Few classes with many records, and every class is compared: a table with one bad class hides the others.
combinations = st.sampled_from([(None, "x"), (1, "x"), (1, "y")])
rows = st.lists(
    st.builds(lambda pair, value: (*pair, value), combinations, st.integers(0, F - 1)), min_size=1, max_size=40
)
small = settings(max_examples=120, deadline=None)


class Table(Distance):
    """A distance given by a matrix; at a threshold, whatever shape it has."""

    kind = "test"

    def __init__(self, entries):
        self.entries = np.asarray(entries, dtype=np.float64)

    @property
    def size(self):
        return len(self.entries)

    def between(self, left, right):
        return self.entries[left, right]

    def structure(self, threshold):
        return recognize(self.entries >= threshold)

    def parameters(self):
        return {}


class Ring(Distance):
    """Points on a circle of length 12."""

    kind = "test"

    def __init__(self, positions, length=12.0):
        self.positions, self.length = np.asarray(positions, dtype=np.float64), length

    @property
    def size(self):
        return len(self.positions)

    def between(self, left, right):
        gap = np.abs(self.positions[left] - self.positions[right])
        return np.minimum(gap, self.length - gap)

    def structure(self, threshold):
        order = np.argsort(self.positions)
        return Circle(order, self.positions[order], self.length, threshold)

    def parameters(self):
        return {}


@st.composite
def distances(draw):
    kind = draw(st.sampled_from(["line", "ring", "circle", "graph", "clusters", "tree"]))
    if kind == "line":
        return LineDistance(draw(st.lists(st.integers(0, 12), min_size=F, max_size=F, unique=True)))
    if kind == "ring":
        return Ring(draw(st.lists(st.integers(0, 11), min_size=F, max_size=F, unique=True)))
    if kind == "circle":
        return CircleDistance(draw(st.lists(st.integers(0, 11), min_size=F, max_size=F, unique=True)), 12.0)
    if kind == "tree":
        nodes = draw(st.lists(st.lists(st.sampled_from("xy"), min_size=1, max_size=3), min_size=F, max_size=F))
        paths = [(f"leaf {i}", *["/".join(up[:k]) for k in range(len(up), 0, -1)], "*") for i, up in enumerate(nodes)]
        return TreeDistance.from_paths(paths, measure=draw(st.sampled_from(["path", "ancestor"])))
    if kind == "clusters":
        labels = np.array(draw(st.lists(st.integers(0, 2), min_size=F, max_size=F)))
        entries = np.where(labels[:, None] == labels[None, :], 1.0, 4.0)
    else:
        upper = draw(st.lists(st.integers(1, 6), min_size=F * (F - 1) // 2, max_size=F * (F - 1) // 2))
        entries = np.zeros((F, F))
        entries[np.triu_indices(F, 1)] = upper
        entries += entries.T
    np.fill_diagonal(entries, 0.0)
    return Table(entries)


def frame_of(table):
    return pl.DataFrame(
        {"a": [r[0] for r in table], "b": [r[1] for r in table], "s": [DOMAIN[r[2]] for r in table]},
        schema={"a": pl.Int64, "b": pl.String, "s": pl.String},
    )


def counts_of(table):
    return classes_of(frame_of(table), ["a", "b"], ["s"], domains={"s": DOMAIN}).attributes["s"]


def literal(table):
    """The classes, each a list of values."""
    groups = {}
    for a, b, s in table:
        groups.setdefault((a, b), []).append(s)
    return list(groups.values())


def agree(verdict, answers):
    """The verdict counts as many violating classes as the transcription."""
    assert verdict.violations == answers.count(False)
    assert verdict.holds == all(answers)
    assert verdict.checked == len(answers)


@small
@given(rows, st.integers(1, 6))
def test_k_anonymity(table, k):
    verdict = k_anonymity.check(classes_of(frame_of(table), ["a", "b"]), k)
    sizes = [len(group) for group in literal(table)]
    assert verdict.holds == all(size >= k for size in sizes)
    assert (verdict.worst, verdict.checked) == (min(sizes), len(sizes))
    assert verdict.violations == sum(size < k for size in sizes)


@small
@given(rows, rows, st.integers(1, 4))
def test_k_map(table, population, k):
    verdict = k_anonymity.check_k_map(frame_of(table), frame_of(population), ["a", "b"], k)
    found = [sum(p[:2] == r[:2] for p in population) for r in table]
    assert verdict.worst == min(found)
    assert verdict.holds == (min(found) >= k)


@small
@given(rows, st.sampled_from([0.2, 0.25, 0.3, 1 / 3, 0.5, 0.6, 1.0]), st.integers(1, 4))
def test_alpha_k(table, alpha, k):
    verdict = k_anonymity.check_alpha_k(counts_of(table), alpha, k)
    bound = Fraction(alpha).limit_denominator(100)
    groups = literal(table)
    agree(
        verdict,
        [len(g) >= k and all(Fraction(n, len(g)) <= bound for n in Counter(g).values()) for g in groups],
    )


@small
@given(rows, st.integers(1, 6))
def test_distinct(table, l):
    verdict = diversity.check_distinct(counts_of(table), l)
    assert verdict.worst == min(len(set(g)) for g in literal(table))
    agree(verdict, [len(set(g)) >= l for g in literal(table)])


@small
@given(rows, st.sampled_from([1, 2, 3, 4, 1.5, 2.5]))
def test_frequency(table, l):
    verdict = diversity.check_frequency(counts_of(table), l)
    shares = [Fraction(max(Counter(g).values()), len(g)) for g in literal(table)]
    agree(verdict, [share <= 1 / Fraction(l) for share in shares])
    assert verdict.worst == pytest.approx(float(1 / max(shares)))


@small
@given(rows, st.sampled_from([1, 2, 3, 4, 5, 1.5, 2.5]))
def test_entropy(table, l):
    verdict = diversity.check_entropy(counts_of(table), l)

    def entropy(group):
        return -math.fsum(n / len(group) * math.log(n / len(group)) for n in Counter(group).values())

    agree(verdict, [entropy(g) >= math.log(l) - 1e-12 for g in literal(table)])
    assert verdict.worst == pytest.approx(min(math.exp(entropy(g)) for g in literal(table)))


@small
@given(rows, st.sampled_from([0.3, 0.5, 1, 2, 2.5, 3, 10]), st.integers(1, 5))
def test_recursive(table, c, l):
    verdict = diversity.check_recursive(counts_of(table), c, l)

    def fine(group):
        r = sorted(Counter(group).values(), reverse=True)
        return r[0] < Fraction(str(c)) * sum(r[l - 1 :])

    agree(verdict, [fine(g) for g in literal(table)])


def emd(p, q, ground):
    """The transport problem itself, as a linear program."""
    size = len(p)
    equal = np.zeros((2 * size, size * size))
    for i in range(size):
        equal[i, i * size : (i + 1) * size] = 1
        equal[size + i, i::size] = 1
    return linprog(np.asarray(ground).ravel(), A_eq=equal, b_eq=np.concatenate([p, q]), bounds=(0, None)).fun


PATHS = np.array([[0, 0], [0, 0], [1, 0], [1, 0], [1, 0], [2, 0]])


def ground_matrix(kind):
    i, j = np.indices((F, F))
    if kind == "equal":
        return (i != j) * 1.0
    if kind == "ordered":
        return np.abs(i - j) / (F - 1)
    return np.where(i == j, 0, np.where(PATHS[i, 0] == PATHS[j, 0], 0.5, 1.0))


@settings(max_examples=40, deadline=None)
@given(rows, st.sampled_from(["equal", "ordered", "hierarchical"]), st.sampled_from([0.1, 0.25, 0.4]))
def test_closeness_is_the_transport_problem(table, ground, t):
    tree = TreeDistance.from_paths([(f"v{v}", f"a{path[0]}", "*") for v, path in enumerate(PATHS)])
    verdict = closeness.check(counts_of(table), t, ground_from(ground, tree))
    whole = np.bincount([r[2] for r in table], minlength=F) / len(table)
    found = [emd(np.bincount(g, minlength=F) / len(g), whole, ground_matrix(ground)) for g in literal(table)]
    assert verdict.worst == pytest.approx(max(found), abs=1e-9)
    if abs(max(found) - t) > 1e-9:
        assert verdict.holds == (max(found) <= t)


@small
@given(rows, st.sampled_from([0.25, 0.5, 1, 2, 3]), st.booleans())
def test_beta_likeness(table, beta, enhanced):
    verdict = closeness.check_beta_likeness(counts_of(table), beta, enhanced)
    whole = Counter(r[2] for r in table)

    def fine(group):
        for s, n in Counter(group).items():
            p, q = Fraction(whole[s], len(table)), Fraction(n, len(group))
            bound = min(beta, -math.log(p)) if enhanced else beta
            if q > p and (q - p) / p > bound + 1e-12:
                return False
        return True

    agree(verdict, [fine(g) for g in literal(table)])


@small
@given(rows, st.sampled_from([0.1, 0.5, 1, 2]), st.sampled_from(["violates", "ignored"]))
def test_delta_disclosure(table, delta, absent):
    verdict = closeness.check_delta_disclosure(counts_of(table), delta, absent)
    whole = Counter(r[2] for r in table)

    def fine(group):
        here = Counter(group)
        for s, n in whole.items():
            if s not in here:
                if absent == "violates":
                    return False
                continue
            if not abs(math.log(here[s] / len(group) / (n / len(table)))) < delta - 1e-12:
                return False
        return True

    agree(verdict, [fine(g) for g in literal(table)])


def test_delta_disclosure_is_strict():
    """Half against a quarter is a factor of exactly 2; the bound itself is not allowed."""
    table = [(1, "x", 0)] * 2 + [(1, "x", 1)] * 2 + [(1, "y", 1)] * 4
    ratio = closeness.check_delta_disclosure(counts_of(table), 9, "ignored").worst
    assert ratio == pytest.approx(math.log(2))
    assert not closeness.check_delta_disclosure(counts_of(table), math.log(2), "ignored").holds
    assert closeness.check_delta_disclosure(counts_of(table), math.log(2) + 1e-9, "ignored").holds


def far(distance, values, d):
    return all(float(distance.between(np.array(u), np.array(v))) >= d for u, v in itertools.combinations(values, 2))


@small
@given(rows, distances(), st.integers(1, 4), st.integers(1, 6))
def test_semantic_diversity_of_classes(table, distance, l, d):
    counts = counts_of(table)
    groups = literal(table)
    strict = [len(set(g)) >= l and far(distance, set(g), d) for g in groups]
    exists = [any(far(distance, c, d) for c in itertools.combinations(sorted(set(g)), l)) for g in groups]
    frequency = [
        all(
            l * sum(u == v or float(distance.between(np.array(u), np.array(v))) < d for u in g) <= len(g)
            for v in set(g)
        )
        for g in groups
    ]
    agree(semantic_diversity.check(counts, distance, l, d, "strict"), strict)
    agree(semantic_diversity.check(counts, distance, l, d, "exists"), exists)
    agree(semantic_diversity.check(counts, distance, l, d, "frequency"), frequency)
    assert all(e >= s for e, s in zip(exists, strict))
    assert all(e >= f for e, f in zip(exists, frequency))


@small
@given(rows, distances(), st.integers(1, 6))
def test_worst_of_strict_and_exists(table, distance, d):
    """The reported numbers, not only the answers."""
    counts, groups = counts_of(table), literal(table)
    pairs = [
        float(distance.between(np.array(u), np.array(v))) for g in groups for u, v in itertools.combinations(set(g), 2)
    ]
    assert semantic_diversity.check(counts, distance, 1, d, "strict").worst == min(pairs, default=math.inf)
    sizes = [
        max(k for k in range(1, len(set(g)) + 1) for c in itertools.combinations(set(g), k) if far(distance, c, d))
        for g in groups
    ]
    verdict = semantic_diversity.check(counts, distance, F, d, "exists")
    assert verdict.worst == min(sizes)
    balls = [
        len(g) / max(sum(u == v or float(distance.between(np.array(u), np.array(v))) < d for u in g) for v in g)
        for g in groups
    ]
    assert semantic_diversity.check(counts, distance, 1, d, "frequency").worst == pytest.approx(min(balls))


@small
@given(rows, distances(), st.integers(1, 4), st.integers(0, 5))
def test_le_diversity(table, distance, l, e):
    counts, groups = counts_of(table), literal(table)
    apart = [far(distance, set(g), math.nextafter(e, math.inf)) for g in groups]
    verdict = le_diversity.check(counts, distance, l, e)
    agree(verdict, [a and len(set(g)) >= l for a, g in zip(apart, groups)])
    verdict = le_diversity.check(counts, distance, l, e, "frequency")
    agree(verdict, [a and max(Counter(g).values()) * l <= len(g) for a, g in zip(apart, groups)])


@small
@given(
    st.lists(st.lists(st.integers(-1, F), min_size=3, max_size=3), min_size=1, max_size=8),
    distances(),
    st.integers(1, 4),
    st.integers(1, 6),
)
def test_published_sets(sets, distance, l, d):
    published = PublishedSets.from_codes(np.array(sets), F)
    known = [all(0 <= v < F for v in s) for s in sets]
    assert diversity.check(published, l).holds == all(k and len(set(s)) >= l for k, s in zip(known, sets))
    assert semantic_diversity.check_sets(published, distance, l, d).holds == all(
        k and len(set(s)) >= l and far(distance, set(s), d) for k, s in zip(known, sets)
    )


def test_clique_search_is_exact_on_larger_graphs():
    rng = np.random.default_rng(5)
    for density in (0.3, 0.6, 0.9):
        entries = np.triu((rng.random((14, 14)) < density).astype(float), 1) + 1
        entries = np.triu(entries, 1) + np.triu(entries, 1).T
        distance = Table(entries)
        table = pl.DataFrame({"q": [1] * 14, "s": list(range(14))})
        counts = classes_of(table, ["q"], ["s"], domains={"s": list(range(14))}).attributes["s"]
        best = max(
            len(c)
            for k in range(1, 15)
            for c in itertools.combinations(range(14), k)
            if all(entries[u, v] >= 2 for u, v in itertools.combinations(c, 2))
        )
        assert isinstance(distance.structure(2), Graph | Clusters)
        assert semantic_diversity.check(counts, distance, 14, 2, "exists").worst == best


def concentrated(kind, rng):
    """A random distance of this kind over six values."""
    places = rng.choice(12, F, replace=False)
    if kind == "line":
        return LineDistance(places)
    if kind == "circle":
        return CircleDistance(places, 12.0)
    if kind == "ring":
        return Ring(places)
    if kind in ("ancestor", "path"):
        parents = [-1, *(int(rng.integers(0, node)) for node in range(1, 8))]
        return TreeDistance(parents, rng.integers(0, 8, F), measure=kind)
    labels = rng.integers(0, 3, F)
    entries = rng.integers(1, 7, (F, F)) if kind == "graph" else np.where(labels[:, None] == labels, 1, 4)
    entries = np.triu(entries, 1)
    return Table(entries + entries.T)


@pytest.mark.parametrize("kind", ["line", "circle", "ring", "graph", "clusters", "ancestor", "path"])
@settings(max_examples=60)
@given(generators())
def test_far_apart_on_crowded_classes(kind, rng):
    """Classes with most of the values, where small examples leave mistakes unseen: every number of every class."""
    distance, d = concentrated(kind, rng), rng.integers(1, 7)
    classes, values = rng.integers(0, 4, 30), rng.integers(0, F, 30)
    counts = Counts.from_codes(classes, values, F)
    apart = distance.between(np.arange(F)[:, None], np.arange(F)[None, :])
    near = (apart < d) | np.eye(F, dtype=bool)
    for index, name in enumerate(np.unique(classes)):
        group = values[classes == name]
        assert far_apart.heaviest_balls(counts, distance, d)[index] == max(near[v, group].sum() for v in group)
        present = sorted(set(group.tolist()))
        pairs = [apart[u, v] for u, v in itertools.combinations(present, 2)]
        assert far_apart.closest_pairs(counts, distance)[index] == min(pairs, default=math.inf)
        sizes = [
            k
            for k in range(1, len(present) + 1)
            for c in itertools.combinations(present, k)
            if all(apart[u, v] >= d for u, v in itertools.combinations(c, 2))
        ]
        assert far_apart.largest_subsets(counts, distance, F, d)[index] == max(sizes)
