"""Hierarchies in a policy: read, checked against the table, and never silently ignored."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import polyseme as ps

POLICY = """
attributes:
  age: {{role: {role}, hierarchy: {hierarchy}{more}}}
  income: {{role: sensitive, domain: [low, mid, high], protect: {{diversity: {{l: 2}}}}}}
"""
TABLE = pl.DataFrame({"age": ["31", "47", "QQMARKQQ"] * 10, "income": ["low", "mid", "high"] * 10})


def policy(hierarchy: str, role: str = "quasi-identifier", more: str = "", folder: Path | str = ".") -> ps.Policy:
    return ps.Policy.loads(POLICY.format(hierarchy=hierarchy, role=role, more=more), folder)


@pytest.mark.parametrize(
    ("hierarchy", "role", "more", "place"),
    [
        ("{intervals: [5, 12]}", "quasi-identifier", "", "$.attributes.age.hierarchy.intervals[1]"),
        ("{prefix: 2}", "identifier", "", "$.attributes.age.hierarchy"),
        ("{prefix: 2}", "sensitive", ", protect: {diversity: {l: 2}}", "$.attributes.age.hierarchy"),
        ("{prefix: 2}", "sensitive-qid", ", protect: {diversity: {l: 2}}", "$.attributes.age.hierarchy"),
        ("7", "insensitive", "", "$.attributes.age.hierarchy"),
    ],
)
def test_problems_are_found_when_the_policy_is_read(hierarchy: str, role: str, more: str, place: str) -> None:
    with pytest.raises(ps.PolicyError) as error:
        policy(hierarchy, role, more)
    assert place in [problem.where for problem in error.value.problems]


def test_plan_reads_the_files(tmp_path: Path) -> None:
    (tmp_path / "age.csv").write_text("31;30s;*\n47;40s\n")
    with pytest.raises(ps.PolicyError, match=r"\$.attributes.age.hierarchy: uneven depth"):
        ps.plan(policy("age.csv", folder=tmp_path))
    with pytest.raises(ps.PolicyError, match=r"\$.attributes.age.hierarchy: no file"):
        ps.plan(policy("ages.csv", folder=tmp_path))
    (tmp_path / "age.csv").write_text("31;30s;*\n47;40s;*\n")
    ps.plan(policy("age.csv", folder=tmp_path))
    with pytest.raises(ps.PolicyError, match=r"1 of 3 values \(10 of 30 records\)") as error:
        ps.plan(policy("age.csv", folder=tmp_path), data=TABLE)
    assert "QQMARKQQ" not in str(error.value)


def test_declared_values_without_a_place_are_named() -> None:
    with pytest.raises(ps.PolicyError, match=r"1 of 2 declared values .* wants numbers: old"):
        ps.plan(policy("{intervals: [5]}", more=", domain: [31, old]"))


def test_users_must_not_think_that_the_column_was_generalized() -> None:
    made = policy("{prefix: 2}")
    with pytest.warns(ps.PolicyWarning, match="a hierarchy for age, but names no method that generalizes"):
        release = ps.anonymize(TABLE, made, seed=1)
    assert sorted(release.table["age"].unique().to_pylist()) == ["31", "47", "QQMARKQQ"]
    assert any("hierarchy for age" in remark for remark in ps.plan(made, data=TABLE).remarks)


JOINT = """
attributes:
  age: {role: sensitive-qid, domain: [1, 2], hierarchy: suppress}
  income: {role: sensitive, domain: [low, high]}
joint: [{name: both, attributes: [age, income], protect: {semantic-diversity: {l: 2, d: 1}}}]
"""
DEFAULT = """
attributes: {age: {role: sensitive-qid, domain: [1, 2], hierarchy: suppress}}
protect: {diversity: {l: 2}}
protect-all-but: []
"""


@pytest.mark.parametrize("text", [JOINT, DEFAULT], ids=["joint", "default"])
def test_a_column_that_others_protect_has_no_hierarchy(text: str) -> None:
    with pytest.raises(ps.PolicyError, match=r"\$.attributes.age.hierarchy: .* not published as sets"):
        ps.plan(ps.Policy.loads(text))
