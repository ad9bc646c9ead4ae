"""The light at the head of a page, by a table of cases: it is never green where something is unknown."""

from __future__ import annotations

import math
from typing import Any

import pytest
from parsed_page import cells, parsed
from report_samples import fact, page, verdict

from polyseme.reports.contents import AttributeLine, FindingLine, Reidentification, Treatment
from polyseme.reports.judgment import Light, risk_paragraph, signal, value_risks
from polyseme.reports.page import render_page
from polyseme.results.attackers import Guesser, Guessers

THIRD = 1 / 3


def guessers(after: float | None = 0.33, low: float | None = None, **changes: Any) -> Guessers:
    """An attacker who learns from the release is right with `after`, surely with `low`."""
    high = None if low is None or after is None else 2 * after - low
    learned = Guesser(0.2, after, after, 0.3, low=low, high=high)
    parts: dict[str, Any] = {"reference": Guesser(0.1, THIRD, THIRD, 0.3), "marginal": learned, "promised": THIRD}
    return Guessers(**(parts | changes))


def found(**changes: Any) -> Reidentification:
    return Reidentification(**({"columns": ("age", "sex"), "smallest": 7, "unique": 0.0, "promised": 5} | changes))


def whole(**changes: Any) -> Any:
    """A page with nothing wrong in it."""
    parts = {"learners": {"income": guessers()}, "reidentification": found(), "metrics": None, "distributions": ()}
    return page(**(parts | changes))


