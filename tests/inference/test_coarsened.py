"""Records that show labels: the coarsened likelihood, its flat directions, and what is exact."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize

from polyseme.inference.base import EstimateOptions
from polyseme.inference.classes.coarsened import Labeled, Meanings
from polyseme.inference.classes.estimate import EXACT, estimate_coarse
from polyseme.kernel.errors import QuestionError

# Labels 0 .. 3 are the values themselves, 4 and 5 pairs of them, 6 is all.
LEVELS = Meanings.of([[0], [1], [2], [3], [0, 1], [2, 3], [0, 1, 2, 3]], 4)


def of_labels(counts: list[int], meanings: Meanings = LEVELS) -> Labeled:
    labels = np.arange(len(counts))
    return Labeled(np.zeros(len(counts), dtype=np.int64), (labels,), np.array(counts), 1, (meanings,))


def test_the_even_spread() -> None:
    assert of_labels([3, 0, 0, 1, 4, 6, 8]).spread_evenly().tolist() == [[7.0, 4.0, 5.0, 6.0]]


def test_the_most_likely_table_has_a_closed_form_for_nested_labels() -> None:
    table, converged = of_labels([30, 10, 5, 15, 20, 40, 60]).most_likely()
    # Pairs in proportion to single values, the whole in proportion to pairs.
    pairs = np.array([60.0, 60.0]) * (1 + 60.0 / 120.0)
    assert converged
    np.testing.assert_allclose(table[0], [pairs[0] * 0.75, pairs[0] * 0.25, pairs[1] * 0.25, pairs[1] * 0.75], atol=0.1)


def test_overlapping_labels_against_a_general_optimizer() -> None:
    meanings = Meanings.of([[0, 1], [1, 2], [2, 3], [0], [3]], 4)
    counts = np.array([40, 30, 50, 20, 10])
    table, _ = of_labels(counts.tolist(), meanings).most_likely()

    def loss(free: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
        x = np.exp(free) / np.exp(free).sum()
        return -sum(
            n * np.log(x[meanings.codes[a:b]].sum()) for n, a, b in zip(counts, meanings.starts, meanings.starts[1:])
        )

    best = optimize.minimize(loss, np.zeros(4), method="BFGS").fun
    assert loss(np.log(table[0])) == pytest.approx(best, abs=1e-3)


def test_values_that_no_label_tells_apart_keep_equal_parts_and_are_named() -> None:
    meanings = Meanings.of([[0], [1, 2], [0, 1, 2]], 3)
    labeled = of_labels([10, 20, 30], meanings)
    table, _ = labeled.most_likely()
    np.testing.assert_allclose(table[0], [20.0, 20.0, 20.0], atol=0.01)
    found = estimate_coarse(labeled, ["age"], [["a", "b", "c"]], {}, EstimateOptions())
    assert any("2 of 3 values cannot be told apart" in note and "(b, c)" in note for note in found.notes)


def test_classes_that_do_not_overlap_leave_the_even_spread_although_labels_do() -> None:
    # A strict partition of two attributes: [0, 1] x {0}, {0} x {1}, {1} x {1}.
    first = Meanings.of([[0, 1], [0], [1]], 2)
    second = Meanings.of([[0], [1]], 2)
    labels = (np.array([0, 1, 2]), np.array([0, 1, 1]))
    cell, counts = np.zeros(3, dtype=np.int64), np.array([100, 10, 90])
    joint = Labeled(cell, labels, counts, 1, (first, second), hidden=1)
    assert joint.most_likely()[0].tolist() == [[60.0, 140.0]]
    assert any("do not overlap" in remark for remark in joint.remarks_on_ml())
    alone = Labeled(cell, labels[:1], counts, 1, (first,))
    np.testing.assert_allclose(alone.most_likely()[0], [[20.0, 180.0]], atol=0.05)


def test_margins_are_as_if_asked_for_directly() -> None:
    rng = np.random.default_rng(1)
    labels = (rng.integers(7, size=60), rng.integers(3, size=60))
    cell, counts = rng.integers(4, size=60), rng.integers(1, 9, size=60)
    whole = Labeled(cell, labels, counts, 4, (LEVELS, Meanings.themselves(3)))
    table = estimate_coarse(whole, ["age", "ill"], [range(4), range(3)], {"sex": [0, 0, 1, 1]}, EstimateOptions())
    coarse = Labeled(cell // 2, labels[:1], counts, 2, (LEVELS,))
    direct = estimate_coarse(coarse, ["age"], [range(4)], {"sex": [0, 1]}, EstimateOptions())
    margin = estimate_coarse(whole.coarser(np.array([0, 0, 1, 1]), [0]), ["age"], [range(4)], {}, EstimateOptions())
    np.testing.assert_allclose(margin.values, direct.values, atol=1e-6)
    ill = table.margin(of="ill", by=[])
    assert ill.estimator == EXACT
    assert ill.values[0].tolist() == np.bincount(labels[1], counts).tolist()
    assert ill.stderr.tolist() == [[0.0] * 3]


def test_known_counts_have_multinomial_errors_about_the_population() -> None:
    labeled = Labeled(
        np.zeros(2, dtype=np.int64), (np.array([0, 1]),), np.array([20, 80]), 1, (Meanings.themselves(3),)
    )
    finite = estimate_coarse(labeled, ["ill"], [[1, 2, 3]], {}, EstimateOptions())
    assert finite.low.tolist() == finite.high.tolist() == finite.values.tolist() == [[20.0, 80.0, 0.0]]
    assert [finite.mean().value[0], finite.mean().stderr[0]] == [pytest.approx(1.8), 0.0]
    table = estimate_coarse(labeled, ["ill"], [[1, 2, 3]], {}, EstimateOptions(population="super"))
    np.testing.assert_allclose(table.stderr, [[4.0, 4.0, 0.0]])
    # Wilson's limits for 20 of 100 and for none of 100.
    np.testing.assert_allclose(
        [table.low[0, 0], table.high[0, 0], table.high[0, 2]], [13.337, 28.883, 3.699], atol=1e-3
    )
    assert table.mean().stderr[0] == pytest.approx(0.04)


def test_known_counts_cover_the_population_they_were_drawn_from() -> None:
    rng = np.random.default_rng(2)
    shares = np.array([0.6, 0.3, 0.08, 0.02])
    held = []
    for _ in range(400):
        counts = rng.multinomial(300, shares)
        labeled = of_labels(counts.tolist(), Meanings.themselves(4))
        table = estimate_coarse(labeled, ["ill"], [range(4)], {}, EstimateOptions(population="super"))
        held.append((table.low[0] <= 300 * shares) & (300 * shares <= table.high[0]))
    assert 0.92 <= np.mean(held) <= 0.98


def test_open_cells_have_no_interval_and_the_reason_is_given() -> None:
    table = estimate_coarse(of_labels([30, 10, 5, 15, 20, 0, 0]), ["age"], [range(4)], {}, EstimateOptions())
    assert np.isnan(table.stderr[0]).tolist() == [True, True, False, False]
    assert table.to_dict()["cells"][0]["low"] is None
    assert any(note.startswith("no intervals") for note in table.notes)
    assert np.isnan(table.mean().stderr[0])
    assert type(table).from_dict(table.to_dict()).notes == table.notes
    with pytest.raises(QuestionError, match="independence"):
        table.independence()


def test_other_estimators_are_refused() -> None:
    with pytest.raises(QuestionError, match="inverse is for candidate sets"):
        estimate_coarse(of_labels([1] * 7), ["age"], [range(4)], {}, EstimateOptions("inverse"))
