"""The judgment at the head of a page: three risks in a paragraph, a light and its reasons.

    red    do not publish: a promise is broken, an attack got further than promised, nothing was checked, or a seed
    amber  the data holder must decide: the promises hold, and a risk remains that they do not cover
    green  neither

A light fails closed: what is not known is never green.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from polyseme.reports.contents import FindingLine, Outcome, Page, Reidentification, ValueRisk, worst
from polyseme.results.views.formats import chance, counted
from polyseme.results.views.words import attack_words, check_words

__all__ = ["Light", "Signal", "risk_paragraph", "signal", "value_risks"]


class Light(Enum):
    """The colors, each with the words beside it."""

    GREEN = "Green: no problems found"
    AMBER = "Amber: decide about these risks before you publish"
    RED = "Red: do not publish the release as it is"

    @property
    def word(self) -> str:
        return self.name.lower()


@dataclass(frozen=True)
class Signal:
    """A light and why it is not green, in sentences."""

    light: Light
    reasons: tuple[str, ...] = ()


def signal(page: Page) -> Signal:
    """The light of a page. Reasons for red come first; those for amber follow them."""
    risks = value_risks(page)
    red = [*_seeded(page), *_unchecked(page), *_broken(page), *_exceeded(page, risks)]
    amber = [
        *_accepted(page),
        *_learned(risks),
        *_found_alone(page.reidentification),
        *_not_computed(risks),
        *_sets_not_read(page),
        *_made_elsewhere(page),
    ]
    light = Light.RED if red else Light.AMBER if amber else Light.GREEN
    return Signal(light, (*red, *amber))


def _seeded(page: Page) -> list[str]:
    warning = "The run used a fixed seed: an attacker who learns or guesses it can recompute every random choice."
    return [] if page.for_publication else [warning]


def _unchecked(page: Page) -> list[str]:
    return ["Nothing was checked."] if page.outcome is Outcome.UNCHECKED else []


def _broken(page: Page) -> list[str]:
    return [
        f"A promise does not hold{f' for {one.attribute}' if one.attribute is not None else ''}: "
        f"“{check_words(one.model)}” ({one.model})."
        for one in page.checks
        if not one.holds
    ]


def _exceeded(page: Page, risks: Sequence[ValueRisk]) -> list[str]:
    """What the method gives away by itself, and what attacks reached, beyond the promise."""
    leaks = [
        f"The method reveals more about {risk.attribute} than was promised: {chance(risk.method)} of guesses are "
        f"right instead of {chance(risk.promised)}."
        for risk in risks
        if risk.exceeded and risk.unit == "set"
    ]
    return leaks + [
        f"An attack{f' on {item.attribute}' if item.attribute is not None else ''} exceeds the promise: "
        f"“{attack_words(item.attack)}” ({item.attack})."
        for item in page.findings or ()
        if item.exceeded
    ]


def _accepted(page: Page) -> list[str]:
    if not page.accepted:
        return []
    named = ", ".join(page.accepted)
    return [f"It was published although {named} did not hold: the data holder accepted that risk (accepted_risk)."]


def _learned(risks: Sequence[ValueRisk]) -> list[str]:
    """Attributes with the same promise share a sentence."""
    above: dict[str, list[str]] = {}
    for risk in risks:
        if risk.surpassed:
            above.setdefault(chance(risk.learner), []).append(f"{risk.attribute} ({chance(risk.learned)} of cases)")
    return [
        f"An attacker who learns from the release exceeds the promised {promised}, for {_all(named)}."
        for promised, named in above.items()
    ]


def _found_alone(found: Reidentification) -> list[str]:
    if not found.measured:
        return [f"How many people can be found by {_listed(found.known)} was not counted."]
    if not found.unique:
        return []
    raw = f", and {_listed(found.raw)} {_are(found.raw)} published as in the table" if found.raw else ""
    called = f", and {_listed(found.others)} {_are(found.others)} published as insensitive" if found.others else ""
    return [f"{chance(found.unique)} of the records are unique by {_listed(found.known)}{raw}{called}."]


def _not_computed(risks: Sequence[ValueRisk]) -> list[str]:
    """Where the success of an attacker who knows the method, or who learns, is not known."""
    method = [risk.attribute for risk in risks if risk.method is None]
    sentences = (
        [f"How often an attacker who knows the method guesses {_all(method)} right is not known."] if method else []
    )
    learned: dict[str, list[str]] = {}
    for risk in risks:
        if not risk.learning_is_known:
            learned.setdefault(_at_most(risk), []).append(risk.attribute)
    return sentences + [
        f"What an attacker can learn about {_all(named)} from the release is {most}." for most, named in learned.items()
    ]


def _at_most(risk: ValueRisk) -> str:
    return "not known" if risk.unknown is None else f"not known; guesses may be right in up to {chance(risk.unknown)}"


def _sets_not_read(page: Page) -> list[str]:
    """Where it is not known what the sets of other attributes tell."""
    names = [
        name
        for name, attackers in page.learners.items()
        if attackers.combined is not None and attackers.combined.after is None
    ]
    sentence = f"How often an attacker who reads all sets of a record guesses {_all(names)} right is not known."
    return [sentence] if names else []


def _made_elsewhere(page: Page) -> list[str]:
    return [] if page.drawn_here else ["Another program made this table: how its decoys were drawn is not known."]


def value_risks(page: Page) -> tuple[ValueRisk, ...]:
    """The risks of every protected attribute, in the order of the columns."""
    return tuple(_value_risk(page, line.name) for line in page.attributes if line.protected)


def _value_risk(page: Page, name: str) -> ValueRisk:
    fact = next((fact for fact in page.facts if fact.attribute == name), None)
    if fact is None:
        return _in_classes(page, name)
    attackers = page.learners.get(name)
    learned = None if attackers is None else attackers.learned
    method = None if fact.worst_posterior is None or math.isnan(fact.worst_posterior) else fact.worst_posterior
    if attackers is None or learned is None:
        return ValueRisk(name, "set", fact.promised, method, unknown=None if attackers is None else attackers.unknown)
    promised = attackers.promised if attackers.learner is None else attackers.learner
    beyond = attackers.learner is not None and learned.surely is not None and learned.surely > attackers.learner + 1e-9
    return ValueRisk(
        name,
        "set",
        fact.promised,
        method,
        promised,
        learned.after,
        learned.low,
        learned.high,
        attackers.above or beyond,
        learned.before,
        attackers.unknown,
    )


def _in_classes(page: Page, name: str) -> ValueRisk:
    """Of a value that is published with its class or group: what the attacks found."""
    alone, learning = _finding(page, "homogeneity", name), _finding(page, "definetti", name)
    return ValueRisk(
        name,
        "class" if page.treatment is None else page.treatment.unit,
        None if alone is None else alone.bound,
        None if alone is None else alone.success,
        None if alone is None else alone.bound,
        None if learning is None else learning.success,
        surpassed=name in {found[0] for found in page.learned_in_groups},
        before=None if alone is None else alone.baseline,
    )


def _finding(page: Page, attack: str, attribute: str) -> FindingLine | None:
    return next((one for one in page.findings or () if (one.attack, one.attribute) == (attack, attribute)), None)


def risk_paragraph(page: Page) -> tuple[str, ...]:
    """The three risks that matter, a sentence or two each.

    The second and the third for the attribute worst off.
    """
    risks = value_risks(page)
    return (
        _reidentified(page.reidentification),
        *([_guessed(worst(risks, False), risks), _learning(worst(risks, True), risks)] if risks else []),
    )


def _reidentified(found: Reidentification) -> str:
    if not found.known:
        return "Re-identification: the release shows no quasi-identifier."
    if found.smallest is None or found.unique is None:
        return f"Re-identification by {_listed(found.known)}: how many records look alike was not counted."
    alone = f"; {chance(found.unique)} of the records are unique" if found.unique else ""
    promised = "nothing was promised about this" if found.promised is None else f"promised: at least {found.promised}"
    if found.promised is not None and found.others:
        promised += f" by {_listed(found.columns)}, without {_listed(found.others)}, published as insensitive"
    records = f"{counted(found.smallest, 'record')} that {'fits' if found.smallest == 1 else 'fit'}"
    if found.people:
        whose = counted(found.smallest, "person", "people")
        records = f"records of {whose} that fit, which the publisher claims and no row shows"
    return (
        f"Re-identification: an attacker who knows {_listed(found.known)} of a person in the table finds at least "
        f"{records}{alone} ({promised})."
    )


def _guessed(risk: ValueRisk | None, risks: Sequence[ValueRisk]) -> str:
    who = "Guessing a protected value: an attacker who knows the exact method, and nothing else about the"
    if risk is None:
        return f"{who} person: how often such a guess is right was not computed."
    alike = len(risks) > 1 and len({(chance(one.method), chance(one.promised)) for one in risks}) == 1
    what = "any of them" if alike else f"{risk.attribute}{_worst_off(risks)}"
    promised = (
        "nothing was promised about guesses" if risk.promised is None else f"promised: at most {chance(risk.promised)}"
    )
    return f"{who} person, guesses {what} right in at most {chance(risk.method)} of cases ({promised})."


def _worst_off(risks: Sequence[ValueRisk]) -> str:
    return ", the attribute at the highest risk," if len(risks) > 1 else ""


def _learning(risk: ValueRisk | None, risks: Sequence[ValueRisk]) -> str:
    who = "Learning from the release: an attacker who also estimates the distribution of the values from it"
    if risk is None:
        return f"{who}: how often such a guess is right is not known."
    if risk.unit == "class":
        return (
            f"{who} gains nothing, because the records of a class look alike. An attacker who knows a person more "
            "precisely than the release shows, and compares neighboring classes, may do better; how much better was "
            "not measured."
        )
    between = f" (between {chance(risk.low)} and {chance(risk.high)})" if risk.low is not None else ""
    before = f", and in {chance(risk.before)} without the release" if risk.before is not None else ""
    reached = f"right in {chance(risk.learned)}{between} of cases{before}"
    if risk.unknown is not None:
        reached = f"{_at_most(risk).partition(';')[0]}; may be as high as {chance(risk.unknown)}"
        return f"{who} guesses {risk.attribute}{_worst_off(risks)} right: {reached}."
    return f"{who} guesses {risk.attribute}{_worst_off(risks)} {reached} {_against(risk, risks)}"


def _against(risk: ValueRisk, risks: Sequence[ValueRisk]) -> str:
    """The promise against an attacker who learns, and for how many attributes it is exceeded."""
    if risk.learner is None:
        return "(nothing was promised about guesses)."
    above = [one for one in risks if one.surpassed]
    if not above:
        within = ", and the difference is within sampling error" if risk.verdict == "kept, within chance" else ""
        return f"(promised: at most {chance(risk.learner)}{within})."
    others = f"; the same holds for {len(above)} of {counted(len(risks), 'attribute')}" if len(risks) > 1 else ""
    return f"(more than the promised {chance(risk.learner)}{others})."


def _listed(names: Sequence[str], most: int = 4) -> str:
    """Names as they are enumerated in a sentence.

    >>> _listed(["age"]), _listed(["age", "sex", "zip"]), _listed(list("abcdef"))
    ('age', 'age, sex and zip', 'a, b, c and 3 more columns')
    """
    if len(names) > most:
        return f"{', '.join(names[: most - 1])} and {len(names) - most + 1} more columns"
    return _all(names)


def _all(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)


def _are(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"
