"""The attacker who reads all sets of a record: what it reaches, what it breaks, and what is said about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
import pytest
from draws import replications, seeds
from hypothesis import given, settings

import polyseme as ps
from polyseme.inference.sets.all_sets import Combined, combined_success, pair_chances
from polyseme.inference.sets.associations import Protected
from polyseme.kernel.errors import RiskError
from polyseme.release import Manifest, Sets
from polyseme.results.attackers import Guessers
from polyseme.scrutiny.combined import combined_verdicts


def law(size: int, same: float, steep: float = 0.25) -> np.ndarray:
    """The joint law of two attributes: the second equals the first, or has nothing to do with it."""
    shares = np.exp(-steep * np.arange(size))
    shares /= shares.sum()
    return same * np.diag(shares) + (1.0 - same) * np.outer(shares, shares)


def people(rows: int, same: float, seed: int, size: int = 8) -> pl.DataFrame:
    """x and y follow the law; g tells nothing."""
    rng = np.random.default_rng(seed)
    pairs = rng.choice(size * size, rows, p=law(size, same).ravel())
    return pl.DataFrame(
        {
            "g": rng.choice(["a", "b"], rows),
            "x": [f"x{code}" for code in pairs // size],
            "y": [f"y{code}" for code in pairs % size],
        }
    )


def attribute(name: str, size: int, promise: str) -> str:
    shares = ", ".join(f"{name}{code}: {share:.6f}" for code, share in enumerate(law(size, 0.0).sum(axis=1)))
    return (
        f"  {name}: {{role: sensitive, domain: [{', '.join(f'{name}{code}' for code in range(size))}],\n"
        f"    distance: {{line: rank}}, prior: {{{shares}}},\n"
        f"    protect: {{semantic-diversity: {{l: 2, d: 2}}{promise}}}}}\n"
    )


def policy(promise: str = ", learner: {success: 0.55}", size: int = 8, more: str = "") -> ps.Policy:
    columns = "".join(attribute(name, size, promise) for name in ("x", "y"))
    return ps.Policy.loads(f"attributes:\n  g: {{role: quasi-identifier}}\n{columns}{more}")


def publish(table: pl.DataFrame, rules: ps.Policy, seed: int) -> ps.Release:
    return ps.anonymize(table, rules, seed=seed, accept_risk=True, warn=lambda text: None)


def channel(release: ps.Release, name: str) -> np.ndarray:
    column = release.manifest[name]
    assert isinstance(column, Sets)
    return column.mechanism.channel()[1]


def enumerated(mine: np.ndarray, other: np.ndarray, joint: np.ndarray) -> float:
    """`sum over R, S of max over x of sum over y of joint(x, y) K(R | x) L(S | y)`, pair by pair."""
    return float(sum((joint @ column[:, None] * mine).max(axis=0).sum() for column in other.T))


def test_a_promise_that_another_attribute_breaks_is_refused_and_joint_is_proposed() -> None:
    table, rules = people(6_000, 0.85, 1), policy()
    plan = ps.plan(rules, data=table)
    attackers = plan.to_dict()["attributes"]["x"]["learner"]
    release = publish(table, rules, 1)
    exact = enumerated(channel(release, "x"), channel(release, "y"), law(8, 0.85))
    # With its own set alone the promise of 0.55 holds; with the set of y it is 0.83.
    assert exact > 0.8
    assert attackers["conditional"]["after"] < 0.56
    assert attackers["combined"]["after"] == pytest.approx(exact, abs=0.01)
    assert (attackers["combined_reads"], attackers["combined_above"]) == (["y"], True)
    assert not plan.usable
    with pytest.raises(RiskError, match="also reads the sets of y is right in 8") as refused:
        ps.anonymize(table, rules, warn=lambda text: None)
    assert [problem.where for problem in refused.value.problems] == [
        "$.attributes.x.protect.learner",
        "$.attributes.y.protect.learner",
    ]
    said: list[str] = []
    ps.anonymize(table, rules, accept_risk=True, warn=said.append)
    assert any("as --accept-risk says" in text and "sets of y" in text for text in said)
    assert release.manifest.accepted == ("combined-learner",)
    assert "published although combined-learner did not hold" in ps.report(release)
    document = release.manifest.to_dict()
    assert document["accepted_risk"] == ["combined-learner"]
    assert Manifest.from_dict(document).accepted == ("combined-learner",)
    # What is proposed can be pasted in the place of what protects the two.
    hint = refused.value.problems[0].hint
    proposed = hint[hint.index("joint:") : hint.index("or publish")]
    text = "".join(attribute(name, 8, "") for name in ("x", "y"))
    text = "\n".join(
        line.rstrip(",") + "}" if "prior" in line else line for line in text.splitlines() if "protect" not in line
    )
    again = ps.Policy.loads(f"attributes:\n  g: {{role: quasi-identifier}}\n{text}\n{proposed}")
    assert [item.name for item in ps.plan(again, data=table).attributes] == ["x and y"]


def test_a_release_shows_its_readers_and_verify_calls_the_promise_broken() -> None:
    table, rules = people(6_000, 0.85, 2), policy()
    release = publish(table, rules, 2)
    exact = enumerated(channel(release, "x"), channel(release, "y"), law(8, 0.85))
    found = ps.verify(release)
    attackers = found.to_dict()["learners"]["x"]
    assert attackers["combined"]["low"] < exact < attackers["combined"]["high"] < attackers["combined"]["low"] + 0.1
    (verdict,) = [one for one in found.verdicts if (one.model, one.attribute) == ("combined-learner", "x")]
    assert not verdict.holds
    assert verdict.bound == 0.55
    assert verdict.worst == attackers["combined"]["after"]
    assert "reads all sets of a record" in ps.report(release)
    assert Guessers.from_dict(attackers).to_dict() == attackers
    (correlation, *_) = [one for one in ps.attack(release, table) if one.attack == "correlation"]
    assert correlation.bound == 0.55
    assert correlation.exceeded
    assert attackers["combined"]["after"] > correlation.success - 0.03


def test_independent_attributes_raise_no_alarm() -> None:
    """Over 250 such releases of 300 to 3,000 records none was refused and none called violated."""
    for seed in replications(4):
        table, rules = people(1_000, 0.0, 100 + seed), policy()
        release = ps.anonymize(table, rules, seed=seed, warn=lambda text: None)
        found = ps.verify(release)
        assert release.manifest.accepted == ()
        assert found.holds
        assert not any(attackers.broken for attackers in found.learners.values())


def dependence(release: ps.Release, reached: float) -> float:
    """How often y must equal x, so that an attacker who reads both sets is right so often."""
    low, high = 0.0, 1.0
    for _ in range(30):
        same = (low + high) / 2.0
        exact = enumerated(channel(release, "x"), channel(release, "y"), law(8, same))
        low, high = (same, high) if exact < reached else (low, same)
    return low


@pytest.mark.slow
@pytest.mark.parametrize("block", range(4))
def test_a_promise_that_is_just_kept_is_not_called_broken_and_one_that_is_not_is(block: int) -> None:
    """By readers of the release, by a plan, and by those who publish; the promise is 0.60 with all sets read."""
    rules = policy(", learner: {success: 0.6}")
    first = publish(people(500, 0.0, 1), rules, 1)
    alarms: dict[float, list[tuple[bool, bool, bool]]] = {0.0: [], 0.12: []}
    for seed in replications(24 * block, 24 * block + 24):
        more = 0.12 if seed % 4 == 0 else 0.0
        table = people(2_000, dependence(first, 0.6 + more), 1_000 + seed)
        seen = any(attackers.broken for attackers in ps.verify(publish(table, rules, seed)).learners.values())
        planned = ps.plan(rules, data=table)
        try:
            ps.anonymize(table, rules, seed=seed, warn=lambda text: None)
        except RiskError:
            refused = True
        else:
            refused = False
        alarms[more].append((seen, not planned.usable, refused))
    kept, broken = (np.array(found) for found in alarms.values())
    # Three standard errors: 0.13% of promises about x and of those about y.
    assert (kept.sum(axis=0) <= 1).all()
    assert (kept[:, 1] == kept[:, 2]).all()
    assert (broken[:, 1] == broken[:, 2]).all()
    assert (broken.mean(axis=0) > 0.8).all()


@pytest.mark.slow
def test_the_limits_hold_what_is_true() -> None:
    """For how much y tells about x in between; of 95% at least."""
    held = []
    for seed in replications(10):
        same = (0.2, 0.5)[seed % 2]
        table = people(1_000, same, 200 + seed)
        release = publish(table, policy(""), seed)
        exact = enumerated(channel(release, "x"), channel(release, "y"), law(8, same))
        attackers = ps.verify(release).to_dict()["learners"]["x"]["combined"]
        held.append(attackers["low"] <= exact <= attackers["high"])
        # They are of use, too: a number wrong by a tenth is outside most of them.
        assert attackers["high"] - attackers["low"] < 0.3
    assert np.mean(held) > 0.85


def test_without_a_promise_about_learners_the_data_holder_is_warned() -> None:
    said: list[str] = []
    ps.anonymize(people(4_000, 0.6, 3), policy(""), warn=said.append)
    (text,) = [text for text in said if "joint:" in text]
    assert "'x' goes together with 'y'" in text
    assert "right about it in" in text
    said.clear()
    ps.anonymize(people(4_000, 0.0, 3), policy(""), warn=said.append)
    assert not any("joint:" in text for text in said)


@pytest.mark.parametrize("lies", ["", ", ldp: {epsilon: 3}"], ids=["true sets", "sets that may lie"])
@settings(max_examples=3)
@given(seeds)
def test_who_knows_the_exact_composition_is_enumerated_also_in_strata(lies: str, seed: int) -> None:
    """Groups, impossible values, and sets that may lie: `high` is what an enumeration of the test's own gives."""
    rng = np.random.default_rng(seed)
    rows, size = 400, 5
    g, x = rng.integers(0, 2, rows), rng.integers(0, size, rows)
    y = np.where(rng.random(rows) < 0.6, x, rng.integers(0, size, rows))
    # For the second group the first value of x is impossible.
    x = np.where((g == 1) & (x == 0), 1 + rng.integers(0, size - 1, rows), x)
    table = pl.DataFrame({"g": [f"g{code}" for code in g], "x": [f"x{c}" for c in x], "y": [f"y{c}" for c in y]})
    names = {name: ", ".join(f"{name}{code}" for code in range(size)) for name in ("x", "y")}
    rules = ps.Policy.loads(
        "attributes:\n  g: {role: quasi-identifier}\n"
        + "".join(
            f"  {name}: {{role: sensitive, domain: [{names[name]}], protect: {{diversity: {{l: 2}}{lies}}}}}\n"
            for name in ("x", "y")
        )
        + "impossible: [{when: {g: g1}, attribute: x, values: [x0]}]\n"
    )
    attackers = ps.plan(rules, data=table).to_dict()["attributes"]["x"]["learner"]
    release = publish(table, rules, seed)
    column, other = release.manifest["x"], channel(release, "y")
    assert isinstance(column, Sets)
    total = 0.0
    for group in (0, 1):
        (member,) = [one for one in column.strata.members if len(one.excluded) == group]
        joint = np.zeros((size, size))
        np.add.at(joint, (x[g == group], y[g == group]), 1.0 / rows)
        total += enumerated(member.mechanism.channel()[1], other, joint[member.allowed])
    assert attackers["combined"]["high"] == pytest.approx(total, abs=1e-9)
    assert attackers["conditional"]["after"] - 0.02 < attackers["combined"]["after"] <= total


