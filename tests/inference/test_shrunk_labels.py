"""Labels shared out between the even spread and the likelihood: penalty, weight, cells, numbers, suppressed records."""

from __future__ import annotations

import numpy as np
import pytest
from draws import replications
from scipy import optimize

from polyseme.inference.base import EstimateOptions
from polyseme.inference.classes.coarsened import Labeled, Meanings
from polyseme.inference.classes.estimate import estimate_coarse
from polyseme.inference.classes.mixture import WEIGHTS, LabelCounts, Trial, best_weight, folds_of
from polyseme.inference.sets.maximum import Shrink
from polyseme.kernel.arrays import Floats, Ints

OVERLAPPING = Meanings.of([[0, 1], [1, 2], [2, 3], [0], [3]], 4)
LEVELS = Meanings.of([[0], [1], [2], [3], [0, 1], [2, 3], [0, 1, 2, 3]], 4)


def labeled(counts: Ints, meanings: Meanings, apart: int | None = None) -> Labeled:
    """Cells by labels."""
    cell, label = (places.ravel() for places in np.indices(counts.shape))
    hidden = None if apart is None else label == apart
    return Labeled(cell, (label,), counts.ravel(), len(counts), (meanings,), apart=hidden)


@pytest.mark.parametrize("strength", [5.0, 50.0, 500.0])
def test_the_table_is_that_of_the_penalized_likelihood(strength: float) -> None:
    counts = np.array([[40, 30, 50, 20, 10]])
    even = labeled(counts, OVERLAPPING).spread_evenly()[0]
    table = labeled(counts, OVERLAPPING).shrunk(strength).values[0]
    stands_for = OVERLAPPING.stands_for.toarray()

    def loss(x: Floats) -> float:
        x = x / x.sum()
        return -float(counts[0] @ np.log(stands_for @ x) + strength * even / even.sum() @ np.log(x))

    best = optimize.minimize(lambda free: loss(np.exp(free)), np.zeros(4), method="BFGS")
    np.testing.assert_allclose(table, np.exp(best.x) / np.exp(best.x).sum() * 150.0, atol=0.05)


def test_the_ends_are_the_largest_likelihood_and_the_even_spread() -> None:
    one = labeled(np.array([[40, 30, 50, 20, 10]]), OVERLAPPING)
    np.testing.assert_allclose(one.shrunk(0.0).values, one.most_likely()[0], atol=0.01)
    np.testing.assert_allclose(one.shrunk(1e12).values, one.spread_evenly(), atol=1e-6)
    assert one.shrunk(150.0).weights == {0: 0.5}


