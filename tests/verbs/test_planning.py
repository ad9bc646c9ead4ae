"""Plans: what stands in the way, what would work instead, and the grid of settings."""

import math

import numpy as np
import pytest

import polyseme as ps
from polyseme.kernel.errors import QuestionError
from polyseme.policy import Policy
from polyseme.privacy.calibration import choose
from polyseme.privacy.promises import Closeness, Ldp, Promises, SemanticDiversity
from polyseme.results.views.plan_tables import plan_remarks
from polyseme.verbs.plan import frontier

AGE = {"role": "sensitive-qid", "domain": list("abcdefgh"), "distance": {"line": "rank"}}


def planned(**protect):
    return ps.plan(Policy.from_dict({"attributes": {"age": {**AGE, "protect": protect}}})).attributes[0]


@pytest.mark.parametrize("limit", [{}, {"closeness": {"t": 0.1, "ground": "ordered"}}, {"ldp": {"epsilon": 1}}])
def test_what_is_impossible_comes_with_what_would_work(limit):
    item = planned(**{"semantic-diversity": {"l": 5, "d": 2}, **limit})
    assert not item.feasible
    assert "the values a, b are mutually too close" in item.obstacle
    assert item.nearest[0] == (3, 2)
    for l, d in item.nearest:
        assert planned(**{"semantic-diversity": {"l": l, "d": d}, **limit}).usable


def test_no_sets_help_where_nothing_may_be_told():
    item = planned(**{"semantic-diversity": {"l": 3, "d": 2}, "closeness": {"t": 0}})
    assert item.choice.p == 0.0
    assert not item.identifiable
    assert item.nearest == ()


def test_the_grid_keeps_what_is_promised_about_truth():
    """Other sets allow other odds of truth, so one p for all of them would break the promise or waste it."""
    plan = ps.plan(
        Policy.from_dict(
            {
                "attributes": {
                    "age": {
                        **AGE,
                        "protect": {
                            "semantic-diversity": {"l": 3, "d": 2},
                            "ldp": {"epsilon": 1},
                            "diversity": {"l": 3},
                        },
                    }
                }
            }
        )
    )
    grid = frontier(plan)["age"]
    feasible = [setting for setting in grid if setting.status == "feasible"]
    assert {setting.l for setting in feasible} >= {2, 3, 4}
    for setting in feasible:
        assert setting.facts.epsilon == pytest.approx(1.0, abs=1e-9)
    assert not math.isclose(
        choose(8, plan.attributes[0].attribute.distance, Promises.of(SemanticDiversity(l=2, d=1), Ldp(epsilon=1))).p,
        plan.attributes[0].choice.p,
    )


def test_a_plan_says_what_the_reference_gives_away():
    """Diversity bounds the guess of an attacker with a uniform prior; a reference is published too."""
    policy = {
        "attributes": {"age": {**AGE, "reference": [65, 5, 5, 5, 5, 5, 5, 5], "protect": {"diversity": {"l": 2}}}}
    }
    item = ps.plan(Policy.from_dict(policy)).attributes[0]
    assert item.facts.worst_posterior == pytest.approx(0.5)
    (warning,) = item.to_dict()["warnings"]
    said = f"an attacker with the reference distribution guesses right with probability up to {65 / 70:.3g}"
    assert warning == said


@pytest.mark.parametrize("other", [{"diversity": {"l": 4}}, {"ldp": {"epsilon": 1, "size": 4}}])
def test_what_would_work_keeps_the_other_promises(other):
    item = planned(**{"semantic-diversity": {"l": 2, "d": 3}, **other})
    assert not item.feasible
    assert item.nearest
    for l, d in item.nearest:
        assert l >= 4
        assert planned(**{"semantic-diversity": {"l": l, "d": d}, **other}).usable


def test_sets_of_the_whole_domain():
    item = planned(**{"semantic-diversity": {"l": 8, "d": 0}})
    assert item.feasible
    assert not item.identifiable


def test_hints_name_only_what_can_be_chosen():
    uneven = {"role": "sensitive", "domain": list("abcdefgh"), "prior": [50, 20, 10, 5, 5, 5, 3, 2]}
    policy = Policy.from_dict({"attributes": {"x": {**uneven, "protect": {"diversity": {"l": 3}}}}})
    obstacle = ps.plan(policy).attributes[0].obstacle
    assert "the largest l here is 2" in obstacle
    assert "smaller d" not in obstacle
    assert "least-risk" not in obstacle