def test_three_attributes_are_read_together() -> None:
    """Two hints are worth more than one, and the composition bounds both."""
    rng = np.random.default_rng(5)
    size, rows = 6, 4_000
    x = rng.integers(0, size, rows)
    hints = [np.where(rng.random(rows) < 0.6, x, rng.integers(0, size, rows)) for _ in range(2)]
    codes = {"x": x, "y": hints[0], "z": hints[1]}
    table = pl.DataFrame({name: [f"{name}{code}" for code in values] for name, values in codes.items()})
    rules = ps.Policy.loads(
        "attributes:\n"
        + "".join(
            f"  {name}: {{role: sensitive, domain: [{', '.join(f'{name}{c}' for c in range(size))}], "
            "protect: {diversity: {l: 2}}}\n"
            for name in codes
        )
    )
    attackers = ps.plan(rules, data=table).to_dict()["attributes"]["x"]["learner"]
    release = publish(table, rules, 1)
    channels = [channel(release, name) for name in codes]
    alike = 0.6 * np.eye(size) + 0.4 / size
    hint = alike @ channels[1]
    # Given x the two hints have nothing to do with each other, so that the best attacker can be enumerated.
    exact = sum(
        float((channels[0] * (first * second)[:, None] / size).max(axis=0).sum())
        for first in hint.T
        for second in (alike @ channels[2]).T
    )
    pair = enumerated(channels[0], channels[1], alike / size)
    assert pair < exact - 0.05
    assert attackers["combined"]["after"] == pytest.approx(exact, abs=0.02)
    assert set(attackers["combined_reads"]) == {"y", "z"}
    assert attackers["combined"]["after"] <= attackers["combined"]["high"]
    read = ps.verify(release).to_dict()["learners"]["x"]
    assert set(read["combined_reads"]) == {"y", "z"}
    assert read["combined"]["low"] < exact < read["combined"]["high"]


