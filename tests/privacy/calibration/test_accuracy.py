"""Equation 9: what it says, that it is monotone (Theorem 1), and that simulation agrees."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyseme.privacy.calibration import expected_l2


@given(st.integers(3, 60), st.data())
@settings(max_examples=200, deadline=None)
def test_equation_9_as_printed(size, data):
    eta = data.draw(st.integers(1, size - 1))
    p = data.draw(st.floats(0.01, 1.0))
    inner = (1 - size) * (p**2 * size + eta - (p**2 + size) * eta)
    printed = np.sqrt(max(inner, 0.0) / (p**2 * size * 1_000 * (size - eta)))
    assert float(expected_l2(1_000, size, eta, p)) == pytest.approx(printed, rel=1e-6, abs=1e-7)


@given(st.integers(2, 200), st.data())
@settings(max_examples=200, deadline=None)
def test_theorem_1(size, data):
    """Weakly increasing in eta, weakly decreasing in p."""
    p = data.draw(st.floats(0.001, 1.0))
    by_size = expected_l2(100, size, np.arange(1, size), p)
    assert np.all(np.diff(by_size) >= -1e-12)
    eta = data.draw(st.integers(1, size - 1))
    by_truth = expected_l2(100, size, eta, np.linspace(0.001, 1.0, 200))
    assert np.all(np.diff(by_truth) <= 1e-12)


def test_nothing_to_estimate():
    assert np.isinf(expected_l2(100, 5, 2, 0.0))
    assert np.isinf(expected_l2(100, 5, 5, 1.0))
    assert float(expected_l2(100, 5, 1, 1.0)) == 0.0
    assert float(expected_l2(100, 1, 1, 1.0)) == 0.0


@pytest.mark.parametrize(("size", "eta", "p"), [(8, 3, 1.0), (8, 3, 0.4), (12, 2, 0.8), (5, 1, 0.5), (2, 1, 0.6)])
def test_simulation_within_three_percent(size, eta, p):
    """The inverse estimator on uniform sets: root of the mean squared L2 over many tables."""
    rng = np.random.default_rng(size * 100 + eta)
    records, runs = 400, 3_000
    truth = rng.integers(0, size, records) ** 2 // size
    shares = np.bincount(truth, minlength=size) / records
    alpha = p + (1 - p) * eta / size
    beta = p * (eta - 1) / max(size - 1, 1) + (1 - p) * eta / size
    squared = np.empty(runs)
    for run in range(runs):
        order = rng.random((records, size))
        truthful = rng.random(records) < p
        order[np.flatnonzero(truthful), truth[truthful]] = -1.0
        members = np.argpartition(order, eta - 1, axis=1)[:, :eta]
        contained = np.bincount(members.ravel(), minlength=size) / records
        squared[run] = (((contained - beta) / (alpha - beta) - shares) ** 2).sum()
    assert np.sqrt(squared.mean()) == pytest.approx(float(expected_l2(records, size, eta, p)), rel=0.03)
