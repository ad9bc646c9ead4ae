"""Hundreds of small random policies, through the public interface, against enumeration from the definitions."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import polars as pl
import pytest
from draws import generators
from enumeration import (
    Case,
    balanced_exists,
    duplicate_channel,
    errors,
    label,
    largest_ratio,
    membership,
    moved,
    not_of_maximum_entropy,
    random_case,
    simple_channel,
)
from hypothesis import given, settings
from scipy.stats import chi2

import polyseme as ps
from polyseme.designs.mechanism import Mechanism
from polyseme.release import Manifest
from polyseme.results.plan import AttributePlan

POLICIES = 400
SIZES = range(4, 10)
SAMPLED = 120
RECORDS = 600
LEVEL = 1e-3
"""Of all chi-square tests together."""


def case_of(number: int) -> Case:
    return random_case(np.random.default_rng([13, number]))


def conditional(case: Case, allowed: list[int], l: int) -> np.ndarray | None:
    """K of a sequential design in a stratum, by enumeration."""
    sets = case.sets(allowed, l)
    if case.design == "duplicate":
        return duplicate_channel(sets, len(allowed), case.steps or 1)
    return simple_channel(sets, len(allowed)) if sets else None


def exists(case: Case, allowed: list[int], l: int) -> bool:
    if len(allowed) < l:
        return False
    if case.design == "balanced":
        return balanced_exists(case.sets(allowed, l), l * case.pi(allowed))
    return conditional(case, allowed, l) is not None


def check_channel(case: Case, allowed: list[int], mechanism: Mechanism) -> np.ndarray:
    """The channel of a stratum is the one of the definition; returned as it is declared."""
    sets, l, p = case.sets(allowed, mechanism.l), mechanism.l, mechanism.p
    listed, channel = mechanism.channel()
    assert [tuple(row) for row in listed.tolist()] == sets, "other valid sets"
    np.testing.assert_allclose(channel.sum(axis=1), 1.0, atol=1e-9)
    if case.design != "balanced":
        given = conditional(case, allowed, l)
        assert given is not None
        np.testing.assert_allclose(channel, p * given + (1 - p) * given.mean(axis=0), atol=1e-12)
        return channel
    member, rho = membership(sets, len(allowed)), l * case.pi(allowed)
    probability = mechanism.design.blind_likelihood(listed)
    assert not_of_maximum_entropy(sets, probability, rho) == ""
    np.testing.assert_allclose(
        channel,
        probability * (p * member / rho[:, None] + 1 - p),
        rtol=1e-7,
        atol=1e-12,
        err_msg="not the channel of P",
    )
    return channel


def check_posteriors(case: Case, allowed: list[int], mechanism: Mechanism, channel: np.ndarray) -> None:
    joint = channel * case.pi(allowed)[:, None]
    seen = joint.sum(axis=0) > 1e-12
    posterior = joint[:, seen] / joint[:, seen].sum(axis=0)
    declared = mechanism.worst_posterior(case.pi(allowed))
    assert declared == pytest.approx(posterior.max(), rel=1e-6)
    if case.design == "balanced" and mechanism.p == 1.0:
        member = membership(case.sets(allowed, mechanism.l), len(allowed))[:, seen]
        np.testing.assert_allclose(posterior, member / mechanism.l, atol=1e-6)


def check_promises(case: Case, allowed: list[int], mechanism: Mechanism, channel: np.ndarray) -> None:
    """Closeness and local differential privacy are kept by every set, and one of the two is kept by a hair."""
    slack = []
    if mechanism.l == len(allowed):
        return
    if "ldp" in case.promises:
        slack.append(case.promises["ldp"]["epsilon"] - largest_ratio(channel))
    if "closeness" in case.promises:
        t, ground = case.promises["closeness"]["t"], case.promises["closeness"]["ground"]
        if case.reference is None:
            # For every prior at once: tanh(epsilon / 4) is reached by some prior.
            slack.append(t - np.tanh(largest_ratio(channel) / 4))
        elif len(allowed) == case.size:
            pi = case.reference / case.reference.sum()
            slack.append(t - moved(channel, pi, ground))
        else:
            shares = case.reference[allowed] / case.reference[allowed].sum()
            slack.append(t - moved(channel, shares, "equal"))
    assert all(room >= -1e-9 for room in slack), "a promise is broken"
    if slack and mechanism.p < 1.0:
        assert min(slack) < 1e-6, "less truth than the promises allow"


def check_facts(case: Case, allowed: list[int], planned: AttributePlan, channel: np.ndarray) -> None:
    """What the plan says of a policy without strata."""
    found, pi = planned.facts, case.pi(allowed)
    assert found is not None
    assert planned.mechanism is not None
    member = membership(case.sets(allowed, planned.mechanism.l), case.size)
    joint = channel * pi[:, None]
    assert found.worst_posterior == pytest.approx(planned.mechanism.worst_posterior(pi))
    assert found.average_posterior == pytest.approx(joint.max(axis=0).sum(), rel=1e-7)
    assert found.prior_vulnerability == pytest.approx(pi.max())
    assert found.epsilon == pytest.approx(largest_ratio(channel), rel=1e-7, abs=1e-9)
    values = np.linalg.svd(channel @ member.T, compute_uv=False)
    least = values.min() / values.max()
    if not 1e-12 < least < 1e-8:
        assert found.identifiable is bool(least > 1e-10)
    if found.identifiable and least > 1e-6:
        inverse, limit = errors(channel, member, pi, 1_000)
        assert found.condition == pytest.approx(1 / least, rel=1e-6)
        assert found.mse_inverse == pytest.approx(inverse, rel=1e-5)
        assert found.mse_limit == pytest.approx(limit, rel=1e-5)
        assert found.expected_mse == found.mse_limit


def check_policy(case: Case) -> bool:
    """Everything a policy comes to; whether it is possible at all."""
    policy = ps.Policy.from_dict(case.policy)
    planned = ps.plan(policy, records=1_000)["x"]
    strata = case.strata()
    possible = [exists(case, allowed, planned.choice.l) for allowed in strata]
    assert (planned.mechanism is not None) is possible[0], "feasible for everybody"
    if planned.mechanism is not None:
        assert [item.mechanism is not None for item in planned.strata] == possible[1:], "feasible in every stratum"
    assert planned.feasible is all(possible)
    if not planned.feasible:
        assert not planned.usable
        assert planned.obstacle
        return False
    assert planned.choice.l == case.l or {"ldp", "closeness"} & set(case.promises)
    mechanisms = [planned.mechanism, *(item.mechanism for item in planned.strata)]
    for allowed, mechanism in zip(strata, mechanisms, strict=True):
        assert mechanism is not None
        channel = check_channel(case, allowed, mechanism)
        check_posteriors(case, allowed, mechanism, channel)
        check_promises(case, allowed, mechanism, channel)
        if len(strata) == 1:
            check_facts(case, allowed, planned, channel)
    return True


def table_of(case: Case, records: int, rng: np.random.Generator) -> pl.DataFrame:
    """Records of every group, with values that are possible in it."""
    group = rng.choice(["a", "b", "c"], records)
    codes = np.empty(records, dtype=np.int64)
    for name in ("a", "b", "c"):
        gone = case.impossible.get(name, ())
        codes[group == name] = rng.choice([c for c in range(case.size) if c not in gone], int((group == name).sum()))
    return pl.DataFrame({"row": np.arange(records), "group": group, "x": [label(code) for code in codes]})


def drawn(case: Case, seed: int, records: int) -> tuple[Manifest, Iterator[tuple[int, int, tuple[int, ...]]]]:
    """The manifest of a release, read back; and the stratum, true value and set of every record in codes of it."""
    table = table_of(case, records, np.random.default_rng(seed))
    policy = ps.Policy.from_dict(case.policy)
    release = ps.anonymize(table, policy, seed=seed, warn=lambda _: None)
    frame = pl.from_arrow(release.table).join(table, on="row", suffix="_true")
    strata = case.strata()
    number = {tuple(allowed): index for index, allowed in enumerate(strata)}

    def rows() -> Iterator[tuple[int, int, tuple[int, ...]]]:
        for group, labels, true in frame.select("group", "x", "x_true").iter_rows():
            allowed = [code for code in range(case.size) if code not in case.impossible.get(group, ())]
            place = {label(code): index for index, code in enumerate(allowed)}
            yield number[tuple(allowed)], place[true], tuple(sorted(place[name] for name in labels))

    return Manifest.from_dict(json.loads(release.manifest.to_json())), rows()


def misfit(counts: np.ndarray, channel: np.ndarray) -> float:
    """The p-value of Pearson's test of counts (values x sets) against a channel; rare sets are taken together."""
    expected = counts.sum(axis=1, keepdims=True) * channel
    statistic, degrees = 0.0, 0
    for seen, hoped in zip(counts, expected, strict=True):
        if np.any((hoped <= 1e-9) & (seen > 0)):
            return 0.0
        order = np.argsort(-hoped)
        common = int((hoped >= 5.0).sum())
        boxes = [*([index] for index in order[:common]), order[common:]]
        pairs = [(seen[box].sum(), hoped[box].sum()) for box in boxes if hoped[box].sum() > 1.0]
        statistic += sum((have - want) ** 2 / want for have, want in pairs)
        degrees += max(len(pairs) - 1, 0)
    return float(chi2.sf(statistic, degrees)) if degrees else 1.0


