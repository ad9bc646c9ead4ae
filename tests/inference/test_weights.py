"""Survey weights on their way from a policy through a release to an estimate."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from command_line import polyseme

import polyseme as ps
from polyseme.kernel.errors import PolicyError, QuestionError, ReleaseError, RiskError, TableError
from polyseme.release import Manifest
from polyseme.release.data import checksum
from polyseme.schema import Role, Weighting

POLICY = """
attributes:
  sex: {role: quasi-identifier}
  income:
    role: sensitive
    domain: [0, 1, 2, 3, 4, 5, 6, 7]
    distance: {line: rank}
    protect: {semantic-diversity: {l: 2, d: 2}}
  weight: {role: weight%s}
"""


def people(records: int = 1_200) -> pl.DataFrame:
    rng = np.random.default_rng(5)
    income = np.minimum(rng.geometric(0.35, records) - 1, 7)
    weight = np.exp(0.5 * rng.standard_normal(records) + 0.1 * income) * 100
    return pl.DataFrame({"sex": rng.choice(["F", "M"], records), "income": income, "weight": weight})


def published(frame: pl.DataFrame | Path, how: str = "", **options: object) -> ps.Release:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ps.anonymize(frame, ps.Policy.loads(POLICY % how), seed=3, **options)


@pytest.fixture(scope="module")
def release() -> ps.Release:
    return published(people())


def test_an_estimate_of_a_release_with_weights_is_weighted(release: ps.Release) -> None:
    table = ps.estimate(release, of=["income"], by=["sex"])
    frame = people()
    truth = frame.group_by("sex", "income").agg(pl.col("weight").sum()).sort("sex", "income")
    assert table.weight == "weight"
    assert table.records == 1_200
    assert table.totals.sum() == pytest.approx(frame["weight"].sum())
    joined = truth.join(table.to_polars(), on=["sex", "income"])
    inside = (joined["low"] <= joined["weight"]) & (joined["weight"] <= joined["high"])
    assert inside.mean() > 0.8
    assert "1,200 records weighted by weight" in repr(table)
    counted = ps.estimate(release, of=["income"], by=["sex"], unweighted=True)
    assert counted.weight is None
    assert counted.totals.sum() == 1_200


def test_a_stored_table_says_what_it_is_weighted_by(release: ps.Release) -> None:
    table = ps.estimate(release, of=["income"])
    document = json.loads(json.dumps(table.to_dict()))
    assert document["weight"] == "weight"
    assert type(table).from_dict(document).weight == "weight"
    assert "weight" not in ps.estimate(release, of=["income"], unweighted=True).to_dict()


def test_a_total_of_the_population_has_an_error_of_its_own(release: ps.Release) -> None:
    weights = people()["weight"].to_numpy()
    table = ps.estimate(release, of=["income"], population="super").margin(of=[])
    expected = np.sqrt(((weights - weights.mean()) ** 2).sum())
    assert table.values == pytest.approx([weights.sum()])
    assert table.stderr == pytest.approx([expected], rel=1e-6)
    known = ps.estimate(release, of=["income"]).margin(of=[])
    assert known.stderr == pytest.approx([0.0])


def test_shares_take_the_weight_of_a_group_as_given(release: ps.Release) -> None:
    table = ps.estimate(release, of=["income"], by=["sex"], population="super")
    shares = table.proportions()
    assert shares.values.sum(axis=1) == pytest.approx([1.0, 1.0])
    assert (shares.low >= 0.0).all()
    # Weights lean on the value, so that the sum of all of them tells something about each.
    assert not np.allclose(shares.stderr * table.totals[:, None], table.stderr)
    assert table.mean().stderr[0] < 0.5


def test_evaluate_compares_with_weighted_truth(release: ps.Release) -> None:
    frame = people()
    found = ps.evaluate(release, frame, of=["income"], by=["sex"]).to_dict()
    table = ps.estimate(release, of=["income"], by=["sex"])
    truth = frame.group_by("sex", "income").agg(pl.col("weight").sum())
    cells = table.to_polars().join(truth, on=["sex", "income"], how="left").fill_null(0.0)
    assert found["l1"] == pytest.approx((cells["estimate"] - cells["weight"]).abs().sum())
    counted = ps.evaluate(release, frame, of=["income"], by=["sex"], unweighted=True).to_dict()
    assert counted["l1"] < found["l1"] / 20


def test_what_cannot_be_weighted_is_refused_with_a_way_out(release: ps.Release) -> None:
    for options in ({"using": ["sex"]}, {"by": ["weight"]}, {"estimator": "ml"}):
        with pytest.raises(QuestionError, match="--unweighted"):
            ps.estimate(release, of=["income"], **options)
    with pytest.raises(QuestionError, match="long form"):
        ps.estimate(published(people(300), form="long"), of=["income"])
    assert ps.estimate(published(people(300), form="long"), of=["income"], unweighted=True).records == 300


def test_a_question_about_classes_is_not_weighted() -> None:
    policy = """
