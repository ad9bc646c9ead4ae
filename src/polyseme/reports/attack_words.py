"""What adversaries do, in words for readers who have never heard their names."""

from __future__ import annotations

from collections.abc import Mapping

from polyseme.reports.numbers import chance
from polyseme.results.views.formats import NOTHING, quantity

__all__ = ["attack_words", "reached"]

_WORDS: Mapping[str, str] = {
    "linkage-prosecutor": "Finding the record of a person who is known to be in the table",
    "linkage-journalist": "Finding the record of somebody from the whole population",
    "linkage-marketer": "Matching as many people as possible with their records",
    "homogeneity": "Guessing from what is published for the person alone",
    "similarity": "Guessing a range or a branch instead of the exact value",
    "skewness": "Changing what one believes about the person",
    "any-prior": "Guessing with whatever expectations beforehand",
    "background-knowledge": "Ruling out values that the person cannot have",
    "bayes": "Weighing the candidates by the method and by what was to be expected",
    "transparency": "Telling the true value by the way in which decoys are drawn",
    "learner": "Knowing how the values are distributed",
    "published-estimate": "Learning from the release how the values are distributed",
    "definetti": "Learning from the release which values go with which columns",
    "correlation": "Putting two protected attributes together",
    "repetition": "Putting two releases about the same people together",
    "shared-value": "Intersecting the sets of records that share a value",
    "left-out": "Missing a person who was in the table, and guessing from that",
    "seed": "Having the seed, and drawing the decoys again",
}
_DISTANCES = frozenset({"skewness"})
"""Adversaries whose success is a distance between 0 and 1, not a share of right guesses."""


def attack_words(name: str) -> str:
    """What an adversary does; one that is not known here keeps its name.

    >>> attack_words("definetti")
    'Learning from the release which values go with which columns'
    """
    return _WORDS.get(name, name)


def reached(name: str, number: float | None) -> str:
    """How far an adversary gets, with the unit.

    >>> reached("bayes", 1 / 3), reached("skewness", 0.9), reached("bayes", None)
    ('33.3%', '0.9 of 1', '–')
    """
    if name not in _DISTANCES:
        return chance(number)
    return NOTHING if number is None else f"{quantity(number)} of 1"
