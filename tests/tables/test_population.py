"""A population beside the table: methods reach k-map, verify checks it, and the journalist attacks with it."""

from __future__ import annotations

import itertools
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from command_line import polyseme
from draws import seeds
from hypothesis import given, settings
from hypothesis import strategies as st

import polyseme as ps
from polyseme.kernel.errors import ImpossibleError, PolicyError, QuestionError, TableError
from polyseme.scrutiny.attacks import linkage
from polyseme.scrutiny.attacks.scene import Promised, Scene
from polyseme.tables.equivalence_classes import Classes
from polyseme.tables.people import people_fitting

POLICY = """
attributes:
  age: {{role: quasi-identifier, hierarchy: {{intervals: [10, 20]}}}}
  zip: {{role: quasi-identifier, hierarchy: {{prefix: 2}}}}
  sex: {{role: quasi-identifier, hierarchy: suppress}}
  ill: {{role: sensitive, domain: [a, b, c]}}
models: [{{k-map: {{k: {k}}}}}, {{distinct-diversity: {{l: 1}}}}]
method: {method}
"""
LABELS = {
    "age": [
        str,
        lambda x: f"[{x // 10 * 10}, {x // 10 * 10 + 10})",
        lambda x: f"[{x // 20 * 20}, {x // 20 * 20 + 20})",
    ],
    "zip": [str, lambda x: f"{x[0]}*"],
    "sex": [str],
}
"""What each level shows, written down once more; `*` is the last level of each."""


def policy(k: int, method: str = "{full-domain: {suppression: 0.1}}") -> ps.Policy:
    return ps.Policy.loads(POLICY.format(k=k, method=method))


def population(seed: int, people: int = 200) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "age": random.integers(20, 60, people),
            "zip": random.choice(["11", "12", "13", "21", "22"], people, p=[0.4, 0.3, 0.1, 0.15, 0.05]),
            "sex": random.choice(["f", "m"], people),
        }
    )


def sample(people: pl.DataFrame, seed: int, records: int = 40) -> pl.DataFrame:
    random = np.random.default_rng(seed + 1)
    chosen = people[random.choice(people.height, records, replace=False)]
    return chosen.with_columns(ill=pl.Series(random.choice(["a", "b", "c"], records)))


@cache
def label(name: str, level: int, value: Any) -> str:
    return "*" if level == len(LABELS[name]) else LABELS[name][level](value)


def shown(row: dict[str, Any], levels: tuple[int, ...]) -> tuple[str, ...]:
    """What a person shows at some levels."""
    return tuple(label(name, level, row[name]) for name, level in zip(LABELS, levels))


def lost(table: list[dict[str, Any]], people: list[dict[str, Any]], levels: tuple[int, ...], k: int) -> int:
    """Records in classes that fewer than k people fit."""
    fitting: dict[tuple[str, ...], int] = {}
    for person in people:
        fitting[key] = fitting.get(key := shown(person, levels), 0) + 1
    return sum(fitting.get(shown(row, levels), 0) < k for row in table)


@pytest.mark.filterwarnings("ignore::polyseme.kernel.errors.PrivacyWarning")
@settings(max_examples=14)
@given(seeds, st.integers(3, 39))
def test_full_domain_reaches_k_map_exactly_where_some_levels_do(seed: int, k: int) -> None:
    people = population(seed)
    table = sample(people, seed)
    rows, everyone = table.to_dicts(), people.to_dicts()
    heights = [len(levels) for levels in LABELS.values()]
    possible = [
        levels
        for levels in itertools.product(*(range(height + 1) for height in heights))
        if lost(rows, everyone, levels, k) <= 4
    ]
    release = ps.anonymize(table, policy(k), seed=1, population=people)
    applied = release.manifest.applied
    assert applied is not None
    levels = tuple(applied.levels[name] for name in LABELS)
    assert levels in possible
    assert applied.suppressed == lost(rows, everyone, levels, k)
    # The least loss is at levels below which no others reach the goal.
    below = [other for other in possible if other != levels and all(a <= b for a, b in zip(other, levels))]
    assert not below
    assert ps.verify(release, population=people).holds
    assert ps.plan(policy(k), data=table, population=people).grouping.applied.levels == applied.levels


