"""A planner counts a table once, and says for every policy what `plan` says."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import polyseme as ps
from polyseme.kernel.errors import InvalidInput
from polyseme.tables.io.readers import open_table
from polyseme.tables.io.source import Wrapped
from polyseme.verbs.plan import Planner

ROWS = 90
generator = np.random.default_rng(30)
TABLE = pl.DataFrame(
    {
        "person": [row // 2 for row in range(ROWS)],
        "age": generator.integers(20, 60, ROWS),
        "sex": generator.choice(["f", "m"], ROWS),
        "income": generator.integers(0, 8, ROWS),
        "ill": generator.choice(list("abcde"), ROWS),
    }
)
SECRETS = {
    "income": {"domain": list(range(8)), "distance": {"line": "rank"}},
    "ill": {"domain": list("abcde")},
}


@st.composite
def policies(draw: Any) -> dict[str, Any]:
    """A policy in which everything may differ: roles, promises, models, method, record key, impossible values."""
    grouped = draw(st.sampled_from([None, "full-domain", "mondrian"]))
    attributes: dict[str, Any] = {"person": {"role": "identifier"}}
    for name, hierarchy in (("age", {"intervals": [10, 20]}), ("sex", "suppress")):
        role = draw(st.sampled_from(["quasi-identifier", "quasi-identifier", "insensitive", "identifier"]))
        attributes[name] = {"role": role}
        if role == "quasi-identifier":
            attributes[name]["hierarchy"] = hierarchy
    l, d = draw(st.integers(2, 5)), draw(st.integers(1, 4))
    promise: dict[str, Any] = {"semantic-diversity": {"l": l, "d": d}}
    if draw(st.booleans()):
        promise["learner"] = {"success": draw(st.sampled_from([0.5, 0.9]))}
    attributes["income"] = {"role": "sensitive", **SECRETS["income"], "protect": promise}
    attributes["ill"] = {"role": "identifier"}
    if draw(st.booleans()):
        attributes["ill"] = {
            "role": "sensitive",
            **SECRETS["ill"],
            "protect": {"diversity": {"l": draw(st.integers(2, 4))}},
        }
    policy: dict[str, Any] = {"attributes": attributes}
    if draw(st.booleans()):
        policy["record-key"] = "person"
    if grouped is not None:
        policy["models"] = [{"k-anonymity": {"k": draw(st.integers(2, 6))}}]
        policy["method"] = {grouped: {"suppression": 0.2} if grouped == "full-domain" else {}}
    if draw(st.booleans()) and attributes["sex"]["role"] == "insensitive":
        policy["impossible"] = [{"when": {"sex": "f"}, "attribute": "income", "values": [7]}]
    return policy


def said(make: Any) -> Any:
    try:
        return make().to_dict()
    except InvalidInput as error:
        return (type(error).__name__, str(error))


CHANGES = (policies(), st.lists(policies(), max_size=1), st.integers(2, 5), st.integers(1, 4))


def check_changes(first: dict[str, Any], others: list[dict[str, Any]], l: int, d: int) -> None:
    """One planner for several policies, against a plan for each."""
    moved = {**first, "attributes": dict(first["attributes"])}
    income = {**moved["attributes"]["income"]}
    income["protect"] = {**income["protect"], "semantic-diversity": {"l": l, "d": d}}
    moved["attributes"]["income"] = income
    try:
        planner = Planner.of(first, TABLE)
    except InvalidInput:
        planner = Planner(TABLE)
    for policy in (first, moved, *others, first):
        assert said(lambda policy=policy: planner.plan(policy)) == said(
            lambda policy=policy: ps.plan(policy, data=TABLE)
        )


@settings(max_examples=3, deadline=None)
@given(*CHANGES)
@pytest.mark.filterwarnings("ignore")
def test_what_if_equals_plan(first: dict[str, Any], others: list[dict[str, Any]], l: int, d: int) -> None:
    check_changes(first, others, l, d)


@pytest.mark.slow
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(*CHANGES)
@pytest.mark.filterwarnings("ignore")
def test_what_if_equals_plan_for_many_policies(
    first: dict[str, Any], others: list[dict[str, Any]], l: int, d: int
) -> None:
    check_changes(first, others, l, d)


class Monitored(Wrapped):
    """A table that counts its batches."""

    read = 0

    def _read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for batch in self.inner.batches(columns):
            self.read += 1
            yield batch


POLICY = """
attributes:
  person: {role: identifier}
  age: {role: quasi-identifier, hierarchy: {intervals: [10, 20]}}
  sex: {role: quasi-identifier, hierarchy: suppress}
  income: {role: sensitive, domain: [0, 1, 2, 3, 4, 5, 6, 7], distance: {line: rank}, protect: {semantic-diversity: {l: 3, d: 2}}}
  ill: {role: identifier}
models: [{k-anonymity: {k: 3}}]
method: {full-domain: {suppression: 0.2}}
"""  # noqa: E501


def test_moving_l_d_or_k_reads_nothing(tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    TABLE.write_parquet(path)
    source = Monitored(open_table(path))
    planner = Planner.of(POLICY, source)
    planner.plan(POLICY)
    before = source.read
    assert before > 0
    for text in (POLICY.replace("l: 3", "l: 2"), POLICY.replace("d: 2", "d: 1"), POLICY.replace("k: 3", "k: 4")):
        planner.plan(text)
    assert source.read == before
    planner.plan(POLICY.replace("ill: {role: identifier}", "ill: {role: insensitive}"))
    assert source.read > before


def test_a_file_of_the_policy_that_changes_is_read_again(tmp_path: Path) -> None:
    text = POLICY.replace("hierarchy: suppress", "hierarchy: sex.csv")
    file = tmp_path / "sex.csv"
    file.write_text("f;*\nm;*\n", encoding="utf-8")
    policy = ps.Policy.loads(text, tmp_path)
    planner = Planner.of(policy, TABLE)
    first = planner.plan(policy).grouping
    file.write_text("f;same;*\nm;same;*\n", encoding="utf-8")
    os.utime(file, (1, 1))
    second = planner.plan(policy).grouping
    assert first is not None
    assert second is not None
    assert second.to_dict() == ps.plan(policy, data=TABLE).grouping.to_dict()  # type: ignore[union-attr]