attributes:
  sex: {role: quasi-identifier}
  income: {role: sensitive, domain: [0, 1, 2, 3, 4, 5, 6, 7]}
  weight: {role: weight, round: 1000}
models: [{distinct-diversity: {l: 2}}]
method: {full-domain: {}}
"""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        release = ps.anonymize(people(300), ps.Policy.loads(policy))
    with pytest.raises(QuestionError, match="only sets are weighted"):
        ps.estimate(release, of=["income"])
    assert ps.estimate(release, of=["income"], unweighted=True).records == 300


# -- what is published ------------------------------------------------------------------------------------------------


def test_weights_are_rounded_and_trimmed_and_the_manifest_says_so() -> None:
    release = published(people(), ", round: 50, trim: 200")
    weights = next(iter(release.batches(["weight"]))).column(0).to_numpy()
    assert {*weights} <= {50.0, 100.0, 150.0, 200.0}
    document = release.manifest.to_dict()
    entry = next(item for item in document["attributes"] if item["name"] == "weight")
    assert entry == {"name": "weight", "role": "weight", "published": "as-is", "round": 50.0, "trim": 200.0}
    again = Manifest.from_dict(json.loads(json.dumps(document)))
    assert again.weight == "weight"
    assert again["weight"].attribute.weighting == Weighting(50.0, 200.0)
    assert document["format"] == 2


def test_no_record_loses_its_weight_by_rounding() -> None:
    found = Weighting(round=10.0).applied(np.array([0.0, 0.001, 4.9, 15.1, 1e6]))
    assert found.tolist() == [0.0, 10.0, 10.0, 20.0, 1e6]


@pytest.mark.parametrize(
    ("weights", "what"),
    [
        (["1", "2", ""], "1 weight is missing"),
        (["1", "-2", "inf"], "2 weights are negative or infinite"),
        (["1", "2", "heavy"], "1 weight cannot be read as a number"),
        (["1", "2", "1,5"], "decimal: comma"),
    ],
)
def test_what_is_no_weight_is_refused(weights: list[str], what: str, tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    pl.DataFrame({"sex": ["F"] * 3, "income": [1, 2, 3], "weight": weights}).write_csv(file)
    with pytest.raises(TableError, match=what) as caught:
        published(file)
    assert "heavy" not in str(caught.value)


def test_weights_with_decimal_commas(tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    file.write_text("sex;income;weight\n" + "F;1;1,5\nM;2;2,25\n" * 10)
    policy = ps.Policy.loads(POLICY % "" + "table: {decimal: comma, separator: ';'}\n")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        release = ps.anonymize(file, policy)
    assert ps.estimate(release, of=["income"]).totals.sum() == pytest.approx(37.5)


def test_a_weight_counts_when_it_is_said_who_is_unique() -> None:
    heard: list[str] = []
    ps.anonymize(people(), ps.Policy.loads(POLICY % ""), warn=heard.append)
    assert any("sex, weight are published as in the table" in text and "(100.0%)" in text for text in heard)
    assert any("round: ..., trim: ..." in text for text in heard)
    coarse: list[str] = []
    ps.anonymize(people(), ps.Policy.loads(POLICY % ", round: 1000, trim: 1000"), warn=coarse.append)
    assert any("shared by at least 5 records" in text for text in coarse)


def test_k_anonymity_is_not_claimed_across_weights(tmp_path: Path) -> None:
    policy = ps.Policy.loads(
        """
attributes:
  sex: {role: quasi-identifier, hierarchy: suppress}
  income: {role: sensitive, domain: [0, 1, 2, 3, 4, 5, 6, 7], protect: {diversity: {l: 2}}}
  weight: {role: weight}