CASES: dict[str, tuple[dict[str, Any], Light, tuple[str, ...]]] = {
    "nothing wrong": ({}, Light.GREEN, ()),
    "nothing promised about finding a person": ({"reidentification": found(promised=None)}, Light.GREEN, ()),
    "no quasi-identifiers": ({"reidentification": Reidentification()}, Light.GREEN, ()),
    "raw, but none unique": ({"reidentification": found(raw=("age",), smallest=2)}, Light.GREEN, ()),
    "learning above, within chance": ({"learners": {"income": guessers(0.36, 0.32)}}, Light.GREEN, ()),
    "learning below its own promise": ({"learners": {"income": guessers(0.44, 0.42, learner=0.45)}}, Light.GREEN, ()),
    "learning above": (
        {"learners": {"income": guessers(0.6, 0.5)}},
        Light.AMBER,
        ("exceeds the promised 33.3%, for income (60.0% of cases)",),
    ),
    "learning above a lower promise of its own": (
        {"learners": {"income": guessers(0.3, 0.29, learner=0.25)}},
        Light.AMBER,
        ("exceeds the promised 25.0%",),
    ),
    "learning not computed": ({"learners": {"income": guessers(None)}}, Light.AMBER, ("learn about income",)),
    "no distribution": ({"learners": {"income": guessers(marginal=None)}}, Light.AMBER, ("learn about income",)),
    "learning not looked at": ({"learners": {}}, Light.AMBER, ("learn about income from the release is not known",)),
    "raw and alone": (
        {"reidentification": found(raw=("age",), smallest=1, unique=0.125)},
        Light.AMBER,
        ("12.5% of the records are unique by age and sex, and age is published as in the table",),
    ),
    "one in a million alone": (
        {"reidentification": found(raw=("age", "sex"), smallest=1, unique=1e-6)},
        Light.AMBER,
        ("0.0001% of the records are unique",),
    ),
    "generalized and alone": (
        {"reidentification": found(smallest=1, unique=0.5)},
        Light.AMBER,
        ("50.0% of the records are unique by age and sex.",),
    ),
    "not counted": ({"reidentification": found(smallest=None, unique=None)}, Light.AMBER, ("was not counted",)),
    "accepted": ({"accepted": ("k-anonymity",)}, Light.AMBER, ("although k-anonymity did not hold",)),
    "made elsewhere": ({"drawn_here": False}, Light.AMBER, ("Another program made this table",)),
    "method not computed": (
        {"facts": (fact(worst_posterior=math.nan),)},
        Light.AMBER,
        ("an attacker who knows the method guesses income right is not known",),
    ),
    "broken": ({"checks": (verdict(), verdict(False))}, Light.RED, ("does not hold for income",)),
    "broken and accepted": (
        {"checks": (verdict(False, model="k-anonymity", attribute=None),), "accepted": ("k-anonymity",)},
        Light.RED,
        ("A promise does not hold: “Enough records look alike” (k-anonymity).", "the data holder accepted that risk"),
    ),
    "not checked": ({"checks": ()}, Light.RED, ("Nothing was checked.",)),
    "seeded": ({"for_publication": False}, Light.RED, ("fixed seed",)),
    "method gives away more": (
        {"facts": (fact(worst_posterior=0.5),)},
        Light.RED,
        ("reveals more about income than was promised: 50.0% of guesses are right instead of 33.3%",),
    ),
    "attack above its bound": (
        {"findings": (FindingLine("bayes", "income", 0.5, THIRD, True),)},
        Light.RED,
        ("An attack on income exceeds the promise: “Bayes attacker",),
    ),
    "red and amber": (
        {"checks": (verdict(False),), "learners": {"income": guessers(0.6, 0.5)}},
        Light.RED,
        ("does not hold", "exceeds the promised"),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_light_by_cases(name: str) -> None:
    changes, light, reasons = CASES[name]
    judged = signal(whole(**changes))
    assert judged.light is light
    assert len(judged.reasons) == len(reasons)
    for said, expected in zip(judged.reasons, reasons, strict=True):
        assert expected in said


@pytest.mark.parametrize("name", ["nothing wrong", "learning above", "broken"])
def test_the_light_is_on_the_page_in_words_and_not_in_color_alone(name: str) -> None:
    changes, light, reasons = CASES[name]
    tree = parsed(render_page(whole(**changes)))
    (box,) = tree.all("div", "signal")
    (picture,) = box.all("svg")
    assert picture.attributes["aria-label"] == f"Traffic light: {light.word}"
    assert box.all("strong")[0].text == f"{light.value}."
    assert light.value.lower().startswith(light.word)
    assert len(box.all("li")) == len(reasons)
    lamps = [one.attributes["fill"] for one in picture.all("circle")]
    assert lamps.index("currentColor") == ["red", "amber", "green"].index(light.word)
    assert lamps.count("currentColor") == 1


def test_three_risks_each_against_its_promise() -> None:
    person, method, learning = risk_paragraph(whole(learners={"income": guessers(0.6, 0.5)}))
    assert person == (
        "Re-identification: an attacker who knows age and sex of a person in the table finds at least 7 records that "
        "fit (promised: at least 5)."
    )
    assert method.endswith("guesses income right in at most 33.3% of cases (promised: at most 33.3%).")
    assert learning.endswith(
        "guesses income right in 60.0% (between 50.0% and 70.0%) of cases, and in 20.0% without the release "
        "(more than the promised 33.3%)."
    )
    (shown,) = parsed(render_page(whole())).all("p", "risks")
    assert [bold.text for bold in shown.all("b")] == [
        "Re-identification:",
        "Guessing a protected value:",
        "Learning from the release:",
    ]


def test_risks_without_a_promise_say_so() -> None:
    bare = whole(
        reidentification=found(promised=None, smallest=1, unique=0.25),
        facts=(fact(promised=None, worst_posterior=0.4),),
        learners={"income": guessers(0.5, 0.45, promised=None)},
    )
    person, method, learning = risk_paragraph(bare)
    assert "finds at least 1 record that fits; 25.0% of the records are unique" in person
    assert person.endswith("(nothing was promised about this).")
    assert method.endswith("in at most 40.0% of cases (nothing was promised about guesses).")
    assert learning.endswith("(nothing was promised about guesses).")
    assert [risk.verdict for risk in value_risks(bare)] == ["none made"]


def test_the_attribute_at_the_highest_risk_is_named() -> None:
    names = ("income", "job")
    two = whole(
        attributes=tuple(AttributeLine(name, "sensitive", "sets of 3", protected=True) for name in names),
        facts=tuple(fact(attribute=name) for name in names),
        learners={"income": guessers(0.9, 0.89, promised=0.95), "job": guessers(0.5, 0.4)},
    )
    _, method, learning = risk_paragraph(two)
    assert "guesses any of them right" in method
    assert "guesses job, the attribute at the highest risk, right in 50.0%" in learning
    assert "the same holds for 1 of 2 attributes" in learning
    tree = parsed(render_page(two))
    assert cells(tree, "Promise") == ["kept", "surpassed by learning"]
    assert cells(tree, "Attacker who also learns from the release") == ["90.0% 89.0% to 91.0%", "50.0% 40.0% to 60.0%"]


@pytest.mark.parametrize(("learned", "verdict"), [(0.5, "surpassed by learning"), (0.34, "kept, within chance")])
def test_values_in_groups_are_judged_by_what_the_attacks_found(learned: float, verdict: str) -> None:
    attacks = (
        FindingLine("homogeneity", "income", THIRD, THIRD, False, 0.2),
        FindingLine("definetti", "income", learned, None, False, 0.2),
    )
    grouped = whole(facts=(), learners={}, findings=attacks, treatment=Treatment("anatomy", "", "group"), sets=False)
    (risk,) = value_risks(grouped)
    assert (risk.unit, risk.promised, risk.learned, risk.verdict) == ("group", THIRD, learned, verdict)
    assert signal(grouped).light is (Light.AMBER if learned == 0.5 else Light.GREEN)


def test_learning_that_was_not_tried_on_groups_is_not_known() -> None:
    attacks = (FindingLine("homogeneity", "income", THIRD, THIRD, False, 0.2),)
    grouped = whole(facts=(), learners={}, findings=attacks, treatment=Treatment("anatomy", "", "group"), sets=False)
    assert [risk.verdict for risk in value_risks(grouped)] == ["not known"]
    assert signal(grouped).light is Light.AMBER


def test_in_classes_records_look_alike_and_nothing_more_is_learned() -> None:
    attacks = (FindingLine("homogeneity", "income", 0.4, 0.5, False, 0.2),)
    classes = whole(facts=(), learners={}, findings=attacks, treatment=Treatment("mondrian", "", "class"), sets=False)
    assert signal(classes).light is Light.GREEN
    assert "because the records of a class look alike" in risk_paragraph(classes)[2]
    (risk,) = value_risks(classes)
    assert (risk.method, risk.reached, risk.verdict) == (0.4, 0.4, "kept")
