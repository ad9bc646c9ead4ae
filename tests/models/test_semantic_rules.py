"""Semantic rules on the tables of the paper, and on tables that say too little."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from polyseme import verify
from polyseme.kernel.errors import PolicyError
from polyseme.models import check_models
from polyseme.models.semantic_rules import read_rules

STOMACH = ["gastric ulcer", "gastritis", "stomach cancer"]
CHEST = ["bronchitis", "lung cancer", "cough", "flu"]
QIDS = ["zip", "age"]


def table(*classes: tuple[str, str, list[tuple[str, float]]]) -> pl.DataFrame:
    rows = [(zip_code, age, disease, salary) for zip_code, age, people in classes for disease, salary in people]
    return pl.DataFrame(rows, schema=["zip", "age", "disease", "salary"], orient="row")


HEART, VIRAL = "Heart disease", "viral infection"
FIRST = [("cancer", 30), (HEART, 33), ("cancer", 35), (HEART, 35), ("cancer", 40), (VIRAL, 38)]
SECOND = [("gastric ulcer", 8), ("gastritis", 11), ("stomach cancer", 6), ("stomach cancer", 13)]
THIRD = [(HEART, 10), (VIRAL, 9), ("cancer", 15), (VIRAL, 7), (HEART, 11)]
FOURTH = [("bronchitis", 15), ("lung cancer", 12), ("lung cancer", 14), ("cough", 18), ("flu", 17), ("bronchitis", 9)]


def raised(people: list[tuple[str, float]]) -> list[tuple[str, float]]:
    """The paper's action on the salary."""
    return [(disease, salary + 10) for disease, salary in people]


TABLE_3 = table(
    ("148**", "[22-30[", FIRST), ("476**", "[22-30[", SECOND), ("130**", "[30-40[", THIRD), ("476**", "[30-40[", FOURTH)
)
# As printed: the last two rows of the merged class were left without the action.
TABLE_5 = table(
    ("148**", "[22-30[", FIRST),
    ("130**", "[30-40[", raised(THIRD)),
    ("476**", "[20-40[", raised(SECOND) + raised(FOURTH[:4]) + FOURTH[4:]),
)
TABLE_5_CORRECTED = table(
    ("148**", "[22-30[", FIRST), ("130**", "[30-40[", raised(THIRD)), ("476**", "[20-40[", raised(SECOND + FOURTH))
)
PAPER = [
    {"never-all": {"salary": {"from": 0, "below": 20}}, "name": "low salary"},
    {"never-all": {"disease": CHEST}, "name": "chest"},
    {"never-all": {"disease": STOMACH}, "name": "stomach"},
]


def verdicts(frame: pl.DataFrame, rules: list[dict[str, object]], qids: list[str] = QIDS):
    return check_models(frame, qids, [{"semantic-rules": {"rules": rules}}])


def test_the_effective_rules_of_the_paper_are_found():
    low, chest, stomach = verdicts(TABLE_3, PAPER)
    assert [v.holds for v in (low, chest, stomach)] == [False] * 3
    assert (low.violations, low.worst, low.checked) == (3, 15, 4)
    assert {(place.size, place.row) for place in low.worst_classes} == {(4, 6), (5, 10), (6, 15)}
    assert (chest.violations, chest.worst, [p.row for p in chest.worst_classes]) == (1, 6, [15])
    assert (stomach.violations, stomach.worst, [p.row for p in stomach.worst_classes]) == (1, 4, [6])
    assert low.parameters == {"rule": "low salary"}


@pytest.mark.parametrize("frame", [TABLE_5, TABLE_5_CORRECTED])
def test_after_the_actions_no_rule_is_effective(frame: pl.DataFrame):
    assert all(v.holds for v in verdicts(frame, PAPER))


def test_three_diverse_table_of_the_introduction():
    frame = table(
        ("400*", ">30", [("bronchitis", 10), ("pneumonia", 11), ("stomach cancer", 12)]),
        ("440*", "5*", [("gastritis", 12), ("Flu", 15), ("bronchitis", 16)]),
        ("400*", ">40", [("gastric ulcer", 16), ("gastritis", 17), ("stomach cancer", 18)]),
    )
    low, stomach = verdicts(frame, [{"never-all": {"salary": {"to": 12}}}, {"never-all": {"disease": STOMACH}}])
    assert [p.row for p in low.worst_classes] == [0]
    assert [p.row for p in stomach.worst_classes] == [6]


def test_order_of_rows_does_not_matter():
    order = np.random.default_rng(1).permutation(TABLE_3.height)
    shuffled = verdicts(TABLE_3[order], PAPER)
    for one, other in zip(verdicts(TABLE_3, PAPER), shuffled, strict=True):
        assert (one.worst, one.violations) == (other.worst, other.violations)
        assert sorted(order[p.row] in range(6, 21) for p in other.worst_classes) == [True] * one.violations


RECORDS = pl.DataFrame(
    {
        "sex": ["f", "m", "m", "f", "m"],
        "zip": ["13053", "130**", "*", "13068", None],
        "diagnosis": ["HIV", "HIV", "HIV", "flu", "HIV"],
    }
)