models: [{k-anonymity: {k: 5}}]
method: {full-domain: {}}
"""
    )
    with pytest.raises(RiskError, match=r"round: \.\.\., trim"):
        ps.anonymize(people(), policy, tmp_path / "release")
    assert not (tmp_path / "release").exists()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        accepted = ps.anonymize(people(), policy, accept_risk=True)
    assert not ps.verify(accepted).holds


def test_a_manifest_with_two_weights_is_refused(release: ps.Release) -> None:
    document = release.manifest.to_dict()
    document["attributes"][0]["role"] = "weight"
    document["checksum"] = checksum({key: value for key, value in document.items() if key != "checksum"})
    with pytest.raises(ReleaseError, match="more than one survey weight"):
        Manifest.from_dict(document)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("a: {role: weight}\n  b: {role: weight}", "a second survey weight beside 'a'"),
        ("a: {role: weight, round: 0}", "expected a number above 0"),
        ("a: {role: weight, trim: many}", "expected a number above 0"),
        ("a: {role: weight, type: text}", "a survey weight is a number"),
        ("a: {role: weight, hierarchy: suppress}", "published as a number"),
        ("a: {role: weight, protect: {diversity: {l: 2}}}", "is not protected"),
        ("a: {role: quasi-identifier, round: 5}", "only survey weights are rounded"),
    ],
)
def test_a_policy_that_misunderstands_weights_is_refused(line: str, what: str) -> None:
    with pytest.raises(PolicyError, match=what):
        ps.Policy.loads(f"attributes:\n  {line}\n")


# -- the command line and drafts --------------------------------------------------------------------------------------


def test_the_commands_weight_and_can_be_told_not_to(tmp_path: Path) -> None:
    frame = people(300)
    frame.write_csv(tmp_path / "people.csv")
    published(frame, out=tmp_path / "release")
    weighted = json.loads(polyseme("estimate", tmp_path / "release", "--of", "income", "--json").stdout)
    counted = json.loads(polyseme("estimate", tmp_path / "release", "--of", "income", "--unweighted", "--json").stdout)
    assert weighted["totals"] == pytest.approx([frame["weight"].sum()])
    assert counted["totals"] == [300.0]


@pytest.mark.parametrize(
    ("name", "low", "high", "survey"),
    [
        ("fnlwgt", 12_000.0, 900_000.0, True),
        ("pspwght", 0.2, 4.0, True),
        ("survey_weight", 20.0, 60.0, True),
        ("WTFINL", 100.0, 5_000.0, True),
        ("weight", 800.0, 9_000.0, True),
        ("weight", 45.0, 130.0, False),
        ("birth_weight", 1_500.0, 4_800.0, False),
    ],
)
def test_a_draft_drops_survey_weights_and_keeps_bodies(name: str, low: float, high: float, survey: bool) -> None:
    rng = np.random.default_rng(8)
    frame = pl.DataFrame({"age": rng.integers(20, 70, 200), name: rng.uniform(low, high, 200).round(3)})
    text = ps.init(frame)
    role = ps.Policy.loads(text).by_name[name].role
    assert role is (Role.IDENTIFIER if survey else Role.QUASI_IDENTIFIER)
    assert ("role: weight, round: ..., trim: ..." in text) is survey


def test_a_release_with_coarser_weights_is_compared_with_its_original(tmp_path: Path) -> None:
    """Linked, matched and reported on by the weights as they are published, not as they were."""
    frame = people(2_000)
    release = published(frame, ", round: 50, trim: 200", out=tmp_path / "release")
    matched = {finding.attack: finding for finding in ps.attack(release, frame)}
    assert matched["linkage-prosecutor"].success > 0.0
    page = ps.report(release, original=frame)
    assert "sex and weight" in page
    assert release.manifest["weight"].in_words == "rounded to multiples of 50 and trimmed at 200"
    notes = ps.estimate(release, of=["income"]).notes
    assert any("rounded to multiples of 50 and trimmed at 200" in note for note in notes)
    assert not any("rounded" in note for note in ps.estimate(release, of=["income"], unweighted=True).notes)


def test_a_plan_says_that_weights_will_be_looked_at() -> None:
    policy = "attributes:\n  sex: {role: quasi-identifier, hierarchy: suppress}\n  w: {role: weight}\n"
    policy += "  income: {role: sensitive, domain: [1, 2, 3], protect: {diversity: {l: 2}}}\n"
    made = ps.plan(ps.Policy.loads(policy + "models: [{k-anonymity: {k: 5}}]\nmethod: {full-domain: {}}\n"))
    assert any("survey weight 'w'" in remark for remark in made.remarks)
    assert not any("survey weight" in remark for remark in ps.plan(ps.Policy.loads(policy)).remarks)
