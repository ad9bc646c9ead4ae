"""What the checks on a release look at, in plain words and with units."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from polyseme.models.base import Verdict
from polyseme.reports.numbers import chance, counted
from polyseme.results.views.formats import NOTHING, quantity

__all__ = ["asked_for", "check_words", "found", "looked_at"]

_WORDS: Final[Mapping[str, str]] = {
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
    return _WORDS.get(name, name)


def found(verdict: Verdict) -> str:
    """The worst that was found."""
    return _measured(verdict, verdict.worst)


def asked_for(verdict: Verdict) -> str:
    """What it was compared with."""
    return _measured(verdict, verdict.bound)


def looked_at(verdict: Verdict, number: int, in_sets: bool) -> str:
    """How many sets, classes or records were looked at, or violate; nothing where the manifest alone decides."""
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
    """Whether the worst is a distance; a check that fails for want of values counts these, and says so."""
    apart = verdict.parameters.get("d" if verdict.model == "semantic-diversity" else "e")
    counts = verdict.note.startswith(tuple("0123456789")) or verdict.parameters.get("reading", "strict") != "strict"
    return verdict.bound == apart and not (counts and verdict.bound == verdict.parameters.get("l"))
