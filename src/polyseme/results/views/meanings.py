"""What the numbers of a table mean, in a line each, for those who see them for the first time."""

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
    "l: candidates in a set; d: how far apart they are at least; p: how often a set is drawn around the true value",
    "possible: no, if no method keeps the promises; not estimable, if true values could not be counted afterwards",
    "worst posterior: how sure of a value somebody can be at most who expects what the prior says",
    "epsilon: of local differential privacy; ∞ where a set always holds the true value",
    "expected error: typical error of an estimated share, in percentage points",
)
GUESSERS = (
    "before, after: how often the best guess is right, without the release and with it",
    "worst group: with it, among the people of whom most is known",
    "floor: what no method can undercut whose sets always hold the true value",
)
RANGES = "range before, range after: the same for a range, values nearer to each other than d"
VERDICTS = (
    "found: the worst of all that were checked, against what is allowed",
    "broken: how many of the classes, sets or records that were checked are beyond what is allowed",
)
FINDINGS = (
    "success: how often, or how surely, the adversary is right; without: the same without the release",
    "promised: what the release allows; a dash where it promises nothing against this adversary",
    "kept: whether the promise is kept, with room for chance where guesses were counted",
)
ESTIMATED = (
    "estimate: {what}; stderr: its standard error; low, high: between them is the true number, in {level} of releases"
)
SETTINGS = (
    "l: candidates in a set; d: how far apart they are at least",
    "worst posterior: how sure somebody can be at most; expected error of a share, in percentage points",
)
TRIED = (
    "l: candidates in a set; d: how far apart they are at least",
    "alpha: how strongly decoys follow the distribution; p: how often sets are drawn around the true value; "
    "own: each stratum has its own",
    "learner: how often somebody guesses right who knows the distribution; worst stratum: where most often; "
    "floor: what truthful sets cannot undercut",
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
    "diversity": "different candidates or values, the fewest",
    "semantic-diversity": "how far apart two candidates or values are at least; how many there are, where that fails",
    "le-diversity": "how far apart two values of a class are; how many there are, where that fails",
    "closeness": "how far a class, or a belief, is from the whole table, 0 to 1",
    "beta-likeness": "by which factor a value is more frequent in a class than in the table, less 1",
    "delta-disclosure": "logarithm of how much more, or less, frequent a value is in a class than in the table",
    "semantic-rules": "records that break the rule",
    "ldp": "epsilon of the mechanism",
    "learner": "how often somebody guesses right who knows the distribution",
    "combined-learner": "how often an attacker guesses right who also reads the other sets of a record",
    "candidates": "candidates in the smallest set",
    "posterior": "how sure of a value somebody can be who sees a set",
    "mechanism": "p-value: how well the published sets fit the mechanism in the manifest; too small, and they do not",
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
    "l1": "how far cells are off, summed up: in records, or in weights",
    "l2": "root of the sum of the squares of how far cells are off",
    "hellinger": "distance of the roots of counts: an error weighs more in small cells",
    "emd": "share of all to be moved to make the tables equal, 0 to 1",
    "kl": "information lost, in nats; 0 if equal, ∞ if a cell with records is estimated 0",
    "chi2": "Pearson: squares of how far cells are off, over the true numbers",
    "query_error": "mean relative error of 1,000 random counting queries",
}

SCORES: Mapping[str, str] = {
    "accuracy": "share of right predictions; more is better",
    "log_loss": "how surprised by the truth; less is better",
    "r2": "share of the variation that is explained; more is better",
    "mae": "mean absolute error; less is better",
}
