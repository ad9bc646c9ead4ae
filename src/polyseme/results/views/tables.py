"""The contents of the tables of plans, verdicts, attacks and metrics, as text; notebooks and terminals draw them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from polyseme.errors import numbered
from polyseme.models.base import Verdict
from polyseme.results.grouping import GroupingPlan
from polyseme.results.views.formats import NOTHING, count, parameters, percent, points, quantity, yes_no
from polyseme.results.views.meanings import AT_LEAST, METRICS, RANGES, SCORES
from polyseme.results.views.protocols import Planned, Reached, Scored, Setting, Tried

__all__ = [
    "FINDING_HEAD",
    "LEARNING_HEAD",
    "METRIC_HEAD",
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
    "adversary_rows",
    "covered_words",
    "finding_notes",
    "finding_rows",
    "finding_title",
    "guesser_head",
    "guesser_legend",
    "guesser_notes",
    "guesser_rows",
    "learning_rows",
    "metric_rows",
    "plan_notes",
    "plan_remarks",
    "plan_rows",
    "planned_learners",
    "setting_notes",
    "setting_rows",
    "tried_rows",
    "unbounded",
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
    return [text for text, _ in plan_notes(plan)]


def plan_notes(plan: Planned) -> list[tuple[str, bool]]:
    """The same, each with whether it is why the policy fails."""
    document = plan.to_dict()
    failed = document.get("method", {}).get("feasible") is False
    notes = [(line, failed) for line in grouping_lines(plan)] + [(text, False) for text in document.get("remarks", ())]
    for name, entry in document["attributes"].items():
        notes += _obstacles(name, entry)
        notes += [(text, False) for text in _attribute_remarks(name, entry)]
    return notes


def _obstacles(name: str, entry: Document) -> list[tuple[str, bool]]:
    if not entry["feasible"]:
        return [(f"{name}: not possible. {entry.get('obstacle', '')}".rstrip(), True)]
    if entry["identifiable"]:
        return []
    text = (
        f"{name}: not estimable. The published sets would look the same if some values were exchanged "
        f"between records, so no method can count these separately{_groups(entry.get('confounded', ()))}."
    )
    return [(text, True)]


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
_WITHOUT_RANGES = 6
_WHO = {
    "reference": "expects what the prior says",
    "marginal": "knows the distribution",
    "conditional": "knows it by group",
}


def planned_learners(plan: Planned) -> dict[str, Document]:
    """Those of the attributes of a plan for which they were computed."""
    entries = plan.to_dict()["attributes"].items()
    return {name: entry["learner"] for name, entry in entries if entry.get("learner")}


def guesser_head(learners: Mapping[str, Document]) -> Head:
    """The titles; ranges only where values have a distance."""
    return WHO_HEAD if _with_ranges(learners) else WHO_HEAD[:_WITHOUT_RANGES]


def guesser_legend(learners: Mapping[str, Document]) -> tuple[str, ...]:
    return (RANGES,) if _with_ranges(learners) else ()


def _with_ranges(learners: Mapping[str, Document]) -> bool:
    return any(told[who] is not None and told[who]["range"] for told in learners.values() for who in _WHO)


def guesser_rows(learners: Mapping[str, Document]) -> list[tuple[str, ...]]:
    """Three people an attribute, as far as a distribution is known."""
    columns = len(guesser_head(learners))
    return [
        _guesser_row(name if who == "reference" else "", called, told[who])[:columns]
        for name, told in learners.items()
        for who, called in _WHO.items()
        if told[who] is not None
    ]


def _guesser_row(name: str, who: str, one: Document) -> tuple[str, ...]:
    ranges = one["range"] or {}
    others = (one["worst_group"], one["floor"], ranges.get("before"), ranges.get("after"))
    return (name, who, percent(one["before"]), _estimated(one, "\n"), *map(percent, others))


def _estimated(one: Document, gap: str = " ") -> str:
    """A success with its interval, where it is estimated."""
    low, high = one.get("low"), one.get("high")
    return percent(one["after"]) if low is None else f"{percent(one['after'])}{gap}({percent(low)} to {percent(high)})"


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
    ("holds", False),
    ("found", True),
    ("allowed", True),
    ("broken", True),
)
_STATISTICS = ("deviance", "degrees_of_freedom", "singles_p_value", "pairs_p_value")
"""What stands among the parameters of a test and was not asked for: documents have it, tables do not."""


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
    return f"{verdict.model} {parameters(asked)}".rstrip()


def _allowed(verdict: Verdict) -> str:
    """The bound, and on which side of it the worst must be."""
    if verdict.bound is None:
        return NOTHING
    return f"{'≥' if verdict.model in AT_LEAST else '≤'} {quantity(verdict.bound)}"


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
"""Attacks whose success is no probability but how far a belief is moved."""
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
    found = f"{several}: {broken or 'none'} {'get' if broken > 1 else 'gets'} further than was promised"
    open_ = unbounded(findings)
    return f"{found}; against {open_} of them nothing was promised" if open_ else found


def unbounded(findings: Iterable[Reached]) -> int:
    """How many attacks nothing was promised against, whatever they reach."""
    return sum(found.bound is None and not found.exceeded for found in findings)


def adversary_rows(findings: Iterable[Reached]) -> list[tuple[str, str, bool]]:
    """Who each adversary is: a name with nothing, or a word and what it says; and whether a promise is broken."""
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
    return notes + ([f"{', '.join(apart)}: how far a belief is moved, 0 to 1, and no probability"] if apart else [])


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
    return ["impossible: " + "; ".join(f"l = {l} with d = {_some(found)}" for l, found in impossible.items())]


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
        (name, percent(value), covered_words(metrics))
        if name == "coverage"
        else (name, quantity(value, 4), METRICS.get(name, ""))
        for name, value in metrics.items()
        if name not in _COVERAGE
    ]


def covered_words(metrics: Mapping[str, float]) -> str:
    """How many true numbers lie in their intervals, and how many should."""
    return (
        f"{count(metrics['covered'])} of {count(metrics['cells'])} true numbers lie in their intervals; "
        f"about {percent(metrics['level'])} should"
    )