@pytest.mark.parametrize(
    ("rule", "rows"),
    [
        ({"if": {"diagnosis": "HIV"}, "then": {"zip": "*"}}, [0, 1]),
        ({"if": {"diagnosis": "HIV"}, "then": {"zip": ["*", "130**"]}}, [0]),
        ({"if": {"diagnosis": "HIV", "sex": "m"}, "then": {"zip": {"pattern": r"[0-9]{3}\*\*"}}}, [2, 4]),
        ({"never": {"sex": "m", "diagnosis": "HIV"}}, [1, 2, 4]),
        ({"never": {"zip": {"pattern": r"\d{5}"}}}, [0, 3]),
        ({"never": {"zip": {"pattern": r"\d{4}"}}}, []),
        ({"never": {"diagnosis": {"not": ["HIV", "flu"]}}}, []),
        ({"if": {"sex": "f"}, "then": {"zip": {"not": "*"}}}, []),
        ({"if": {"sex": "m"}, "then": {"zip": {"not": "*"}}}, [2, 4]),
    ],
)
def test_records_that_break_a_rule(rule: dict[str, object], rows: list[int]):
    (verdict,) = verdicts(RECORDS, [rule], ["sex"])
    assert verdict.holds == (not rows)
    assert verdict.worst == verdict.violations == len(rows)
    assert [place.row for place in verdict.worst_classes] == rows


@pytest.mark.parametrize(
    ("values", "violated"),
    [
        (["flu", "flu"], True),
        (["flu", "*"], True),
        (["flu", None], True),
        (["flu", "cold"], False),
        (["*", "*"], False),
        (["*", "cold"], False),
    ],
)
def test_a_silent_record_hides_no_other(values: list[str | None], violated: bool):
    frame = pl.DataFrame({"zip": ["1", "1"], "ill": values})
    assert verdicts(frame, [{"never-all": {"ill": "flu"}}], ["zip"])[0].holds is not violated


def test_classes_against_the_definition():
    """Every table of two classes of two records with values out of three."""
    for values in product(["a", "b", "c"], repeat=4):
        frame = pl.DataFrame({"q": [1, 2, 1, 2], "s": list(values)})
        groups = [{values[0], values[2]}, {values[1], values[3]}]
        expected = sum(group <= {"a", "b"} for group in groups)
        assert verdicts(frame, [{"never-all": {"s": ["a", "b"]}}], ["q"])[0].violations == expected


def test_numbers_are_compared_as_numbers_and_unreadable_ones_fail_closed():
    frame = pl.DataFrame({"zip": ["1"] * 3, "salary": ["9", "10", "*"]})
    assert verdicts(frame, [{"never-all": {"salary": {"below": 10}}}], ["zip"])[0].holds
    assert not verdicts(frame, [{"never-all": {"salary": {"to": 10.0}}}], ["zip"])[0].holds
    assert verdicts(frame, [{"never": {"salary": 9.0}}], ["zip"])[0].worst == 1
    text = pl.DataFrame({"zip": ["1", "1"], "salary": ["9k", "10"]})
    (verdict,) = verdicts(text, [{"never": {"salary": {"above": 50}}}], ["zip"])
    assert not verdict.holds
    assert verdict.worst is None
    assert verdict.note == "1 values of 'salary' are not numbers"


@pytest.mark.parametrize(
    ("frame", "note"),
    [
        (RECORDS.drop("zip"), "no column 'zip'"),
        (RECORDS.clear(), "no rows"),
        (RECORDS.with_columns(zip=pl.Series([["1", "2"]] * 5)), "single values"),
    ],
)
def test_what_cannot_be_checked_does_not_hold(frame: pl.DataFrame, note: str):
    (verdict,) = verdicts(frame, [{"if": {"diagnosis": "HIV"}, "then": {"zip": "*"}}], ["sex"])
    assert not verdict.holds
    assert note in verdict.note


def test_every_problem_of_the_rules_at_once():
    rules = [
        {"if": {"a": 1}},
        {"never": {}},
        {"never": {"a": {"under": 3}}},
        {"never": {"a": {"below": "x"}}},
        {"never": {"a": {"pattern": "("}}},
        {"never": {"a": []}},
        {"never": {"a": None}},
        {"never": {"a": {"not": {}}}},
        {"never": {"a": 1}, "nmae": "x"},
        "never",
    ]
    with pytest.raises(PolicyError) as caught:
        check_models(RECORDS, ["sex"], [{"semantic-rules": {"rules": rules}}])
    places = [problem.where for problem in caught.value.problems]
    assert places == [
        "models[0].semantic-rules.rules[0]",
        "models[0].semantic-rules.rules[1].never",
        "models[0].semantic-rules.rules[2].never.a.under",
        "models[0].semantic-rules.rules[3].never.a.below",
        "models[0].semantic-rules.rules[4].never.a.pattern",
        "models[0].semantic-rules.rules[5].never.a",
        "models[0].semantic-rules.rules[6].never.a",
        "models[0].semantic-rules.rules[7].never.a.not",
        "models[0].semantic-rules.rules[8].nmae",
        "models[0].semantic-rules.rules[9]",
    ]
    for wrong in (None, [], {}, "x"):
        with pytest.raises(PolicyError, match="list of rules"):
            read_rules(wrong)


def test_from_a_policy(tmp_path: Path):
    TABLE_3.write_csv(tmp_path / "table.csv")
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        """
attributes:
  zip: {role: quasi-identifier}
  age: {role: quasi-identifier}
  disease: {role: sensitive}
  salary: {role: sensitive}
models:
  - semantic-rules:
      rules:
        - {never-all: {salary: {from: 0, below: 20}}, name: low salary}
        - {never-all: {disease: [bronchitis, lung cancer, cough, flu]}}
        - {if: {zip: 148**}, then: {salary: {from: 30}}}
""",
        encoding="utf-8",
    )
    found = verify(tmp_path / "table.csv", policy)
    assert [verdict.holds for verdict in found.verdicts] == [False, False, True]
    assert "cancer" not in str(found.to_dict())
