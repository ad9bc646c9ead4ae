"""What every estimator must do on every mechanism."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from listed_designs import long_form, plain

from polyseme.inference.sets.registry import ESTIMATORS
from polyseme.testing import Traits, check_estimator
from polyseme.testing import estimators as laws

LINEAR = ("simple", "existing", "paper", "inverse", "valueadding")
ITERATED = ("bayes", "ml", "shrink", "smooth")


# The designs of the package, and some that are listed from their definitions.
MECHANISMS = {
    **laws.MECHANISMS,
    "plain, noisy": lambda: [plain(5, 2, 0.7)],
    "line x plain": lambda: [*laws.MECHANISMS["line x plain"]()[:1], plain(3, 2)],
    "four plain, mixed": lambda: [plain(3, 2), plain(2, 1), plain(3, 2, 0.9), plain(4, 2)],
}
CASES = list(product(ESTIMATORS, MECHANISMS))


def traits(name):
    """Likelihood estimates are known up to the certified gap.

    Held-out parts are drawn by the order of the sets, so a strength that `shrink` chooses may differ by a step.
    """
    return Traits(
        reordered=1e-8 if name in LINEAR else 0.5,
        renamed={"shrink": 25.0}.get(name, 1e-6 if name in LINEAR else 0.2),
        totals=name != "valueadding",
        nonnegative=name in ITERATED,
        consistent=name in ("inverse", "ml"),
    )


@pytest.fixture(scope="module")
def data():
    return {name: laws.sample_of(make()) for name, make in MECHANISMS.items()}


@pytest.mark.parametrize(("estimator", "case"), CASES)
def test_totals_shapes_and_signs(estimator, case, data):
    laws.keeps_totals(ESTIMATORS[estimator], data[case], traits(estimator))
    if estimator in ITERATED:
        fit = ESTIMATORS[estimator].fit(data[case].reports, data[case].mechanisms)
        assert fit.gap is None if estimator == "smooth" else fit.gap <= 1e-6


@pytest.mark.parametrize(("estimator", "case"), CASES)
def test_order_and_batches_of_records_do_not_matter(estimator, case, data):
    laws.ignores_order_and_batches(ESTIMATORS[estimator], data[case], traits(estimator))


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("design", ["balanced", "simple"])
def test_names_of_values_do_not_matter(estimator, design):
    laws.ignores_names_of_values(ESTIMATORS[estimator], design, traits(estimator))


@pytest.mark.parametrize(("estimator", "case"), CASES)
def test_odd_cells(estimator, case):
    laws.serves_odd_cells(ESTIMATORS[estimator], MECHANISMS[case]())


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("case", ["balanced line", "algorithm 1", "plain, noisy", "clusters"])
def test_counts_only(estimator, case, data):
    sample = data[case]
    counts = long_form(sample.reports, sample.mechanisms[0])
    fit = ESTIMATORS[estimator].fit(counts, sample.mechanisms)
    np.testing.assert_allclose(fit.totals, np.bincount(sample.cell))
    if estimator in LINEAR:
        paired = ESTIMATORS[estimator].fit(sample.reports, sample.mechanisms)
        np.testing.assert_allclose(fit.values, paired.values, atol=1e-8)
    if estimator in ("ml", "shrink"):
        assert any("counts only" in note for note in fit.notes)


@pytest.mark.parametrize("case", MECHANISMS)
def test_many_records_recover_the_truth(case):
    """With 200,000 records `inverse` and `ml` lie within six of their own standard errors, everywhere."""
    for name in ("inverse", "ml"):
        laws.recovers_the_truth(ESTIMATORS[name], MECHANISMS[case]())


def test_the_whole_suite_holds():
    check_estimator(ESTIMATORS["simple"], traits("simple"))


class Boastful(type(ESTIMATORS["inverse"])):
    """Standard errors of a tenth of what they are."""

    def fit(self, reports, mechanisms):
        fit = super().fit(reports, mechanisms)
        return replace(fit, variance=fit.variance / 100)


class Ignorant(type(ESTIMATORS["inverse"])):
    """Standard errors that allow anything."""

    def fit(self, reports, mechanisms):
        fit = super().fit(reports, mechanisms)
        return replace(fit, variance=np.full_like(fit.variance, 1e300))


class Hasty(type(ESTIMATORS["inverse"])):
    """An estimate that believes the first rows more."""

    def fit(self, reports, mechanisms):
        counts = reports.counts + (np.arange(len(reports.counts)) < 3)
        return super().fit(replace(reports, counts=counts), mechanisms)


@pytest.mark.parametrize(
    ("estimator", "law"),
    [
        (Boastful(), "six standard errors"),
        (Ignorant(), "standard errors are small"),
        (Hasty(), "`totals` are the numbers of records"),
    ],
)
def test_an_estimator_that_breaks_a_law_is_told_which(estimator, law):
    with pytest.raises(AssertionError, match=law):
        check_estimator(estimator, Traits(consistent=True))
