"""What stands in the tables of plans, verdicts, attacks and metrics, as text; notebooks and terminals draw them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from polyseme.metrics import Preserved
from polyseme.models.base import Verdict
from polyseme.reports.document import Reached, Setting
from polyseme.reports.formats import NOTHING, count, parameters, points, quantity, yes_no

__all__ = [
    "FINDING_HEAD",
    "LEARNING_HEAD",
    "PLAN_HEAD",
    "SETTING_HEAD",
    "STATUS",
    "VERDICT_HEAD",
    "Head",
    "Planned",
    "finding_rows",
    "learning_rows",
    "metric_head",
    "metric_rows",
    "plan_remarks",
    "plan_rows",
    "setting_rows",
    "verdict_notes",
    "verdict_rows",
]

Head: TypeAlias = Sequence[tuple[str, bool]]
"""Titles of the columns, and whether they hold numbers."""


class Planned(Protocol):
    """A plan; its tables show what `plan --json` says."""

    def to_dict(self) -> Mapping[str, Any]: ...


PLAN_HEAD: Head = (
    ("attribute", False),
    ("mechanism", False),
    ("l", True),
    ("d", True),
    ("p", True),
    ("possible", False),
    ("estimable", False),
    ("worst posterior", True),
    ("epsilon", True),
    ("expected error, points", True),
)


def plan_rows(plan: Planned) -> list[tuple[str, ...]]:
    """One row an attribute; without a mechanism there are no facts."""
    return [_plan_row(name, entry) for name, entry in plan.to_dict()["attributes"].items()]


def _plan_row(name: str, entry: Mapping[str, Any]) -> tuple[str, ...]:
    # JSON has no infinity: null is infinite where sets rule values out (p = 1), and not known elsewhere.
    endless = entry["feasible"] and entry["p"] == 1.0 and entry["epsilon"] is None
    return (
        name,
        str(entry["mechanism"]),
        str(entry["l"]),
        quantity(entry["d"]),
        quantity(entry["p"] if entry["feasible"] else None),
        yes_no(entry["feasible"]),
        yes_no(entry["identifiable"] if entry["feasible"] else None),
        quantity(entry["worst_posterior"]),
        quantity(math.inf if endless else entry["epsilon"]),
        points(entry["expected_mse"]),
    )


def _groups(groups: Sequence[Sequence[object]], shown: int = 12) -> str:
    """The values that can be traded, group by group, as far as they are known."""
    if not groups:
        return ""
    named = [", ".join(map(str, group[:shown])) + (", .." if len(group) > shown else "") for group in groups[:shown]]
    return ": " + "; ".join(named) + ("; .." if len(groups) > shown else "")


def _trade(entry: Mapping[str, Any]) -> str:
    """What stepping back from the least risk cost and bought."""

    def both(risk: str, error: str) -> str:
        known = entry[error] is not None
        return quantity(entry[risk]) + (f" with an expected error of {points(entry[error])} points" if known else "")

    text = (
        f"no balanced design exists here. The least worst posterior found is "
        f"{both('least_worst_posterior', 'least_expected_mse')}; the design steps back from it by "
        f"{quantity(entry['step'])} and has {both('worst_posterior', 'expected_mse')}"
    )
    floor = entry["floor"]
    return text if floor is None else f"{text}. At p = 1 no mechanism goes below {quantity(floor)}"


def plan_remarks(plan: Planned) -> list[str]:
    """What stands in the way, what would work instead, and warnings."""
    remarks = list(plan.to_dict().get("remarks", ()))
    for name, entry in plan.to_dict()["attributes"].items():
        if not entry["feasible"]:
            remarks.append(f"{name}: not possible. {entry.get('obstacle', '')}".rstrip())
        elif not entry["identifiable"]:
            remarks.append(
                f"{name}: not estimable. Records could trade some values without leaving a trace, so no method can "
                f"count these one by one{_groups(entry.get('confounded', ()))}."
            )
        if entry.get("least_risk"):
            remarks.append(f"{name}: {_trade(entry['least_risk'])}")
        if entry.get("strata"):
            remarks.append(
                f"{name}: some records cannot have every value and get mechanisms of their own "
                f"({len(entry['strata'])}); the worst of all is shown"
            )
        if entry.get("nearest"):
            settings = ", ".join(f"(l = {item['l']}, d = {quantity(item['d'])})" for item in entry["nearest"])
            remarks.append(f"{name}: nearest settings that work: {settings}")
        remarks += [f"{name}: {warning}" for warning in entry.get("warnings", ())]
    return remarks


VERDICT_HEAD: Head = (
    ("model", False),
    ("attribute", False),
    ("parameters", False),
    ("holds", False),
    ("worst", True),
    ("bound", True),
    ("checked", True),
    ("broken", True),
)


def verdict_rows(verdicts: Iterable[Verdict]) -> list[tuple[str, ...]]:
    return [
        (
            verdict.model,
            NOTHING if verdict.attribute is None else verdict.attribute,
            parameters(verdict.parameters),
            yes_no(verdict.holds),
            quantity(verdict.worst),
            quantity(verdict.bound),
            count(verdict.checked),
            count(verdict.violations),
        )
        for verdict in verdicts
    ]


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
    ("bound", True),
    ("kept", False),
)


def finding_rows(findings: Iterable[Reached]) -> list[tuple[str, ...]]:
    return [
        (
            found.attack,
            NOTHING if found.attribute is None else found.attribute,
            quantity(found.success),
            quantity(found.bound),
            "no" if found.exceeded else NOTHING if found.bound is None else "yes",
        )
        for found in findings
    ]


def _by_question(metrics: Mapping[str, Any]) -> Mapping[str, Mapping[str, float | None]]:
    nested = all(isinstance(values, Mapping) for values in metrics.values())
    return metrics if nested else {"value": metrics}


SETTING_HEAD: Head = (
    ("l", True),
    ("d", True),
    ("", False),
    ("worst posterior", True),
    ("expected error, points", True),
)
STATUS = {"feasible": "possible", "unestimable": "not estimable", "infeasible": "impossible"}


def setting_rows(settings: Iterable[Setting]) -> list[tuple[str, ...]]:
    return [
        (
            str(item.l),
            quantity(item.d),
            STATUS.get(item.status, item.status),
            quantity(item.facts.worst_posterior if item.facts else None),
            points(item.facts.expected_mse if item.facts else None),
        )
        for item in settings
    ]


LEARNING_HEAD: Head = (
    ("score", False),
    ("original", True),
    ("estimate", True),
    ("difference", True),
    ("constant", True),
)


def learning_rows(scores: Mapping[str, Preserved]) -> list[tuple[str, ...]]:
    return [
        (name, *(quantity(number, 4) for number in (found.original, found.estimate, found.difference, found.constant)))
        for name, found in scores.items()
    ]


def metric_head(metrics: Mapping[str, Any]) -> Head:
    """A column for each question; one metrics mapping counts as one question."""
    return (("metric", False), *((question, True) for question in _by_question(metrics)))


def metric_rows(metrics: Mapping[str, Any]) -> list[tuple[str, ...]]:
    questions = _by_question(metrics)
    names = dict.fromkeys(name for values in questions.values() for name in values)
    return [(name, *(quantity(values.get(name), 4) for values in questions.values())) for name in names]
