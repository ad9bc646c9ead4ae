"""Results are stored without loss, and show themselves in a terminal and in a notebook."""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
import pytest

import polyseme as ps
from polyseme.models.base import Place, Verdict
from polyseme.results.base import Result
from polyseme.results.table import Table
from polyseme.results.verification import Preserved
from polyseme.verbs.plan import frontier

POLICY = ps.Policy.from_dict(
    {
        "attributes": {
            "sex": {"role": "quasi-identifier"},
            "born": {"role": "insensitive"},
            "age": {
                "role": "sensitive-qid",
                "domain": list(range(8)),
                "distance": {"line": "rank"},
                "protect": {"semantic-diversity": {"l": 2, "d": 2}},
            },
            "job": {"role": "sensitive", "domain": ["a", "b", "c"], "protect": {"ldp": {"epsilon": 1.5}}},
        }
    }
)


@pytest.fixture(scope="module")
def people() -> pl.DataFrame:
    rng = np.random.default_rng(1)
    return pl.DataFrame(
        {
            "sex": rng.choice(["f", "m"], 600),
            "born": rng.choice([dt.date(1990, 1, 2), dt.date(1991, 3, 4), None], 600).tolist(),
            "age": rng.integers(0, 8, 600),
            "job": rng.choice(["a", "b", "c"], 600),
        }
    )


@pytest.fixture(scope="module")
def release(people: pl.DataFrame) -> ps.Release:
    return ps.anonymize(people, POLICY, seed=4, warn=lambda text: None)


def stored(result: Result) -> Result:
    """Through a JSON document and back."""
    return type(result).from_dict(json.loads(json.dumps(result.to_dict(), allow_nan=False)))


FINDING = ps.Finding(
    "bayes", "age", 0.5, None, 0.1, True, "k", "g", "use <less> truth", {"rows": 3.0, "gain": math.inf}
)
VERDICT = Verdict(
    "ldp",
    None,
    {"epsilon": math.inf, "kinds": ["x", "y"]},
    False,
    math.inf,
    1.0,
    -math.inf,
    (Place(1, 2, 3),),
    4,
    5,
    "n",
)
SCORE = Preserved(0.5, math.nan, math.nan, 0.25)
MADE = [
    ps.Findings(()),
    ps.Findings((FINDING, ps.Finding("linkage", None, 0.1, 0.2, 0.0, False, "", "", ""))),
    ps.Verification(()),
    ps.Verification((VERDICT, Verdict("k-anonymity", "age", {"k": 5}, True, 7.0, 5.0, 2.0)), seeded=True),
    ps.Evaluation({}),
    ps.Evaluation({"age": {"l1": 1.0, "kl": math.inf, "hellinger": math.nan}}, {"age": {"r2": SCORE}}),
    ps.Evaluation({"age": {"kl": math.inf}, "question": {"l1": -math.inf}}, {"question": {"mae": SCORE}}),
]


@pytest.mark.parametrize("made", MADE, ids=lambda made: repr(made))
def test_what_was_made_by_hand_comes_back(made: Result) -> None:
    again = stored(made)
    assert again == made
    assert again.to_dict() == made.to_dict()
    assert str(again) == str(made)
    assert again._repr_html_() == made._repr_html_()
    assert "<less>" not in made._repr_html_()


def test_infinite_numbers_come_back_as_what_they_were() -> None:
    again = stored(MADE[5])
    assert isinstance(again, ps.Evaluation)
    assert again.tables["age"]["kl"] == math.inf
    assert math.isnan(again.tables["age"]["hellinger"])
    assert math.isnan(again.learning["age"]["r2"].estimate)
    verdict = stored(MADE[3]).verdicts[0]
    assert (verdict.worst, verdict.margin, verdict.parameters["epsilon"]) == (math.inf, -math.inf, math.inf)
    assert verdict.worst_classes == (Place(1, 2, 3),)


def test_results_differ_by_what_they_say() -> None:
    assert MADE[0] != MADE[1]
    assert MADE[1] != MADE[1].to_dict()
    assert ps.Evaluation({"x": {"kl": math.inf}}) != ps.Evaluation({"x": {"kl": math.nan}})


def test_results_of_the_verbs_come_back(release: ps.Release, people: pl.DataFrame) -> None:
    results: list[Result] = [
        ps.plan(POLICY),
        ps.plan(POLICY, data=people),
        ps.verify(release),
        ps.attack(release, people),
        ps.evaluate(release, people),
        ps.evaluate(release, people, of=["age"], by=["sex"]),
        ps.estimate(release, of=["age"], by=["sex", "born"]),
        ps.estimate(release, of=["age", "job"]),
        ps.estimate(release, of=["job"], by=["sex"]).proportions(),
        ps.estimate(release, of=["job"], by=["sex"]).margin(of=[]),
    ]
    for result in results:
        assert stored(result) == result
        assert str(result)
        assert "<table" in result._repr_html_()


STRATA = {
    "attributes": {
        "sex": {"role": "quasi-identifier"},
        "ill": {"role": "sensitive", "domain": list("abcdef"), "protect": {"diversity": {"l": 3}}},
        "far": {
            "role": "sensitive",
            "domain": list(range(5)),
            "distance": {"line": "rank"},
            "protect": {"semantic-diversity": {"l": 3, "d": 4}},
        },
        "dark": {
            "role": "sensitive",
            "domain": list(range(14)),
            "distance": {"line": "rank"},
            "protect": {"semantic-diversity": {"l": 2, "d": 7}},
        },
        "steep": {
            "role": "sensitive",
            "domain": list("abcdefg"),
            "prior": [1, 2, 4, 8, 16, 32, 64],
            "distance": {"line": "rank"},
            "protect": {"semantic-diversity": {"l": 2, "d": 2, "mechanism": "least-risk"}},
        },
    },
    "impossible": [
        {"when": {"sex": "m"}, "attribute": "ill", "values": ["e", "f"]},
        {"when": {"sex": "f"}, "attribute": "ill", "values": ["a", "b", "c", "d"]},
    ],
}


