"""What the tests with a real browser share: the browser, a collector, and campaigns on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import chromium
import clinic
import pytest
from collectors import Process

from polyseme.collection.operating import open_document
from polyseme.collection.store import Store, open_store


class Site:
    """A collector in a process of its own, which can go away and come back at the same place."""

    def __init__(self, folder: Path) -> None:
        self.address = f"sqlite:///{folder}/reports.db"
        self.store: Store = open_store(self.address)
        self.process = Process(self.address)
        self.process.__enter__()
        self._wave = 0

    def open(self, **collection: Any) -> str:
        """A campaign of its own for a test; its id."""
        self._wave += 1
        return open_document(self.store, clinic.document(wave=self._wave, **collection))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.process.port}"

    @property
    def admin(self) -> str:
        return f"http://127.0.0.1:{self.process.admin_port}"

    def stop(self) -> None:
        """Off the network, for everybody."""
        assert self.process.stop() == 0

    def start(self) -> None:
        self.process.__exit__(None, None, None)
        self.process = Process(self.address, port=self.process.port, admin_port=self.process.admin_port)
        self.process.__enter__()

    def close(self) -> None:
        self.process.__exit__(None, None, None)
        self.store.close()


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
    found = Site(tmp_path_factory.mktemp("site"))
    yield found
    found.close()


NewPage = Callable[..., Any]


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
