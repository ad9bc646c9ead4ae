"""The tables of a plan and of the settings beside it, as text; notebooks and terminals draw them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from polyseme.errors import numbered
from polyseme.results.grouping import GroupingPlan
from polyseme.results.views.formats import percent, points, quantity, some, yes_no
from polyseme.results.views.protocols import Planned, Setting, Tried
from polyseme.results.views.tables import Document, Head

__all__ = [
    "PLAN_HEAD",
    "SETTING_HEAD",
    "STATUS",
    "TRIED_HEAD",
    "plan_notes",
    "plan_remarks",
    "plan_rows",
    "setting_notes",
    "setting_rows",
    "tried_rows",
]

_SHOWN = 12
"""Groups, and values of a group, that a remark names: more would fill the screen."""

PLAN_HEAD: Head = (
    ("attribute", False),
    ("mechanism", False),
    ("l", True),
    ("d", True),
    ("p", True),
    ("possible", False),
    ("worst posterior", True),
    ("epsilon", True),
    ("expected error, points", True),
)


def plan_rows(plan: Planned) -> list[tuple[str, ...]]:
    """One row an attribute; without a mechanism there are no facts."""
    return [_plan_row(name, entry) for name, entry in plan.to_dict()["attributes"].items()]


def _plan_row(name: str, entry: Mapping[str, Any]) -> tuple[str, ...]:
    # JSON has no infinity: it is null, and named beside it.
    endless = "epsilon" in entry.get("nonfinite", ())
    return (
        name,
        str(entry["mechanism"]),
        str(entry["l"]),
        quantity(entry["d"]),
        _truth(entry) if entry["feasible"] else quantity(None),
        "not estimable" if entry["feasible"] and not entry["identifiable"] else yes_no(entry["feasible"]),
        quantity(entry["worst_posterior"]),
        quantity(math.inf if endless else entry["epsilon"]),
        points(entry["expected_mse"]),
    )


def _truth(entry: Mapping[str, Any]) -> str:
    """The truth probability, from the lowest to the highest where strata differ."""
    shown = [quantity(p) for p in sorted({entry["p"], *(each["p"] for each in entry.get("strata", ()))})]
    return shown[0] if shown[0] == shown[-1] else f"{shown[0]} to {shown[-1]}"


def _groups(groups: Sequence[Sequence[object]], shown: int = _SHOWN) -> str:
    """The values that can be traded, group by group, as far as they are known."""
    if not groups:
        return ""
    named = [", ".join(map(str, group[:shown])) + (", ..." if len(group) > shown else "") for group in groups[:shown]]
    return ": " + "; ".join(named) + ("; ..." if len(groups) > shown else "")


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


def grouping_lines(plan: Planned) -> list[str]:
    """What becomes of the records as a whole."""
    document = plan.to_dict()
    return GroupingPlan.from_dict(document["method"]).lines() if "method" in document else []


def plan_remarks(plan: Planned) -> list[str]:
    """Obstacles, what would work instead, and warnings."""
    return [text for text, _ in plan_notes(plan)]


def plan_notes(plan: Planned) -> list[tuple[str, bool]]:
    """The same, each with whether it is why the policy fails."""
    document = plan.to_dict()
    failed = document.get("method", {}).get("feasible") is False
    notes = [(line, failed) for line in grouping_lines(plan)]
    refusals = document.get("refusals", ())
    notes += [(text, True) for text in refusals]
    notes += [(text, False) for text in document.get("remarks", ()) if text not in refusals]
    for name, entry in document["attributes"].items():
        notes += _obstacles(name, entry)
        notes += [(text, False) for text in _attribute_remarks(name, entry)]
    return notes


def _obstacles(name: str, entry: Document) -> list[tuple[str, bool]]:
    if not entry["feasible"]:
        return [(f"{name}: not possible. {entry.get('obstacle', '')}".rstrip(), True)]
    if entry["identifiable"]:
        return _broken(name, entry.get("learner") or {})
    text = (
        f"{name}: not estimable. The published sets would look the same if some values were exchanged "
        f"between records, so no method can count these separately{_groups(entry.get('confounded', ()))}."
    )
    return [(text, True)]


def _broken(name: str, told: Document) -> list[tuple[str, bool]]:
    """That an attacker who reads all sets of a record breaks what is promised about learners."""
    if not told.get("combined_above"):
        return []
    reached, promised = percent(told["combined"]["after"]), percent(told["promised_to_learners"])
    read = some(told["combined_reads"])
    return [(f"{name}: with the sets of {read}, guesses are right in {reached} instead of {promised}.", True)]


def _attribute_remarks(name: str, entry: Document) -> list[str]:
    remarks = [f"{name}: {_trade(entry['least_risk'])}"] if entry.get("least_risk") else []
    if entry.get("strata"):
        remarks.append(
            f"{name}: {numbered(len(entry['strata']), 'groups')} of records "
            f"{'has its own mechanism' if len(entry['strata']) == 1 else 'have mechanisms of their own'}, because "
            "priors or impossible values differ; the worst of all is shown"
        )
    if entry.get("nearest"):
        settings = ", ".join(f"(l = {item['l']}, d = {quantity(item['d'])})" for item in entry["nearest"])
        remarks.append(f"{name}: nearest settings that work: {settings}")
    told = (entry.get("learner") or {}).get("warnings", ())
    return remarks + [f"{name}: {warning}" for warning in entry.get("warnings", ()) if warning not in told]


SETTING_HEAD: Head = (
    ("l", True),
    ("d", True),
    ("", False),
    ("worst posterior", True),
    ("expected error, points", True),
)
STATUS = {"feasible": "possible", "unestimable": "not estimable", "infeasible": "impossible"}


def setting_rows(settings: Iterable[Setting]) -> list[tuple[str, ...]]:
    """The settings that can be had."""
    return [
        (
            str(item.l),
            quantity(item.d),
            STATUS.get(item.status, item.status),
            quantity(item.facts.worst_posterior if item.facts else None),
            points(item.facts.expected_mse if item.facts else None),
        )
        for item in settings
        if item.status != "infeasible"
    ]


def setting_notes(settings: Iterable[Setting]) -> list[str]:
    """Those that cannot."""
    impossible: dict[int, list[str]] = {}
    for item in settings:
        if item.status == "infeasible":
            impossible.setdefault(item.l, []).append(quantity(item.d))
    if not impossible:
        return []
    return ["impossible: " + "; ".join(f"l = {l} with d = {some(found)}" for l, found in impossible.items())]


TRIED_HEAD: Head = (
    ("l", True),
    ("d", True),
    ("alpha", True),
    ("p", True),
    ("learner", True),
    ("worst stratum", True),
    ("lower bound", True),
    ("expected error, points", True),
    ("", False),
)


def tried_rows(tried: Iterable[Tried]) -> list[tuple[str, ...]]:
    """The settings that no other one beats, and the one that the policy asks for, by falling risk."""
    entries = [one.to_dict() for one in tried]
    kept = [entry for entry in entries if entry["chosen"] or (not entry["dominated"] and entry["error"] is not None)]
    return [
        (
            str(entry["l"]),
            quantity(entry["d"]),
            *(_dial(entry, key) for key in ("alpha", "p")),
            *(percent(entry[key]) for key in ("success", "worst", "floor")),
            points(None if entry["error"] is None else entry["error"] ** 2),
            ("the policy's; dominated" if entry["dominated"] else "the policy's") if entry["chosen"] else "",
        )
        for entry in sorted(kept, key=lambda entry: (entry["d"], -entry["success"]))
    ]


def _dial(entry: Mapping[str, Any], key: str) -> str:
    """Of the policy's own setting each stratum may have its own."""
    return "own" if entry[key] is None else quantity(entry[key])
