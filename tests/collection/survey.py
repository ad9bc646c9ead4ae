"""A small campaign that has everything: bins, an impossible combination, a prior by group, two languages."""

from __future__ import annotations

from copy import deepcopy

POLICY = """
attributes:
  name: {role: identifier}
  sex: {role: quasi-identifier, domain: [female, male]}
  region: {role: quasi-identifier, domain: [north, south, 3]}
  age: {role: quasi-identifier, bins: [0, 18, 40, 65, 120]}
  income:
    role: sensitive
    bins: [0, 100, 200, 300, 400, 500, 600, 700, 800, 1000]
    distance: {line: rank}
    protect: {semantic-diversity: {l: 3, d: 2}}
  disease:
    role: sensitive
    domain: [flu, cold, pregnancy, cancer, none, 1.5]
    protect: {diversity: {l: 2}}
impossible:
  - {when: {sex: male}, attribute: disease, values: [pregnancy]}
"""

QUESTIONS = {
    "name": "health-2026",
    "languages": ["en", "de"],
    "title": {"en": "Health survey", "de": "Gesundheitsumfrage"},
    "questions": {
        "sex": {"text": {"en": "Your sex?", "de": "Ihr Geschlecht?"}, "labels": {"de": ["weiblich", "männlich"]}},
        "region": {"text": {"en": "Where do you live?", "de": "Wo wohnen Sie?"}},
        "age": {"text": {"en": "Your age?", "de": "Ihr Alter?"}},
        "income": {"text": {"en": "Income?", "de": "Einkommen?"}, "help": {"en": "Before tax.", "de": "Vor Steuern."}},
        "disease": {"text": {"en": "Which illness?", "de": "Welche Krankheit?"}},
    },
    "collection": {
        "planned": 5000,
        "opens": "2026-12-01",
        "purpose": {"en": "To see how incomes differ.", "de": "Um Einkommen zu vergleichen."},
        "contact": "survey@example.org",
    },
}

RECORD = {"sex": "male", "region": 3, "age": 41, "income": "[200, 300)", "disease": "flu"}


def questions(**collection):
    """The questions with other settings of the collection; None leaves one out."""
    found = deepcopy(QUESTIONS)
    found["collection"] = {
        key: value for key, value in {**found["collection"], **collection}.items() if value is not None
    }
    return found
