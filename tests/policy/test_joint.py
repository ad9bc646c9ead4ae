"""Attributes that give each other away, protected as one."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from draws import replications

import polyseme as ps
from polyseme.inference.sets.estimate import Estimate
from polyseme.release import Sets
from polyseme.semantics.distances import LineDistance, distance_from
from polyseme.semantics.distances.base import Clusters, Line
from polyseme.semantics.distances.joint import DiscreteDistance, JointDistance

HEAD = """
attributes:
  id: {role: identifier}
  sex: {role: quasi-identifier}
  disease: {role: sensitive, domain: [d0, d1, d2, d3, d4, d5]%s}
  treatment: {role: sensitive, domain: [t0, t1, t2, t3, t4, t5]%s}
"""
APART = HEAD % ((", protect: {semantic-diversity: {l: 2, d: 1}}, distance: {line: rank}",) * 2)
JOINT = (
    HEAD % ("", "")
    + """
joint:
  - name: illness
    attributes: [disease, treatment]
    protect: {semantic-diversity: {l: 2, d: 1}}
"""
)


def people(rows: int = 6_000, seed: int = 1) -> pl.DataFrame:
    """Every disease has its treatment, with few exceptions."""
    rng = np.random.default_rng(seed)
    disease = rng.integers(0, 6, rows)
    treatment = np.where(rng.random(rows) < 0.97, disease, rng.integers(0, 6, rows))
    return pl.DataFrame(
        {
            "id": range(rows),
            "sex": rng.choice(["f", "m"], rows),
            "disease": [f"d{value}" for value in disease],
            "treatment": [f"t{value}" for value in treatment],
        }
    )


def publish(policy: str = JOINT, rows: int = 6_000, out: Path | None = None, seed: int = 1) -> ps.Release:
    return ps.anonymize(people(rows, seed), ps.Policy.loads(policy), out, warn=lambda text: None)


def test_apart_they_give_each_other_away_and_together_they_do_not() -> None:
    apart = ps.attack(publish(APART), people())
    correlation = [found for found in apart if found.attack == "correlation"]
    assert max(found.success for found in correlation) > 0.6
    release = publish()
    assert not ps.attack(release, people()).exceeded
    (column,) = release.manifest.sets
    assert release.manifest.names == ("sex", "illness")
    # No candidate of a set shares a member with another: an attacker who wants the disease is at 1/l as well.
    sets, _ = column.mechanism.channel()
    for member in column.attribute.members:
        codes = np.array(member.codes)[sets]
        assert (codes[:, 0] != codes[:, 1]).all()
    assert column.mechanism.worst_posterior() == pytest.approx(0.5)


USUAL = ", ".join(f"'d{a} & t{b}': {97.5 if a == b else 0.5}" for a in range(6) for b in range(6))
"""How the combinations of `people` are distributed."""


def test_an_attacker_who_knows_the_joint_distribution_is_at_one_in_l_with_a_prior_by_combination() -> None:
    def learner(policy: str) -> float:
        (found,) = [item for item in ps.attack(publish(policy), people()) if item.attack == "definetti"]
        return found.success

    # Without it decoys are combinations that no person has, and hide no more than two sets that reveal each other.
    assert learner(JOINT) > 0.8
    assert learner(JOINT + f"    prior: {{{USUAL}}}\n") == pytest.approx(0.5, abs=0.03)


def test_a_joint_attribute_without_a_prior_is_remarked_on() -> None:
    assert "no prior for the combinations of 'illness'" in str(ps.plan(ps.Policy.loads(JOINT)))
    assert "no prior" not in str(ps.plan(ps.Policy.loads(JOINT + f"    prior: {{{USUAL}}}\n")))


def test_the_release_verifies_and_goes_through_a_file(tmp_path: Path) -> None:
    release = publish(out=tmp_path / "release")
    assert ps.verify(release).holds
    again = ps.Release.open(tmp_path / "release")
    assert again.manifest.to_dict() == release.manifest.to_dict()
    column = again.manifest["illness"]
    assert isinstance(column, Sets)
    assert [member.name for member in column.attribute.members] == ["disease", "treatment"]
    assert column.domain.values[1] == "d0 & t1"
    assert again.manifest.to_dict()["format"] == 2
    assert ps.estimate(again, ["disease"]).values.shape == (1, 6)


@pytest.mark.slow
def test_members_and_pairs_are_estimated_without_bias_and_with_honest_intervals() -> None:
    truth = {"disease": np.zeros(6), "pair": np.zeros((6, 6))}
    covered, errors = [], []
    for seed in replications(30):
        table = people(3_000, seed)
        codes = [table[name].str.slice(1).cast(int).to_numpy() for name in ("disease", "treatment")]
        truth["disease"] = np.bincount(codes[0], minlength=6)
        np.add.at(pair := np.zeros((6, 6)), tuple(codes), 1)
        release = ps.anonymize(table, ps.Policy.loads(JOINT), seed=seed, warn=lambda text: None)
        alone = ps.estimate(release, ["disease"], estimator="inverse")
        both = ps.estimate(release, ["disease", "treatment"], estimator="inverse")
        swapped = ps.estimate(release, ["treatment", "disease"], estimator="inverse")
        whole = ps.estimate(release, ["illness"], estimator="inverse")
        assert both.values[0] == pytest.approx(whole.values.reshape(6, 6))
        assert swapped.values[0] == pytest.approx(both.values[0].T)
        assert alone.values[0] == pytest.approx(both.values[0].sum(axis=1))
        covered.append(np.mean((alone.low[0] <= truth["disease"]) & (truth["disease"] <= alone.high[0])))
        covered.append(np.mean((both.low[0] <= pair) & (pair <= both.high[0])))
        errors.append((alone.values[0] - truth["disease"]) / alone.stderr[0])
    assert abs(np.mean(errors)) < 4 / np.sqrt(np.size(errors))
    assert 0.85 < np.std(errors) < 1.15
    assert np.mean(covered) == pytest.approx(0.95, abs=0.03)


def test_groups_and_evaluation() -> None:
    release, table = publish(), people()
    found = ps.estimate(release, ["disease"], by=["sex"])
    assert found.values.shape == (2, 6)
    assert found.values.sum() == pytest.approx(6_000)
    scores = ps.evaluate(release, table, of=["disease"], by=["sex"]).to_dict()
    assert scores["question"] == "disease by sex"
    both = ps.evaluate(release, table, of=["disease", "treatment"]).to_dict()
    assert both["mse"] == pytest.approx(ps.evaluate(release, table, of=["illness"]).to_dict()["mse"])
    assert "illness" in ps.report(release, table)
    with pytest.raises(ps.QuestionError, match="part of 'illness'"):
        ps.estimate(release, ["disease", "illness"])


def test_impossible_combinations_and_constraints_of_members() -> None:
    policy = (
        JOINT
        + """
