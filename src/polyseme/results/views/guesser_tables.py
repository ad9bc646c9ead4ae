"""How often each attacker guesses right before and after a release, as text for notebooks and terminals."""

from __future__ import annotations

from collections.abc import Mapping

from polyseme.results.views.formats import percent, some
from polyseme.results.views.meanings import RANGES
from polyseme.results.views.protocols import Planned
from polyseme.results.views.tables import Document, Head

__all__ = [
    "NO_LEARNERS",
    "above_sentence",
    "guesser_head",
    "guesser_legend",
    "guesser_notes",
    "guesser_rows",
    "planned_learners",
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
    return any(told[who]["range"] for told in learners.values() for who in _told(told))


def guesser_rows(learners: Mapping[str, Document]) -> list[tuple[str, ...]]:
    """Three attackers for each attribute, as far as a distribution is known."""
    columns = len(guesser_head(learners))
    return [
        _guesser_row(name if who == "reference" else "", called, told[who])[:columns]
        for name, told in learners.items()
        for who, called in _WHO.items()
        if who in _told(told)
    ]


def _told(told: Document) -> list[str]:
    """The attackers that a document has; documents of earlier versions lack some of them."""
    return [who for who in _WHO if told.get(who) is not None]


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
    """Where an attacker is right more often than was promised: both numbers, for the worst attribute."""
    above = {name: told for name, told in learners.items() if told["above"]}
    if not above:
        return ""
    name = max(above, key=lambda name: _learnt(above[name])["after"])
    told, learnt = above[name], _estimated(_learnt(above[name]))
    others = f", and likewise {some([other for other in above if other != name])}"
    read = told.get("combined_reads")
    who = f"also reads the sets of {some(read)}" if read else "has learned the distribution"
    return (
        f"However, the promised {percent(told['promised'])} for {name} is for an attacker with the public prior; "
        f"an attacker who {who} is right in about {learnt} of all cases"
        f"{others if len(above) > 1 else ''}."
    )


def _learnt(told: Document) -> Document:
    """The attacker who knows most, of those whose success is known."""
    who = ("combined", "conditional", "marginal") if told.get("combined_reads") else ("conditional", "marginal")
    known = [told[one] for one in who if told[one] is not None]
    return dict(next((one for one in known if one["after"] is not None), known[-1] if known else {}))


def guesser_notes(learners: Mapping[str, Document]) -> list[str]:
    """What was promised and what can be learned, in one sentence; why it is not less; warnings."""
    names: dict[str, list[str]] = {}
    for name, told in learners.items():
        why = (told["conditional"] or told["marginal"] or {}).get("crowd")
        floor = (
            [f"with sets that always hold the true value it cannot be less than the lower bound: {why}"] if why else []
        )
        for text in (told["sentence"], *floor, *told["warnings"]):
            names.setdefault(text, []).append(name)
    return [f"{some(whose)}: {text}" for text, whose in names.items()]
