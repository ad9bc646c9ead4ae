"""What the tests of collection share: stores of both kinds, a browser, and a collector for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import chromium
import postgres_server
import pytest
from sites import NewPage, Site

from polyseme.collection.store import Store, open_store

OpenStore = Callable[[], Store]


@pytest.fixture(scope="session")
def postgres() -> Iterator[postgres_server.PostgresServer]:
    """A server of our own; skips where none can run."""
    if reason := postgres_server.missing():
        pytest.skip(reason)
    server = postgres_server.PostgresServer()
    yield server
    server.remove()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty store, of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/reports.db"
    server: postgres_server.PostgresServer = request.getfixturevalue("postgres")
    return server.new_database()


@pytest.fixture
def store(address: str) -> Iterator[Store]:
    opened = open_store(address)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    """Playwright, which runs an event loop: it ends with the module, so that other tests can have their own."""
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


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    if reason := chromium.missing():
        pytest.skip(reason)
    found = Site(tmp_path_factory.mktemp("site"))
    yield found
    found.close()


@pytest.fixture
def new_page(browser: chromium.Chromium) -> Iterator[NewPage]:
    """Pages of a browser that has never been anywhere; all in one window, so that they share what is stored."""
    options = {"locale": "en-GB", "viewport": {"width": 1300, "height": 900}}
    context = browser.browser.new_context(**options)
    context.set_default_timeout(chromium.PATIENCE * 1e3)
    context.set_default_navigation_timeout(chromium.PATIENCE * 1e3)

    def new(width: int = 1300, scheme: str = "light") -> Any:
        page = context.new_page()
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        return page

    yield new
    context.close()