def sampled_misfits(case: Case, seed: int, records: int = RECORDS) -> list[float]:
    """One p-value for each stratum of a release."""
    manifest, rows = drawn(case, seed, records)
    members = manifest["x"].strata.members
    channels = [check_channel(case, allowed, member.mechanism) for allowed, member in zip(case.strata(), members)]
    columns = [
        {chosen: index for index, chosen in enumerate(case.sets(allowed, member.mechanism.l))}
        for allowed, member in zip(case.strata(), members)
    ]
    counts = [np.zeros_like(channel) for channel in channels]
    for stratum, true, chosen in rows:
        counts[stratum][true, columns[stratum][chosen]] += 1
    return [misfit(count, channel) for count, channel in zip(counts, channels, strict=True)]


@pytest.mark.parametrize("size", SIZES)
def test_plans_and_channels_are_those_of_the_definitions(size: int) -> None:
    possible = set[bool]()

    @settings(max_examples=POLICIES // len(SIZES) + 1)
    @given(generators().map(lambda rng: random_case(rng, size)))
    def check(case: Case) -> None:
        possible.add(check_policy(case))

    check()
    assert possible == {True, False}


@pytest.mark.slow
def test_published_sets_follow_the_channel() -> None:
    """Releases read back from their manifests; the least of all p-values, by Bonferroni."""
    found: list[float] = []
    number = 0
    while len(found) < SAMPLED:
        case = case_of(number)
        if ps.plan(ps.Policy.from_dict(case.policy))["x"].feasible:
            found += sampled_misfits(case, number)
        number += 1
    assert min(found) > LEVEL / len(found), f"policy {number}"
    # Neither are they all alike: a test whose counts were its own expectation would pass as well.
    assert np.mean(np.array(found) < 0.5) == pytest.approx(0.5, abs=0.2)


def test_a_wrong_channel_is_found_out() -> None:
    """Sets drawn one after the other, against the channel of the balanced design over the same valid sets."""
    between = np.abs(np.arange(8)[:, None] - np.arange(8))
    cases = {
        name: Case({}, 8, 3, name, between, 2.0, promises={"semantic-diversity": {"l": 3, "d": 2, "mechanism": name}})
        for name in ("simple", "balanced")
    }
    counts, channels = {}, {}
    for name, case in cases.items():
        attribute = {"role": "sensitive", "domain": [label(code) for code in range(8)], "distance": {"line": "rank"}}
        roles = {"row": {"role": "quasi-identifier"}, "group": {"role": "quasi-identifier"}}
        case.policy = {"attributes": {**roles, "x": {**attribute, "protect": case.promises}}}
        manifest, rows = drawn(case, 1, 3_000)
        channels[name] = check_channel(case, case.strata()[0], manifest["x"].strata.members[0].mechanism)
        column = {chosen: index for index, chosen in enumerate(case.sets(range(8), 3))}
        counts[name] = np.zeros_like(channels[name])
        for _, true, chosen in rows:
            counts[name][true, column[chosen]] += 1
    threshold = LEVEL / SAMPLED
    for name in cases:
        assert misfit(counts[name], channels[name]) > threshold
    assert misfit(counts["simple"], channels["balanced"]) < threshold
    assert misfit(counts["balanced"], channels["simple"]) < threshold


def test_a_design_that_is_balanced_but_not_of_maximum_entropy_is_found_out() -> None:
    sets = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    rho = np.full(4, 0.5)
    assert not_of_maximum_entropy(sets, np.full(6, 1 / 6), rho) == ""
    assert not_of_maximum_entropy(sets, np.array([2, 1, 1, 1, 1, 2]) / 8, rho) == "no product of weights"
    assert not_of_maximum_entropy(sets, np.array([1, 0, 0, 0, 0, 1]) / 2, rho) == "another support"
    assert not_of_maximum_entropy(sets, np.array([2, 1, 1, 1, 1, 0]) / 6, rho) == "other inclusion probabilities"
