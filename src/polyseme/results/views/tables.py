"""The contents of the tables of plans, verdicts, attacks and metrics, as text; notebooks and terminals draw them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from polyseme.models.base import Verdict
from polyseme.results.grouping import GroupingPlan
from polyseme.results.views.formats import NOTHING, count, parameters, percent, points, quantity, yes_no
from polyseme.results.views.protocols import Planned, Reached, Scored, Setting, Tried

__all__ = [
    "FINDING_HEAD",
    "LEARNING_HEAD",
    "NOBODY",
    "PLAN_HEAD",
    "SETTING_HEAD",
    "STATUS",
    "TRIED_HEAD",
    "VERDICT_HEAD",
    "WHO_HEAD",
    "Document",
    "Head",
    "above_sentence",
    "finding_notes",
    "finding_rows",
    "guesser_notes",
    "guesser_rows",
    "learning_rows",
    "metric_head",
    "metric_rows",
    "plan_remarks",
    "plan_rows",
    "planned_learners",
    "setting_rows",
    "tried_rows",
    "verdict_notes",
    "verdict_rows",
]

_SHOWN = 12
"""Groups, and values of a group, that a remark names: more would fill the screen."""

Head: TypeAlias = Sequence[tuple[str, bool]]
"""Titles of the columns, and whether they hold numbers."""


Document: TypeAlias = Mapping[str, Any]
"""What a result says, as JSON has it."""

NOBODY: Mapping[str, Document] = {}
"""Where nobody was asked what he can guess."""

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
    # JSON has no infinity: it is null, and named beside it.
    endless = "epsilon" in entry.get("nonfinite", ())
    return (
        name,
        str(entry["mechanism"]),
        str(entry["l"]),
        quantity(entry["d"]),
        _truth(entry) if entry["feasible"] else quantity(None),
        yes_no(entry["feasible"]),
        yes_no(entry["identifiable"] if entry["feasible"] else None),
        quantity(entry["worst_posterior"]),
        quantity(math.inf if endless else entry["epsilon"]),
        points(entry["expected_mse"]),
    )


def _truth(entry: Mapping[str, Any]) -> str:
    """The truth probability, from the lowest to the highest where strata differ."""
    shown = [quantity(p) for p in sorted({entry["p"], *(each["p"] for each in entry.get("strata", ()))})]
    return shown[0] if shown[0] == shown[-1] else f"{shown[0]}..{shown[-1]}"


def _groups(groups: Sequence[Sequence[object]], shown: int = _SHOWN) -> str:
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


def grouping_lines(plan: Planned) -> list[str]:
    """What becomes of the records as a whole."""
    document = plan.to_dict()
    return GroupingPlan.from_dict(document["method"]).lines() if "method" in document else []


def plan_remarks(plan: Planned) -> list[str]:
    """Obstacles, what would work instead, and warnings."""
    remarks = [*grouping_lines(plan), *plan.to_dict().get("remarks", ())]
    for name, entry in plan.to_dict()["attributes"].items():
        if not entry["feasible"]:
            remarks.append(f"{name}: not possible. {entry.get('obstacle', '')}".rstrip())
        elif not entry["identifiable"]:
            remarks.append(
                f"{name}: not estimable. The published sets would look the same if some values were exchanged "
                f"between records, so no method can count these separately{_groups(entry.get('confounded', ()))}."
            )
        if entry.get("least_risk"):
            remarks.append(f"{name}: {_trade(entry['least_risk'])}")
        if entry.get("strata"):
            remarks.append(
                f"{name}: {len(entry['strata'])} groups of records have their own mechanisms, because their priors or "
                "impossible values differ; the worst of all is shown"
            )
        if entry.get("nearest"):
            settings = ", ".join(f"(l = {item['l']}, d = {quantity(item['d'])})" for item in entry["nearest"])
            remarks.append(f"{name}: nearest settings that work: {settings}")
        told = (entry.get("learner") or {}).get("warnings", ())
        remarks += [f"{name}: {warning}" for warning in entry.get("warnings", ()) if warning not in told]
    return remarks


WHO_HEAD: Head = (
    ("attribute", False),
    ("who guesses", False),
    ("before", True),
    ("after", True),
    ("worst group", True),
    ("floor", True),
    ("range before", True),
    ("range after", True),
)
_WHO = {
    "reference": "expects what the prior says",
    "marginal": "knows the distribution",
    "conditional": "knows it by group",
}


def planned_learners(plan: Planned) -> dict[str, Document]:
    """Those of the attributes of a plan for which they were computed."""
    entries = plan.to_dict()["attributes"].items()
    return {name: entry["learner"] for name, entry in entries if entry.get("learner")}


def guesser_rows(learners: Mapping[str, Document]) -> list[tuple[str, ...]]:
    """Three people an attribute, as far as a distribution is known."""
    return [
        _guesser_row(name if who == "reference" else "", called, told[who])
        for name, told in learners.items()
        for who, called in _WHO.items()
        if told[who] is not None
    ]


def _guesser_row(name: str, who: str, one: Document) -> tuple[str, ...]:
    ranges = one["range"] or {}
    others = (one["worst_group"], one["floor"], ranges.get("before"), ranges.get("after"))
    return (name, who, percent(one["before"]), _estimated(one), *map(percent, others))


def _estimated(one: Document) -> str:
    """A success with its interval, where it is estimated."""
    low, high = one.get("low"), one.get("high")
    return percent(one["after"]) if low is None else f"{percent(one['after'])} ({percent(low)} to {percent(high)})"


def above_sentence(learners: Mapping[str, Document]) -> str:
    """Where somebody who reads the release is right more often than the promise says: both numbers, for the worst."""
    above = {name: told for name, told in learners.items() if told["above"]}
    if not above:
        return ""
    name = max(above, key=lambda name: _learnt(above[name])["after"])
    told, learnt = above[name], _estimated(_learnt(above[name]))
    others = f", and likewise {_some([other for other in above if other != name])}"
    return (
        f"However, the promised {percent(told['promised'])} for {name} is for somebody who expects what "
        f"the prior says; somebody who has learnt the distribution is right in about {learnt} of all cases"
        f"{others if len(above) > 1 else ''}."
    )


def _learnt(told: Document) -> Document:
    """Whoever knows most."""
    return dict(told["conditional"] or told["marginal"] or {})


def guesser_notes(learners: Mapping[str, Document]) -> list[str]:
    """What was promised and what can be learnt, both in one sentence; why it is not less; what to mind."""
    names: dict[str, list[str]] = {}
    for name, told in learners.items():
        why = _learnt(told).get("crowd")
        floor = [f"with sets that hold the true value it cannot be less than the floor: {why}"] if why else []
        for text in (told["sentence"], *floor, *told["warnings"]):
            names.setdefault(text, []).append(name)
    return [f"{_some(whose)}: {text}" for text, whose in names.items()]


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else "")


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


def finding_notes(findings: Iterable[Reached]) -> list[str]:
    """What would help against the attacks that got further than was promised."""
    helps = {found.attack: getattr(found, "helps", "") for found in findings if found.exceeded}
    return [f"{attack}: {text}" for attack, text in helps.items() if text]


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


TRIED_HEAD: Head = (
    ("l", True),
    ("d", True),
    ("alpha", True),
    ("p", True),
    ("learner", True),
    ("worst stratum", True),
    ("floor", True),
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


LEARNING_HEAD: Head = (
    ("score", False),
    ("original", True),
    ("estimate", True),
    ("difference", True),
    ("constant", True),
)


def learning_rows(scores: Mapping[str, Scored]) -> list[tuple[str, ...]]:
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
