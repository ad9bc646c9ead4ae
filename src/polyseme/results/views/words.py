"""Words for checks, attacks, metrics and scores: for terminal, report and notebooks.

Each has one entry here, and no other module writes its title. Explanations are for readers who do not know the names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from polyseme.models import read_spec
from polyseme.models.base import Verdict
from polyseme.results.views.formats import NOTHING, chance, counted, points, quantity

__all__ = [
    "ATTACKS",
    "CHECKS",
    "METRICS",
    "SCORES",
    "AttackWords",
    "CheckWords",
    "MetricWords",
    "attack_words",
    "check_words",
    "compared_with",
    "found",
    "is_distance",
    "looked_at",
    "measures",
    "metric_words",
    "metric_written",
    "model_sentence",
    "reached",
]

Parameters: TypeAlias = Mapping[str, Any]
Sentence: TypeAlias = Callable[[Parameters, str], str]
"""From the parameters of a model, and what a class is called."""


# -- attacks -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AttackWords:
    """The words for an attack.

    title        its name and what it does
    is_distance  whether its success is a distance between 0 and 1 by which a belief moves, not a share of right guesses
    """

    title: str
    is_distance: bool = False


ATTACKS: Final[Mapping[str, AttackWords]] = {
    "linkage-prosecutor": AttackWords(
        "Linkage, prosecutor: finds the record of a person who is known to be in the table"
    ),
    "linkage-journalist": AttackWords("Linkage, journalist: finds the record of a person from the population"),
    "linkage-marketer": AttackWords("Linkage, marketer: matches as many people as possible with their records"),
    "homogeneity": AttackWords("Homogeneity: guesses from what is published for the person alone"),
    "similarity": AttackWords("Similarity: guesses a range or a branch instead of the exact value"),
    "skewness": AttackWords(
        "Skewness: how far the release moves an attacker's belief about a person", is_distance=True
    ),
    "any-prior": AttackWords(
        "Any prior: how far the release moves the belief of an attacker with any prior", is_distance=True
    ),
    "background-knowledge": AttackWords("Background knowledge: rules out values that the person cannot have"),
    "bayes": AttackWords("Bayes attacker: knows the mechanism and the prior"),
    "transparency": AttackWords("Transparency attack: exploits how decoys are drawn"),
    "learner": AttackWords("Learner: knows the distribution of the values"),
    "published-estimate": AttackWords("Published estimate: estimates the distribution of the values from the release"),
    "definetti": AttackWords("DeFinetti attack: learns from the release which values go with which columns"),
    "correlation": AttackWords("Correlation: combines two protected attributes"),
    "repetition": AttackWords("Repetition: combines two releases about the same people"),
    "shared-value": AttackWords("Shared value: intersects the sets of records that share a value"),
    "left-out": AttackWords("Left out: guesses the value of a person who was suppressed"),
    "seed": AttackWords("Seed: has the seed and draws the decoys again"),
}


def attack_words(name: str) -> str:
    """What an attack does; one that is not known here keeps its name.

    >>> attack_words("definetti")
    'DeFinetti attack: learns from the release which values go with which columns'
    """
    return ATTACKS[name].title if name in ATTACKS else name


def is_distance(name: str) -> bool:
    """Whether the success of an attack is a distance, not a share of right guesses."""
    return name in ATTACKS and ATTACKS[name].is_distance


def reached(name: str, number: float | None) -> str:
    """What an attack reaches, with the unit.

    >>> reached("bayes", 1 / 3), reached("skewness", 0.9), reached("bayes", None)
    ('33.3%', '0.9 of 1', '–')
    """
    if not is_distance(name):
        return chance(number)
    return NOTHING if number is None else f"{quantity(number)} of 1"


# -- what models promise -------------------------------------------------------------------------------------------


def model_sentence(model: Mapping[str, Mapping[str, Any]], unit: str = "class") -> str:
    """The promise of a model, as a policy or a manifest writes it.

    >>> model_sentence({"k-anonymity": {"k": 5}})
    'Every class has at least 5 records: each looks like at least 4 others.'
    """
    spec = read_spec(model)
    words = CHECKS.get(spec.model.name)
    return (
        words.sentence(spec.parameters, unit) if words and words.sentence else f"Every {unit} keeps {spec.model.name}."
    )


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


def _rules(given: Parameters, unit: str) -> str:
    return f"No {unit} reveals what the rules forbid."


# -- checks --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CheckWords:
    """The words for a check of a release or of a table.

    title      what holds if the check passes
    measured   what its number is; empty for a check without one
    unit       of that number: a format, or the singular and plural of what is counted
    at_least   whether the number must be large enough; otherwise it must be small enough
    looked_at  what is checked one by one where values are published as sets: singular and plural
    sentence   the promise in one sentence, for models that a policy can name
    """

    title: str
    measured: str = ""
    unit: str | tuple[str, str] = "{}"
    at_least: bool = False
    looked_at: tuple[str, str] = ("class", "classes")
    sentence: Sentence | None = None


_CHANCE: Final = "share"
"""The unit of a number that is how often something happens."""

CHECKS: Final[Mapping[str, CheckWords]] = {
    "alpha-k-anonymity": CheckWords(
        "Enough records look alike, and no value is too frequent among them",
        "the largest share of one value in a class",
        unit=_CHANCE,
        sentence=_alpha,
    ),
    "believable": CheckWords(
        "No record shows a candidate that is impossible for it",
        "records with a candidate that is impossible for them",
        unit=("record", ""),
        looked_at=("record", ""),
    ),
    "beta-likeness": CheckWords(
        "No value is much more frequent in a class than in the whole table",
        "by which factor a value is more frequent in a class than in the table, less 1",
        unit="{} (relative gain)",
        sentence=_beta,
    ),
    "candidates": CheckWords(
        "Every set has the promised number of candidates",
        "candidates in the smallest set",
        unit=("candidate", ""),
        at_least=True,
        looked_at=("set", ""),
    ),
    "closeness": CheckWords(
        "No record moves an attacker's belief by more than was promised",
        "distance of a class, or of the belief after seeing a set, from the whole table, 0 to 1",
        unit="{} of 1",
        sentence=_closeness,
    ),
    "columns": CheckWords(
        "The columns are those that the manifest names",
        "columns that are missing or too many",
        unit=("column", ""),
    ),
    "combined-learner": CheckWords(
        "An attacker who also reads the other sets of a record stays within the promise",
        "how often an attacker who also reads the other sets of a record guesses right",
        unit=_CHANCE,
    ),
    "delta-disclosure": CheckWords(
        "No value is much more or less frequent in a class than in the whole table",
        "logarithm of how much more, or less, frequent a value is in a class than in the table",
        unit="{} (logarithm of a ratio)",
        sentence=_delta,
    ),
    "distinct-diversity": CheckWords(
        "Every class has enough different values",
        "different values in the poorest class",
        unit=("value", ""),
        at_least=True,
        sentence=_distinct,
    ),
    "diversity": CheckWords(
        "Every set has enough different candidates",
        "the smallest number of different candidates or values",
        unit=("candidate", ""),
        at_least=True,
        looked_at=("set", ""),
        sentence=_frequency,
    ),
    "entropy-diversity": CheckWords(
        "The values of a class have enough entropy",
        "effective number of values: e to the entropy",
        unit="{} values, effectively",
        at_least=True,
        sentence=_entropy,
    ),
    "frequency-diversity": CheckWords(
        "No value is too frequent in its class",
        "records of a class for each one of its most frequent value",
        unit="1 in {}",
        at_least=True,
        sentence=_frequency,
    ),
    "groups": CheckWords(
        "All records of a group show the values of the whole group",
        "groups whose records do not show the same values",
        unit=("group", ""),
        looked_at=("group", ""),
    ),
    "k-anonymity": CheckWords(
        "Enough records look alike",
        "records in the smallest class",
        unit=("record", ""),
        at_least=True,
        sentence=_k,
    ),
    "k-map": CheckWords(
        "Enough people of the population fit each record",
        "people of the population in the smallest class",
        unit=("person", "people"),
        at_least=True,
        sentence=_k_map,
    ),
    "ldp": CheckWords(
        "Local differential privacy: every value could have produced every set",
        "epsilon of the mechanism",
        unit="ε = {}",
    ),
    "le-diversity": CheckWords(
        "The values of a class are far enough apart",
        "the smallest distance between two values of a class; their number, if too small",
        at_least=True,
        sentence=_similar,
    ),
    "learner": CheckWords(
        "An attacker who knows the distribution of the values stays within the promise",
        "how often an attacker who knows the distribution guesses right",
        unit=_CHANCE,
    ),
    "mechanism": CheckWords(
        "The published sets fit the mechanism in the manifest",
        "p-value: how well the published sets fit the mechanism in the manifest; near 0: they do not",
        unit="{} (p-value)",
        at_least=True,
        looked_at=("record", ""),
    ),
    "minimum": CheckWords(
        "The release has at least as many reports as the campaign promised",
        "reports in the release",
        unit=("report", ""),
        at_least=True,
    ),
    "people": CheckWords(
        "Every class has enough people, not only records",
        "people in the smallest class",
        unit=("person", "people"),
        at_least=True,
    ),
    "posterior": CheckWords(
        "No candidate exceeds the promised posterior",
        "the highest posterior of a candidate, for an attacker who sees the set",
        unit=_CHANCE,
        looked_at=("mechanism", ""),
    ),
    "promises": CheckWords(
        "Something was promised",
    ),
    "record-count": CheckWords(
        "No record is missing, and none was added",
        "rows that are missing or too many",
        unit=("row", ""),
    ),
    "recursive-diversity": CheckWords(
        "The most frequent value of a class does not outweigh the others",
        "the most frequent value of a class against those from the l-th on; must stay below c",
        unit="{} times",
        sentence=_recursive,
    ),
    "semantic-diversity": CheckWords(
        "Candidates are different, and far enough apart in meaning",
        "the smallest distance between two candidates or values; their number, if too small",
        at_least=True,
        looked_at=("set", ""),
        sentence=_semantic,
    ),
    "semantic-rules": CheckWords(
        "No class reveals what a rule forbids",
        "records that break the rule",
        unit=("record", ""),
        sentence=_rules,
    ),
}


def check_words(name: str) -> str:
    """What holds if a check passes; one that is not known here keeps its name."""
    return CHECKS[name].title if name in CHECKS else name


def measures(models: Iterable[tuple[str, str]]) -> list[str]:
    """What is measured by each of the models, given with what was counted."""
    known = [(name, CHECKS[name].measured, counts) for name, counts in dict.fromkeys(models) if name in CHECKS]
    return [
        f"{name}: {text.replace('records', 'people') if counts == 'people' else text}"
        for name, text, counts in known
        if text
    ]


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
    words = CHECKS.get(verdict.model) if in_sets else None
    return counted(number, *(("class", "classes") if words is None else words.looked_at))


def _measured(verdict: Verdict, number: float | None) -> str:
    if number is None:
        return NOTHING
    if verdict.model in ("semantic-diversity", "le-diversity"):
        return f"{quantity(number)} apart" if _is_distance(verdict) else counted(number, "different value")
    unit = CHECKS[verdict.model].unit if verdict.model in CHECKS else "{}"
    if isinstance(unit, tuple):
        people = verdict.counts == "people" and unit[0] == "record"
        return counted(number, *(("person", "people") if people else unit))
    return chance(number) if unit == _CHANCE else unit.format(quantity(number))


def _is_distance(verdict: Verdict) -> bool:
    """Whether the worst is a distance; a check that lacks values counts these instead."""
    apart = verdict.parameters.get("d" if verdict.model == "semantic-diversity" else "e")
    counts = verdict.note.startswith(tuple("0123456789")) or verdict.parameters.get("reading", "strict") != "strict"
    return verdict.bound == apart and not (counts and verdict.bound == verdict.parameters.get("l"))


# -- metrics -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MetricWords:
    """The words for a metric that compares estimates with the truth.

    meaning  how it is computed, for the terminal
    title    what it says, for readers of a report; empty for a metric that the report does not show
    unit     a format of its number in the report
    """

    meaning: str
    title: str = ""
    unit: str = "{}"


METRICS: Final[Mapping[str, MetricWords]] = {
    "cells": MetricWords("cells of the table that were compared"),
    "covered": MetricWords("cells whose true number lies in its interval"),
    "coverage": MetricWords("their share of all cells with an interval"),
    "level": MetricWords("the share that the intervals promise"),
    "mse": MetricWords(
        "mean over cells of (true share − estimated share)²",
        "Typical error of a cell, of all records",
        "{} percentage points",
    ),
    "l1": MetricWords(
        "sum of the absolute errors of all cells, in records or in weights",
        "Sum of the errors of all cells",
        "{} records",
    ),
    "l2": MetricWords(
        "root of the sum of the squared errors of all cells", "Root of the sum of squared errors", "{} records"
    ),
    "hellinger": MetricWords(
        "distance between the square roots of the counts: an error weighs more in small cells",
        "Hellinger distance of the counts",
        "{} √records",
    ),
    "emd": MetricWords(
        "share of all to be moved to make the tables equal, 0 to 1",
        "Share of records that would have to change their cell",
        "{}%",
    ),
    "kl": MetricWords(
        "information lost, in nats; 0 if equal, ∞ if a cell with records is estimated 0",
        "Information lost (Kullback-Leibler)",
        "{} nats",
    ),
    "chi2": MetricWords(
        "Pearson: squared errors of the cells, divided by the true numbers",
        "Squared errors over true numbers, summed",
        "{} records",
    ),
    "query_error": MetricWords("mean relative error of 1,000 random counting queries"),
    "information_loss": MetricWords("of published groups, summed over their records: (l, e) paper, Equation 6"),
    "diversity_degree": MetricWords("of published groups, mean distance of their values: (l, e) paper, Equation 10"),
}

SCORES: Final[Mapping[str, str]] = {
    "accuracy": "share of right predictions; more is better",
    "log_loss": "mean negative log-probability of the true value; less is better",
    "r2": "share of the variation that is explained; more is better",
    "mae": "mean absolute error; less is better",
}
"""What scores of predictors mean."""


def metric_words(name: str) -> str:
    """What a metric says; one that is not known here keeps its name."""
    return (METRICS[name].title or name) if name in METRICS else name


def metric_written(name: str, number: float | None) -> str:
    """Its value with the unit.

    >>> metric_written("mse", 4e-6), metric_written("l1", 660.0), metric_written("l1", None)
    ('0.2 percentage points', '660 records', '–')
    """
    if number is None:
        return NOTHING
    shown = {"mse": points(number), "emd": quantity(100 * number)}.get(name, quantity(number))
    return (METRICS[name].unit if name in METRICS else "{}").format(shown)
