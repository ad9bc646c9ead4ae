"""Semantic rules as a method: the paper's table, matchings against the programme and enumeration, what cannot be done."""

from __future__ import annotations

from itertools import chain, combinations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import polyseme as ps
from polyseme.errors import ImpossibleError, PolicyError
from polyseme.methods.rules.matching import Options, exact, greedy, match
from polyseme.results.explanation import Explanation

CHEST = ["bronchitis", "lung cancer", "cough", "flu"]
HEART, VIRAL = "Heart disease", "viral infection"
FIRST = [("cancer", 30), (HEART, 33), ("cancer", 35), (HEART, 35), ("cancer", 40), (VIRAL, 38)]
SECOND = [("gastric ulcer", 8), ("gastritis", 11), ("stomach cancer", 6), ("stomach cancer", 13)]
THIRD = [(HEART, 10), (VIRAL, 9), ("cancer", 15), (VIRAL, 7), (HEART, 11)]
FOURTH = [("bronchitis", 15), ("lung cancer", 12), ("lung cancer", 14), ("cough", 18), ("flu", 17), ("bronchitis", 9)]
CLASSES = [("148**", "[22-30[", FIRST), ("476**", "[22-30[", SECOND), ("130**", "[30-40[", THIRD)]
CLASSES += [("476**", "[30-40[", FOURTH)]
LOW = {"never-all": {"salary": {"from": 0, "below": 20}}, "name": "low salary"}
RULES = [LOW, {"never-all": {"disease": CHEST}, "name": "chest"}]


def table(classes=CLASSES) -> pl.DataFrame:
    rows = [(code, age, "*", *person) for code, age, people in classes for person in people]
    return pl.DataFrame(rows, schema=["zip", "age", "nationality", "disease", "salary"], orient="row")


def policy(method: dict, rules=RULES, models=()) -> ps.Policy:
    tree = {"tree": {"[20-40[": ["[22-30[", "[30-40["]}}
    return ps.Policy.from_dict(
        {
            "attributes": {
                "zip": {"role": "quasi-identifier", "hierarchy": {"prefix": 5}},
                "age": {"role": "quasi-identifier", "hierarchy": tree},
                "nationality": {"role": "quasi-identifier"},
                "disease": {"role": "sensitive"},
                "salary": {"role": "sensitive"},
            },
            "models": [{"semantic-rules": {"rules": rules}}, *models],
            "method": {"rules": method},
        }
    )


def published(frame: pl.DataFrame, asked: ps.Policy) -> tuple[ps.Release, Explanation]:
    told: list[Explanation] = []
    release = ps.anonymize(frame, asked, warn=lambda _: None, explain=told.append, seed=1)
    assert ps.verify(release).holds
    return release, told[0]


def rows(release: ps.Release) -> list[tuple]:
    return sorted(map(tuple, release.to_polars().rows()), key=repr)


# -- the paper's table ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("actions", [["merge"], ["suppress-values"], ["suppress-records"], ["merge", "suppress-records"]])
def test_no_rule_is_effective_on_the_papers_table_afterwards(actions):
    release, explanation = published(table(), policy({"actions": actions}))
    assert set(release.manifest.applied.actions) <= set(actions)
    effective = {(row.cells, row.rule) for row in explanation.rows}
    assert {(cells[:2], rule) for cells, rule in effective} == {
        (("476**", "[22-30["), "low salary"),
        (("130**", "[30-40["), "low salary"),
        (("476**", "[30-40["), "low salary"),
        (("476**", "[30-40["), "chest"),
    }
    for cells, rule in effective:
        assert sum(row.applied for row in explanation.rows if (row.cells, row.rule) == (cells, rule)) == 1
