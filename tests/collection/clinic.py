"""A campaign as a hospital might run it: open questions, a long list of codes, an impossible combination, languages."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import polyseme as ps
from polyseme.collection.campaigns import make_campaign

PLACES = ("head", "neck", "chest", "back", "belly", "hip", "arm", "hand", "leg", "foot")
KINDS = (
    "pain",
    "swelling",
    "rash",
    "fracture",
    "burn",
    "infection",
    "tumour",
    "numbness",
    "bleeding",
    "cramp",
    "ulcer",
    "wound",
)
COMPLAINTS = tuple(f"{kind} of the {place}" for place in PLACES for kind in KINDS)
"""120 of them: too many for a list that cannot be searched."""
CONDITIONS = ("diabetes", "asthma", "depression", "high blood pressure", "pregnancy", "none of these")

POLICY = f"""
attributes:
  sex: {{role: quasi-identifier, domain: [female, male]}}
  age: {{role: quasi-identifier, bins: [0, 18, 30, 40, 50, 60, 65, 70, 80, 90, 120]}}
  condition:
    role: sensitive
    domain: {json.dumps(list(CONDITIONS))}
    protect: {{diversity: {{l: 3}}}}
  complaint:
    role: sensitive
    domain: {json.dumps(list(COMPLAINTS))}
    protect: {{diversity: {{l: 4}}}}
impossible:
  - {{when: {{sex: male}}, attribute: condition, values: [pregnancy]}}
"""

QUESTIONS: dict[str, Any] = {
    "name": "clinic",
    "languages": ["en", "de"],
    "title": {"en": "Health in our region 2026", "de": "Gesundheit in unserer Region 2026"},
    "questions": {
        "sex": {
            "text": {"en": "Your sex as in your papers", "de": "Ihr Geschlecht laut Ausweis"},
            "labels": {"en": ["Female", "Male"], "de": ["Weiblich", "Männlich"]},
        },
        "age": {"text": {"en": "Your age in years", "de": "Ihr Alter in Jahren"}},
        "condition": {
            "text": {"en": "Which of these do you live with?", "de": "Womit leben Sie?"},
            "help": {"en": "The one that concerns you most.", "de": "Was Sie am meisten beschäftigt."},
            "labels": {
                "en": ["Diabetes", "Asthma", "Depression", "High blood pressure", "Pregnancy", "None of these"],
                "de": ["Diabetes", "Asthma", "Depression", "Bluthochdruck", "Schwangerschaft", "Nichts davon"],
            },
        },
        "complaint": {
            "text": {"en": "Why did you last see a doctor?", "de": "Weswegen waren Sie zuletzt in der Praxis?"},
        },
    },
    "collection": {
        "planned": 5_000,
        "minimum": 50,
        "size": 512,
        "purpose": {
            "en": "The hospital wants to know which illnesses are common here, without knowing who has them.",
            "de": "Das Krankenhaus möchte wissen, was hier häufig ist, ohne zu wissen, wer was hat.",
        },
        "contact": "survey@hospital.example",
    },
}


@cache
def _document(collection: str) -> bytes:
    questions = {**QUESTIONS, "collection": {**QUESTIONS["collection"], **json.loads(collection)}}
    return make_campaign(ps.Policy.loads(POLICY), questions).data


def document(**collection: Any) -> bytes:
    """The campaign's document, with other settings where given."""
    return _document(json.dumps(collection))
