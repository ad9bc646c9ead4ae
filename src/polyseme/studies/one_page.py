"""One of the crowd answers on the respondent's page, in a real browser, where one is installed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from polyseme.device.campaign import Campaign
from polyseme.device.reports import code_of

__all__ = ["answer_on_the_page", "no_browser"]

_PATIENCE = 30_000
"""Milliseconds for a step that takes one second on an idle machine."""


def no_browser() -> str:
    """Why the page cannot be answered here; empty where a browser and its driver are installed."""
    if _executable() is None:
        return "Chromium is not installed"
    return "" if find_spec("playwright") is not None else "Playwright, which drives the browser, is not installed"


def _executable() -> str | None:
    return os.environ.get("POLYSEME_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")


def answer_on_the_page(campaign: Campaign, url: str, record: Mapping[str, object]) -> Sequence[str]:
    """Open the page, answer, look at what leaves the device, and send; the candidates that the page has shown."""
    from playwright.sync_api import sync_playwright

    switches = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"]
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=_executable(), args=switches, timeout=_PATIENCE)
        try:
            page = browser.new_page(locale="en-GB")
            page.set_default_timeout(_PATIENCE)
            page.goto(f"{url}/c/{campaign.id}")
            page.wait_for_selector("#form")
            for number, (name, labels) in enumerate(campaign.labels.items()):
                _choose(page, number, code_of(record[name], labels))
            page.click("#onward")
            page.wait_for_selector("#send")
            shown = [text.strip() for text in page.locator("ul.set li").all_inner_texts()]
            page.click("#send")
            page.wait_for_selector("[data-state=stored]")
        finally:
            browser.close()
    return shown


def _choose(page: Any, number: int, code: int | None) -> None:
    """Short lists are buttons, long ones open."""
    button = f"#q{number}-{code}"
    if page.query_selector(button) is not None:
        page.check(button)
    else:
        page.select_option(f"#q{number}-list", str(code))
