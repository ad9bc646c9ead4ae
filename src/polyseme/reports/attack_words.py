"""What each attack does, in words for readers who have never heard its name."""

from __future__ import annotations

from collections.abc import Mapping

from polyseme.reports.numbers import chance
from polyseme.results.views.formats import NOTHING, quantity

__all__ = ["attack_words", "reached"]

_WORDS: Mapping[str, str] = {
    "linkage-prosecutor": "Linkage, prosecutor: finds the record of a person who is known to be in the table",
    "linkage-journalist": "Linkage, journalist: finds the record of a person from the population",
    "linkage-marketer": "Linkage, marketer: matches as many people as possible with their records",
    "homogeneity": "Homogeneity: guesses from what is published for the person alone",
    "similarity": "Similarity: guesses a range or a branch instead of the exact value",
    "skewness": "Skewness: how far the release moves an attacker's belief about a person",
    "any-prior": "Any prior: guesses with an arbitrary prior",
    "background-knowledge": "Background knowledge: rules out values that the person cannot have",
    "bayes": "Bayes attacker: knows the mechanism and the prior",
    "transparency": "Transparency attack: exploits how decoys are drawn",
    "learner": "Learner: knows the distribution of the values",
    "published-estimate": "Published estimate: estimates the distribution of the values from the release",
    "definetti": "DeFinetti attack: learns from the release which values go with which columns",
    "correlation": "Correlation: combines two protected attributes",
    "repetition": "Repetition: combines two releases about the same people",
    "shared-value": "Shared value: intersects the sets of records that share a value",
    "left-out": "Left out: guesses the value of a person who was suppressed",
    "seed": "Seed: has the seed and draws the decoys again",
}
_DISTANCES = frozenset({"skewness"})
"""Attacks whose success is a distance between 0 and 1, not a share of right guesses."""


def attack_words(name: str) -> str:
    """What an attack does; one that is not known here keeps its name.

    >>> attack_words("definetti")
    'DeFinetti attack: learns from the release which values go with which columns'
    """
    return _WORDS.get(name, name)


def reached(name: str, number: float | None) -> str:
    """What an attack reaches, with the unit.

    >>> reached("bayes", 1 / 3), reached("skewness", 0.9), reached("bayes", None)
    ('33.3%', '0.9 of 1', '–')
    """
    if name not in _DISTANCES:
        return chance(number)
    return NOTHING if number is None else f"{quantity(number)} of 1"
