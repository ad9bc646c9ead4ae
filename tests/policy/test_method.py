from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

import polyseme as ps
from polyseme.methods import METHODS, Method, method_named
from polyseme.policy.resolving import resolve

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
        ("method: mondrain", r"\$\.method\.mondrain: unknown method\n  hint: known: decoys"),
        ("method: {mondrain: {}, decoys: {}}", r"\$\.method\.mondrain: unknown method\n  hint: known: decoys"),
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


@pytest.mark.parametrize("name", METHODS)
def test_every_method_plans_and_says_how_each_column_is_published(name: str) -> None:
    method: Method = method_named(name)
    assert method.name == name
    text = POLICY.replace("{x:", "{id: {role: identifier}, age: {role: quasi-identifier}, x:")
    resolved = resolve(ps.Policy.loads(text))
    made = method.plan(resolved, 100)
    columns: tuple[Any, ...] = method.columns(resolved, made)
    assert [column.name for column in columns] == ["age", "x"]
    assert made.records == 100
