"""Semantic rules from files, trees, taxonomies and the package's own repository, always written out in the end."""

from __future__ import annotations

import json
import re
from pathlib import Path

import polars as pl
import pytest

import polyseme as ps
from polyseme.models.repository import kind_names, load_kind
from polyseme.models.semantic_rules import read_rules

TREE = {"A": ["a", "b"], "B": {"C": ["c"], "D": ["d", "e"]}}


def policy(model: dict, folder: Path | str = ".", **job) -> ps.Policy:
    attributes = {"zip": {"role": "quasi-identifier"}, "job": {"role": "sensitive", "distance": {"tree": TREE}, **job}}
    document = {
        "attributes": attributes,
        "models": [{"semantic-rules": model}],
        "method": {"rules": {"actions": ["merge"]}},
    }
    return ps.Policy.from_dict(document, folder)


def branches(rules: ps.Policy) -> dict[str, list[str]]:
    return {rule["name"]: rule["never-all"]["job"] for rule in rules.models[0].parameters["rules"]}


def test_a_branch_is_a_rule_counted_from_the_values_or_from_the_root():
    above = branches(policy({"branches": {"attribute": "job", "level": 1}}))
    assert above == {"job: A": ["a", "b"], "job: C": ["c"], "job: D": ["d", "e"]}
    main = branches(policy({"branches": {"attribute": "job", "depth": 1}}))
    assert main == {"job: A": ["a", "b"], "job: B": ["c", "d", "e"]}
    below = branches(policy({"branches": {"attribute": "job", "depth": 2}}))
    assert below == {"job: a": ["a"], "job: b": ["b"], "job: C": ["c"], "job: D": ["d", "e"]}


def test_a_taxonomy_or_a_tree_of_its_own_serves_too(tmp_path):
    job = {"domain": ["J45.0", "J10", "K29", "K25"], "distance": {"taxonomy": "icd10"}}
    found = branches(policy({"branches": {"attribute": "job", "depth": 1}}, **job))
    assert list(found.values()) == [["J45.0", "J10"], ["K29", "K25"]]
    (tmp_path / "tree.csv").write_text("a;x;*\nb;y;*\nc;x;*\nd;y;*\ne;y;*\n")
    own = branches(policy({"branches": {"attribute": "job", "level": 1, "tree": "tree.csv"}}, tmp_path))
    assert own == {"job: x": ["a", "c"], "job: y": ["b", "d", "e"]}


@pytest.mark.parametrize("text", ["- {never-all: {job: a}}\n", "rules:\n  - {never-all: {job: a}}\n"])
def test_rules_may_be_in_a_file_beside_the_policy(tmp_path, text):
    (tmp_path / "rules.yaml").write_text(text)
    rules = policy({"rules": "rules.yaml", "repository": {"job": "age"}}, tmp_path)
    assert [rule["never-all"] for rule in rules.models[0].parameters["rules"]] == [
        {"job": "a"},
        {"job": {"below": 18}},
        {"job": {"from": 65}},
    ]


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({}, r"\$\.models\[0\]\.semantic-rules: no rules"),
        ({"ruls": []}, r"semantic-rules\.ruls: unknown key\n  hint: did you mean 'rules'"),
        ({"rules": "../rules.yaml"}, r"semantic-rules\.rules: '../rules.yaml' is outside the policy's folder"),
        ({"rules": "rules.yaml"}, r"semantic-rules\.rules: no file 'rules.yaml' beside the policy"),
        ({"rules": [{"nevr-all": {"job": "a"}}]}, r"rules\[0\]\.nevr-all: unknown word"),
        ({"branches": {"attribute": "job"}}, r"branches: expected an attribute, and a level or a depth"),
        ({"branches": {"attribute": "job", "level": 1, "depth": 1}}, r"branches: expected an attribute"),
        ({"branches": {"attribute": "jb", "level": 1}}, r"branches: no attribute 'jb'\n  hint: did you mean 'job'"),
        ({"branches": {"attribute": "zip", "level": 1}}, r"branches: 'zip' has no tree and no taxonomy"),
        ({"branches": {"attribute": "job", "level": 3}}, r"no branches, only its root"),
        ({"repository": {"job": "ages"}}, r"repository\.job: no rules for 'ages'.*\n  hint: did you mean 'age'"),
    ],
)
def test_what_gives_no_rules_is_refused_with_its_place(tmp_path, model, message):
    with pytest.raises(ps.PolicyError, match=message):
        policy(model, tmp_path)


def test_the_manifest_has_every_rule_written_out(tmp_path):
    frame = pl.DataFrame({"zip": [1, 1, 2, 2, 3], "job": ["a", "b", "a", "c", "d"]})
    release = ps.anonymize(
        frame, policy({"branches": {"attribute": "job", "depth": 1}}), tmp_path / "out", seed=1, warn=lambda _: None
    )
    stored = json.loads((tmp_path / "out" / "manifest.json").read_text())["models"]
    assert [rule["name"] for rule in stored[0]["semantic-rules"]["rules"]] == ["job: A", "job: B"]
    assert ps.verify(tmp_path / "out").holds
    assert release.manifest.applied.actions == {"merge": 2}


@pytest.mark.parametrize("name", kind_names())
def test_built_in_rules_can_be_read(name):
    kind = load_kind(name)
    assert [rule.name for rule in read_rules(kind.rules("x"))] == [f"x: {test}" for test in kind.tests]


@pytest.mark.parametrize(
    ("code", "rule"),
    [
        ("B23.1", "HIV"),
        ("C50", "cancer"),
        ("F10.2", "use of alcohol or drugs"),
        ("I21", "heart disease"),
        ("G30.9", "dementia"),
    ],
)
def test_codes_meet_the_rule_they_should(code, rule):
    assert re.fullmatch(load_kind("icd10").tests[rule]["pattern"], code)
    assert not re.fullmatch(load_kind("icd10").tests[rule]["pattern"], "Z00")
