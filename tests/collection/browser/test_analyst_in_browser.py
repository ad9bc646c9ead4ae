"""The analyst's view in a real browser: behind a token, with counts, expected errors, charts and their tables."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from sites import NewPage, Site

from polyseme.collection.credentials import new_credential
from polyseme.collection.store import State
from polyseme.collection.survey import Survey
from polyseme.device.reports import answer_codes

pytestmark = [pytest.mark.browser, pytest.mark.lane]

CHECKS = (Path(__file__).parent / "checks.js").read_text(encoding="utf-8")


def answered(site: Site, campaign: str, count: int) -> None:
    """So many people have answered; sexes and conditions are those of a seeded crowd."""
    survey, draw = Survey.read(site.store.campaign(campaign).document), random.Random(5)
    bodies = []
    for _ in range(count):
        sex = draw.randrange(2)
        condition = draw.choices(range(6), [10, 12, 15, 20, 0 if sex else 6, 37])[0]
        codes = {"sex": sex, "age": draw.randrange(10), "condition": condition, "complaint": draw.randrange(120)}
        bodies.append(answer_codes(survey.campaign, codes).body(survey.size))
    site.store.append([survey.entry(body) for body in bodies])


@pytest.fixture
def token(site: Site) -> str:
    credential, text = new_credential(f"analyst {len(site.store.credentials())}", "analyst")
    site.store.add_credential(credential)
    return text


def problems(page: Any) -> list[str]:
    page.evaluate(CHECKS)
    return list(page.evaluate("pageChecks()"))


def signed_in(page: Any, site: Site, token: str) -> None:
    page.goto(f"{site.admin}/")
    page.fill("#token", token)
    page.click("button.primary")
    page.wait_for_selector("#list .card")


def test_nothing_is_shown_without_a_token(site: Site, new_page: NewPage, token: str) -> None:
    page = new_page(390)
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(f"{site.admin}/")
    page.wait_for_selector("#token")
    assert problems(page) == []
    page.fill("#token", "not the one")
    page.click("button.primary")
    page.wait_for_selector("#token-error:not(:empty)")
    assert page.query_selector(".card") is None
    page.fill("#token", token)
    page.keyboard.press("Enter")
    page.wait_for_selector("#leave:visible")
    assert not any(token in url for url in requests)
    assert {url.split("/")[2] for url in requests} == {site.admin[7:]}
    page.click("#leave")
    page.wait_for_selector("#token")
    assert page.evaluate("sessionStorage.length + localStorage.length") == 0


@pytest.mark.parametrize(("width", "scheme"), [(1300, "light"), (390, "dark")])
def test_campaigns_errors_and_estimates(site: Site, new_page: NewPage, token: str, width: int, scheme: str) -> None:
    running, ended = site.open(planned=400), site.open(planned=400)
    answered(site, running, 100)
    answered(site, ended, 300)
    site.store.move(ended, State.CLOSED)
    page = new_page(width, scheme)
    signed_in(page, site, token)
    card = page.locator(f"[id='campaign-{running}']")
    card.wait_for()
    facts = card.locator(".facts").inner_text().split()
    assert facts[:6] == ["Reports", "100", "Minimum", "50", "Planned", "400"]
    now, planned = (text.split()[1] for text in card.locator("tbody tr").first.locator("td").all_inner_texts()[:2])
    # Four times as many reports halve the error; both are rounded.
    assert float(now) == pytest.approx(2 * float(planned), abs=0.15)
    assert card.locator(".chart").count() == 0
    chart = page.locator(f"[id='campaign-{ended}']")
    chart.locator(".chart .point").first.wait_for()
    assert chart.locator(".chart .point").count() == chart.locator(".chart .interval").count() == 6
    chart.locator("summary").click()
    values = chart.locator(".result tbody tr td:nth-of-type(1)").all_inner_texts()
    assert sum(float(text.rstrip("%")) for text in values) == pytest.approx(100, abs=0.1)
    chart.locator("select").nth(1).select_option("sex")
    chart.locator("h4").first.wait_for()
    assert [text.split()[0] for text in chart.locator("h4").all_inner_texts()] == ["Female", "Male"]
    assert problems(page) == []
    chart.locator("select").nth(1).select_option("")
    chart.locator("select").nth(0).select_option("complaint")
    chart.get_by_role("button", name="Show all 120").click()
    assert chart.locator(".chart .point").count() == 120
    assert problems(page) == []
