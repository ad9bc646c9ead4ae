"""A collector for the tests with a real browser."""

from __future__ import annotations

import random
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import clinic
from collectors import Process

from polyseme.collection.operations import open_document
from polyseme.collection.store import State, Store, open_store
from polyseme.device.campaign import campaign_id

NewPage = Callable[..., Any]
"""Makes pages, of a width and a color scheme."""


def _lasting_ports() -> tuple[int, int]:
    """Two ports that stay free while the collector is away: the system gives out others."""
    while True:
        first, second = random.SystemRandom().sample(range(20_000, 32_000), 2)
        if _free(first) and _free(second):
            return first, second


def _free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


class Site:
    """A collector in a process of its own, which can go away and come back at the same place."""

    def __init__(self, folder: Path) -> None:
        self.address = f"sqlite:///{folder}/reports.db"
        self.store: Store = open_store(self.address)
        port, admin_port = _lasting_ports()
        self.process = Process(self.address, port=port, admin_port=admin_port)
        self.process.__enter__()
        self._wave = 0

    def open(self, **collection: Any) -> str:
        """A campaign of its own for a test; its id."""
        self._wave += 1
        return open_document(self.store, clinic.document(wave=self._wave, **collection))

    def keep(self, document: bytes) -> str:
        """A campaign of any document, opened without looking at what devices would make of it; its id."""
        campaign = campaign_id(document)
        self.store.add_campaign(campaign, document, None)
        self.store.move(campaign, State.OPEN)
        return campaign

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
