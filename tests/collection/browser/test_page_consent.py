"""What the page says of a prior, when it asks for consent, and which campaigns it refuses to answer."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import dishonest
import pytest
from answering import FORM, STORED, look, visit
from sites import NewPage, Site

from polyseme.device.campaign import compact

pytestmark = [pytest.mark.browser, pytest.mark.lane]

CHECKS = (Path(__file__).parent / "checks.js").read_text(encoding="utf-8")
BROKEN = "[data-state=broken]"
ANSWER = 5
"""The rarest one."""


def problems(page: Any) -> list[str]:
    page.evaluate(CHECKS)
    return list(page.evaluate("pageChecks()"))


def forge(site: Site, document: dict[str, Any]) -> str:
    """A campaign that no honest collector would have opened, and that the store holds all the same."""
    return site.keep(compact(document))


def reviewed(page: Any, site: Site, campaign: str) -> None:
    visit(page, site.url, campaign)
    page.check(f"#q0-{ANSWER}")
    look(page)


@pytest.mark.parametrize("case", dishonest.REFUSED)
def test_a_dishonest_campaign_is_not_answered(site: Site, new_page: NewPage, case: str) -> None:
    page = new_page(390)
    visit(page, site.url, forge(site, dishonest.REFUSED[case][0]()), BROKEN)
    assert "does not keep what it promises, or promises too little" in page.inner_text("#verdict")
    assert problems(page) == []


@pytest.mark.parametrize("case", ["line 4,000 / 1,000", "circle 3,000 / 200"])
def test_a_document_that_is_too_much_does_not_hang_the_page(site: Site, new_page: NewPage, case: str) -> None:
    sampling = dishonest.TOO_MUCH[case]()
    given = dishonest.document()
    given["columns"][0]["domain"]["values"] = list(range(len(sampling["order"])))
    page = new_page()
    page.set_default_timeout(10_000)
    visit(page, site.url, forge(site, dishonest.with_sampling(given, sampling, None, 0.5, sampling["l"])), BROKEN)


@pytest.mark.parametrize(("width", "scheme"), [(1300, "light"), (390, "dark")])
def test_official_statistics_are_said_in_words_and_need_consent(
    site: Site, new_page: NewPage, width: int, scheme: str
) -> None:
    campaign = site.keep(dishonest.campaign(dishonest.OFFICIAL, opens=None, wave=width).data)
    page = new_page(width, scheme)
    reviewed(page, site, campaign)
    assert page.inner_text(".mine .assumed") == "The organizers assume that 1 in 1,000 people has this answer."
    assert "1 in 1,000 people" in page.inner_text(".sent .set")
    assert "Their source: Statistical Office, 2025" in page.inner_text(".leaving")
    said = page.inner_text(".checked")
    assert "as common as the organizers say cannot be more than 50% sure" in said
    assert "equally common cannot be more than 99.6% sure" in said
    assert "at most 234 times as likely" in said
    assert "The recipient cannot see which" not in page.inner_text(".leaving")
    assert problems(page) == []
    page.click("#send")
    assert "Please tick the box" in page.inner_text(".error:not(:empty)")
    assert page.evaluate("document.activeElement.id") == "agree0"
    assert site.store.counts(campaign).reports == 0
    assert problems(page) == []
    page.check("#agree0")
    page.click("#send")
    page.wait_for_selector(STORED)
    assert site.store.counts(campaign).reports == 1


def test_a_uniform_prior_needs_no_consent(site: Site, new_page: NewPage) -> None:
    page = new_page()
    reviewed(page, site, site.keep(dishonest.campaign(opens=None, wave=60).data))
    assert page.inner_text(".mine .assumed") == "The organizers assume that all answers are equally common."
    assert "favors none of its answers" in page.inner_text(".checked")
    assert page.locator("#consents").count() == 0
    assert not re.search(r"\b(false|null|undefined)\b", page.inner_text("main"))


def test_the_same_question_in_another_survey_needs_consent(site: Site, new_page: NewPage) -> None:
    first, second = (site.keep(dishonest.campaign(l=l, opens=None, wave=70 + l).data) for l in (2, 3))
    page = new_page()
    reviewed(page, site, first)
    page.click("#send")
    page.wait_for_selector(STORED)
    other = new_page(390)
    reviewed(other, site, second)
    assert "has already sent a set for this question" in other.inner_text("#consents")
    other.click("#send")
    assert "Please tick the box" in other.inner_text(".error:not(:empty)")
    assert problems(other) == []
    other.check("#agree0")
    other.click("#send")
    other.wait_for_selector(STORED)
    assert site.store.counts(second).reports == 1


def test_another_page_cannot_send_the_same_question_unasked(site: Site, new_page: NewPage) -> None:
    first, second = (site.keep(dishonest.campaign(l=l, opens=None, wave=80 + l).data) for l in (2, 3))
    page = new_page()
    visit(page, site.url, first, FORM)
    found = page.evaluate(
        """async ([first, second]) => {
      const { Device, Queue } = await import("/client/polyseme-client.js");
      const device = new Device(location.origin, new Queue("again"));
      const said = [];
      for (const id of [first, second]) {
        const campaign = await device.campaign(id);
        const report = await device.answer(campaign, { illness: 5 });
        said.push(await device.queue.repeats(campaign, report));
        try { said.push(await device.keep(campaign, report)); } catch (error) { said.push(error.message); }
        if (id === second) said.push(await device.keep(campaign, report, false, true));
      }
      const all = await device.queue.all();
      return [...said, all.length];
    }""",
        [first, second],
    )
    refused = "illness: answered for another campaign, and both sets could be intersected"
    assert found == [[], True, ["illness"], refused, True, 2]


def test_every_language_has_the_same_places_for_numbers(site: Site, new_page: NewPage) -> None:
    page = new_page()
    visit(page, site.url, site.open())
    texts = page.evaluate("""async () => (await import("/page/texts.js")).TEXTS""")
    english = texts.pop("en")
    for language, found in texts.items():
        assert found.keys() == english.keys(), language
        for key, text in english.items():
            if isinstance(text, str):
                assert set(re.findall(r"\{\w+\}", found[key])) == set(re.findall(r"\{\w+\}", text)), (language, key)