impossible:
  - {when: {disease: d0}, attribute: treatment, values: [t1, t2]}
  - {when: {sex: m}, attribute: disease, values: [d5], may-be-empty: true}
"""
    )
    table = people().filter(~((pl.col("disease") == "d0") & pl.col("treatment").is_in(["t1", "t2"])))
    table = table.filter(~((pl.col("disease") == "d5") & (pl.col("sex") == "m")))
    release = ps.anonymize(table, ps.Policy.loads(policy), warn=lambda text: None)
    column = release.manifest["illness"]
    assert isinstance(column, Sets)
    assert column.domain.size == 34
    assert "d0 & t1" not in column.domain.values
    excluded = column.strata.members[1].excluded
    assert {column.domain.values[code] for code in excluded} == {f"d5 & t{number}" for number in range(6)}
    assert ps.verify(release).holds
    with pytest.raises(ps.TableError, match="not in the declared domain"):
        ps.anonymize(people(), ps.Policy.loads(policy), warn=lambda text: None)


def test_priors_are_given_by_combination_or_multiplied() -> None:
    weights = [1, 1, 1, 1, 1, 2]
    given = JOINT.replace("domain: [d0, d1, d2, d3, d4, d5]", f"domain: [d0, d1, d2, d3, d4, d5], prior: {weights}")
    column = publish(given).manifest.sets[0]
    assert column.attribute.distributions.prior == pytest.approx(np.repeat(weights, 6) / 42)
    named = (
        JOINT + "    prior: {" + ", ".join(f"'d{a} & t{b}': {1 + (a == b)}" for a in range(6) for b in range(6)) + "}\n"
    )
    column = publish(named).manifest.sets[0]
    assert column.attribute.distributions.prior == pytest.approx((np.ones((6, 6)) + np.eye(6)).ravel() / 42)


def test_everything_wrong_is_said_at_once() -> None:
    policy = (
        HEAD % (", protect: {diversity: {l: 2}}", "")
        + """
joint:
  - {name: sex, attributes: [disease, treatmnt], protect: {semantic-diversity: {l: 2, d: 1}}}
  - {name: other, attributes: [id, treatment], protect: {semantic-diversity: {l: 2, d: 1}}}
  - {name: third, attributes: [treatment], protect: {diversity: {l: 2}}, distance: far}
