"""What the numbers of a table mean, in a line each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

__all__ = [
    "AT_LEAST",
    "ESTIMATED",
    "FINDINGS",
    "GUESSERS",
    "METRICS",
    "PLAN",
    "RANGES",
    "SCORES",
    "SETTINGS",
    "TRIED",
    "VERDICTS",
    "measures",
]

PLAN = (
    "l: candidates in a set; d: the smallest distance between two of them; "
    "p: how often a set is drawn around the true value",
    "possible: no, if no method keeps the promises; not estimable, if the true counts cannot be recovered",
    "worst posterior: the highest posterior for an attacker with the public prior",
    "epsilon: of local differential privacy; ∞ where a set always holds the true value",
    "expected error: typical error of an estimated share, in percentage points",
)
GUESSERS = (
    "before, after: how often the attacker's best guess is right, before and after the release",
    "worst group: the same after the release, in the group with the highest risk",
    "lower bound: for any method that always includes the true value",
)
RANGES = "range before, range after: the same for guessing a range of values that are closer to each other than d"
VERDICTS = (
    "found: the worst value among everything that was checked; allowed: the limit for it",
    "broken: how many of the checked classes, sets or records exceed the limit",
)
FINDINGS = (
    "success: how often the attacker is right, or how certain; without: the same without the release",
    "promised: the limit that the release promises; a dash where it promises nothing against this attacker",
    "kept: whether the promise is kept; where guesses were counted, within their sampling error",
)
ESTIMATED = "estimate: {what}; stderr: its standard error; low, high: the {level} confidence interval"
SETTINGS = (
    "l: candidates in a set; d: the smallest distance between two of them",
    "worst posterior: the highest posterior; expected error: of an estimated share, in percentage points",
)
TRIED = (
    "l: candidates in a set; d: the smallest distance between two of them",
    "alpha: how closely decoys follow the distribution; p: how often sets are drawn around the true value; "
    "own: each stratum has its own",
    "learner: how often an attacker who knows the distribution guesses right; worst stratum: in the worst one; "
    "lower bound: for sets that always hold the true value",
    "expected error: typical error of an estimated share, in percentage points",
)

_MEASURED = {
    "k-anonymity": "records in the smallest class",
    "k-map": "people of the population in the smallest class",
    "alpha-k-anonymity": "the largest share of one value in a class",
    "distinct-diversity": "different values in the poorest class",
    "frequency-diversity": "records of a class for each one of its most frequent value",
    "entropy-diversity": "effective number of values: e to the entropy",
    "recursive-diversity": "the most frequent value of a class against those from the l-th on; must stay below c",
    "diversity": "the smallest number of different candidates or values",
    "semantic-diversity": "the smallest distance between two candidates or values; their number, if too small",
    "le-diversity": "the smallest distance between two values of a class; their number, if too small",
    "closeness": "distance of a class, or of the belief after seeing a set, from the whole table, 0 to 1",
    "beta-likeness": "by which factor a value is more frequent in a class than in the table, less 1",
    "delta-disclosure": "logarithm of how much more, or less, frequent a value is in a class than in the table",
    "semantic-rules": "records that break the rule",
    "ldp": "epsilon of the mechanism",
    "learner": "how often an attacker who knows the distribution guesses right",
    "combined-learner": "how often an attacker who also reads the other sets of a record guesses right",
    "candidates": "candidates in the smallest set",
    "posterior": "the highest posterior of a candidate, for an attacker who sees the set",
    "mechanism": "p-value: how well the published sets fit the mechanism in the manifest; near 0: they do not",
    "believable": "records with a candidate that is impossible for them",
    "groups": "groups whose records do not show the same values",
    "record-count": "rows that are missing or too many",
    "people": "people in the smallest class",
    "minimum": "reports in the release",
    "columns": "columns that are missing or too many",
}

AT_LEAST = frozenset(
    (
        "k-anonymity",
        "k-map",
        "distinct-diversity",
        "frequency-diversity",
        "entropy-diversity",
        "diversity",
        "semantic-diversity",
        "le-diversity",
        "candidates",
        "mechanism",
        "minimum",
        "people",
    )
)
"""Models whose number must be large enough; that of the others must be small enough."""


def measures(models: Iterable[tuple[str, str]]) -> list[str]:
    """What is found, for each of the models, given with what was counted."""
    return [f"{name}: {_counted(name, counts)}" for name, counts in dict.fromkeys(models) if name in _MEASURED]


def _counted(model: str, counts: str) -> str:
    said = _MEASURED[model]
    return said.replace("records", "people") if counts == "people" else said


METRICS: Mapping[str, str] = {
    "cells": "cells of the table that were compared",
    "covered": "cells whose true number lies in its interval",
    "coverage": "their share of all cells with an interval",
    "level": "the share that the intervals promise",
    "mse": "mean over cells of (true share − estimated share)²",
    "l1": "sum of the absolute errors of all cells, in records or in weights",
    "l2": "root of the sum of the squared errors of all cells",
    "hellinger": "distance between the square roots of the counts: an error weighs more in small cells",
    "emd": "share of all to be moved to make the tables equal, 0 to 1",
    "kl": "information lost, in nats; 0 if equal, ∞ if a cell with records is estimated 0",
    "chi2": "Pearson: squared errors of the cells, divided by the true numbers",
    "query_error": "mean relative error of 1,000 random counting queries",
}

SCORES: Mapping[str, str] = {
    "accuracy": "share of right predictions; more is better",
    "log_loss": "mean negative log-probability of the true value; less is better",
    "r2": "share of the variation that is explained; more is better",
    "mae": "mean absolute error; less is better",
}
