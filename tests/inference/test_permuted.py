"""Groups whose values are known, but not who has which: against all permutations, and against the truth."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from draws import replications

from polyseme.inference.classes.coarsened import InGroups
from polyseme.inference.classes.permuted import (
    EXACT,
    Permuted,
    exact_marginals,
    log_permanents,
    marginals,
    scaled_marginals,
)
from polyseme.inference.solver import fixed_point
from polyseme.kernel.arrays import Floats, Ints


def listed(weights: Floats) -> tuple[Floats, float]:
    """Which record has which value, and the permanent, from the list of all permutations."""
    size = len(weights)
    found, permanent = np.zeros((size, size)), 0.0
    for way in permutations(range(size)):
        likely = float(np.prod(weights[np.arange(size), way]))
        permanent += likely
        found[np.arange(size), way] += likely
    return found / permanent, permanent


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6])
def test_marginals_equal_those_of_all_permutations(size: int) -> None:
    weights = np.random.default_rng(size).gamma(0.5, size=(20, size, size)) + 1e-6
    expected = np.array([listed(group)[0] for group in weights])
    np.testing.assert_allclose(exact_marginals(weights), expected, atol=1e-10)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6])
def test_permanents_equal_the_sum_over_all_permutations(size: int) -> None:
    weights = np.random.default_rng(size).gamma(0.5, size=(20, size, size)) + 1e-6
    expected = [np.log(listed(group)[1]) for group in weights]
    np.testing.assert_allclose(log_permanents(weights), expected, atol=1e-9)


def test_permanents_of_large_groups_are_near_up_to_a_constant() -> None:
    rng, size = np.random.default_rng(8), EXACT + 1
    factors = rng.gamma(5.0, size=(2, 6, size))
    weights = factors[0][:, :, None] * factors[1][:, None, :]
    found = log_permanents(weights)
    # The permanent of a product of factors is known: all permutations are equally likely.
    np.testing.assert_allclose(found - np.log(factors).sum(axis=(0, 2)), np.log(size) * size, atol=1e-6)


def test_scaled_marginals_are_doubly_stochastic_and_near_the_exact_ones_for_moderate_odds() -> None:
    weights = np.random.default_rng(1).gamma(20.0, size=(200, 5, 5))
    scaled, exact = scaled_marginals(weights), exact_marginals(weights)
    np.testing.assert_allclose(scaled.sum(axis=1), 1.0, atol=1e-8)
    np.testing.assert_allclose(scaled.sum(axis=2), 1.0, atol=1e-8)
    deviation = np.abs(exact - 0.2).mean()
    # Measured: 0.203.
    assert 0.1 * deviation < np.abs(scaled - exact).mean() < 0.25 * deviation


def test_rows_and_columns_may_be_scaled() -> None:
    rng = np.random.default_rng(2)
    weights = rng.gamma(1.0, size=(10, 4, 4))
    scaled = weights * rng.gamma(1.0, size=(10, 4, 1)) * rng.gamma(1.0, size=(10, 1, 4))
    np.testing.assert_allclose(marginals(weights), marginals(scaled), atol=1e-10)


def in_groups(seed: int, records: int, shares: Floats, size: int) -> tuple[Permuted, Ints]:
    """Records of which each draws its cell and value, in groups of random ones; and the true table."""
    rng = np.random.default_rng(seed)
    cells, width = shares.shape
    code = rng.choice(shares.size, size=records // size * size, p=(shares / shares.sum()).ravel())
    cell, value = np.divmod(code, width)
    group = np.repeat(np.arange(len(code) // size), size)
    truth = np.bincount(code, minlength=shares.size).reshape(shares.shape)
    return Permuted(cell, group, value, cells, width), truth


SHARES = np.array([[0.2, 0.2, 0.05, 0.05, 0.02], [0.03, 0.05, 0.15, 0.1, 0.15]])


def log_likelihood(permuted: Permuted, table: Floats) -> float:
    total = 0.0
    for hand in permuted.hands:
        for cells, values, count in zip(hand.cells, hand.values, hand.counts):
            total += count * np.log(listed(table[np.ix_(cells, values)])[1])
    return total


def test_no_other_table_of_the_same_margins_is_more_likely() -> None:
    permuted, _ = in_groups(3, 600, SHARES, 3)
    table, converged = permuted.most_likely()
    best = log_likelihood(permuted, table)
    assert converged
    assert best > log_likelihood(permuted, permuted.spread_evenly()) + 5.0
    swap = np.zeros_like(table)
    for value in range(1, 5):
        swap[:] = 0.0
        swap[0, 0] = swap[1, value] = 1.0
        swap[1, 0] = swap[0, value] = -1.0
        for step in (-3.0, 3.0):
            assert log_likelihood(permuted, table + step * swap) < best


@pytest.mark.parametrize("size", [2, 3, EXACT + 1])
@pytest.mark.parametrize("way", ["spread_evenly", "most_likely"])
def test_both_margins_are_those_that_were_published(size: int, way: str) -> None:
    permuted, truth = in_groups(4, 900, SHARES, size)
    table = permuted.spread_evenly() if way == "spread_evenly" else permuted.most_likely()[0]
    np.testing.assert_allclose(table.sum(axis=0), truth.sum(axis=0), atol=1e-4)
    np.testing.assert_allclose(table.sum(axis=1), truth.sum(axis=1), atol=1e-4)


@pytest.mark.parametrize("size", [2, 3, 5])
def test_the_most_likely_table_is_nearer_the_truth_than_the_even_spread(size: int) -> None:
    squares = np.zeros(2)
    for seed in replications(10):
        permuted, truth = in_groups(seed, 3_000, SHARES, size)
        squares += [((table - truth) ** 2).sum() for table in (permuted.most_likely()[0], permuted.spread_evenly())]
    # Measured: root mean squared errors of 0.06, 0.08 and 0.10 of those of the even spread.
    assert squares[0] < 0.12**2 * squares[1]


def test_the_approximation_for_large_groups_is_nearer_the_truth_than_the_even_spread() -> None:
    squares = np.zeros(2)
    for seed in replications(5):
        permuted, truth = in_groups(seed, 4_500, SHARES, EXACT + 1)
        squares += [((table - truth) ** 2).sum() for table in (permuted.most_likely()[0], permuted.spread_evenly())]
        assert any("approximated" in remark for remark in permuted.remarks())
    assert squares[0] < 0.5 * squares[1]


def test_what_is_settled_is_exact() -> None:
    # One group in one cell, one with one value, one that is open.
    cell, group = np.array([0, 0, 1, 0, 1, 0]), np.array([0, 0, 1, 1, 2, 2])
    permuted = Permuted(cell, group, np.array([0, 1, 2, 2, 3, 4]), 2, 5)
    assert permuted.open.tolist() == [[False, False, False, True, True]] * 2
    assert permuted.most_likely()[0][:, :3].tolist() == [[1.0, 1.0, 1.0], [0.0, 0.0, 1.0]]


def test_values_that_always_share_a_group_keep_equal_parts_and_it_is_said() -> None:
    rng = np.random.default_rng(5)
    cell = rng.integers(2, size=400)
    permuted = Permuted(cell, np.repeat(np.arange(200), 2), np.tile([0, 1], 200), 2, 2)
    table, _ = permuted.most_likely()
    np.testing.assert_allclose(table[:, 0], table[:, 1], atol=1e-6)
    assert any("varies too little" in remark for remark in permuted.remarks())


def test_records_elsewhere_complete_their_groups() -> None:
    permuted, _ = in_groups(6, 600, np.vstack([SHARES, SHARES[::-1]]), 3)
    none: tuple[Ints, ...] = ()
    whole = InGroups(permuted.cell, 4, none, (), 0, permuted.group, permuted.values, 5)
    part = whole.coarser(np.array([0, 1, -1, -1]), [0])
    merged = whole.coarser(np.array([0, 1, 2, 2]), [0])
    np.testing.assert_allclose(part.most_likely()[0], merged.most_likely()[0][:2], atol=1e-6)
    assert part.shape == (2, 5)


def test_a_step_that_rests_is_found() -> None:
    table, converged = fixed_point(lambda x: 0.5 * x + np.array([1.0, 2.0]), np.array([0.0, 0.0]))
    assert converged
    np.testing.assert_allclose(table, [2.0, 4.0], atol=2e-3)


@pytest.mark.parametrize("strength", [0.0, 30.0, 600.0, 1e12])
def test_a_pull_by_hand_leads_from_the_largest_likelihood_to_the_even_spread(strength: float) -> None:
    permuted, _ = in_groups(3, 600, SHARES, 3)
    table, weight, converged = permuted.shrunk(strength)
    even = permuted.spread_evenly()
    assert converged
    assert weight == pytest.approx(600.0 / (600.0 + strength))
    np.testing.assert_allclose(table, weight * permuted.assigned.step(table) + (1.0 - weight) * even, atol=0.01)
    np.testing.assert_allclose(table.sum(axis=0), even.sum(axis=0), atol=1e-4)
    if strength == 0.0:
        np.testing.assert_allclose(table, permuted.most_likely()[0], atol=1e-9)


def test_the_weight_is_large_where_values_go_with_cells_and_small_where_they_do_not() -> None:
    apart = np.outer(SHARES.sum(axis=1), SHARES.sum(axis=0))
    found = [
        [in_groups(seed, 1_500, shares, 3)[0].shrunk()[1] for seed in replications(6)] for shares in (SHARES, apart)
    ]
    assert min(found[0]) >= 0.9
    # Measured: 0.5, 0.5, 0.5, 0.7, 0.7 and 0.99.
    assert np.median(found[1]) <= 0.7


def test_shrunken_tables_of_few_records_are_nearer_the_truth_than_either_end() -> None:
    shares = np.random.default_rng(9).gamma(2.0, size=(8, 6))
    squares = np.zeros(3)
    for seed in replications(8):
        permuted, truth = in_groups(seed, 900, shares, 3)
        tables = (permuted.shrunk()[0], permuted.most_likely()[0], permuted.spread_evenly())
        squares += [((table - truth) ** 2).sum() for table in tables]
    # Measured: 0.85 of the squared error of the largest likelihood, 0.32 of that of the even spread.
    assert squares[0] < 0.9 * min(squares[1:])


@pytest.mark.filterwarnings("error")
def test_a_single_group_is_shared_out_too() -> None:
    table, _, converged = Permuted(np.array([0, 1]), np.array([0, 0]), np.array([0, 1]), 2, 2).shrunk()
    assert converged
    np.testing.assert_allclose(table, 0.5)
