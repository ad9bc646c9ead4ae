"""The words of a report: numbers with units; attacks, checks, metrics and models explained.

Explanations are for readers who have never heard the names.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import date, datetime
from typing import Any, Final, TypeAlias

from polyseme.models import read_spec
from polyseme.models.base import Verdict
from polyseme.results.views.formats import NOTHING, count, points, quantity

__all__ = [
    "attack_words",
    "chance",
    "check_words",
    "compared_with",
    "counted",
    "day",
    "found",
    "looked_at",
    "metric_words",
    "metric_written",
    "model_sentence",
    "moment",
    "reached",
]

_ROUNDED = 0.0005
"""Shares nearer to nothing or to everything than this would be written as 0.0% or 100.0%."""


def chance(share: float | None) -> str:
    """How often something happens; never rounded to nothing or to certainty.

    >>> chance(1 / 3), chance(2.64e-4), chance(0.99999), chance(1.0), chance(None)
    ('33.3%', '0.026%', 'over 99.9%', '100%', '–')
    """
    if share is None or math.isnan(share):
        return NOTHING
    if 0.0 < share < _ROUNDED:
        return f"{quantity(100 * share, 2)}%"
    if 1.0 - _ROUNDED < share < 1.0 - 1e-9:
        return "over 99.9%"
    return "100%" if share >= 1.0 - 1e-9 else f"{share:.1%}"


def counted(number: float, thing: str, things: str = "") -> str:
    """How many there are of something.

    >>> counted(1, "record"), counted(1200, "record"), counted(2, "class", "classes")
    ('1 record', '1,200 records', '2 classes')
    """
    return f"{count(number)} {thing if round(number) == 1 else things or f'{thing}s'}"


def moment(text: str) -> str:
    """A moment as people write it, in the zone in which it was announced.

    >>> moment("2026-12-01T08:00:00+00:00"), moment("2026-12-01T08:00:00+01:00")
    ('1 December 2026, 08:00 UTC', '1 December 2026, 08:00 UTC+01:00')
    """
    found = datetime.fromisoformat(text)
    return f"{found.day} {found:%B %Y, %H:%M} {found.tzname()}"


def day(text: str) -> str:
    """A date as people write it.

    >>> day("2026-11-07"), day("")
    ('7 November 2026', '')
    """
    if not text:
        return ""
    found = date.fromisoformat(text)
    return f"{found.day} {found:%B %Y}"


_ATTACK_WORDS: Mapping[str, str] = {
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
    return _ATTACK_WORDS.get(name, name)


def reached(name: str, number: float | None) -> str:
    """What an attack reaches, with the unit.

    >>> reached("bayes", 1 / 3), reached("skewness", 0.9), reached("bayes", None)
    ('33.3%', '0.9 of 1', '–')
    """
    if name not in _DISTANCES:
        return chance(number)
    return NOTHING if number is None else f"{quantity(number)} of 1"


_CHECK_WORDS: Final[Mapping[str, str]] = {
    "alpha-k-anonymity": "Enough records look alike, and no value is too frequent among them",
    "believable": "No record shows a candidate that is impossible for it",
    "beta-likeness": "No value is much more frequent in a class than in the whole table",
    "candidates": "Every set has the stated number of candidates",
    "closeness": "No record moves an attacker's belief by more than was promised",
    "combined-learner": "An attacker who also reads the other sets of a record stays within the promise",
    "columns": "The columns are those that the manifest names",
    "delta-disclosure": "No value is much more or less frequent in a class than in the whole table",
    "distinct-diversity": "Every class has enough different values",
    "diversity": "Every set has enough different candidates",
    "entropy-diversity": "The values of a class have enough entropy",
    "frequency-diversity": "No value is too frequent in its class",
    "groups": "All records of a group show the values of the whole group",
    "k-anonymity": "Enough records look alike",
    "k-map": "Enough people of the population fit each record",
    "ldp": "Local differential privacy: every value could have produced every set",
    "le-diversity": "The values of a class are far enough apart",
    "learner": "An attacker who knows the distribution of the values stays within the promise",
    "mechanism": "The published sets fit the stated mechanism",
    "minimum": "The release has at least as many reports as the campaign promised",
    "posterior": "No candidate exceeds the promised posterior",
    "promises": "Something was promised",
    "record-count": "No record is missing, and none was added",
    "people": "Every class has enough people, not only records",
    "recursive-diversity": "The most frequent value of a class does not outweigh the others",
    "semantic-diversity": "Candidates are different, and far enough apart in meaning",
    "semantic-rules": "No class reveals what a rule forbids",
}
_CHANCES: Final = frozenset({"combined-learner", "learner", "posterior", "alpha-k-anonymity"})
_COUNTS: Final[Mapping[str, tuple[str, str]]] = {
    "believable": ("record", ""),
    "candidates": ("candidate", ""),
    "columns": ("column", ""),
    "distinct-diversity": ("value", ""),
    "diversity": ("candidate", ""),
    "groups": ("group", ""),
    "k-anonymity": ("record", ""),
    "k-map": ("person", "people"),
    "minimum": ("report", ""),
    "record-count": ("row", ""),
    "people": ("person", "people"),
    "semantic-rules": ("record", ""),
}
_UNITS: Final[Mapping[str, str]] = {
    "beta-likeness": "{} (relative gain)",
    "closeness": "{} of 1",
    "delta-disclosure": "{} (logarithm of a ratio)",
    "entropy-diversity": "{} values, effectively",
    "frequency-diversity": "1 in {}",
    "ldp": "ε = {}",
    "mechanism": "{} (p-value)",
    "recursive-diversity": "{} times",
}
_LOOKED_AT: Final[Mapping[str, tuple[str, str]]] = {
    "believable": ("record", ""),
    "candidates": ("set", ""),
    "diversity": ("set", ""),
    "groups": ("group", ""),
    "mechanism": ("record", ""),
    "posterior": ("mechanism", ""),
    "semantic-diversity": ("set", ""),
}


def check_words(name: str) -> str:
    """What a check looks at; one that is not known here keeps its name."""
    return _CHECK_WORDS.get(name, name)


def found(verdict: Verdict) -> str:
    """The worst that was found."""
    return _measured(verdict, verdict.worst)


def compared_with(verdict: Verdict) -> str:
    """What it was compared with."""
    return _measured(verdict, verdict.bound)


def looked_at(verdict: Verdict, number: int, in_sets: bool) -> str:
    """How many sets, classes or records were looked at, or violate.

    Nothing where the manifest alone decides.
    """
    if not verdict.checked:
        return NOTHING
    return counted(number, *(_LOOKED_AT.get(verdict.model, ("class", "classes")) if in_sets else ("class", "classes")))


def _measured(verdict: Verdict, number: float | None) -> str:
    if number is None:
        return NOTHING
    model = verdict.model
    if model in ("semantic-diversity", "le-diversity"):
        return f"{quantity(number)} apart" if _is_distance(verdict) else counted(number, "different value")
    if model in _CHANCES:
        return chance(number)
    if model in _COUNTS:
        people = verdict.counts == "people" and _COUNTS[model][0] == "record"
        return counted(number, *(("person", "people") if people else _COUNTS[model]))
    return _UNITS.get(model, "{}").format(quantity(number))


def _is_distance(verdict: Verdict) -> bool:
    """Whether the worst is a distance; a check that lacks values counts these instead."""
    apart = verdict.parameters.get("d" if verdict.model == "semantic-diversity" else "e")
    counts = verdict.note.startswith(tuple("0123456789")) or verdict.parameters.get("reading", "strict") != "strict"
    return verdict.bound == apart and not (counts and verdict.bound == verdict.parameters.get("l"))


_METRIC_WORDS: Mapping[str, tuple[str, str]] = {
    "mse": ("Typical error of a cell, of all records", "{} percentage points"),
    "l1": ("Sum of the errors of all cells", "{} records"),
    "l2": ("Root of the sum of squared errors", "{} records"),
    "hellinger": ("Hellinger distance of the counts", "{} √records"),
    "emd": ("Share of records that would have to change their cell", "{}%"),
    "kl": ("Information lost (Kullback-Leibler)", "{} nats"),
    "chi2": ("Squared errors over true numbers, summed", "{} records"),
}


def metric_words(name: str) -> str:
    """What a metric measures; one that is not known here keeps its name."""
    return _METRIC_WORDS[name][0] if name in _METRIC_WORDS else name


def metric_written(name: str, number: float | None) -> str:
    """Its value with the unit.

    >>> metric_written("mse", 4e-6), metric_written("l1", 660.0), metric_written("l1", None)
    ('0.2 percentage points', '660 records', '–')
    """
    if number is None:
        return NOTHING
    shown = {"mse": points(number), "emd": quantity(100 * number)}.get(name, quantity(number))
    return (_METRIC_WORDS[name][1] if name in _METRIC_WORDS else "{}").format(shown)


Parameters: TypeAlias = Mapping[str, Any]


def model_sentence(model: Mapping[str, Mapping[str, Any]], unit: str = "class") -> str:
    """The promise of a model, as a policy or a manifest writes it.

    >>> model_sentence({"k-anonymity": {"k": 5}})
    'Every class has at least 5 records: each looks like at least 4 others.'
    """
    spec = read_spec(model)
    words = _MODEL_WORDS.get(spec.model.name)
    return words(spec.parameters, unit) if words else f"Every {unit} keeps {spec.model.name}."


def _k(given: Parameters, unit: str) -> str:
    return f"Every {unit} has at least {given['k']} records: each looks like at least {given['k'] - 1} others."


def _k_map(given: Parameters, unit: str) -> str:
    return f"Every {unit} fits at least {given['k']} people of the population."


def _share(share: str, unit: str) -> str:
    return (
        f"No value has more than {share} of a {unit}: an attacker who finds the {unit} of a person and knows nothing "
        f"else guesses right with probability {share} at most."
    )


def _frequency(given: Parameters, unit: str) -> str:
    return _share(f"1/{quantity(given['l'])}", unit)


def _alpha(given: Parameters, unit: str) -> str:
    return f"Every {unit} has at least {given['k']} records. {_share(quantity(given['alpha']), unit)}"


def _distinct(given: Parameters, unit: str) -> str:
    return (
        f"Every {unit} has at least {given['l']} different values. That does not limit how frequent one of them "
        "is, so a guess may be right far more often than that number suggests."
    )


def _entropy(given: Parameters, unit: str) -> str:
    return f"The values of every {unit} are as mixed (by entropy) as {quantity(given['l'])} equally frequent ones."


def _recursive(given: Parameters, unit: str) -> str:
    spared = given["l"] - 2
    after = f", even after {spared} of them {'is' if spared == 1 else 'are'} ruled out" if spared > 0 else ""
    times = quantity(given["c"])
    return f"The most frequent value of a {unit} is less than {times} times as frequent as the others together{after}."


def _closeness(given: Parameters, unit: str) -> str:
    return (
        f"In every {unit} the values are distributed nearly as in the whole table: the distance between the two "
        f"distributions ({given['ground']} ground) is at most {quantity(given['t'])}."
    )


def _beta(given: Parameters, unit: str) -> str:
    return (
        f"No value is more frequent in a {unit} than in the whole table by more than a factor of "
        f"{quantity(1 + given['beta'])}."
    )


def _delta(given: Parameters, unit: str) -> str:
    factor = f"e^{quantity(given['delta'])}"
    return f"The share of a value in a {unit} and its share in the whole table differ by a factor below {factor}."


def _similar(given: Parameters, unit: str) -> str:
    many = "no value has more than 1/{l} of it" if given["represented"] == "frequency" else "it has at least {l} values"
    apart = quantity(given["e"])
    return f"No two values of a {unit} are similar (more than {apart} apart), and {many.format(**given)}."


def _semantic(given: Parameters, unit: str) -> str:
    l, d = given["l"], quantity(given["d"])
    if given["reading"] == "frequency":
        return (
            f"The values nearer than {d} to any one value have together at most 1/{l} of a {unit}: not even a range or "
            "a branch can be guessed more often."
        )
    if given["reading"] == "exists":
        return f"Every {unit} has {l} values that are at least {d} apart from each other."
    return f"Every {unit} has at least {l} different values, any two of them at least {d} apart."


_MODEL_WORDS: Mapping[str, Callable[[Parameters, str], str]] = {
    "k-anonymity": _k,
    "k-map": _k_map,
    "alpha-k-anonymity": _alpha,
    "distinct-diversity": _distinct,
    "frequency-diversity": _frequency,
    "diversity": _frequency,
    "entropy-diversity": _entropy,
    "recursive-diversity": _recursive,
    "closeness": _closeness,
    "beta-likeness": _beta,
    "delta-disclosure": _delta,
    "le-diversity": _similar,
    "semantic-diversity": _semantic,
    "semantic-rules": lambda given, unit: f"No {unit} reveals what the rules forbid.",
}
