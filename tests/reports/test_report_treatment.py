"""What a report says of classes and groups: what was done, what was promised, and nothing about sets where none are."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import polyseme as ps
from polyseme.models import MODELS
from polyseme.reports.assembly import class_size_table, treatment_of
from polyseme.results.views.words import model_sentence

ANATOMY = """
attributes:
  sex: {role: quasi-identifier}
  ill: {role: sensitive, domain: [a, b, c, d]}
method: {anatomy: {l: 3}}
"""
GENERALIZED = """
attributes:
  age: {role: quasi-identifier, hierarchy: {intervals: [10, 20]}}
  sex: {role: quasi-identifier, hierarchy: suppress}
  ill: {role: sensitive, domain: [a, b, c, d]}
models:
  - k-anonymity: {k: 4}
  - frequency-diversity: {l: 2, attribute: ill}
method: {full-domain: {suppression: 0.3}}
"""


def table(rows: int = 240) -> pl.DataFrame:
    random = np.random.default_rng(2)
    return pl.DataFrame(
        {
            "age": random.integers(20, 60, rows),
            "sex": random.choice(["f", "m"], rows),
            "ill": random.choice(["a", "b", "c", "d"], rows),
        }
    )


def words(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page[page.index("<body>") :]))


def test_a_grouped_release_says_what_was_done() -> None:
    said = words(ps.report(ps.anonymize(table().drop("age"), ps.Policy.loads(ANATOMY))))
    assert "What was done to the records" in said
    assert "No value is twice in a group." in said
    assert "ill is published by group." in said
    assert "No value has more than 1/3 of a group" in said
    assert "Protected attributes 1 of 3" in said
    assert "sex is published as it is" in said
    assert "the number of its group" in said
    for absent in (
        "Every published cell is a set of candidates",
        "Decoys",
        "Form",
        "Nothing was promised",
        "candidates",
    ):
        assert absent not in said, absent


def test_a_generalized_release_says_its_levels_and_what_they_cost() -> None:
    release = ps.anonymize(table(), ps.Policy.loads(GENERALIZED))
    applied = release.manifest.applied
    assert applied is not None
    done = treatment_of(release)
    assert done is not None
    assert done.method == "full-domain"
    assert done.unit == "class"
    facts = dict(done.facts)
    assert facts["Classes"] == str(applied.classes)
    assert facts["Loss (entropy)"].endswith("proved to be the least possible")
    assert [line.name for line in done.lines] == ["age", "sex"]
    age, sex = done.lines
    assert f"level {applied.levels['age']}" in age.done
    assert age.labels > 1
    assert age.examples
    if applied.levels["sex"]:
        assert sex.done == "not shown (level 1)"
        assert sex.examples == "*"
    said = words(ps.report(release, table()))
    assert "Every class has at least 4 records" in said
    assert "as it is, protected by its class" in said
    assert "Which class is a person’s." in said
    assert "homogeneity" in said
    assert "linkage-prosecutor" in said


@pytest.mark.parametrize(("withheld", "text"), [(True, "left out of the release"), (False, "shown with *")])
def test_suppressed_records_are_counted(withheld: bool, text: str) -> None:
    release = ps.anonymize(table(), ps.Policy.loads(GENERALIZED))
    applied = release.manifest.applied
    assert applied is not None
    changed = replace(applied, suppressed=60, withheld=withheld, gap=None)
    manifest = replace(release.manifest, applied=changed, records=240 - 60 * withheld)
    done = treatment_of(replace(release, manifest=manifest))
    assert done is not None
    facts = dict(done.facts)
    assert facts["Suppressed"].startswith("60 records (25.0%)")
    assert text in facts["Suppressed"]
    assert facts["Loss (entropy)"].endswith("not proved")


def test_sets_alone_have_no_such_section() -> None:
    policy = "attributes:\n  ill: {role: sensitive, domain: [a, b, c, d], protect: {diversity: {l: 2}}}\n"
    release = ps.anonymize(table().select("ill"), ps.Policy.loads(policy))
    assert treatment_of(release) is None
    said = words(ps.report(release))
    assert "What was done to the records" not in said
    assert "Every published cell is a set of candidates" in said


@pytest.mark.parametrize(
    ("sizes", "labels", "classes", "records"),
    [
        ([3, 3, 7], ("3", "7"), (2, 1), (6, 7)),
        (list(range(10, 40)), None, None, None),
        ([*range(1, 30), 5_000], None, None, None),
    ],
)
def test_sizes_of_classes_are_counted_whole(
    sizes: list[int], labels: tuple[str, ...] | None, classes: tuple[int, ...] | None, records: tuple[int, ...] | None
) -> None:
    counted = class_size_table(np.array(sizes))
    assert sum(counted.classes) == len(sizes)
    assert sum(counted.records) == sum(sizes)
    assert len(counted.labels) == len(counted.classes) == len(counted.records) <= 20
    if labels is not None:
        assert (counted.labels, counted.classes, counted.records) == (labels, classes, records)


def test_ranges_double_where_one_class_is_huge() -> None:
    counted = class_size_table(np.array([*range(1, 30), 5_000]))
    assert counted.labels[:5] == ("1", "2–3", "4–7", "8–15", "16–31")
    assert counted.classes[:5] == (1, 2, 4, 8, 14)
    assert counted.classes[-1] == 1


def test_every_model_has_a_sentence() -> None:
    rules = {"rules": [{"never-all": {"ill": ["a", "b"]}}]}
    for name, model in MODELS.items():
        parameters = rules if name == "semantic-rules" else {p.name: p.example for p in model.parameters if p.required}
        said = model_sentence({name: parameters}, "group")
        assert said.endswith(".")
        assert "group" in said
        assert f"keeps {name}" not in said
