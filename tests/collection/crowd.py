"""A small campaign, and people who answer it."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from typing import Any

import numpy as np
import polars as pl

import polyseme as ps
from polyseme.collection.campaigns import make_campaign
from polyseme.collection.survey import Checker, Survey
from polyseme.kernel.randomness import SystemStream
from polyseme.strata import by_stratum

SEXES, AGES = ("f", "m"), ("young", "middle", "old")
DISEASES = ("flu", "angina", "asthma", "ulcer", "gastritis", "prostatitis", "pregnancy", "fracture", "burn")
INCOMES = tuple(range(10))
POLICY = f"""
attributes:
  sex: {{role: quasi-identifier, domain: [{", ".join(SEXES)}]}}
  age: {{role: quasi-identifier, domain: [{", ".join(AGES)}]}}
  disease:
    role: sensitive
    domain: [{", ".join(DISEASES)}]
    protect: {{diversity: {{l: 3}}}}
  income:
    role: sensitive
    domain: [{", ".join(map(str, INCOMES))}]
    distance: {{line: rank}}
    protect: {{semantic-diversity: {{l: 2, d: 2}}}}
impossible:
  - {{when: {{sex: m}}, attribute: disease, values: [pregnancy]}}
  - {{when: {{sex: f}}, attribute: disease, values: [prostatitis]}}
  - {{when: {{age: old}}, attribute: disease, values: [pregnancy]}}
"""
SIZE = 512


def people(rows: int, seed: int = 7) -> pl.DataFrame:
    """True records; none has an impossible value."""
    draw = np.random.default_rng(seed)
    sex, age = draw.choice(SEXES, rows), draw.choice(AGES, rows, p=[0.3, 0.5, 0.2])
    shares = np.array([0.3, 0.05, 0.15, 0.05, 0.1, 0.1, 0.1, 0.1, 0.05])
    disease = []
    for one, old in zip(sex, age):
        left = shares.copy()
        left[5 if one == "f" else 6] = 0.0
        left[6] = 0.0 if old == "old" else left[6]
        disease.append(draw.choice(DISEASES, p=left / left.sum()))
    income = np.minimum(draw.poisson(3.0, rows), 9)
    return pl.DataFrame({"sex": sex, "age": age, "disease": disease, "income": income})


@cache
def _document(collection: str) -> bytes:
    questions = {
        "name": "test",
        "languages": ["en"],
        "title": {"en": "A test"},
        "questions": {name: {"text": {"en": f"{name}?"}} for name in ("sex", "age", "disease", "income")},
        "collection": {
            "planned": 1_000,
            "minimum": 100,
            "size": SIZE,
            "purpose": {"en": "a test"},
            "contact": "nobody",
            **json.loads(collection),
        },
    }
    return make_campaign(ps.Policy.loads(POLICY), questions).data


def document(**collection: Any) -> bytes:
    """The campaign, with other settings where given."""
    return _document(json.dumps(collection))


def reports(survey: Survey, table: pl.DataFrame, seed: int = 3) -> list[dict[str, Any]]:
    """What the devices of these people send: sets are drawn by the mechanisms of the campaign."""
    stream, checker = SystemStream.seeded(seed), Checker(survey)
    shown = np.stack(
        [
            [column.attribute.domain.codes[str(value)] for value in table[column.name]]  # type: ignore[union-attr]
            for column in survey.open
        ],
        axis=1,
    )
    drawn = {}
    for column in survey.sets:
        codes = np.array([column.domain.codes[str(value)] for value in table[column.name]])
        places = checker.places(column, shown)
        sets = np.empty((len(table), column.l), dtype=np.int64)
        for number, rows in by_stratum(places):
            member = column.strata.members[number]
            sets[rows] = member.widen(member.mechanism.sample(member.narrow(codes[rows]), stream))
        drawn[column.name] = sets
    return [
        {
            "id": report_id(f"{seed} {row}"),
            "open": {column.name: int(shown[row, place]) for place, column in enumerate(survey.open)},
            "sets": {name: sets[row].tolist() for name, sets in drawn.items()},
        }
        for row in range(len(table))
    ]


def report_id(name: object) -> str:
    """16 bytes that look random, the same in every run."""
    return base64.urlsafe_b64encode(hashlib.sha256(str(name).encode()).digest()[:16]).decode().rstrip("=")


def padded(report: dict[str, Any], size: int = SIZE) -> bytes:
    """The body of a report."""
    bare = len(json.dumps({**report, "pad": ""}, separators=(",", ":")))
    return json.dumps({**report, "pad": "0" * (size - bare)}, separators=(",", ":")).encode()
