"""The tables of verdicts, attacks and metrics as text, with a line on what numbers mean.

Notebooks and terminals draw them. Protocols say what a view needs to know of what it shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from polyseme.models.base import Verdict
from polyseme.results.views.formats import NOTHING, count, parameters, percent, quantity, yes_no
from polyseme.results.views.words import CHECKS, METRICS, SCORES, is_distance

__all__ = [
    "ESTIMATED",
    "FINDINGS",
    "FINDING_HEAD",
    "GUESSERS",
    "LEARNING_HEAD",
    "METRIC_HEAD",
    "PLAN",
    "RANGES",
    "SETTINGS",
    "TRIED",
    "VERDICTS",
    "VERDICT_HEAD",
    "Document",
    "Estimated",
    "Head",
    "KnownFacts",
    "Planned",
    "Reached",
    "Scored",
    "Setting",
    "Tried",
    "adversary_rows",
    "finding_notes",
    "finding_rows",
    "finding_title",
    "learning_rows",
    "metric_rows",
    "unbounded",
    "verdict_notes",
    "verdict_rows",
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

if TYPE_CHECKING:
    import polars as pl


class Planned(Protocol):
    """A plan; its tables show what `plan --json` says."""

    def to_dict(self) -> Mapping[str, Any]: ...


class Estimated(Protocol):
    """An estimated table, one row a cell."""

    @property
    def notes(self) -> Sequence[str]: ...
    @property
    def estimator(self) -> object: ...
    @property
    def weight(self) -> str | None: ...
    @property
    def target(self) -> str: ...
    @property
    def left_out(self) -> int: ...
    @property
    def level(self) -> float: ...
    def to_polars(self) -> pl.DataFrame: ...


class Scored(Protocol):
    """A score of two predictors and of the best constant."""

    @property
    def original(self) -> float: ...
    @property
    def estimate(self) -> float: ...
    @property
    def difference(self) -> float: ...
    @property
    def constant(self) -> float: ...


class KnownFacts(Protocol):
    """What is known about a mechanism before it is used; None where it is not."""

    @property
    def worst_posterior(self) -> float | None: ...
    @property
    def epsilon(self) -> float | None: ...
    @property
    def identifiable(self) -> bool | None: ...
    @property
    def expected_mse(self) -> float | None: ...


class Setting(Protocol):
    """One pair (l, d) of a grid, and its facts when feasible.

    It is "feasible", "unestimable" or "infeasible".
    """

    @property
    def l(self) -> int: ...  # noqa: E743 - the field's own letter
    @property
    def d(self) -> float: ...
    @property
    def status(self) -> str: ...
    @property
    def facts(self) -> KnownFacts | None: ...


class Tried(Protocol):
    """A setting with what a learner reaches and what it costs."""

    def to_dict(self) -> Mapping[str, Any]: ...


class Reached(Protocol):
    """What an attack reached."""

    @property
    def attack(self) -> str: ...
    @property
    def attribute(self) -> str | None: ...
    @property
    def success(self) -> float: ...
    @property
    def bound(self) -> float | None: ...
    @property
    def baseline(self) -> float: ...
    @property
    def exceeded(self) -> bool: ...
    @property
    def knows(self) -> str: ...
    @property
    def gains(self) -> str: ...
    @property
    def helps(self) -> str: ...


Head: TypeAlias = Sequence[tuple[str, bool]]
"""Titles of the columns, and whether they hold numbers."""

Document: TypeAlias = Mapping[str, Any]
"""What a result says, as JSON has it."""

VERDICT_HEAD: Head = (
    ("model", False),
    ("attribute", False),
    ("holds", False),
    ("found", True),
    ("allowed", True),
    ("broken", True),
)
_STATISTICS = (
    "deviance",
    "degrees_of_freedom",
    "singles_p_value",
    "pairs_p_value",
    "gaps_p_value",
    "blocks_p_value",
    "neighbors_p_value",
)
"""Statistics among the parameters of a test, which documents list and tables do not."""


def verdict_rows(verdicts: Iterable[Verdict]) -> list[tuple[str, ...]]:
    return [
        (
            _model_text(verdict),
            NOTHING if verdict.attribute is None else verdict.attribute,
            yes_no(verdict.holds),
            quantity(verdict.worst),
            _allowed(verdict),
            f"{count(verdict.violations)} of {count(verdict.checked)}" if verdict.checked else NOTHING,
        )
        for verdict in verdicts
    ]


def _model_text(verdict: Verdict) -> str:
    """The model with its parameters."""
    shown = {name: value for name, value in verdict.parameters.items() if name not in _STATISTICS}
    counted = " (people)" if verdict.counts == "people" and verdict.model != "people" else ""
    return f"{verdict.model} {parameters(shown)}".rstrip() + counted


def _allowed(verdict: Verdict) -> str:
    """The bound, and on which side of it the worst must be."""
    if verdict.bound is None:
        return NOTHING
    sides = "><" if verdict.strict else "≥≤"
    return f"{sides[not (verdict.model in CHECKS and CHECKS[verdict.model].at_least)]} {quantity(verdict.bound)}"


def verdict_notes(verdicts: Iterable[Verdict]) -> list[str]:
    """What the reader must know, each thing once, after the models it was said of."""
    models: dict[str, dict[str, None]] = {}
    for verdict in verdicts:
        if verdict.note:
            models.setdefault(verdict.note, {})[verdict.model] = None
    return [f"{', '.join(names)}: {note}" for note, names in models.items()]


FINDING_HEAD: Head = (
    ("attack", False),
    ("attribute", False),
    ("success", True),
    ("without", True),
    ("promised", True),
    ("kept", False),
)
_WHERE = "; shown for "
"""What an attack that looks at some records only adds to what the attacker knows."""


def finding_rows(findings: Iterable[Reached]) -> list[tuple[str, ...]]:
    return [
        (
            found.attack,
            NOTHING if found.attribute is None else found.attribute,
            *(_success(found, number) for number in (found.success, found.baseline, found.bound)),
            "no" if found.exceeded else NOTHING if found.bound is None else "yes",
        )
        for found in findings
    ]


def _success(found: Reached, number: float | None) -> str:
    return quantity(number) if is_distance(found.attack) else percent(number)


def finding_title(findings: Sequence[Reached]) -> str:
    """What the attacks come to."""
    broken = sum(found.exceeded for found in findings)
    if not findings:
        return "No attack applies"
    several = f"{len(findings)} attacks" if len(findings) > 1 else "1 attack"
    found = f"{several}: {broken or 'none'} {'exceed' if broken > 1 else 'exceeds'} the promise"
    open_ = unbounded(findings)
    return f"{found}; nothing was promised against {open_} of them" if open_ else found


def unbounded(findings: Iterable[Reached]) -> int:
    """How many attacks nothing was promised against, whatever they reach."""
    return sum(found.bound is None and not found.exceeded for found in findings)


def adversary_rows(findings: Iterable[Reached]) -> list[tuple[str, str, bool]]:
    """Each attacker: a name alone, or a word and its text; and whether a promise is broken."""
    attackers: dict[tuple[str, str, str, str], bool] = {}
    for found in findings:
        who = (found.attack, found.knows.partition(_WHERE)[0], found.gains, found.helps)
        attackers[who] = attackers.get(who, False) or found.exceeded
    return [
        line
        for (attack, *says), broken in attackers.items()
        for line in ((attack, "", broken), *zip(("  knows", "  gains", "  what helps"), says, [broken] * 3))
    ]


def finding_notes(findings: Iterable[Reached]) -> list[str]:
    """What would help against attacks that exceed the promise, where some were run."""
    findings = tuple(findings)
    helps = {found.attack: found.helps for found in findings if found.exceeded}
    notes = [f"{attack}: {text}" for attack, text in helps.items() if text]
    parts = dict.fromkeys(found.knows.partition(_WHERE)[2] for found in findings)
    notes += [f"attacks on sets are shown for {part}" for part in parts if part]
    apart = dict.fromkeys(found.attack for found in findings if is_distance(found.attack))
    return notes + ([f"{', '.join(apart)}: a distance between 0 and 1, not a probability"] if apart else [])


LEARNING_HEAD: Head = (
    ("score", False),
    ("original", True),
    ("estimate", True),
    ("difference", True),
    ("constant", True),
    ("what it means", False),
)


def learning_rows(scores: Mapping[str, Scored]) -> list[tuple[str, ...]]:
    return [
        (
            name,
            *(quantity(number, 4) for number in (found.original, found.estimate, found.difference, found.constant)),
            SCORES.get(name, ""),
        )
        for name, found in scores.items()
    ]


METRIC_HEAD: Head = (("metric", False), ("value", True), ("what it means", False))
_COVERAGE = ("cells", "covered", "level")
"""What the line about coverage says as well."""


def metric_rows(metrics: Mapping[str, float]) -> list[tuple[str, ...]]:
    """The metrics of one table, each with what it means."""
    return [
        (name, percent(value), _covered(metrics))
        if name == "coverage"
        else (name, quantity(value, 4), METRICS[name].meaning if name in METRICS else "")
        for name, value in metrics.items()
        if name not in _COVERAGE
    ]


def _covered(metrics: Mapping[str, float]) -> str:
    """How many true numbers lie in their intervals, and how many should."""
    return (
        f"{count(metrics['covered'])} of {count(metrics['cells'])} true numbers lie in their confidence intervals; "
        f"about {percent(metrics['level'])} should"
    )