def test_plans_come_back_with_strata_obstacles_and_trades() -> None:
    made = ps.plan(ps.Policy.from_dict(STRATA), 1_000)
    assert not made["far"].feasible
    assert made["far"].nearest
    assert [stratum.feasible for stratum in made["ill"].strata] == [True, False]
    assert made["dark"].confounded
    assert made["steep"].traded is not None
    again = stored(made)
    assert again == made
    assert isinstance(again, ps.Plan)
    assert again.attributes == made.attributes
    assert again.warnings() == made.warnings()
    assert str(again) == str(made)
    assert again._repr_html_() == made._repr_html_()
    assert again["dark"].facts is not None
    assert again["dark"].facts.epsilon == math.inf
    assert again.to_dict()["attributes"]["dark"]["epsilon"] is None


def test_a_stored_plan_holds_no_mechanisms() -> None:
    again = stored(ps.plan(POLICY))
    assert isinstance(again, ps.Plan)
    for ask in (lambda: again["age"].mechanism, lambda: again["age"].attribute, lambda: frontier(again)):
        with pytest.raises(ps.QuestionError, match="read from a document"):
            ask()


def test_findings_are_a_sequence(release: ps.Release) -> None:
    findings = ps.attack(release)
    assert isinstance(findings, ps.Findings)
    assert [finding.attack for finding in findings] == [findings[place].attack for place in range(len(findings))]
    assert findings[:2].items == findings.items[:2]
    assert findings.exceeded == tuple(finding for finding in findings if finding.exceeded)
    assert findings.items[0] in findings
    assert repr(ps.Findings((FINDING,))) == "<Findings of 1 attacks: 1 above the bound>"
    assert "use <less> truth" in str(ps.Findings((FINDING,)))


def test_a_stored_estimate_says_what_it_cannot_do(release: ps.Release) -> None:
    table = ps.estimate(release, of=["age"], by=["sex"])
    again = stored(table)
    assert isinstance(again, ps.Estimate)
    np.testing.assert_array_equal(again.values, table.values)
    np.testing.assert_array_equal(again.high, table.high)
    np.testing.assert_array_equal(again.totals, table.totals)
    assert again.to_polars().equals(table.to_polars())
    assert len(again.top(3)) == 3
    for ask in (again.margin, again.mean, again.independence):
        with pytest.raises(ps.QuestionError, match=r"needs? the release"):
            ask(by=[]) if ask == again.margin else ask()


AWKWARD = [
    (None, math.nan, 1.5, math.inf),
    (dt.date(2020, 1, 2), None, dt.date(1, 1, 1), dt.date(9999, 12, 31)),
    (dt.datetime(2020, 1, 2, 3, 4, 5, 6), None, dt.datetime(2020, 1, 2), dt.datetime(2021, 1, 2)),
    (dt.time(1, 2, 3, 4), None, dt.time(0), dt.time(23)),
    (dt.timedelta(days=-1, microseconds=1), dt.timedelta(0), None, dt.timedelta(days=400)),
    (Decimal("1.10"), Decimal(7), None, Decimal("-3")),
    ("a", "NaN", None, "Infinity"),
    (True, False, None, True),
]


@pytest.mark.parametrize("groups", AWKWARD, ids=str)
def test_every_kind_of_group_comes_back(groups: tuple[Any, ...]) -> None:
    numbers = np.arange(8.0).reshape(4, 2)
    table = Table(
        of=("x",),
        labels=((1, True),),
        by={"nonfinite": groups},
        values=numbers,
        stderr=np.full((4, 2), np.nan),
        low=np.where(numbers == 3.0, -np.inf, 0.0),
        high=np.where(numbers < 2.0, np.inf, numbers),
        estimator="ml",
        records=28,
        totals=numbers.sum(axis=1),
    )
    again = stored(table)
    assert isinstance(again, Table)
    assert again == table
    assert [type(value) for value in again.by["nonfinite"]] == [type(value) for value in groups]
    assert [type(value) for value in again.labels[0]] == [int, bool]
    np.testing.assert_array_equal(again.low, table.low)
    np.testing.assert_array_equal(again.high, table.high)
    np.testing.assert_array_equal(again.stderr, table.stderr)


@pytest.mark.parametrize("kind", [ps.Findings, ps.Verification, ps.Evaluation, ps.Estimate, ps.Plan])
@pytest.mark.parametrize("document", [{"findings": [{}], "verdicts": 3, "x": 1, "cells": []}, {"question": 4}, []])
def test_another_document_is_refused(kind: Any, document: Any) -> None:
    if kind is ps.Evaluation and document == []:
        document = [3]
    with pytest.raises(ps.InvalidInput, match=f"not a stored {kind.__name__}"):
        kind.from_dict(document)


def test_an_unknown_option_is_refused_with_the_known_ones(release: ps.Release, people: pl.DataFrame) -> None:
    with pytest.raises(
        ps.QuestionError, match=r"leve: there is no such option\n.*estimator, level, population, nonneg"
    ):
        ps.estimate(release, of=["age"], leve=0.9)
    with pytest.raises(
        ps.QuestionError, match=r"seperator: there is no such option\n.*nonnegative, unweighted, target, separator"
    ):
        ps.evaluate(release, people, seperator=";")
    with pytest.raises(ps.QuestionError, match=r"level.*\n.*population: 'people' is not a choice"):
        ps.estimate(release, of=["age"], level=2.0, population="people")
