"""A real Chromium in a process of its own, so that it can be killed, driven by Playwright over its debugging port."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any

PATIENCE = 60.0
"""Seconds for what takes one on a machine that has nothing else to do."""
_SWITCHES = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--hide-scrollbars",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--metrics-recording-only",
    "--password-store=basic",
    "--remote-debugging-port=0",
    "--lang=en-GB",
)


def missing() -> str:
    """Why there is no browser here; empty where there is one."""
    if executable() is None:
        return "Chromium is not installed: apt-get install chromium"
    if find_spec("playwright") is None:
        return "Playwright is not installed: pip install playwright"
    return ""


def executable() -> str | None:
    return os.environ.get("POLYSEME_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")


class Chromium:
    """A browser with a profile of its own, which survives the process.

    driver  of Playwright, which is running
    """

    def __init__(self, driver: Any) -> None:
        self._driver = driver
        self.profile = Path(tempfile.mkdtemp(prefix="chromium-"))

    def __enter__(self) -> Chromium:
        self.start()
        try:
            self.connect()
        except BaseException:
            self.kill()
            raise
        return self

    def start(self) -> None:
        """A new process with the same profile."""
        port_file = self.profile / "DevToolsActivePort"
        port_file.unlink(missing_ok=True)
        for name in ("SingletonLock", "SingletonCookie", "SingletonSocket"):
            (self.profile / name).unlink(missing_ok=True)
        self.process = subprocess.Popen(
            [str(executable()), *_SWITCHES, f"--user-data-dir={self.profile}", "about:blank"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.port = _port(port_file, self.process)

    def connect(self) -> None:
        address = f"http://127.0.0.1:{self.port}"
        self.browser = self._driver.chromium.connect_over_cdp(address, timeout=PATIENCE * 1e3)
        self.context = self.browser.contexts[0]
        self.context.set_default_timeout(PATIENCE * 1e3)
        self.context.set_default_navigation_timeout(PATIENCE * 1e3)

    def kill(self) -> None:
        """kill -9 of the browser and of all its helpers: nothing is said good-bye to."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE)

    def again(self) -> None:
        """The same profile in a new process, after a kill."""
        self.start()
        self.connect()

    def page(self, width: int = 1300, height: int = 900) -> Any:
        page = self.context.new_page()
        page.set_viewport_size({"width": width, "height": height})
        return page

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        shutil.rmtree(self.profile, ignore_errors=True)


def _port(port_file: Path, process: subprocess.Popen[bytes]) -> int:
    """The port that the browser has written down."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        lines = port_file.read_text().split() if port_file.is_file() else []
        if len(lines) >= 2:
            return int(lines[0])
        assert process.poll() is None, "Chromium ended by itself"
        time.sleep(0.02)
    raise AssertionError("Chromium did not start")
