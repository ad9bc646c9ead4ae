"""The contents of the tables of verdicts, attacks and metrics, as text; notebooks and terminals draw them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from polyseme.models.base import Verdict
from polyseme.results.views.formats import NOTHING, count, parameters, percent, quantity, yes_no
from polyseme.results.views.meanings import AT_LEAST, METRICS, SCORES
from polyseme.results.views.protocols import Reached, Scored

__all__ = [
    "FINDING_HEAD",
    "LEARNING_HEAD",
    "METRIC_HEAD",
    "VERDICT_HEAD",
    "Document",
    "Head",
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
            _asked(verdict),
            NOTHING if verdict.attribute is None else verdict.attribute,
            yes_no(verdict.holds),
            quantity(verdict.worst),
            _allowed(verdict),
            f"{count(verdict.violations)} of {count(verdict.checked)}" if verdict.checked else NOTHING,
        )
        for verdict in verdicts
    ]


def _asked(verdict: Verdict) -> str:
    """The model with its parameters."""
    asked = {name: value for name, value in verdict.parameters.items() if name not in _STATISTICS}
    counted = " (people)" if verdict.counts == "people" and verdict.model != "people" else ""
    return f"{verdict.model} {parameters(asked)}".rstrip() + counted


def _allowed(verdict: Verdict) -> str:
    """The bound, and on which side of it the worst must be."""
    if verdict.bound is None:
        return NOTHING
    sides = "><" if verdict.strict else "≥≤"
    return f"{sides[verdict.model not in AT_LEAST]} {quantity(verdict.bound)}"


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
_DISTANCES = ("skewness", "any-prior")
"""Attacks whose success is not a probability but the distance by which a belief moves."""
_WHERE = "; shown for "
"""What an attack that looks at some records only adds to what the adversary knows."""


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
    return quantity(number) if found.attack in _DISTANCES else percent(number)


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
    told: dict[tuple[str, str, str, str], bool] = {}
    for found in findings:
        who = (found.attack, found.knows.partition(_WHERE)[0], found.gains, found.helps)
        told[who] = told.get(who, False) or found.exceeded
    return [
        line
        for (attack, *says), broken in told.items()
        for line in ((attack, "", broken), *zip(("  knows", "  gains", "  what helps"), says, [broken] * 3))
    ]


def finding_notes(findings: Iterable[Reached]) -> list[str]:
    """What would help against the attacks that got further than was promised; where some were tried."""
    findings = tuple(findings)
    helps = {found.attack: found.helps for found in findings if found.exceeded}
    notes = [f"{attack}: {text}" for attack, text in helps.items() if text]
    parts = dict.fromkeys(found.knows.partition(_WHERE)[2] for found in findings)
    notes += [f"attacks on sets are shown for {part}" for part in parts if part]
    apart = [name for name in _DISTANCES if any(found.attack == name for found in findings)]
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
        else (name, quantity(value, 4), METRICS.get(name, ""))
        for name, value in metrics.items()
        if name not in _COVERAGE
    ]


def _covered(metrics: Mapping[str, float]) -> str:
    """How many true numbers lie in their intervals, and how many should."""
    return (
        f"{count(metrics['covered'])} of {count(metrics['cells'])} true numbers lie in their confidence intervals; "
        f"about {percent(metrics['level'])} should"
    )
