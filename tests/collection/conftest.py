"""What the tests of collection share: stores of both kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import postgres_server
import pytest

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
