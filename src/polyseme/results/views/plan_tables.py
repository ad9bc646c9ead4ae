"""The tables of a plan, its neighboring settings and its attackers, as text.

Notebooks and terminals draw them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from polyseme.kernel.errors import numbered
from polyseme.results.method import GroupingPlan
from polyseme.results.views.formats import percent, points, quantity, some, yes_no
from polyseme.results.views.tables import RANGES, Document, Head, Planned, Setting, Tried

__all__ = [
    "NO_LEARNERS",
    "PLAN_HEAD",
    "SETTING_HEAD",
    "STATUS",
    "TRIED_HEAD",
    "above_sentence",
    "guesser_head",
    "guesser_legend",
    "guesser_notes",
    "guesser_rows",
    "plan_notes",
    "plan_remarks",
    "plan_rows",
    "planned_learners",
    "setting_notes",
    "setting_rows",
    "tried_rows",
]

NO_LEARNERS: Mapping[str, Document] = {}
"""No attacker: where guesses were not computed."""

_HEAD: Head = (
    ("attribute", False),
    ("attacker", False),
    ("before", True),
    ("after", True),
    ("worst group", True),
    ("lower bound", True),
    ("range before", True),
    ("range after", True),
)
_WITHOUT_RANGES = 6
_WHO = {
    "reference": "has the public prior",
    "marginal": "knows the distribution",
    "conditional": "knows it by group",
    "combined": "reads all sets of a record",
}


def planned_learners(plan: Planned) -> dict[str, Document]:
    """Those of the attributes of a plan for which they were computed."""
    entries = plan.to_dict()["attributes"].items()
    return {name: entry["learner"] for name, entry in entries if entry.get("learner")}


def guesser_head(learners: Mapping[str, Document]) -> Head:
    """The titles; ranges only where values have a distance."""
    return _HEAD if _with_ranges(learners) else _HEAD[:_WITHOUT_RANGES]


def guesser_legend(learners: Mapping[str, Document]) -> tuple[str, ...]:
    return (RANGES,) if _with_ranges(learners) else ()


def _with_ranges(learners: Mapping[str, Document]) -> bool:
    return any(attackers[who]["range"] for attackers in learners.values() for who in _attackers(attackers))


def guesser_rows(learners: Mapping[str, Document]) -> list[tuple[str, ...]]:
    """Three attackers for each attribute, as far as a distribution is known."""
    columns = len(guesser_head(learners))
    return [
        _guesser_row(name if who == "reference" else "", called, attackers[who])[:columns]
        for name, attackers in learners.items()
        for who, called in _WHO.items()
        if who in _attackers(attackers)
    ]


def _attackers(attackers: Document) -> list[str]:
    """The attackers that a document has; documents of earlier versions lack some of them."""
    return [who for who in _WHO if attackers.get(who) is not None]


def _guesser_row(name: str, who: str, one: Document) -> tuple[str, ...]:
    ranges = one["range"] or {}
    others = (one["worst_group"], one["floor"], ranges.get("before"), ranges.get("after"))
    return (name, who, percent(one["before"]), _estimated(one, "\n"), *map(percent, others))


def _estimated(one: Document, gap: str = " ") -> str:
    """A success with its interval, where it is estimated, or with the most that it can be."""
    low, high = one.get("low"), one.get("high")
    if one["after"] is None and high is not None:
        return f"not known{gap}(to {percent(high)})"
    if high is None or percent(high) == percent(one["after"]):
        return percent(one["after"])
    return f"{percent(one['after'])}{gap}({f'{percent(low)} ' if low is not None else ''}to {percent(high)})"


def above_sentence(learners: Mapping[str, Document]) -> str:
    """Where an attacker is right more often than promised: both numbers, worst attribute."""
    above = {name: attackers for name, attackers in learners.items() if attackers["above"]}
    if not above:
        return ""
    name = max(above, key=lambda name: _learned(above[name])["after"])
    attackers, learned = above[name], _estimated(_learned(above[name]))
    others = f", and likewise {some([other for other in above if other != name])}"
    read = attackers.get("combined_reads")
    who = f"also reads the sets of {some(read)}" if read else "has learned the distribution"
    return (
        f"However, the promised {percent(attackers['promised'])} for {name} is for an attacker with the public prior; "
        f"an attacker who {who} is right in about {learned} of all cases"
        f"{others if len(above) > 1 else ''}."
    )


def _learned(attackers: Document) -> Document:
    """The attacker who knows most, of those whose success is known."""
    who = ("combined", "conditional", "marginal") if attackers.get("combined_reads") else ("conditional", "marginal")
    known = [attackers[one] for one in who if attackers[one] is not None]
    return dict(next((one for one in known if one["after"] is not None), known[-1] if known else {}))


def guesser_notes(learners: Mapping[str, Document]) -> list[str]:
    """What was promised and what can be learned, in one sentence; why it is not less; warnings."""
    names: dict[str, list[str]] = {}
    for name, attackers in learners.items():
        why = (attackers["conditional"] or attackers["marginal"] or {}).get("crowd")
        floor = (
            [f"with sets that always hold the true value it cannot be less than the lower bound: {why}"] if why else []
        )
        for text in (attackers["sentence"], *floor, *attackers["warnings"]):
            names.setdefault(text, []).append(name)
    return [f"{some(whose)}: {text}" for text, whose in names.items()]


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


def _broken(name: str, attackers: Document) -> list[tuple[str, bool]]:
    """That an attacker who reads all sets of a record breaks what is promised about learners."""
    if not attackers.get("combined_above"):
        return []
    reached, promised = percent(attackers["combined"]["after"]), percent(attackers["promised_to_learners"])
    read = some(attackers["combined_reads"])
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
    warnings = (entry.get("learner") or {}).get("warnings", ())
    return remarks + [f"{name}: {warning}" for warning in entry.get("warnings", ()) if warning not in warnings]


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
    """The settings that no other beats, and that of the policy, by falling risk."""
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