@pytest.mark.filterwarnings("ignore::polyseme.kernel.errors.PrivacyWarning")
@pytest.mark.parametrize(
    "method",
    [
        "{mondrian: {}}",
        "{mondrian: {mode: relaxed}}",
        "{full-domain: {suppression: 0.2, local-recoding: true}}",
        "{rules: {start: {mondrian: {}}}}",
    ],
)
@settings(max_examples=4)
@given(seeds)
def test_enough_people_fit_every_class_of_the_other_methods(method: str, seed: int) -> None:
    people, k = population(seed), 12
    table = sample(people, seed)
    text = POLICY.format(k=k, method=method)
    if "rules" in method:
        text = text.replace("models: [", "models: [{semantic-rules: {rules: [{never-all: {ill: a}}]}}, ")
    release = ps.anonymize(table, ps.Policy.loads(text), seed=1, population=people)
    classes = release.to_polars().unique(list(LABELS)).to_dicts()
    everyone = people.to_dicts()
    fitting = [sum(all(fits(row[name], one[name]) for name in LABELS) for one in everyone) for row in classes]
    assert min(fitting) >= k
    # Records alone would not do: k people of the population are asked for, and most classes are smaller.
    assert release.to_polars().group_by(list(LABELS)).len()["len"].min() < k
    assert len(classes) > 1
    assert ps.verify(release, population=people).holds


def test_what_not_even_the_whole_population_has_is_refused() -> None:
    people = population(1)
    with pytest.raises(ImpossibleError, match="no levels reach the goal"):
        ps.anonymize(sample(people, 1), policy(201), seed=1, population=people)
    with pytest.raises(PolicyError, match=r"no reference table was given\n.*--population FILE"):
        ps.anonymize(sample(people, 1), policy(3), seed=1)
    with pytest.raises(TableError, match="no column 'sex'"):
        ps.anonymize(sample(people, 1), policy(3), seed=1, population=people.drop("sex"))
    with pytest.raises(QuestionError, match="no model of the policy counts people"):
        ps.plan(
            ps.Policy.loads("attributes: {ill: {role: sensitive, protect: {diversity: {l: 2}}}}"), population=people
        )


def test_values_that_only_the_population_has_are_no_obstacle() -> None:
    people = population(3)
    table = sample(people.filter(pl.col("zip") != "22"), 3)
    release = ps.anonymize(table, policy(8), seed=1, population=people)
    assert ps.verify(release, population=people).holds


