"""The strength of shrinking: parameters used, and reports left out."""

import numpy as np
import pytest
from listed_designs import line, plain, report

from polyseme.inference.likelihood import CellLikelihoods, Joined, SetLikelihood, likelihood_of
from polyseme.inference.sets.cross_validation import Simpler, best_strength, simpler_table, used_parameters
from polyseme.inference.sets.maximum import MaximumLikelihood
from polyseme.inference.solver import maximize


def fitted(strength, n=300, seed=0):
    mechanisms = [line(6, 2, 2), plain(4, 2, 0.9)]
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.binomial(5, 0.4, n), rng.integers(0, 4, n)], axis=1)
    reports = report(codes, mechanisms, rng)
    likelihood = likelihood_of(reports.sets, reports.counts, mechanisms)
    simpler = Simpler(np.full(24, 1.0 / 24))
    return likelihood, maximize(Joined.of(likelihood, strength * simpler.table), 1e-12).x, simpler


@pytest.mark.parametrize("strength", [5.0, 100.0, 3000.0])
def test_used_parameters_are_the_trace_among_tables_of_the_same_total(strength):
    likelihood, x, simpler = fitted(strength)
    f = likelihood.product(x)
    information = likelihood.information(likelihood.counts / f**2)
    inverse = np.linalg.inv(information + np.diag(strength * simpler.table / x**2))
    ones = inverse.sum(axis=1)
    curvature = inverse - np.outer(ones, ones) / ones.sum()
    assert used_parameters(likelihood, x, simpler, strength) == pytest.approx(
        np.trace(curvature @ information), rel=1e-6
    )


def test_stronger_penalties_use_fewer_parameters_down_to_none():
    used = [used_parameters(*fitted(s), s) for s in (1.0, 30.0, 1e3, 1e6)]
    assert 23 > used[0] > used[1] > used[2] > used[3] > 0
    assert used[3] < 0.1


@pytest.mark.parametrize("strength", [30.0, 100.0, 3000.0])
@pytest.mark.parametrize("groups", [1, 2])
def test_leaving_out_agrees_with_fits_that_do_leave_out(strength, groups):
    """The simpler table is made again for each report left out: a product of margins, or of neighbors' averages."""
    mechanisms = [line(6, 2, 2), plain(4, 2, 0.9)] if groups == 2 else [line(12, 2, 2)]
    rng = np.random.default_rng(0)
    left = rng.binomial(mechanisms[0].size - 1, 0.4, 1000)
    codes = np.stack([left, np.where(rng.random(1000) < 0.2, left % 4, rng.integers(0, 4, 1000))], axis=1)
    reports = report(codes[:, : len(mechanisms)], mechanisms, rng)
    likelihood = SetLikelihood.of(reports.sets, reports.counts, mechanisms)

    def fit(counts):
        simpler = simpler_table(reports.sets, counts, mechanisms, groups)
        return maximize(
            Joined.of(likelihood.counting(counts.astype(float)), strength * simpler.table), 1e-12
        ).x, simpler

    x, simpler = fit(reports.counts)
    measured = 0.0
    for row in np.flatnonzero(reports.counts):
        without = reports.counts.copy()
        without[row] -= 1
        measured += reports.counts[row] * np.log(likelihood.product(fit(without)[0])[row])
    optimism = likelihood.value(x) - measured
    assert used_parameters(likelihood, x, simpler, strength) == pytest.approx(optimism, rel=0.12, abs=0.7)


@pytest.mark.parametrize("n", [300, 3000])
def test_the_strength_does_not_depend_on_the_order_of_records(n):
    mechanisms = [line(6, 2, 2), plain(4, 2)]
    rng = np.random.default_rng(3)
    codes = np.stack([rng.binomial(5, 0.4, n), rng.integers(0, 4, n)], axis=1)
    reports = report(codes, mechanisms, rng)
    order = rng.permutation(len(reports.counts))
    turned = type(reports)(
        tuple(sets[order] for sets in reports.sets), reports.cell[order], reports.counts[order], reports.cells
    )
    target = Simpler(np.full(24, 1 / 24))
    found = [
        best_strength(CellLikelihoods(part, mechanisms), target, MaximumLikelihood().fit(part, mechanisms).values)
        for part in (reports, turned)
    ]
    assert found[0][0] == found[1][0]
    assert found[0][1] == pytest.approx(found[1][1], abs=1e-3)


def test_dependence_that_the_target_lacks_weakens_the_strength():
    mechanisms = [plain(4, 2), plain(4, 2)]
    rng = np.random.default_rng(4)
    left = rng.integers(0, 4, 2000)
    strengths = []
    for kept in (0.0, 0.5):
        right = np.where(rng.random(2000) < kept, left, rng.integers(0, 4, 2000))
        reports = report(np.stack([left, right], axis=1), mechanisms, rng)
        plain_fit = MaximumLikelihood().fit(reports, mechanisms)
        strengths.append(
            best_strength(CellLikelihoods(reports, mechanisms), Simpler(np.full(16, 1 / 16)), plain_fit.values)[0]
        )
    assert strengths[0] > 10 * strengths[1]
