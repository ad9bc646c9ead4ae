"""Rating and Random."""

import numpy as np
import pytest

from polyseme.kernel.errors import ImpossibleError
from polyseme.kernel.randomness import SystemStream, experiment
from polyseme.papers.baselines import random_table, rating, rating_table, value_groups


def test_rating_adds_values_of_other_records_in_proportion():
    counts = np.array([1_000, 600, 300, 100, 0])
    codes = np.repeat(np.arange(5), counts * 40)
    sets = rating(codes, 5, 2, SystemStream.seeded(1))
    assert np.all((sets == codes[:, None]).any(axis=1))
    assert np.all(np.diff(sets, axis=1) > 0)
    assert not (sets == 4).any()
    for value in range(4):
        decoys = sets[codes == value].sum(axis=1) - value
        others = np.where(np.arange(5) == value, 0, counts)
        expected = others / others.sum()
        observed = np.bincount(decoys, minlength=5) / len(decoys)
        error = np.sqrt(expected * (1 - expected) / len(decoys))
        assert np.all(np.abs(observed - expected) <= 4.5 * error + 1e-12)


def test_second_draw_is_without_replacement():
    counts = np.array([50, 25, 15, 10])
    codes = np.zeros(200_000, dtype=np.int64)
    sets = rating(codes, 4, 3, SystemStream.seeded(2), counts=counts)
    rest = counts[1:] / counts[1:].sum()
    missing = np.bincount(6 - sets.sum(axis=1), minlength=4)[1:] / len(sets)
    expected = [
        sum(rest[a] * rest[b] / (1 - rest[a]) for a in range(3) for b in range(3) if a != b and c not in (a, b))
        for c in range(3)
    ]
    np.testing.assert_allclose(missing, expected, atol=0.006)


def test_rating_needs_values_to_add():
    with pytest.raises(ImpossibleError, match="2 different ones occur"):
        rating(np.array([0, 1, 0]), 5, 3, SystemStream.seeded(3))


def test_random_table_holds_all_records():
    table = random_table(10_000, (4, 5), experiment(0))
    assert table.shape == (4, 5)
    assert table.sum() == 10_000
    assert np.abs(table - 500).max() < 5 * np.sqrt(500)


def test_groups_of_values_flatten():
    """Every value of a group gets the mean of its group."""
    rng = np.random.default_rng(4)
    codes = [rng.integers(0, 7, 5_000) ** 2 // 7, rng.integers(0, 4, 5_000)]
    counts = [np.bincount(codes[0], minlength=7), np.bincount(codes[1], minlength=4)]
    groups = [value_groups(count, 2) for count in counts]
    assert all(np.bincount(group).min() >= 2 for group in groups)
    table = rating_table(codes, groups)
    truth = np.zeros((7, 4))
    np.add.at(truth, tuple(codes), 1)
    assert table.sum() == pytest.approx(5_000)
    for row in range(7):
        for column in range(4):
            block = np.ix_(groups[0] == groups[0][row], groups[1] == groups[1][column])
            assert table[row, column] == pytest.approx(truth[block].mean())
    with pytest.raises(ImpossibleError):
        value_groups(np.ones(3), 4)
