"""A real browser, and a workbench in a folder of its own for each test."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import chromium
import pytest
from bench import PATIENTS, Served

Start = Callable[..., Served]


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    if reason := chromium.missing():
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    running = sync_playwright().start()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def browser(driver: Any) -> Iterator[chromium.Chromium]:
    with chromium.Chromium(driver) as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(PATIENTS, tmp_path / "patients.csv")
    return tmp_path


@pytest.fixture
def start(folder: Path) -> Iterator[Start]:
    """Starts workbenches, which end with the test."""
    running: list[Served] = []

    def started(*arguments: str, port: int = 0) -> Served:
        running.append(Served(folder, *arguments, port=port))
        return running[-1]

    yield started
    for one in running:
        one.stop()


@pytest.fixture
def new_page(browser: chromium.Chromium) -> Iterator[Callable[..., Any]]:
    context = browser.browser.new_context(locale="en-US", accept_downloads=True)
    context.set_default_timeout(chromium.PATIENCE * 1e3)

    def new(width: int = 1300, scheme: str = "light") -> Any:
        page = context.new_page()
        page.set_viewport_size({"width": width, "height": 950})
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        return page

    yield new
    context.close()
