"""Metrics against published values and literal transcriptions."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from polyseme.kernel.errors import QuestionError, TableError
from polyseme.scrutiny.metrics import (
    METRICS,
    as_grid,
    average_class_size,
    compare,
    discernibility,
    diversity_degrees,
    entropy_loss,
    information_losses,
    per_cell,
    precision,
    query_error,
)
from polyseme.scrutiny.metrics.cross_tabulations import emd
from polyseme.semantics.distances.line import LineDistance
from polyseme.semantics.distances.tree import TreeDistance
from polyseme.tables.equivalence_classes import Counts, classes_of

SHARED = Path(__file__).parents[3] / ".." / "shared" / "data" / "adult"
needs_adult = pytest.mark.skipif(not SHARED.exists(), reason="the Adult data are not beside the project")

TABLE_8 = np.array([[120, 50, 10, 20, 30], [80, 60, 30, 10, 20], [50, 30, 110, 100, 90], [20, 20, 40, 40, 70.0]])
TABLE_10 = np.array(
    [
        [117.8, 52.5, 11.5, 20.5, 27.8],
        [82.9, 60.3, 30.8, 6.3, 19.9],
        [55.1, 27.8, 105.3, 97.8, 94.1],
        [16.9, 18.3, 44.8, 42.3, 67.9],
    ]
)


def test_equation_19_is_the_mean_over_the_twenty_cells():
    assert compare(TABLE_8, TABLE_10, 1000)["mse"] == pytest.approx(8.06e-6, abs=6e-9)


@pytest.mark.parametrize(("a", "b", "expected"), [([10, 100], [10, 80], 0.7465), ([10, 25], [10, 5], 1.9544)])
def test_published_hellinger(a, b, expected):
    found = compare(np.array(a, float), np.array(b, float), 110)
    assert found["hellinger"] == pytest.approx(expected, abs=5e-5)
    assert found["l1"] == found["l2"] == 20


counts = st.lists(st.integers(1, 50), min_size=4, max_size=4)


@settings(max_examples=100, deadline=None)
@given(counts, counts)
def test_literally(x, y):
    found = compare(np.array(x, float), np.array(y, float), sum(x))
    n = sum(x)
    p, q = [a / n for a in x], [b / sum(y) for b in y]
    assert found["mse"] == pytest.approx(sum((a / n - b / n) ** 2 for a, b in zip(x, y)) / 4)
    assert found["l1"] == sum(abs(a - b) for a, b in zip(x, y))
    assert found["l2"] == pytest.approx(math.dist(x, y))
    assert found["hellinger"] == pytest.approx(
        math.sqrt(sum((math.sqrt(a) - math.sqrt(b)) ** 2 for a, b in zip(x, y)) / 2)
    )
    assert found["emd"] == pytest.approx(sum(max(a - b, 0) for a, b in zip(p, q)), abs=1e-12)
    assert found["kl"] == pytest.approx(stats.entropy(p, q), abs=1e-12)
    assert found["chi2"] == pytest.approx(sum((b - a) ** 2 / a for a, b in zip(x, y)))
    assert emd(np.array(x), np.array(y), positions=np.array([0, 1, 5, 2])) == pytest.approx(
        stats.wasserstein_distance([0, 1, 5, 2], [0, 1, 5, 2], x, y) / 5
    )


def test_a_perfect_estimate_costs_nothing():
    assert compare(TABLE_8, TABLE_8) == dict.fromkeys(METRICS, 0.0)


def test_cells_add_up_to_the_table():
    whole, cells = compare(TABLE_8, TABLE_10), per_cell(TABLE_8, TABLE_10)
    assert set(whole) == set(cells)
    assert cells["mse"].mean() == pytest.approx(whole["mse"])
    for name in ("l1", "emd", "kl", "chi2"):
        assert cells[name].sum() == pytest.approx(whole[name])
    for name in ("l2", "hellinger"):
        assert math.sqrt(cells[name].sum()) == pytest.approx(whole[name])


def test_negative_and_empty_estimates():
    found = compare(np.array([5.0, 5.0]), np.array([12.0, -2.0]))
    assert found["l1"] == 14
    assert found["hellinger"] == pytest.approx(math.sqrt(((math.sqrt(12) - math.sqrt(5)) ** 2 + 5) / 2))
    assert found["kl"] == math.inf
    assert found["emd"] == 0.5
    assert compare(np.array([0.0, 4.0]), np.array([1.0, 3.0]))["kl"] == pytest.approx(math.log(4 / 3))


def test_tables_of_different_shapes_are_refused():
    with pytest.raises(QuestionError):
        compare(np.ones(3), np.ones(4))


def test_class_metrics():
    sizes = np.array([2, 3, 5])
    assert discernibility(sizes) == 38
    assert discernibility(sizes, suppressed=2) == 38 + 2 * 12
    assert average_class_size(sizes) == pytest.approx(10 / 3)
    assert average_class_size(sizes, k=2) == pytest.approx(10 / 6)
    assert precision([[0, 2], [1, 2]], [2, 2]) == pytest.approx(1 - (0 + 1 + 0.5 + 1) / 4)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 4)), min_size=1, max_size=20))
def test_le_metrics_literally(rows):
    counted = Counts.from_codes(np.array([r[0] for r in rows]), np.array([r[1] for r in rows]), 5)
    distance = LineDistance([0.0, 1.0, 4.0, 9.0, 2.0])
    groups = [[v for e, v in rows if e == name] for name in sorted({r[0] for r in rows})]
    loss, first, degree = [], [], []
    for group in groups:
        share = {u: group.count(u) / len(group) for u in range(5)}
        loss.append(sum(sum((share[u] - (u == v)) ** 2 for u in range(5)) for v in group))
        first.append(sum((share[v] - 1) ** 2 for v in group))
        pairs = itertools.combinations(group, 2)
        degree.append(sum(abs(distance.positions[u] - distance.positions[v]) for u, v in pairs) / len(group))
    assert information_losses(counted) == pytest.approx(loss)
    assert information_losses(counted, "example") == pytest.approx(first)
    assert diversity_degrees(counted, distance) == pytest.approx(degree)


def test_information_loss_of_the_first_record():
    """Three values, one each: (1 - 1/3)^2 + 2 (1/3)^2 = 2/3 for every record."""
    counted = Counts.from_codes(np.zeros(3, int), np.arange(3), 3)
    assert information_losses(counted)[0] / 3 == pytest.approx(2 / 3)
    # The paper's own example leaves the wrong values out: (1/3 - 1)^2, "0.44".
    assert information_losses(counted, "example")[0] / 3 == pytest.approx(4 / 9)


def test_diversity_of_the_tables_of_the_le_paper():
    """Tables III and V: values of one organ are 1 apart, all others 3."""
    organs = [("flu", "r"), ("pneumonia", "r"), ("cancer", "t"), ("carcinoid", "t"), ("ulcer", "s"), ("gastritis", "s")]
    paths = [(name, organ, f"system {organ}", "*") for name, organ in [*organs, ("dyspepsia", "s")]]
    tree = TreeDistance.from_paths(paths, measure="path")
    groups = np.repeat([0, 1, 2], 3)
    plain = Counts.from_codes(groups, np.array([0, 1, 2, 0, 3, 2, 4, 6, 5]), 7)
    bucketed = Counts.from_codes(groups, np.array([0, 2, 4, 0, 2, 6, 1, 3, 5]), 7)
    assert diversity_degrees(plain, tree) == pytest.approx([7 / 3, 7 / 3, 1])
    assert diversity_degrees(bucketed, tree) == pytest.approx([3, 3, 3])
    assert (discernibility(bucketed.sizes), average_class_size(bucketed.sizes, k=3)) == (27, 1.0)
    assert information_losses(bucketed).sum() == pytest.approx(6)
    assert information_losses(bucketed, "example").sum() == pytest.approx(4)


EIGHT = ["sex", "age", "race", "marital-status", "education", "native-country", "workclass", "salary-class"]
NINE = [*EIGHT[:7], "occupation", EIGHT[7]]


@needs_adult
@pytest.mark.parametrize(
    ("names", "levels", "expected"),
    [
        (NINE, [1, 2, 1, 1, 3, 2, 2, 1, 1], 407289.5388925293),
        (NINE, [1, 0, 1, 1, 3, 2, 2, 0, 1], 255559.85455731067),
        (EIGHT, [1, 1, 1, 1, 3, 2, 2, 1], 324620.5269918692),
        (EIGHT, [0, 4, 1, 1, 3, 2, 2, 1], 398400.0741806447),
    ],
)
def test_entropy_loss_of_adult(names, levels, expected):
    table, generalized = adult(names, levels)
    assert entropy_loss(table, generalized) == pytest.approx(expected, rel=1e-12)


@needs_adult
@pytest.mark.parametrize(
    ("levels", "expected"),
    [([1, 4, 1, 1, 3, 2, 2, 1], 456853172), ([0, 0, 1, 1, 2, 2, 2, 0], 2712340), ([0, 0, 1, 1, 2, 2, 2, 1], 3729686)],
)
def test_discernibility_of_adult(levels, expected):
    names = EIGHT
    assert discernibility(classes_of(adult(names, levels)[1], names).sizes) == expected


def adult(names, levels):
    table = pl.read_csv(SHARED / "adult-arx.csv", separator=";", infer_schema=False).select(names)
    columns = []
    for name, level in zip(names, levels):
        lines = (SHARED / "hierarchies" / f"{name}.csv").read_text().splitlines()
        columns.append(table[name].replace_strict({p[0]: p[level] for p in (x.split(";") for x in lines)}))
    return table, pl.DataFrame(columns)


def test_entropy_loss_needs_the_same_rows():
    with pytest.raises(TableError):
        entropy_loss(pl.DataFrame({"a": [1]}), pl.DataFrame({"a": [1, 2]}))


def test_query_error():
    truth = np.random.default_rng(2).integers(0, 9, (6, 5, 4)).astype(float)
    estimate = truth * 1.1
    found = query_error(truth, estimate, queries=400, selectivity=0.2, seed=1)
    assert found.mean == pytest.approx(0.1)
    assert found.median == pytest.approx(0.1)
    assert query_error(truth, estimate, seed=1) == query_error(truth, estimate, seed=1)
    one = query_error(truth, estimate, queries=7, selectivity=1.0)
    assert one.absolute == pytest.approx(truth.sum() * 0.1)
    sparse = np.zeros((10, 10))
    sparse[0, 0] = 3
    assert query_error(sparse, sparse, queries=50, selectivity=0.01).empty > 30


def test_query_boxes_are_summed_literally():
    from polyseme.scrutiny.metrics.cross_tabulations import _box_sums

    rng = np.random.default_rng(4)
    table = rng.random((4, 3, 5))
    low = rng.integers(0, [4, 3, 5], (20, 3))
    high = np.minimum(low + rng.integers(1, 4, (20, 3)), [4, 3, 5])
    expected = [table[tuple(slice(a, b) for a, b in zip(x, y))].sum() for x, y in zip(low, high)]
    assert _box_sums(table, low, high) == pytest.approx(expected)


def test_queries_range_over_each_attribute_of_the_cells():
    """Against sums over records: a query picks ranges of age, of sex and of the value."""
    rng = np.random.default_rng(8)
    cells = {"age": [9, 10, 10, 11, None], "sex": ["m", "f", "m", "f", "m"]}
    table = rng.integers(1, 9, (5, 3)).astype(float)
    grid = as_grid(table, cells)
    assert grid is not None
    assert grid.shape == (4, 2, 3)
    assert grid.sum() == table.sum()
    assert grid[1, 0].tolist() == table[1].tolist()
    assert grid[0, 1].tolist() == table[0].tolist()
    assert grid[3, 1].tolist() == table[4].tolist()
    assert as_grid(table[:1], {}).shape == (3,)  # type: ignore[union-attr]
    assert as_grid(np.ones((2, 3)), {"tags": [["a", "b"], None]}).shape == (2, 3)  # type: ignore[union-attr]
    many = {f"a{i}": list(range(300)) for i in range(3)}
    assert as_grid(np.ones((300, 1)), many) is None
