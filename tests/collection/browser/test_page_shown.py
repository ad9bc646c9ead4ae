"""The page for everybody: by keyboard, read aloud, on a phone, in several languages; and nothing foreign runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from answering import FORM, QUEUED, REFUSED, STORED, fill, look, visit
from sites import NewPage, Site

from polyseme.collection.operations import invite
from polyseme.collection.store import State
from polyseme.device.protected import RESPONDENT_TEXTS

pytestmark = [pytest.mark.browser, pytest.mark.lane]

CHECKS = (Path(__file__).parent / "checks.js").read_text(encoding="utf-8")
LANGUAGES = ("en", "de", "fr", "es", "ja")


def problems(page: Any) -> list[str]:
    page.evaluate(CHECKS)
    return list(page.evaluate("pageChecks()"))


@pytest.mark.parametrize(("width", "scheme"), [(1300, "light"), (390, "dark")])
def test_every_screen_can_be_used_by_everybody(site: Site, new_page: NewPage, width: int, scheme: str) -> None:
    campaign = site.open()
    page = new_page(width, scheme)
    visit(page, site.url, campaign)
    assert problems(page) == []
    page.click("#onward")
    assert page.evaluate("document.activeElement.id") == "q0-0"
    assert page.inner_text("#q0-error") == "Please answer this question."
    assert problems(page) == []
    fill(page)
    look(page)
    assert page.evaluate("document.activeElement.id") == "heading"
    page.click("summary")
    assert problems(page) == []
    page.click("#send")
    page.wait_for_selector(STORED)
    assert problems(page) == []
    assert page.inner_text("#announcer") == "Stored"
    page.click("#withdraw")
    assert page.evaluate("document.activeElement.closest('dialog') !== null")
    assert problems(page) == []


def test_the_checks_find_what_is_wrong(site: Site, new_page: NewPage) -> None:
    page = new_page(390)
    visit(page, site.url, site.open())
    page.evaluate("""() => {
      const bad = document.createElement("input");
      bad.id = "q0";
      const pale = document.createElement("p");
      pale.textContent = "pale";
      pale.style.color = "#aaa";
      const wide = document.createElement("div");
      wide.style.width = "800px";
      wide.textContent = "wide";
      document.querySelector("main").append(bad, pale, wide);
    }""")
    found = " ".join(problems(page))
    assert all(word in found for word in ("no name", "id twice", "contrast", "pixels wide"))


def test_a_whole_answer_by_keyboard(site: Site, new_page: NewPage) -> None:
    campaign = site.open()
    page = new_page()
    visit(page, site.url, campaign)
    press = page.keyboard.press
    press("Tab")
    assert page.evaluate("document.activeElement.id") == "skip"
    press("Enter")
    press("Tab")
    assert page.evaluate("document.activeElement.id") == "q0-0"
    press("ArrowDown")
    press("Tab")
    press("ArrowDown")
    assert page.evaluate("document.querySelector('#q1-list').value") == "0"
    press("Tab")
    press("Space")
    press("Tab")
    page.keyboard.type("ulcer foot")
    press("ArrowDown")
    press("Space")
    press("Tab")
    assert page.evaluate("document.activeElement.id") == "onward"
    press("Enter")
    page.wait_for_selector("#send")
    assert page.locator(".mine .value").all_inner_texts() == ["Diabetes", "ulcer of the foot"]
    # A man is not asked about pregnancy, and none of his sets hold it.
    assert "Pregnancy" not in page.inner_text(".leaving")
    page.focus("#send")
    press("Enter")
    page.wait_for_selector(STORED)
    assert site.store.counts(campaign).reports == 1


def test_what_is_impossible_is_not_offered(site: Site, new_page: NewPage) -> None:
    page = new_page()
    visit(page, site.url, site.open())
    page.check("#q2-4")
    page.check("#q0-1")
    assert page.locator("#q2 input").count() == 5
    assert page.locator("#q2 input:checked").count() == 0
    page.check("#q0-0")
    assert page.locator("#q2 input").count() == 6


def test_languages(site: Site, new_page: NewPage) -> None:
    page = new_page(390)
    visit(page, site.url, site.open())
    assert page.evaluate("[...document.querySelector('#language').options].map((one) => one.value)") == list(LANGUAGES)
    page.check("#q0-1")
    heads = set()
    for language in LANGUAGES:
        page.select_option("#language", language)
        assert page.evaluate("document.documentElement.lang") == language
        assert page.evaluate("document.querySelector('h1').lang") == ("de" if language == "de" else "en")
        assert page.is_checked("#q0-1")
        assert problems(page) == []
        heads.add(page.inner_text("#onward"))
    assert len(heads) == len(LANGUAGES)
    page.select_option("#language", "de")
    page.reload()
    page.wait_for_selector(FORM)
    assert page.inner_text("h1") == "Gesundheit in unserer Region 2026"
    assert page.evaluate("document.documentElement.dir") == "ltr"
    shown = page.evaluate("""async () => {
      const { TEXTS, direction } = await import("/page/texts.js");
      const empty = (text) => (typeof text === "string" ? !text.trim() : Object.values(text).some(empty));
      const told = Object.fromEntries(Object.entries(TEXTS).map(([language, { told }]) => [language, told]));
      return { told, gaps: Object.keys(TEXTS).filter((one) => empty(TEXTS[one])), arabic: direction("ar-EG") };
    }""")
    assert shown["gaps"] == []
    assert shown["arabic"] == "rtl"
    for kind, texts in RESPONDENT_TEXTS.items():
        for language, text in texts.items():
            assert shown["told"][language][kind] == text


def test_nothing_foreign_runs_and_nothing_goes_elsewhere(site: Site, new_page: NewPage) -> None:
    campaign = site.open()
    page = new_page()
    requests: list[str] = []
    page.context.on("request", lambda request: requests.append(request.url))
    answer = page.goto(f"{site.url}/c/{campaign}")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    page.wait_for_selector("html[data-offline=ready]")
    # In a timer, because what a debugger evaluates may more than a page.
    found = page.evaluate(
        """(elsewhere) => new Promise((told) => setTimeout(async () => {
      const tried = {};
      const broken = [];
      addEventListener("securitypolicyviolation", (event) => broken.push(event.effectiveDirective));
      const attempt = async (name, work) => {
        try { await work(); tried[name] = "went"; } catch { tried[name] = "stopped"; }
      };
      await attempt("markup", () => { document.body.innerHTML += "<img src=x onerror='window.ran = 1'>"; });
      await attempt("text", () => { document.createElement("script").text = "window.ran = 2"; });
      await attempt("eval", () => { (0, eval)("window.ran = 3"); });
      await attempt("policy", () => { trustedTypes.createPolicy("mine", {}); });
      await attempt("fetch", () => fetch(elsewhere));
      const element = document.createElement("p");
      await attempt("handler", () => element.setAttribute("onclick", "window.ran = 4"));
      element.click();
      const frame = document.createElement("script");
      frame.append("window.ran = 5");
      await attempt("inline", () => document.body.append(frame));
      await new Promise((done) => setTimeout(done, 0));
      told({ ran: window.ran ?? null, tried, broken });
    }))""",
        f"http://localhost:{site.process.admin_port}/healthz",
    )
    assert found["ran"] is None
    assert {found["tried"][name] for name in ("markup", "text", "eval", "policy", "fetch")} == {"stopped"}
    assert "connect-src" in found["broken"]
    fill(page)
    look(page)
    page.click("#send")
    page.wait_for_selector(STORED)
    assert {url.split("/")[2] for url in requests if not url.startswith("http://localhost:")} == {site.url[7:]}
    assert page.context.cookies() == []


def test_a_closed_campaign_says_so(site: Site, new_page: NewPage) -> None:
    campaign = site.open()
    site.store.move(campaign, State.CLOSED)
    page = new_page(390)
    visit(page, site.url, campaign, "[data-state=closed]")
    assert problems(page) == []


def test_a_link_that_leads_to_no_survey_is_explained(site: Site, new_page: NewPage) -> None:
    page = new_page(390, "dark")
    answer = page.goto(f"{site.url}/c/{'A' * 43}")
    page.wait_for_selector("[data-state=broken]")
    assert answer.status == 404
    assert "There is no survey at this link" in page.inner_text("#verdict")
    assert page.locator("#verdict button").count() == 0
    assert problems(page) == []


def test_a_campaign_that_closes_meanwhile_is_not_offered_again(site: Site, new_page: NewPage) -> None:
    campaign = site.open()
    page = new_page(390)
    visit(page, site.url, campaign)
    fill(page)
    look(page)
    site.store.move(campaign, State.CLOSED)
    # The collector reads the state again once a second.
    page.wait_for_timeout(1_200)
    page.click("#send")
    page.wait_for_selector(REFUSED)
    assert "The survey is closed" in page.inner_text("#verdict")
    assert page.locator("#again").count() == 0


def test_why_sending_waits_is_said_and_whom_to_ask(site: Site, new_page: NewPage) -> None:
    campaign = site.open(delay=90_000)
    page = new_page(390)
    visit(page, site.url, campaign)
    assert page.get_attribute("footer a", "href") == "mailto:survey@hospital.example"
    page.fill("#q3-search", "burn")
    assert page.inner_text("#q3-found") == "10 of 120 answers shown."
    fill(page)
    look(page)
    page.click("#send")
    page.wait_for_selector(QUEUED)
    assert "sending waits a random time of up to 25 hours" in page.inner_text("#next-try")
    assert problems(page) == []


def test_a_device_that_cannot_keep_an_answer_sends_nothing(site: Site, new_page: NewPage) -> None:
    campaign = site.open()
    page = new_page(390)
    posted: list[str] = []
    page.on("request", lambda request: posted.append(request.url) if request.method == "POST" else None)
    visit(page, site.url, campaign)
    fill(page)
    look(page)
    page.evaluate("""() => {
      const full = () => { throw new DOMException("full", "QuotaExceededError"); };
      IDBObjectStore.prototype.put = full;
      IDBObjectStore.prototype.add = full;
    }""")
    page.click("#send")
    page.wait_for_selector(".error:not(:empty)")
    assert "nothing was sent" in page.inner_text(".error:not(:empty)")
    assert page.is_enabled("#send")
    assert posted == []
    assert site.store.counts(campaign).reports == 0


def test_a_document_that_was_changed_is_not_used(site: Site, new_page: NewPage) -> None:
    campaign = site.open()
    page = new_page()
    document = site.store.campaign(campaign).document

    def changed(route: Any) -> None:
        route.fulfill(body=document.replace(b"doctor", b"lawyer"), content_type="application/json")

    page.route(f"**/v1/campaigns/{campaign}", changed)
    visit(page, site.url, campaign, "[data-state=broken]")
    assert "Nothing was sent" in page.inner_text("#verdict")


def test_a_promise_that_is_not_kept_is_found_by_the_device(site: Site, new_page: NewPage) -> None:
    document = json.loads(site.store.campaign(site.open()).document)
    document["promises"]["complaint"]["posterior"] = 0.2
    campaign = site.keep(json.dumps(document).encode())
    page = new_page()
    visit(page, site.url, campaign, "[data-state=broken]")
    assert "does not keep what it promises" in page.inner_text("#verdict")


def test_a_campaign_that_has_not_begun_says_when(site: Site, new_page: NewPage) -> None:
    page = new_page(390)
    visit(page, site.url, site.open(opens="2099-05-04T08:00:00Z"), "[data-state=early]")
    assert "4 May 2099" in page.inner_text("#verdict")
    assert problems(page) == []


def test_an_invitation_counts_once(site: Site, new_page: NewPage) -> None:
    campaign = site.open(tokens="invitation", delay=0)
    (code,) = invite(site.store, campaign, 1)
    (foreign,) = invite(site.store, site.open(tokens="invitation"), 1)
    page = new_page(390)
    # In the link after the hash, so that it is never sent.
    page.goto(f"{site.url}/c/{campaign}#{code}")
    page.wait_for_selector(FORM)
    assert page.input_value("#code") == code
    assert "#" not in page.url
    page.fill("#code", "")
    fill(page)
    page.click("#onward")
    assert page.inner_text("#code-error") == "Please enter your code."
    page.fill("#code", code[:-1] + ("3" if code[-1] == "2" else "2"))
    page.click("#onward")
    assert "not a valid code" in page.inner_text("#code-error")
    page.fill("#code", foreign)
    look(page)
    page.click("#send")
    page.wait_for_selector(REFUSED)
    assert "invitation code" in page.inner_text("#verdict")
    page.click("#again")
    page.wait_for_selector(FORM)
    fill(page)
    page.fill("#code", f" {code.lower()} ")
    look(page)
    page.click("#send")
    page.wait_for_selector(STORED)
    assert site.store.counts(campaign).spent == 1