def test_an_even_prior_is_none():
    even, none = ({"role": "sensitive", "domain": list("abcdefgh"), **prior} for prior in ({"prior": [2] * 8}, {}))
    choices = []
    for entry in (even, none):
        policy = Policy.from_dict({"attributes": {"x": {**entry, "protect": {"closeness": {"t": 0.3}}}}})
        choices.append(ps.plan(policy).attributes[0].choice)
    assert [(choice.l, choice.p) for choice in choices] == [(choices[1].l, choices[1].p)] * 2
    uneven = choose(8, None, Promises.of(Closeness(t=0.3)), prior=np.arange(1.0, 9.0))
    assert "the best size is not searched" in uneven.lines[0]


@pytest.mark.parametrize("records", [0, -5, "abc", 2.5])
def test_records_to_expect(records):
    with pytest.raises(QuestionError, match="whole number above 0"):
        ps.plan(Policy.from_dict({"attributes": {"age": {**AGE, "protect": {"diversity": {"l": 2}}}}}), records)


# -- the trade of a least-risk design ---------------------------------------------------------------------------------

INCOME = {"role": "sensitive", "domain": [*range(1, 11), 15, 20, 25, 30], "distance": {"line": "value"}}
LEAST_RISK = {"semantic-diversity": {"l": 3, "d": 7, "mechanism": "least-risk"}}


def least_risk_plan(records=None, **extra):
    attributes = {"sex": {"role": "quasi-identifier"}, "income": {**INCOME, "protect": {**LEAST_RISK, **extra}}}
    impossible = [{"when": {"sex": "f"}, "attribute": "income", "values": [2, 3]}]
    return ps.plan(Policy.from_dict({"attributes": attributes, "impossible": impossible}), records)


def test_the_trade_of_a_least_risk_design_is_shown():
    plan = least_risk_plan(100_000)
    entry = plan.to_dict()["attributes"]["income"]
    trade = entry["least_risk"]
    assert trade["floor"] == pytest.approx(0.5)
    assert trade["floor"] < trade["least_worst_posterior"] < trade["worst_posterior"] < 0.58
    assert trade["worst_posterior"] == pytest.approx(plan["income"].mechanism.worst_posterior())
    assert trade["expected_mse"] == pytest.approx(entry["expected_mse"], rel=1e-6)
    assert trade["least_expected_mse"] > 50 * trade["expected_mse"]
    assert 0.001 < trade["step"] < 1
    stratum = entry["strata"][0]["least_risk"]
    assert stratum["floor"] == pytest.approx(7 / 12)
    assert stratum["worst_posterior"] == pytest.approx(entry["strata"][0]["worst_posterior"])
    remark = next(text for text in plan_remarks(plan) if "steps back" in text)
    for number in (trade["floor"], trade["least_worst_posterior"], trade["worst_posterior"], trade["step"]):
        assert f"{number:.3g}" in remark
    assert "expected error" in remark


def test_the_trade_without_records_and_with_lies():
    trade = least_risk_plan(ldp={"epsilon": 3}).to_dict()["attributes"]["income"]["least_risk"]
    assert trade["floor"] is None  # p < 1 can go below what p = 1 cannot
    assert trade["expected_mse"] is trade["least_expected_mse"] is None
    assert trade["least_worst_posterior"] < trade["worst_posterior"] < 0.55
    counted = least_risk_plan(1_000, ldp={"epsilon": 3}).to_dict()["attributes"]["income"]
    assert counted["least_risk"]["expected_mse"] == pytest.approx(counted["expected_mse"], rel=1e-6)


def test_other_designs_have_no_trade():
    attributes = {"income": {**INCOME, "protect": {"semantic-diversity": {"l": 2, "d": 3, "mechanism": "least-risk"}}}}
    entry = ps.plan(Policy.from_dict({"attributes": attributes})).to_dict()["attributes"]["income"]
    assert entry["least_risk"] is None  # balanced
    assert planned(**{"semantic-diversity": {"l": 3, "d": 2}}).to_dict()["least_risk"] is None