def drawn(shares: Floats, records: int, seed: int) -> tuple[Ints, Ints]:
    """Labels of levels drawn at random, and the true table: (cells, labels), (cells, 4)."""
    rng = np.random.default_rng(seed)
    labels, truth = np.zeros((len(shares), 7), dtype=np.int64), np.zeros(shares.shape, dtype=np.int64)
    for cell, probabilities in enumerate(shares):
        value, level = rng.choice(4, records, p=probabilities), rng.choice(3, records, p=[0.2, 0.4, 0.4])
        label = np.choose(level, [value, 4 + value // 2, np.full(records, 6)])
        labels[cell], truth[cell] = np.bincount(label, minlength=7), np.bincount(value, minlength=4)
    return labels, truth


def test_the_weight_follows_how_uneven_values_are() -> None:
    uneven, even = np.array([[0.7, 0.1, 0.05, 0.15]]), np.full((1, 4), 0.25)
    found = [[labeled(drawn(s, 500, k)[0], LEVELS).shrunk().weights[0] for k in range(6)] for s in (uneven, even)]
    assert min(found[0]) >= 0.9
    assert max(found[1]) <= 0.5


def test_small_cells_are_drawn_toward_all_cells() -> None:
    shares = np.tile([0.7, 0.1, 0.05, 0.15], (30, 1))
    squares = np.zeros(3)
    for seed in replications(5):
        labels, truth = drawn(shares, 40, seed)
        one = labeled(labels, LEVELS)
        tables = (one.shrunk().values, one.most_likely()[0], one.spread_evenly())
        squares += [((table - truth) ** 2).sum() for table in tables]
    assert squares[0] < 0.8 * min(squares[1:]), squares


def test_cells_that_differ_keep_their_own_distributions() -> None:
    shares = np.array([[0.7, 0.1, 0.05, 0.15], [0.05, 0.15, 0.7, 0.1]])
    labels, truth = drawn(shares, 2_000, 1)
    one = labeled(labels, LEVELS)
    error, even = (np.abs(table - truth).max() for table in (one.shrunk().values, one.spread_evenly()))
    assert error < 0.2 * even


def test_attributes_that_are_shown_make_cells_too_and_margins_hold() -> None:
    rng = np.random.default_rng(4)
    cell, label, ill = rng.integers(2, size=90), rng.integers(7, size=90), rng.integers(3, size=90)
    counts = rng.integers(1, 9, size=90)
    one = Labeled(cell, (label, ill), counts, 2, (LEVELS, Meanings.themselves(3)))
    table = one.shrunk().values
    shown = np.zeros((2, 3))
    np.add.at(shown, (cell, ill), counts)
    np.testing.assert_allclose(table.sum(axis=1), shown, atol=1e-9)
    as_cells = Labeled(cell * 3 + ill, (label,), counts, 6, (LEVELS,)).shrunk().values
    np.testing.assert_allclose(np.moveaxis(table, 1, 2).reshape(6, 4), as_cells, atol=1e-9)


def test_several_attributes_are_shared_out_one_by_one() -> None:
    # Of (0 or 1, 2 or 3), of which the first goes 3:1 and the second 1:3 elsewhere.
    first, second = np.array([4, 0, 1]), np.array([5, 2, 3])
    one = Labeled(np.zeros(3, dtype=np.int64), (first, second), np.array([160, 600, 200]), 1, (LEVELS, LEVELS))
    table = one.shrunk(0.0).values[0]
    # The record as a whole: 3/4 and 1/4 of 160, 3/4 and 1/4 of each.
    np.testing.assert_allclose(table[0, 2], 600 + 160 * 0.75 * 0.75, atol=0.1)
    np.testing.assert_allclose(table[1, 2], 160 * 0.25 * 0.75, atol=0.1)
    assert table.sum() == pytest.approx(960.0)


def test_suppressed_records_are_spread_evenly_and_teach_nothing() -> None:
    counts = np.array([[60, 10, 20, 10, 0, 0, 40]])
    one = labeled(counts, LEVELS, apart=6)
    np.testing.assert_allclose(one.shrunk().values, [[70.0, 20.0, 30.0, 20.0]])
    like_others = labeled(counts, LEVELS).shrunk(0.0).values
    np.testing.assert_allclose(like_others, [[84.0, 14.0, 28.0, 14.0]], atol=0.01)


def test_numbers_are_smoothed_and_keep_their_sum() -> None:
    values = 40
    meanings = Meanings.of([[v] for v in range(values)] + [list(range(10)), list(range(5, 15))], values + 1, values)
    counts = np.zeros((1, values + 2), dtype=np.int64)
    counts[0, [2, 20, values, values + 1]] = [10, 20, 30, 30]
    smooth = LabelCounts(counts, meanings.stands_for, values).shared(0.0).expected
    rough = LabelCounts(counts, meanings.stands_for).shared(0.0).expected
    assert smooth.sum() == pytest.approx(90.0)
    assert np.abs(np.diff(smooth[0, :values])).max() < 1.0 < 10.0 < np.abs(np.diff(rough[0])).max()
    assert smooth[0, values] == 0.0


def test_the_choice_between_weights_leans_as_told() -> None:
    scores = dict(zip(WEIGHTS, [-5.0, -3.0, -1.0, -0.5, 0.0, -0.4, -0.9, -2.0, -30.0, 5.0]))
    current = list[float]()

    def trial() -> Trial:
        current.clear()

        def judged(table: Floats) -> float:
            current.append(0.0)
            return scores[WEIGHTS[len(current) - 1]]

        return Trial(lambda table: table, np.ones(2), judged)

    assert best_weight([trial()], 1.0) == WEIGHTS[6]
    assert best_weight([trial()], -1.0) == WEIGHTS[2]
    assert best_weight([trial()], 0.1) == WEIGHTS[4]
    # What is far below the best ends the search: the last one was not tried.
    assert len(current) == 9


def test_parts_are_disjoint_complete_and_repeatable() -> None:
    counts = np.array([[0, 3, 100], [7, 1, 5]])
    parts = list(folds_of(counts))
    assert np.sum(parts, axis=0).tolist() == counts.tolist()
    assert [part.tolist() for part in folds_of(counts)] == [part.tolist() for part in parts]


def test_a_strength_by_hand_and_the_note_that_tells_the_weight() -> None:
    one = labeled(np.array([[40, 30, 50, 20, 10]]), OVERLAPPING)
    table = estimate_coarse(one, ["age"], [range(4)], {}, EstimateOptions(Shrink(150.0)))
    assert table.estimator == "shrink"
    assert "age: 50% of each record goes by the likelihood, 50% is spread evenly" in table.notes
    np.testing.assert_allclose(table.values, one.shrunk(150.0).values)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("counts", [[0, 0, 0, 0, 0, 0, 8], [0, 0, 0, 0, 1, 0, 0], [0] * 7])
def test_hardly_any_records_are_spread_evenly(counts: list[int]) -> None:
    one = labeled(np.array([counts, counts]), LEVELS, apart=6)
    np.testing.assert_allclose(one.shrunk().values, one.spread_evenly())
