from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

import polyseme as ps
from polyseme.methods import GROUPING, Method, grouping_named, method_named
from polyseme.policy.resolution import resolve

POLICY = "attributes: {x: {role: sensitive, domain: [a, b, c, d], protect: {diversity: {l: 2}}}}\n"


@pytest.mark.parametrize("line", ["", "method: decoys", "method: {decoys: {}}"])
def test_decoys_is_the_default_and_may_be_named(line: str) -> None:
    policy = ps.Policy.loads(POLICY + line)
    assert (policy.method.name, dict(policy.method.parameters)) == ("decoys", {})
    release = ps.anonymize(pl.DataFrame({"x": list("abcd")}), policy, warn=lambda _: None)
    assert json.loads(release.manifest.to_json())["method"] == "decoys"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("method: mondrain", r"\$\.method\.mondrain: unknown method\n  hint: did you mean 'mondrian'"),
        (
            "method: {mondrain: {}, decoys: {}}",
            r"\$\.method\.mondrain: unknown method\n  hint: did you mean 'mondrian'",
        ),
        ("method: {mondrian: {}, anatomy: {l: 2}}", r"\$\.method: more than one method that groups records"),
        ("method: anatomy", r"\$\.method\.anatomy\.l: missing: a whole number from 2"),
        ("method: {anatomy: {l: 1}}", r"\$\.method\.anatomy\.l: expected a whole number from 2"),
        ("method: {mondrian: {mode: loose}}", r"\$\.method\.mondrian\.mode: expected one of strict, relaxed"),
        ("method: {full-domain: {loss: entropie}}", r"\$\.method\.full-domain\.loss: expected one of .*\n.*'entropy'"),
        ("method: {}", r"\$\.method: no method\n  hint: known: decoys"),
        ("method: {decoys: {l: 3}}", r"\$\.method\.decoys\.l: unknown key"),
        ("method: {decoys: 3}", r"\$\.method\.decoys: expected a mapping"),
        ("method: [decoys]", r"\$\.method: expected a mapping"),
        ("method:", r"\$\.method: expected a mapping"),
    ],
)
def test_what_is_no_method_is_refused(line: str, message: str) -> None:
    with pytest.raises(ps.PolicyError, match=message):
        ps.Policy.loads(POLICY + line)


@pytest.mark.parametrize("line", ["method: mondrian", "method: {decoys: {}, mondrian: {}}"])
def test_a_method_that_groups_records_may_stand_alone_or_beside_decoys(line: str) -> None:
    policy = ps.Policy.loads(POLICY + line)
    assert policy.method.name == "decoys"
    assert policy.grouping is not None
    assert (policy.grouping.name, dict(policy.grouping.parameters)) == ("mondrian", {"mode": "strict"})


@pytest.mark.parametrize("name", GROUPING)
def test_every_grouping_method_has_its_name(name: str) -> None:
    assert grouping_named(name).name == name


def test_decoys_plan_and_say_how_each_column_is_published() -> None:
    method: Method = method_named("decoys")
    assert method.name == "decoys"
    text = POLICY.replace("{x:", "{id: {role: identifier}, age: {role: quasi-identifier}, x:")
    resolved = resolve(ps.Policy.loads(text))
    made = method.plan(resolved, 100)
    columns: tuple[Any, ...] = method.columns(resolved, made)
    assert [column.name for column in columns] == ["age", "x"]
    assert made.records == 100
