"""Tests of published sets against their mechanism: honest ones pass, whatever the design, and near misses do not.

Sizes of the false alarms were measured on many more releases (docs/verification.md); these are a seeded part.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from scipy import stats

from polyseme.designs import design_from, make_design
from polyseme.designs.clusters import ClustersDesign
from polyseme.designs.mechanism import Mechanism
from polyseme.inference.base import Reports
from polyseme.inference.counts import distinct
from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.randomness import SystemStream
from polyseme.scrutiny.verification import LEVEL, UNKNOWN_REPEATS, examine, together
from polyseme.scrutiny.verification.evidence import deviance, deviance_tail, listable, share_tail, thinned
from polyseme.semantics.distances import CircleDistance, LineDistance, MatrixDistance
from polyseme.semantics.distances.base import Clusters, Structure


def free(size: int) -> Clusters:
    return Clusters(np.arange(size))


def made(design: str, structure: Structure, l: int, p: float = 1.0, prior: Floats | None = None) -> Mechanism:
    return Mechanism(make_design(design, structure, l, prior), p)


RANKS = LineDistance.ranks
UNEVEN = LineDistance(np.array([1, 2, 3, 4, 5, 6, 7, 8, 15, 20, 25, 30.0]))
ROOTS = MatrixDistance(np.array([[abs(row - column) ** 0.5 for column in range(12)] for row in range(12)]))
RISING = np.linspace(1, 5, 30) / np.linspace(1, 5, 30).sum()

SMALL = {
    "line": made("balanced", RANKS(14).structure(6), 2),
    "line, now and then blind": made("balanced", RANKS(14).structure(4), 3, 0.5),
    "simple": made("simple", RANKS(14).structure(4), 3),
    "duplicate": made("duplicate", RANKS(12).structure(2), 3),
    "circle": made("balanced", CircleDistance.ranks(12).structure(3), 3),
    "least-risk": made("least-risk", UNEVEN.structure(6), 3),
    "matrix": made("balanced", ROOTS.structure(1.5), 3),
    "clusters": made("balanced", Clusters(np.repeat(np.arange(5), 4)), 3),
    "diversity with a prior": made("balanced", free(30), 3, prior=RISING),
    "randomized response": made("balanced", free(20), 1, 0.3),
    "closeness": made("balanced", free(20), 4, 0.2),
    "every value but one": made("balanced", free(6), 5),
    "one set": made("balanced", free(4), 4),
}
LARGE = {
    "diversity": made("balanced", free(400), 3),
    "line": made("balanced", RANKS(300).structure(10), 4),
    "wide sets": made("balanced", free(200), 40, 0.3),
    "simple": made("simple", RANKS(400).structure(9), 3),
    "clusters": made("balanced", Clusters(np.arange(2_000) % 500), 3),
}


def truths(size: int, records: int, seed: int) -> Iterator[Ints]:
    """True values: uniform, nearly all alike, all alike, few different ones, steeply falling."""
    rng = np.random.default_rng([seed, records])
    yield rng.integers(0, size, records)
    yield np.where(rng.random(records) < 0.97, size // 3, rng.integers(0, size, records))
    yield np.zeros(records, dtype=np.int64)
    yield rng.permutation(size)[: max(2, size // 8)][rng.integers(0, max(2, size // 8), records)]
    yield np.minimum(rng.geometric(0.4, records) - 1, size - 1)


def grouped(sets: Ints, size: int) -> Reports:
    rows, place = distinct(sets, size)
    return Reports((rows,), np.zeros(len(rows), dtype=np.int64), np.bincount(place, minlength=len(rows)), 1)


def as_long(sets: Ints) -> Reports:
    values, counts = np.unique(sets, return_counts=True)
    return Reports((values[:, None],), np.zeros(len(values), dtype=np.int64), counts, 1, paired=False)


def drawn(mechanism: Mechanism, codes: Ints, seed: object = 0) -> Ints:
    return mechanism.sample(codes, SystemStream.seeded(f"evidence {seed}"))


@pytest.mark.parametrize("form", ["set", "long"])
@pytest.mark.parametrize("name", SMALL)
def test_honest_releases_pass(name: str, form: str) -> None:
    mechanism = SMALL[name]
    assert listable(mechanism)
    found = []
    for records in (10, 60, 500, 5_000):
        for number, codes in enumerate(truths(mechanism.size, records, 1)):
            sets = drawn(mechanism, codes, (name, records, number))
            reports = grouped(sets, mechanism.size) if form == "set" else as_long(sets)
            found.append(examine(reports, mechanism).p_value)
    # The bounds are on the safe side: far fewer than one in a hundred are below 0.01.
    assert min(found) > 0.002


@pytest.mark.parametrize("name", LARGE)
def test_honest_releases_with_too_many_sets_to_list_pass(name: str) -> None:
    mechanism = LARGE[name]
    assert not listable(mechanism)
    for records in (10, 2_000):
        for number, codes in enumerate(truths(mechanism.size, records, 2)):
            sets = drawn(mechanism, codes, (name, records, number))
            assert examine(grouped(sets, mechanism.size), mechanism).p_value > 0.01


@pytest.mark.parametrize(("l", "d", "records"), [(2, 6, 1_000), (3, 4, 1_000), (4, 3, 5_000)])
def test_another_design_is_found(l: int, d: int, records: int) -> None:
    balanced, simple = (made(name, RANKS(14).structure(d), l) for name in ("balanced", "simple"))
    codes = np.random.default_rng(3).integers(0, 14, records)
    assert examine(grouped(drawn(balanced, codes), 14), balanced).p_value > LEVEL
    assert examine(grouped(drawn(simple, codes), 14), balanced).p_value < LEVEL
    assert examine(as_long(drawn(simple, np.resize(codes, 40_000))), balanced).p_value < LEVEL


def test_a_near_miss_is_found_with_enough_records() -> None:
    structure = RANKS(14).structure(6)
    right = made("balanced", structure, 2)
    weights = np.array(right.design.parameters()["log_weights"]) + 0.3 * (-1.0) ** np.arange(14)
    wrong = Mechanism(design_from("balanced", structure, 2, {"log_weights": weights.tolist(), "tight": []}))
    rng = np.random.default_rng(4)
    few, many = (rng.integers(0, 14, records) for records in (5_000, 500_000))
    assert examine(grouped(drawn(wrong, few), 14), right).p_value > LEVEL
    assert examine(grouped(drawn(wrong, many), 14), right).p_value < LEVEL
    assert examine(grouped(drawn(right, many), 14), right).p_value > LEVEL


def test_a_wrong_truth_probability_is_found() -> None:
    declared, done = made("balanced", free(20), 3, 0.8), made("balanced", free(20), 3, 1.0)
    sets = drawn(done, np.zeros(2_000, dtype=np.int64))
    assert examine(grouped(sets, 20), done).p_value > LEVEL
    assert examine(grouped(sets, 20), declared).p_value < LEVEL


def test_right_values_in_wrong_pairs_are_found() -> None:
    mechanism = made("balanced", RANKS(14).structure(2), 2)
    codes = np.random.default_rng(5).integers(0, 14, 100)
    sets = np.sort(np.stack([codes, (codes + 7) % 14], axis=1), axis=1)
    found = examine(grouped(sets, 14), mechanism)
    assert found.p_value < 1e-20
    assert next(item for item in found.findings if item.name == "pairs").log_p < np.log(LEVEL)


def test_a_rule_in_a_large_domain_is_found_before_any_pair_repeats() -> None:
    mechanism = made("balanced", free(3_000), 2)
    assert not listable(mechanism)
    codes = np.random.default_rng(6).permutation(3_000)[:800]
    sets = np.sort(np.stack([codes, (codes + 7) % 3_000], axis=1), axis=1)
    reports = grouped(sets, 3_000)
    assert reports.counts.max() <= 2
    assert examine(reports, mechanism).p_value < LEVEL
    often = np.repeat(sets[:20], 40, axis=0)
    pairs = next(item for item in examine(grouped(often, 3_000), mechanism).findings if item.name == "pairs")
    assert pairs.log_p < np.log(LEVEL)


def test_sets_that_cannot_be_drawn_have_no_probability() -> None:
    assert examine(grouped(np.array([[0, 1]]), 14), SMALL["line"]).p_value == 0.0
    assert examine(grouped(np.array([[0, 5, 7, 99]]), 300), LARGE["line"]).p_value == 0.0


def test_a_channel_that_does_not_add_up_has_no_probability() -> None:
    structure = Clusters(np.repeat(np.arange(5), 2))
    # A manifest with such shares is refused on reading.
    twice = Mechanism(ClustersDesign(structure, 2, None, np.full(10, 0.9), np.empty(0, dtype=np.int64), "balanced"))
    found = examine(grouped(np.array([[0, 2], [4, 6]]), 10), twice)
    assert found.p_value == 0.0
    assert "add up" in found.note


@pytest.mark.parametrize("visits", ["always 5", "geometric", "now and then 2"])
def test_people_who_repeat_their_set_are_no_evidence(visits: str) -> None:
    rng = np.random.default_rng(7)
    people = 1_500
    times = {
        "always 5": np.full(people, 5),
        "geometric": rng.geometric(0.2, people),
        "now and then 2": 1 + (rng.random(people) < 0.05),
    }[visits]
    effect = float((times**2).sum() / times.sum())
    for mechanism in (SMALL["line"], SMALL["diversity with a prior"], LARGE["diversity"]):
        codes = rng.integers(0, mechanism.size, people)
        reports = grouped(np.repeat(drawn(mechanism, codes, visits), times, axis=0), mechanism.size)
        assert examine(reports, mechanism, repeats=effect).p_value > LEVEL
        assert examine(reports, mechanism, repeats=UNKNOWN_REPEATS).p_value > LEVEL
        if visits != "now and then 2" and mechanism is SMALL["diversity with a prior"]:
            assert examine(reports, mechanism).p_value < LEVEL


def test_several_groups_have_several_chances() -> None:
    mechanism = SMALL["line"]
    found = [examine(grouped(drawn(mechanism, np.full(50, code)), 14), mechanism) for code in (0, 7)]
    worst = min(item.p_value for item in found)
    assert together(found).p_value == min(2 * worst, 1.0)
    assert together(found).records == 100


def test_records_left_out_are_left_out_at_random() -> None:
    sets, counts = np.arange(6)[:, None], np.full(6, 100_000)
    kept, left = thinned(sets, counts, 60_000)
    assert len(kept) == 6
    assert stats.chisquare(left).pvalue > 1e-3
    assert abs(left.sum() - 60_000) < 5 * np.sqrt(60_000)
    assert thinned(sets, counts, 10**6)[1] is counts


@pytest.mark.parametrize("mean", [1e-4, 0.03, 0.7, 4.0, 50.0, 2_000.0])
def test_the_bound_of_a_deviance_is_never_too_small(mean: float) -> None:
    expected = np.full(300, mean)
    rng = np.random.default_rng(8)
    found = np.array([deviance(rng.poisson(expected).astype(float), expected) for _ in range(2_000)])
    for quantile in (0.5, 0.9, 0.99):
        threshold = float(np.quantile(found, quantile))
        assert np.exp(deviance_tail(threshold, expected)) >= 1.0 - quantile
    # .. nor so large that it says nothing.
    far = float(found.mean() + 12.0 * max(found.std(), 1.0))
    assert np.exp(deviance_tail(far, expected)) < 1e-3


def test_the_bound_of_a_share_is_that_of_the_binomial() -> None:
    counts = np.arange(0, 31, dtype=float)
    tails = np.exp(share_tail(counts, 30, 0.4))
    exact = np.where(counts >= 12, stats.binom.sf(counts - 1, 30, 0.4), stats.binom.cdf(counts, 30, 0.4))
    assert (tails >= exact - 1e-12).all()
    assert (tails <= 12.0 * exact).all()
