"""A person's report is stored exactly once, whatever happens to network, tabs and browser; and can be withdrawn."""

from __future__ import annotations

import json
from typing import Any

import chromium
import pytest
from answering import FORM, GONE, LEAVING, QUEUED, STORED, fill, hurry, look, visit, withdraw
from sites import NewPage, Site

from polyseme.collection.survey import Survey

pytestmark = [pytest.mark.browser, pytest.mark.lane]


def codes_in_store(site: Site, campaign: str) -> list[list[int]]:
    survey = Survey.read(site.store.campaign(campaign).document)
    return [row for piece in site.store.payloads(campaign) for row in survey.matrix(piece).tolist()]


def test_offline_killed_and_in_two_tabs_exactly_once(driver: Any, site: Site) -> None:
    campaign = site.open()
    with chromium.Chromium(driver) as own:
        page = own.page()
        visit(page, site.url, campaign)
        page.wait_for_selector("html[data-offline=ready]")
        site.stop()
        try:
            # Nothing answers any more: the page comes from the browser's own cache.
            page.reload()
            page.wait_for_selector(FORM)
            fill(page)
            look(page)
            shown = page.locator(".sent .set").all_inner_texts()
            page.click("#send")
            page.wait_for_selector(f"{QUEUED} #next-try")
            assert page.inner_text("#heading") == "Queued on this device"
            other = own.page()
            visit(other, site.url, campaign, QUEUED)
            own.kill()
        finally:
            site.start()
        own.again()
        tabs = [own.page(), own.page()]
        for tab in tabs:
            tab.goto(f"{site.url}/c/{campaign}")
        for tab in tabs:
            tab.wait_for_selector(STORED)
            assert tab.inner_text("#heading") == "Stored"
            # What was shown before the kill is what was sent.
            assert tab.locator(".sent .set").all_inner_texts() == shown
    assert site.store.counts(campaign).reports == 1
    (row,) = codes_in_store(site, campaign)
    assert row[:2] == [0, 3]
    labels = [label for line in shown for label in line.split("\n")]
    assert len(row) - 2 == len(labels) == 7


def test_two_tabs_that_send_at_once_send_one_report(site: Site, new_page: NewPage) -> None:
    campaign = site.open()
    tabs = [new_page(), new_page()]
    for tab in tabs:
        visit(tab, site.url, campaign)
        fill(tab)
        look(tab)
    at = tabs[0].evaluate("Date.now()") + 1_500
    for tab in tabs:
        # The button is pressed even if the page has moved on meanwhile, as by a finger that was already on its way.
        tab.evaluate(
            """(at) => {
          const button = document.querySelector("#send");
          setTimeout(() => button.click(), at - Date.now());
        }""",
            at,
        )
    for tab in tabs:
        tab.wait_for_selector(STORED)
    assert site.store.counts(campaign).reports == 1


def test_a_report_is_withdrawn(site: Site, new_page: NewPage) -> None:
    campaign = site.open()
    page = new_page()
    visit(page, site.url, campaign)
    fill(page)
    look(page)
    page.click("#send")
    page.wait_for_selector(STORED)
    page.click("#withdraw")
    page.click("#withdraw-no")
    assert site.store.counts(campaign).reports == 1
    withdraw(page)
    page.wait_for_selector(GONE)
    counts = site.store.counts(campaign)
    assert (counts.reports, counts.withdrawn) == (0, 1)
    page.reload()
    page.wait_for_selector(FORM)


def test_a_withdrawal_without_a_network_is_made_up_for(site: Site, new_page: NewPage) -> None:
    campaign = site.open()
    page = new_page()
    visit(page, site.url, campaign)
    fill(page)
    look(page)
    page.route("**/reports", lambda route: route.abort())
    page.click("#send")
    page.wait_for_selector(f"{QUEUED} #next-try")
    page.route("**/withdrawals", lambda route: route.abort())
    # It was tried, so it may have arrived: the collector has to hear of the withdrawal.
    withdraw(page)
    page.wait_for_selector(f"{LEAVING} #next-try")
    page.unroute("**/withdrawals")
    page.unroute("**/reports")
    page.reload()
    page.wait_for_selector(f"{LEAVING}, {FORM}")
    hurry(page)
    page.wait_for_selector(f"{GONE}, {FORM}")
    counts = site.store.counts(campaign)
    assert counts.reports == 0


def test_an_answer_that_was_only_looked_at_is_nowhere(site: Site, new_page: NewPage) -> None:
    campaign = site.open()
    page = new_page()
    visit(page, site.url, campaign)
    fill(page)
    look(page)
    first = page.locator(".sent .set").all_inner_texts()
    page.click("#back")
    page.wait_for_selector(FORM)
    look(page)
    # Looking again gives no choice between two sets.
    assert page.locator(".sent .set").all_inner_texts() == first
    kept = page.evaluate("""async () => {
      const { Queue } = await import("/client/polyseme-client.js");
      return JSON.stringify([await new Queue().all(), {...localStorage}, {...sessionStorage}, document.cookie]);
    }""")
    assert json.loads(kept) == [[], {}, {}, ""]
    assert site.store.counts(campaign).reports == 0