def test_what_is_not_known_is_said_to_be_not_known() -> None:
    labels = ", ".join(f"v{code}" for code in range(2_100))
    rules = ps.Policy.loads(
        "attributes:\n"
        + "".join(
            f"  {name}: {{role: sensitive, domain: [{labels}], protect: {{diversity: {{l: 2}}}}}}\n" for name in "xy"
        )
    )
    table = pl.DataFrame({name: [f"v{code % 2_100}" for code in range(500)] for name in "xy"})
    plan = ps.plan(rules, data=table)
    combined = plan.to_dict()["attributes"]["x"]["learner"]["combined"]
    assert (combined["after"], combined["high"]) == (None, 1.0)
    assert "not known" in plan._repr_html_()
    declared = ps.plan(policy())
    assert declared.to_dict()["attributes"]["x"]["learner"]["combined"]["high"] == 1.0
    assert "not known without the table" in str(declared.to_dict())


def test_documents_of_earlier_versions_are_read() -> None:
    attackers = ps.plan(policy(), data=people(500, 0.0, 1)).to_dict()["attributes"]["x"]["learner"]
    old: Mapping[str, Any] = {key: value for key, value in attackers.items() if not key.startswith("combined")}
    assert Guessers.from_dict(old).combined is None


def protected(mechanism: ps.Release, name: str, codes: np.ndarray, exact: bool) -> Protected:
    column = mechanism.manifest[name]
    assert isinstance(column, Sets)
    return Protected(name, column.strata, codes, np.zeros(len(codes), dtype=np.int64), exact)


