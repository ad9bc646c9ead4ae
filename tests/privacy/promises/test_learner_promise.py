"""The promise about an attacker who knows the distribution, from a policy to attacks."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from draws import Generator, generators
from hypothesis import given, settings

import polyseme as ps
from polyseme.demo.walkthrough import INCOME_CLASSES, income_population, income_table
from polyseme.designs import make_design
from polyseme.designs.mechanism import Mechanism
from polyseme.kernel.randomness import SystemStream
from polyseme.privacy.analysis.learner import Population
from polyseme.privacy.analysis.success_limit import learner_frontier
from polyseme.release import Manifest, Sets
from polyseme.release.data import checksum
from polyseme.scrutiny.attacks.audit import scenes
from polyseme.semantics.distances import LineDistance

VALUES = list("abcdefgh")
SHARES = np.array([30.0, 25.0, 15.0, 10.0, 8.0, 5.0, 4.0, 3.0]) / 100.0
GROUPS = [(age, sex) for age in ("20-29", "30-39", "40-49", "50-59", "60-69") for sex in ("M", "F")]


def policy(learner: dict[str, Any], **attribute: Any) -> ps.Policy:
    described = {
        "role": "sensitive",
        "domain": VALUES,
        "distance": {"line": "rank"},
        "prior": SHARES.tolist(),
        "protect": {"semantic-diversity": {"l": 2, "d": 2}, "learner": learner},
        **attribute,
    }
    return ps.Policy.from_dict(
        {"attributes": {"x": {key: item for key, item in described.items() if item is not None}}}
    )


def table(records: int = 4_000, seed: int = 1) -> pl.DataFrame:
    return pl.DataFrame({"x": np.random.default_rng(seed).choice(VALUES, records, p=SHARES)})


def learned(mechanism: Any, shares: Any) -> float:
    """From the definition."""
    _, channel = mechanism.channel()
    return float((channel * np.asarray(shares)[:, None]).max(axis=0).sum())


@pytest.mark.parametrize("success", [0.4, 0.5, 0.6])
def test_the_plan_keeps_the_promise_at_the_least_error(success: float) -> None:
    planned = ps.plan(policy({"success": success}), records=1_000)["x"]
    assert planned.mechanism is not None
    assert learned(planned.mechanism, SHARES) == pytest.approx(success, abs=1e-6)
    assert planned.facts is not None
    assert planned.facts.average_posterior == pytest.approx(success, abs=1e-6)
    structure = LineDistance.ranks(8).structure(2)
    grid = learner_frontier(structure, 2, Population.of(SHARES), np.linspace(0, 1, 9), np.linspace(0.3, 1, 29))
    kept = [point.root_error(8, 1_000) for point in grid if point.success <= success]
    found = [error for error in kept if error is not None]
    assert planned.facts.expected_mse is not None
    assert np.sqrt(planned.facts.expected_mse) <= min(found) * 1.001


def test_the_choice_is_explained() -> None:
    lines = " ".join(ps.plan(policy({"success": 0.5}))["x"].choice.lines)
    assert "right with 50.0% on average" in lines
    assert "with truthful sets at least 55.0%" in lines
    assert "to the power" in lines


def test_a_reference_serves_as_the_distribution_and_nothing_does_not() -> None:
    given = ps.plan(policy({"success": 0.5}))["x"].mechanism
    referred = ps.plan(policy({"success": 0.5}, prior=None, reference=SHARES.tolist()))["x"].mechanism
    assert given is not None
    assert referred is not None
    assert referred.p == given.p
    with pytest.raises(ps.PolicyError, match=r"(?s)protect\.learner: no distribution.*polyseme prior"):
        ps.plan(policy({"success": 0.5}, prior=None))


def test_truthful_sets_are_refused_below_the_floor_with_its_reason() -> None:
    planned = ps.plan(policy({"success": 0.5, "truthful": True}))["x"]
    assert not planned.feasible
    assert "0.55 or more" in planned.obstacle
    assert "a, b" in planned.obstacle
    assert "(l, d) = " in planned.obstacle
    with pytest.raises(ps.ImpossibleError, match="truthful: false"):
        ps.anonymize(table(), policy({"success": 0.5, "truthful": True}))
    kept = ps.plan(policy({"success": 0.6, "truthful": True}))["x"]
    assert kept.mechanism is not None
    assert kept.mechanism.p == 1.0


def test_values_found_in_the_data_are_not_named() -> None:
    rules = policy({"success": 0.5, "truthful": True}, domain=None)
    with pytest.raises(ps.ImpossibleError) as caught:
        ps.anonymize(table(), rules)
    assert "a, b" not in str(caught.value)


def test_what_is_known_without_a_release_cannot_be_hidden() -> None:
    planned = ps.plan(policy({"success": 0.2}))["x"]
    assert not planned.feasible
    assert "0.3 in one stratum without any release" in planned.obstacle


def test_a_tolerance_covers_distributions_that_are_off() -> None:
    delta = 0.2
    mechanism = ps.plan(policy({"success": 0.5, "tolerance": delta}))["x"].mechanism
    assert mechanism is not None

    @settings(max_examples=50)
    @given(generators())
    def check(rng: Generator) -> None:
        off = SHARES * np.exp(rng.uniform(-delta / 2, delta / 2, len(SHARES)))
        assert learned(mechanism, off / off.sum()) <= 0.5

    check()


def test_other_limits_on_truth_are_kept_as_well() -> None:
    protect = {"semantic-diversity": {"l": 2, "d": 2}, "learner": {"success": 0.5}, "ldp": {"epsilon": 1.0}}
    planned = ps.plan(policy({}, protect=protect))["x"]
    assert planned.choice.binding == "ldp"
    assert planned.facts is not None
    assert planned.facts.epsilon == pytest.approx(1.0)
    assert planned.mechanism is not None
    assert learned(planned.mechanism, SHARES) < 0.5
    assert ps.verify(ps.anonymize(table(), policy({}, protect=protect))).holds


def test_a_design_that_is_named_is_refused() -> None:
    protect = {"semantic-diversity": {"l": 2, "d": 2, "mechanism": "simple"}, "learner": {"success": 0.5}}
    with pytest.raises(ps.PolicyError, match=r"semantic-diversity\.mechanism"):
        policy({}, protect=protect)


def test_the_manifest_has_the_declared_distribution_and_promises_no_posterior() -> None:
    release = ps.anonymize(table(), policy({"success": 0.5}))
    (entry,) = json.loads(release.manifest.to_json())["attributes"]
    assert entry["domain"]["prior"] == pytest.approx(SHARES)
    assert entry["posterior"] is None
    (back,) = Manifest.from_dict(json.loads(release.manifest.to_json())).sets
    (member,) = back.strata.members
    assert member.distributions.learner_prior == pytest.approx(SHARES)
    assert member.prior == pytest.approx(member.mechanism.design.blind_inclusion() / 2)
    assert member.mechanism.worst_posterior(member.prior) <= 0.5
    assert member.mechanism.worst_posterior(SHARES) > 0.5


@pytest.mark.parametrize("change", ["another distribution", "no distribution", "more truth"])
def test_a_manifest_that_does_not_keep_it_is_found_out(change: str) -> None:
    release = ps.anonymize(table(), policy({"success": 0.5}))
    document = json.loads(release.manifest.to_json())
    (entry,) = document["attributes"]
    match change:
        case "another distribution":
            entry["domain"]["prior"] = [0.6, *([0.4 / 7] * 7)]
        case "no distribution":
            del entry["domain"]["prior"]
        case "more truth":
            entry["mechanism"]["p"] = 1.0
    del document["checksum"]
    document["checksum"] = checksum(document)
    forged = replace(release, manifest=Manifest.from_dict(document))
    broken = [verdict.model for verdict in ps.verify(forged).verdicts if not verdict.holds]
    assert "learner" in broken


def incomes(folder: Path, success: float | None) -> ps.Policy:
    """A policy with the distribution by decade and sex that the generator draws from."""
    people = income_population(10)
    rows = [
        f"{sex},{age},{value},{weight * share}"
        for (age, sex), weight, shares in zip(GROUPS, people.weights, people.shares, strict=True)
        for value, share in zip(INCOME_CLASSES, shares)
    ]
    (folder / "prior.csv").write_text("\n".join(rows) + "\n")
    protect: dict[str, Any] = {"semantic-diversity": {"l": 2, "d": 2}, "learner": {"success": success}}
    return ps.Policy.from_dict(
        {
            "attributes": {
                "id": {"role": "identifier"},
                "age": {"role": "quasi-identifier"},
                "sex": {"role": "quasi-identifier"},
                "income": {
                    "role": "sensitive",
                    "domain": list(INCOME_CLASSES),
                    "distance": {"line": "rank"},
                    "prior": {"by": ["sex", "age"], "file": "prior.csv"},
                    "protect": protect,
                },
            }
        },
        folder,
    )


def by_decade(people: pl.DataFrame) -> pl.DataFrame:
    first = pl.col("age") // 10 * 10
    return people.with_columns(pl.format("{}-{}", first, first + 9).alias("age"))


def sets_of(release: ps.Release) -> Sets:
    (only,) = release.manifest.sets
    return only


@pytest.mark.slow
def test_attackers_who_know_the_true_distribution_stay_within_the_promise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scenes, "SystemStream", lambda: SystemStream.seeded(3))
    original = by_decade(income_table(100_000, seed=5))
    release = ps.anonymize(original, incomes(tmp_path, 0.5), seed=1, warn=lambda _: None)
    assert ps.verify(release).holds
    item, people = sets_of(release), income_population(10)
    # Fresh sets of the same mechanisms: the release is shuffled, and no reader can say which row is whose.
    places = item.strata.places(original.select("sex", "age").to_dict(), original.height)
    codes = original["income"].replace_strict(list(INCOME_CLASSES), list(range(14)), return_dtype=pl.Int64).to_numpy()
    right, rng = 0, np.random.default_rng(2)
    for number, member in enumerate(item.strata.members):
        if not member.condition:
            assert not (places == number).any()
            continue
        (sex,), (age,) = member.condition.when["sex"], member.condition.when["age"]
        shares = people.shares[GROUPS.index((age, sex))]
        sets, channel = member.mechanism.channel()
        mine = codes[places == number]
        steps = np.cumsum(channel, axis=1)[mine]
        drawn = np.minimum((steps < rng.random((len(mine), 1))).sum(axis=1), len(sets) - 1)
        hits = (channel * shares[:, None]).argmax(axis=0)[drawn] == mine
        assert hits.mean() < 0.5 + 4 * np.sqrt(0.25 / len(mine))
        right += int(hits.sum())
    assert right / original.height < 0.5 + 4 * np.sqrt(0.25 / original.height)
    findings = {finding.attack: finding for finding in ps.attack(release, original)}
    for name in ("learner", "definetti", "published-estimate"):
        found = findings[name]
        assert found.bound == 0.5
        assert not found.exceeded
        # Fresh sets are attacked: of everybody by those who learn, of the largest stratum by the others.
        records = found.detail["fresh_sets"]
        assert records == found.detail["stratum_records"] > 1_000 if name == "learner" else records == original.height
        assert found.success < 0.5 + 5 * np.sqrt(0.25 / records)
        assert found.success > 0.45  # he is as good as the promise allows, so the test would notice one that is broken


def measured(mechanisms: list[Mechanism], counts: np.ndarray, times: int = 400) -> float:
    """Root mean squared error of the shares over many releases of people with these true values, by stratum."""
    rng, total = np.random.default_rng(4), counts.sum()
    error = np.zeros((times, counts.shape[1]))
    for mechanism, truth in zip(mechanisms, counts, strict=True):
        sets, channel = mechanism.channel()
        channel = channel / channel.sum(axis=1, keepdims=True)
        seen = sum(rng.multinomial(number, chances, times) for number, chances in zip(truth, channel))
        inside = np.zeros((len(sets), counts.shape[1]))
        np.put_along_axis(inside, sets, 1.0, axis=1)
        error += np.linalg.solve(mechanism.inclusion_matrix().T, (seen @ inside).T).T - truth
    return float(np.sqrt(np.mean((error / total) ** 2)))


@pytest.mark.slow
def test_the_error_is_a_quarter_below_that_of_lying_alone(tmp_path: Path) -> None:
    """Lying alone: sets that are balanced for all values alike, and the largest p with the same success on average."""
    records, people = 100_000, income_population(10)
    planned = ps.plan(incomes(tmp_path, 0.5), records=records)["income"]
    structure = LineDistance.ranks(14).structure(2)
    grid = learner_frontier(structure, 2, people, [0.0], np.linspace(1.0, 0.3, 141))
    lying = next(point for point in grid if point.success <= 0.5)
    expected = lying.root_error(14, records)
    assert planned.facts is not None
    assert planned.facts.expected_mse is not None
    assert expected is not None
    assert np.sqrt(planned.facts.expected_mse) <= 0.75 * expected
    served = {tuple(stratum.when[name][0] for name in ("age", "sex")): stratum.mechanism for stratum in planned.strata}
    mechanisms = [served[group] for group in GROUPS]
    counts = np.rint(records * people.weights[:, None] * people.shares).astype(np.int64)
    alone = Mechanism(make_design("balanced", structure, 2), lying.p)
    with_prior, without = measured(mechanisms, counts), measured([alone] * len(GROUPS), counts)
    assert with_prior <= 0.75 * without
    assert with_prior == pytest.approx(np.sqrt(planned.facts.expected_mse), rel=0.1)
    assert without == pytest.approx(expected, rel=0.1)
