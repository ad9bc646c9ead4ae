"""A plan on the page: a light with its reason and next step, and a card for each secret.

Green never stands for something that is not known. The rule is that of `plan` and of the report: an attacker who
learned the distribution and exceeds every promise makes the light amber.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from polyseme.privacy.analysis import thresholds
from polyseme.results.plan import AttributePlan, Plan

__all__ = ["Light", "Step", "card", "light", "settings"]

LIMITS = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3)
"""What an informed attacker may be limited to, for the page's menu."""
_ATTACKERS = {
    "reference": "An attacker who knows only the method",
    "marginal": "An attacker who also knows how common each value is",
    "conditional": "An attacker who also knows the person's group",
    "combined": "An attacker who also reads the sets of other columns",
}


@dataclass(frozen=True)
class Step:
    """A next step that the page offers as a button.

    changes, remove  an edit of the policy
    job              a command to run first, with what it needs to know
    """

    label: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    remove: tuple[str, ...] = ()
    job: Mapping[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        return {"label": self.label, "changes": dict(self.changes), "remove": list(self.remove), "job": self.job}


@dataclass(frozen=True)
class Light:
    """Green, amber or red, why, and what helps.

    details  the library's own words
    """

    color: str
    title: str
    why: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()
    details: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return {
            "color": self.color,
            "title": self.title,
            "why": list(self.why),
            "steps": [step.to_dict() for step in self.steps],
            "details": list(self.details),
        }


def light(made: Plan, document: Mapping[str, Any]) -> Light:
    """The light of a plan.

    document  the policy as YAML gives it
    """
    red = [*_impossible(made)]
    if red:
        nearest = tuple(step for item in made.attributes for step in _nearest(item))
        details = (*(item.obstacle for item in made.attributes if item.obstacle), *made.refusals)
        return Light("red", "Not possible.", tuple(red), nearest, details)
    amber, steps = [], list[Step]()
    for item in made.attributes:
        for why, helps in _learned(item, document):
            amber.append(why)
            steps += helps
    amber += _unfinished(made, document)
    if amber:
        return Light("amber", "Possible, with a warning.", tuple(amber), tuple(steps), tuple(made.remarks))
    return Light("green", "Ready. No problems found.", details=tuple(made.remarks))


def _impossible(made: Plan) -> Iterator[str]:
    for item in made.attributes:
        if not item.feasible:
            yield f"{item.name}: no sets of candidates keep this setting."
    if made.grouping is not None and not made.grouping.feasible:
        yield "The columns that others may know cannot be made coarse enough for what is asked."
    yield from made.refusals


def _nearest(item: AttributePlan) -> Iterator[Step]:
    place = f"attributes.{item.name}.protect.semantic-diversity"
    for l, d in item.nearest[:4]:
        yield Step(f"{item.name}: {l} candidates, {d:g} apart", {f"{place}.l": l, f"{place}.d": _number(d)})


def _number(d: float) -> int | float:
    return int(d) if float(d).is_integer() else float(d)


def _learned(item: AttributePlan, document: Mapping[str, Any]) -> Iterator[tuple[str, list[Step]]]:
    """What an informed attacker reaches where no promise limits it."""
    guessers = item.learner
    if guessers is None:
        return
    if guessers.unknown is not None:
        yield (
            f"{item.name}: how often an informed attacker is right is not known; it may be {guessers.unknown:.0%}.",
            [],
        )
    elif guessers.above and guessers.learned is not None and guessers.learned.after is not None:
        after = guessers.learned.after
        text = f"{item.name}: an informed attacker would be right in {after:.1%} of cases."
        if guessers.learner is None:
            yield f"{text} You have not set a limit.", _limits(item, after, document)
        else:
            yield f"{text} Your limit is {guessers.learner:.0%}.", _within(item, after)


def _within(item: AttributePlan, after: float) -> list[Step]:
    """Steps where a limit is exceeded: more candidates, or a higher limit.

    It is exceeded where an attacker who knows groups learns more than the public statistics say.
    """
    place = f"attributes.{item.name}.protect"
    more = item.choice.l + 1
    steps = [Step(f"{item.name}: {more} candidates", {f"{place}.semantic-diversity.l": more})] if item.choice.d else []
    raised = next((limit for limit in reversed(LIMITS) if limit > after), None)
    if raised is not None:
        steps.append(Step(f"Raise the limit for {item.name} to {raised:.0%}", {f"{place}.learner.success": raised}))
    return steps


def _limits(item: AttributePlan, after: float, document: Mapping[str, Any]) -> list[Step]:
    """Steps to a limit, which needs public statistics first."""
    entry = document.get("attributes", {}).get(item.name, {})
    floor = _floor(item)
    if not (isinstance(entry, Mapping) and ("prior" in entry or "reference" in entry)):
        job = {"kind": "prior", "attribute": item.name}
        return [Step(f"Use statistics of this table for {item.name}, with differential privacy", job=job)]
    wanted = next((limit for limit in reversed(LIMITS) if limit >= floor + 0.02), None)
    limits = [limit for limit in LIMITS if limit < after and limit >= floor]
    chosen = limits[-1] if limits else wanted
    if chosen is None:
        return []
    place = f"attributes.{item.name}.protect.learner"
    return [Step(f"Set the limit for {item.name} to {chosen:.0%}", {place: {"success": chosen}})]


def _floor(item: AttributePlan) -> float:
    learned = None if item.learner is None else item.learner.learned
    return 0.0 if learned is None or learned.floor is None else learned.floor


def _unfinished(made: Plan, document: Mapping[str, Any]) -> Iterator[str]:
    attributes = document.get("attributes")
    roles = (
        [entry.get("role") for entry in attributes.values() if isinstance(entry, Mapping)]
        if isinstance(attributes, Mapping)
        else []
    )
    if not made.attributes and "sensitive" not in roles:
        yield "Nothing is protected yet: choose a column that is secret."
    for item in made.attributes:
        if item.feasible and not item.identifiable:
            yield f"{item.name}: some values cannot be distinguished afterwards, so their counts cannot be recovered."
    if made.grouping is None and "quasi-identifier" in roles:
        yield "The columns that others may know will be published unchanged."


def card(item: AttributePlan) -> dict[str, Any]:
    """A secret with its attackers and its error."""
    known = item.to_dict()
    attackers = []
    for name, title in _ATTACKERS.items():
        found = (known.get("learner") or {}).get(name)
        if found is None:
            continue
        kept = {key: found[key] for key in ("before", "after", "worst_group", "group", "floor", "low", "high")}
        attackers.append({"name": name, "title": title, **kept})
    error = known["expected_mse"]
    return {
        "name": item.name,
        "mechanism": known["mechanism"],
        "size": known["choice"]["size"],
        "l": known["l"],
        "d": known["d"],
        "p": known["p"],
        "feasible": known["feasible"],
        "identifiable": known["identifiable"],
        "obstacle": known["obstacle"],
        "error": None if error is None else math.sqrt(error),
        "attackers": attackers,
        "farthest": _farthest(item),
        "limit": None if item.learner is None else item.learner.learner,
        "floor": _floor(item),
    }


def _farthest(item: AttributePlan) -> float | None:
    """The largest distance between two values; None where values have no distance."""
    distance = None if item.drawing is None else item.attribute.distance
    return None if distance is None else float(max(thresholds(distance), default=0.0))


def settings(tried: Sequence[Any], grid: Sequence[Any], chosen: tuple[int, float]) -> list[dict[str, Any]]:
    """All pairs of candidates and distance, with an informed attacker's success and the error."""
    success = {(one.l, one.d): one for one in tried if one.alpha in (0.0, None) and one.p in (1.0, None)}
    found = []
    for one in grid:
        known = success.get((one.l, one.d))
        facts = one.facts
        error = None if facts is None or facts.mse_inverse is None else math.sqrt(facts.mse_inverse)
        found.append(
            {
                "l": one.l,
                "d": one.d,
                "possible": one.status == "feasible",
                "success": known.success if known is not None else None if facts is None else facts.worst_posterior,
                "error": error,
                "reason": one.reason,
                "chosen": (one.l, one.d) == chosen,
            }
        )
    return found