def test_chances_of_pairs_are_those_of_a_simulation_of_every_pair() -> None:
    release = publish(people(200, 0.5, 1), policy(", ldp: {epsilon: 3}"), 1)
    mine, other = channel(release, "x"), channel(release, "y")
    belief = np.random.default_rng(2).dirichlet(np.ones(64)).reshape(8, 8)
    columns = [release.manifest[name] for name in "xy"]
    assert all(isinstance(column, Sets) for column in columns)
    found = pair_chances(columns[0].mechanism, columns[1].mechanism, belief)
    score = np.einsum("xr,xs->xrs", mine, belief @ other)
    named = score.argmax(axis=0)[None] == np.arange(8)[:, None, None]
    assert found == pytest.approx(np.einsum("xrs,xr,ys->xy", named, mine, other), abs=1e-9)


def test_people_with_several_records_are_not_guessed_from_their_own() -> None:
    """Ten equal records a person: the others of the same person must not be learned from."""
    release = publish(people(200, 0.0, 1), policy(""), 1)
    rng = np.random.default_rng(3)
    codes = np.repeat(rng.integers(0, 8, (60, 2)), 10, axis=0)
    persons, group = np.repeat(np.arange(60), 10), np.zeros(600, dtype=np.int64)
    mine, other = (protected(release, name, codes[:, [place]], True) for place, name in enumerate("xy"))
    apart = combined_success(mine, [other], group, persons)
    mixed = combined_success(mine, [other], group)
    assert isinstance(apart, Combined)
    assert isinstance(mixed, Combined)
    assert apart.success < mixed.success - 0.03


def test_only_promises_about_learners_are_judged() -> None:
    release = publish(people(500, 0.9, 1), policy(""), 1)
    assert not combined_verdicts(ps.verify(release).learners)
