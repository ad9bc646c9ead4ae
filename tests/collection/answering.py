"""What a person does on the page, step by step."""

from __future__ import annotations

from typing import Any

FORM, SEND, QUEUED, STORED = "#form", "#send", "[data-state=waiting]", "[data-state=stored]"
GONE, LEAVING, REFUSED = "[data-state=gone]", "[data-state=leaving]", "[data-state=refused]"


def visit(page: Any, url: str, campaign: str, wait: str = FORM) -> None:
    # A page behind another one is hardly ever drawn.
    page.bring_to_front()
    page.goto(f"{url}/c/{campaign}")
    page.wait_for_selector(wait)


def fill(page: Any) -> None:
    """A woman between 40 and 50 with depression, who had burnt her hand."""
    page.check("#q0-0")
    page.select_option("#q1-list", "3")
    page.check("#q2-2")
    page.fill("#q3-search", "Burn  HAND")
    page.check("#q3 input[type=radio]")


def look(page: Any) -> None:
    page.click("#onward")
    page.wait_for_selector(SEND)


def hurry(page: Any) -> None:
    """Press "Try now", unless the page has just tried by itself."""
    page.evaluate("document.querySelector('#retry')?.click()")


def withdraw(page: Any) -> None:
    page.click("#withdraw")
    page.click("#withdraw-yes")