def test_the_reference_of_a_policy_is_read_and_not_published(tmp_path: Path) -> None:
    people = population(4)
    people.write_csv(tmp_path / "people.csv")
    sample(people, 4).write_csv(tmp_path / "table.csv")
    text = POLICY.format(k=9, method="{full-domain: {}}").replace("k: 9", "k: 9, reference: people.csv")
    (tmp_path / "policy.yaml").write_text(text)
    done = polyseme("anonymize", "policy.yaml", "table.csv", "--out", "release", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    manifest = (tmp_path / "release" / "manifest.json").read_text()
    assert "people.csv" not in manifest
    assert {"k-map": {"k": 9}} in json.loads(manifest)["models"]
    assert polyseme("verify", "release", "--population", "people.csv", cwd=tmp_path).returncode == 0
    alone = polyseme("verify", "release", cwd=tmp_path)
    assert alone.returncode == 1
    assert "--population" in alone.stdout
    assert "reference=" not in alone.stdout
    result = polyseme(
        "plan", "policy.yaml", "--data", "table.csv", "--population", "people.csv", "--json", cwd=tmp_path
    )
    assert json.loads(result.stdout)["method"]["feasible"]
    found = json.loads(polyseme("attack", "release", "--population", "people.csv", "--json", cwd=tmp_path).stdout)
    journalist = next(one for one in found["findings"] if one["attack"] == "linkage-journalist")
    assert journalist["bound"] == pytest.approx(1 / 9)
    assert not journalist["exceeded"]
    # A table of the same rows is checked with the same policy, though its labels are not those of the population.
    ps.Release.open(tmp_path / "release").to_polars().write_csv(tmp_path / "published.csv")
    assert polyseme("verify", "published.csv", "--policy", "policy.yaml", cwd=tmp_path).returncode == 0


@pytest.mark.filterwarnings("ignore::polyseme.kernel.errors.PrivacyWarning")
@pytest.mark.parametrize("method", ["{mondrian: {}}", "{full-domain: {suppression: 0.2}}"])
@settings(max_examples=6)
@given(seeds, st.sampled_from([30, 120]))
def test_the_three_linking_attackers_follow_their_formulas(method: str, seed: int, count: int) -> None:
    """Against classes and people counted here, also where fewer people fit than a class has records."""
    people = population(seed, 120)
    table = sample(people, seed, 60)
    text = POLICY.format(k=2, method=method).replace("k-map", "k-anonymity")
    release = ps.anonymize(table, ps.Policy.loads(text), seed=1)
    few = people[:count]
    classes = release.to_polars().group_by("age", "zip", "sex").len().to_dicts()
    fitting = [
        sum(all(fits(row[name], person[name]) for name in LABELS) for person in few.to_dicts()) for row in classes
    ]
    sizes, records = [row["len"] for row in classes], sum(row["len"] for row in classes)
    found = {one.attack: one for one in ps.attack(release, population=few)}
    assert found["linkage-prosecutor"].success == pytest.approx(1 / min(sizes))
    assert found["linkage-journalist"].success == pytest.approx(1 / max(min(fitting), 1))
    expected = sum(size / max(people, 1) for size, people in zip(sizes, fitting)) / records
    assert found["linkage-marketer"].success == pytest.approx(expected)
    assert found["linkage-journalist"].detail["fewest_people"] == min(fitting)
    assert "linkage-journalist" not in {one.attack for one in ps.attack(release)}


def fits(label: str, value: Any) -> bool:
    """Whether a label stands for a value; for numbers in an interval, codes with a star, and whole columns."""
    if label == "*":
        return True
    if label.startswith("["):
        low, high = (float(edge) for edge in label[1:-1].split(", "))
        value = float(value)
        return low <= value and (value <= high if label.endswith("]") else value < high)
    return str(value).startswith(label.rstrip("*")) if label.endswith("*") else label == str(value)


def test_the_marketer_where_fewer_people_fit_than_a_class_holds() -> None:
    classes = Classes(np.array([5, 5]), np.array([0, 5]), 10, 0)
    scene = Scene(classes=classes, matches=np.array([2, 10]), promised=Promised(k=5, people=2))
    prosecutor, journalist, marketer = linkage.attack(scene)
    assert marketer.success == pytest.approx((5 / 2 + 5 / 10) / 10)
    assert (prosecutor.bound, journalist.bound, marketer.bound) == (1 / 5, 1 / 2, 1 / 2)
    assert journalist.success == 1 / 2


def test_labels_of_every_kind_are_understood() -> None:
    people = pl.DataFrame(
        {
            "born": ["1984-03-05", "1984-05-05", "1991-03-05", None],
            "job": ["nurse", "baker", "nurse", "clerk"],
        }
    )
    labels = pl.DataFrame(
        {
            "born": ["1984-03", "1984", "1984-Q2", "1980s", "1984-03-05", "*", None],
            "job": ["*", "health", "*", "*", "nurse", "health", "clerk"],
        }
    )
    found = people_fitting(labels, people, {"job": {"health": ["nurse", "carer"]}})
    assert found.tolist() == [1, 1, 1, 2, 1, 2, 1]


def test_a_population_needs_the_quasi_identifiers_of_the_release() -> None:
    people = population(5)
    release = ps.anonymize(sample(people, 5), policy(5), seed=1, population=people)
    with pytest.raises(QuestionError, match="no column 'zip'"):
        ps.attack(release, population=people.drop("zip"))
