"""Plans: what stands in the way, what would work instead, and the grid of settings."""

import math

import pytest

from polyseme import pipeline
from polyseme.policy import Policy
from polyseme.recipes import choose

AGE = {"role": "sensitive-qid", "domain": list("abcdefgh"), "distance": {"line": "rank"}}


def planned(**protect):
    return pipeline.plan(Policy.from_dict({"attributes": {"age": {**AGE, "protect": protect}}})).attributes[0]


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
    plan = pipeline.plan(
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
    grid = pipeline.frontier(plan)["age"]
    feasible = [setting for setting in grid if setting.status == "feasible"]
    assert {setting.l for setting in feasible} >= {2, 3, 4}
    for setting in feasible:
        assert setting.facts.epsilon == pytest.approx(1.0, abs=1e-9)
    assert not math.isclose(
        choose(
            8, plan.attributes[0].attribute.distance, {"semantic-diversity": {"l": 2, "d": 1}, "ldp": {"epsilon": 1}}
        ).p,
        plan.attributes[0].choice.p,
    )


def test_a_plan_says_what_the_reference_gives_away():
    """Diversity bounds the guess of somebody who takes all values for equally likely; a reference is published too."""
    policy = {
        "attributes": {"age": {**AGE, "reference": [65, 5, 5, 5, 5, 5, 5, 5], "protect": {"diversity": {"l": 2}}}}
    }
    item = pipeline.plan(Policy.from_dict(policy)).attributes[0]
    assert item.facts.worst_posterior == pytest.approx(0.5)
    (warning,) = item.to_dict()["warnings"]
    assert warning == f"who expects the reference distribution guesses right with probability up to {65 / 70:.3g}"