"""
    )
    with pytest.raises(ps.PolicyError) as refused:
        ps.Policy.loads(policy)
    said = str(refused.value)
    for words in (
        "an attribute 'sex' already",
        "'disease' is protected twice",
        "no attribute 'treatmnt'",
        "'id' has the role identifier",
        "part of 'other' already",
        "two or more attributes",
        "same value of one attribute",
        "unknown word 'far'",
    ):
        assert words in said, words


def test_a_product_that_is_too_large_is_refused_with_the_limit() -> None:
    many = "[" + ", ".join(f"v{number}" for number in range(300)) + "]"
    policy = JOINT.replace("[d0, d1, d2, d3, d4, d5]", many).replace("[t0, t1, t2, t3, t4, t5]", many)
    with pytest.raises(ps.PolicyError, match=r"90,000 combinations are too many \(limit 70,000\)"):
        ps.plan(ps.Policy.loads(policy))
    fewer = policy.replace(many, "[" + ", ".join(f"v{number}" for number in range(90)) + "]")
    with pytest.raises(ps.PolicyError, match=r"8,100 combinations are too many for this distance \(limit 5,000\)"):
        ps.plan(ps.Policy.loads(fewer))
    one = fewer.replace("attributes: [disease", "distance: disease\n    attributes: [disease")
    assert ps.plan(ps.Policy.loads(one))["illness"].mechanism is not None


def test_warnings_propose_what_a_policy_accepts() -> None:
    said: list[str] = []
    ps.anonymize(people(), ps.Policy.loads(APART), warn=said.append)
    (text, *_) = [text for text in said if "joint:" in text]
    proposed = (HEAD % ((", distance: {line: rank}",) * 2)) + text[text.index("joint:") :] + "\n"
    release = ps.anonymize(people(), ps.Policy.loads(proposed), warn=lambda text: None)
    assert release.manifest.names == ("sex", "disease and treatment")


def test_missing_values_of_members() -> None:
    table = people().with_columns(disease=pl.when(pl.int_range(pl.len()) < 10).then(None).otherwise(pl.col("disease")))
    with pytest.raises(ps.TableError, match="values are missing"):
        ps.anonymize(table, ps.Policy.loads(JOINT), warn=lambda text: None)
    dropped = JOINT.replace("{role: sensitive, domain", "{role: sensitive, missing: drop, domain")
    release = ps.anonymize(table, ps.Policy.loads(dropped), warn=lambda text: None)
    assert (release.manifest.records, release.manifest.dropped) == (5_990, 10)
    assert ps.evaluate(release, table, of=["treatment"]).to_dict()["question"] == "treatment"


@pytest.mark.parametrize("rule", ["min", "max", "sum"])
def test_the_distance_goes_through_a_manifest_and_its_structure_is_right(rule: str) -> None:
    codes = np.indices((4, 3)).reshape(2, -1)
    joint = JointDistance(rule, [LineDistance.ranks(4), DiscreteDistance(3)], list(codes))
    again = distance_from(json.loads(json.dumps(joint.parameters())), 12)
    assert again.matrix() == pytest.approx(joint.matrix())
    fold = {"min": np.minimum, "max": np.maximum, "sum": np.add}[rule]
    apart = [np.abs(codes[0][:, None] - codes[0]), (codes[1][:, None] != codes[1]).astype(float)]
    assert joint.matrix() == pytest.approx(fold(*apart))


def test_one_member_keeps_its_structure() -> None:
    codes = np.indices((5, 3)).reshape(2, -1)[0]
    line = JointDistance("min", [LineDistance.ranks(5)], [codes]).structure(2.0)
    assert isinstance(line, Line)
    far = np.abs(codes[line.order][:, None] - codes[line.order][None, :]) >= 2
    for place, first in enumerate(line.ahead):
        later = np.flatnonzero(far[place] & (np.arange(15) > place))
        assert first == (later[0] if len(later) else 15)
    clusters = JointDistance("min", [DiscreteDistance(5)], [codes]).structure(1.0)
    assert isinstance(clusters, Clusters)
    assert clusters.labels.tolist() == codes.tolist()


@pytest.mark.parametrize(
    "damage",
    [
        lambda entry: entry["members"][0]["codes"].__setitem__(0, 99),
        lambda entry: entry["members"][0]["codes"].pop(),
        lambda entry: entry["members"][0]["codes"].__setitem__(0, 1),
        lambda entry: entry["members"][1].__setitem__("name", "disease"),
        lambda entry: entry["distance"]["joint"]["codes"][0].__setitem__(0, 99),
        lambda entry: entry["distance"]["joint"]["members"].__setitem__(0, {"joint": {}}),
        lambda entry: entry["distance"]["joint"].__setitem__("rule", "mean"),
    ],
)
def test_a_damaged_manifest_is_refused(damage: object) -> None:
    from polyseme.release import Manifest
    from polyseme.release.data import checksum

    document = json.loads(publish(rows=200).manifest.to_json())
    damage(document["attributes"][-1])  # type: ignore[operator]
    document["data"] = {"file": "data.parquet", "format": "parquet", "sha256": "0" * 64}
    del document["checksum"]
    with pytest.raises(ps.ReleaseError):
        Manifest.from_dict({**document, "checksum": checksum(document)})


def test_margins_of_members_are_as_if_asked_directly() -> None:
    release = publish()
    both = ps.estimate(release, ["disease", "treatment"], by=["sex"])
    for of, by in [("disease", "sex"), (["treatment"], []), (["disease", "treatment"], []), (None, [])]:
        found = both.margin(of, by)
        direct = ps.estimate(release, ["disease", "treatment"] if of is None else of, by=by)
        assert (found.of, found.by, found.labels) == (direct.of, direct.by, direct.labels)
        for part in ("values", "stderr", "low", "high", "totals"):
            np.testing.assert_allclose(getattr(found, part), getattr(direct, part), rtol=1e-6, atol=1e-6)
    assert both.margin([], ["sex"]).values.tolist() == both.totals.tolist()
    # A margin of a margin is one too.
    np.testing.assert_allclose(both.margin(by=[]).margin("disease").values, both.margin("disease", []).values)


@pytest.mark.slow
def test_sums_of_members_have_the_errors_of_sums_of_combinations() -> None:
    """By simulation: differences, means, shares and quantiles of a member are right, and held as often as promised."""
    covered, errors = {"mean": [], "difference": [], "median": []}, []
    for seed in replications(50):
        table = people(3_000, seed)
        value = table["disease"].str.slice(1).cast(int).to_numpy()
        women = (table["sex"] == table["sex"].unique().sort()[0]).to_numpy()
        release = ps.anonymize(table, ps.Policy.loads(JOINT), seed=seed, warn=lambda text: None)
        both = ps.estimate(release, ["disease", "treatment"], by=["sex"], estimator="inverse")
        places = [float(place) for place in range(6)]
        (mean,) = both.margin(by=[]).mean("disease", places)
        errors.append((mean["estimate"] - value.mean()) / mean["stderr"])
        covered["mean"].append(mean["low"] <= value.mean() <= mean["high"])
        (median,) = both.margin(by=[]).quantile(0.5, "disease", places)
        covered["median"].append(median["low"] <= np.median(value) <= median["high"])
        groups = sorted(both.by["sex"])
        shares = [np.bincount(value[rows], minlength=6) / rows.sum() for rows in (women, ~women)]
        gap = shares[0] - shares[1]
        rows = both.margin("disease").difference({"sex": groups[0]}, {"sex": groups[1]})
        covered["difference"] += [row["low"] <= gap[place] <= row["high"] for place, row in enumerate(rows)]
    assert abs(np.mean(errors)) < 4 / np.sqrt(len(errors))
    assert 0.7 < np.std(errors) < 1.35
    assert all(np.mean(found) >= 0.88 for found in covered.values())


def test_shares_and_the_largest_of_members() -> None:
    release = publish()
    both = ps.estimate(release, ["disease", "treatment"])
    shares = both.proportions()
    assert shares.values.sum() == pytest.approx(1.0)
    ones = np.ones((1, *both.values.shape))
    assert shares.sums(ones)[0] == pytest.approx([1.0])
    with pytest.raises(ps.QuestionError, match="holds shares"):
        shares.margin("disease")
    largest = list(both.top(3))
    assert [row["estimate"] for row in largest] == sorted(both.values.ravel().tolist())[:-4:-1]
    for row in largest:
        place = (0, both.labels[0].index(row["disease"]), both.labels[1].index(row["treatment"]))
        # A value chosen for being large has the wider limits.
        assert row["low"] < both.low[place]
        assert row["high"] > both.high[place]


def test_what_members_cannot_be_asked_is_said() -> None:
    release = publish()
    both = ps.estimate(release, ["disease", "treatment"])
    with pytest.raises(ps.QuestionError, match="published as a part of 'illness'"):
        both.independence()
    with pytest.raises(ps.QuestionError, match="'ilness' is not in this table"):
        both.margin("ilness")
    stored = Estimate.from_dict(both.to_dict())
    assert stored.values.tolist() == both.values.tolist()
    with pytest.raises(ps.QuestionError, match="read from a file"):
        stored.margin("disease")
