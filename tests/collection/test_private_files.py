"""Files with secrets are private from their first byte, whatever the mask of the process lets others read."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from polyseme.collection.credentials import Invited
from polyseme.collection.store import Entry, State, open_store
from polyseme.kernel.files import whole_file

pytestmark = [pytest.mark.usefixtures("readable"), pytest.mark.skipif(os.name != "posix", reason="permissions")]


@pytest.fixture
def readable() -> Iterator[None]:
    """New files can be read by everybody, as on most machines."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@contextmanager
def watched(folder: Path) -> Iterator[dict[str, set[int]]]:
    """The permissions that files in a folder have, looked at all the time."""
    modes: dict[str, set[int]] = {}
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            for entry in os.scandir(folder):
                try:
                    found = entry.stat()
                except FileNotFoundError:
                    continue
                if found.st_size:
                    modes.setdefault(entry.name, set()).add(found.st_mode & 0o777)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield modes
    finally:
        done.set()
        thread.join()


def test_a_backup_is_private_while_it_is_made(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/reports.db")
    store.add_campaign("c", b"document")
    store.move("c", State.OPEN)
    store.append([Entry("c", number.to_bytes(16, "big"), b"set" * 40) for number in range(10_000)])
    (tmp_path / "backups").mkdir()
    with watched(tmp_path / "backups") as modes:
        store.backup(tmp_path / "backups" / "backup.db")
    store.close()
    assert len(modes) >= 2, "seen under its temporary name and its own"
    assert set().union(*modes.values()) == {0o600}
    restored = open_store(f"sqlite:///{tmp_path}/backups/backup.db", create=False)
    assert restored.counts("c").reports == 10_000
    restored.close()


def test_a_private_file_is_never_anything_else(tmp_path: Path) -> None:
    """What pg_dump or `collect invite` write goes through here."""
    with watched(tmp_path) as modes, whole_file(tmp_path / "codes.txt", private=True) as partial:
        partial.write_text("secret", encoding="ascii")
    assert modes.keys() >= {"codes.txt"} or (tmp_path / "codes.txt").stat().st_mode & 0o777 == 0o600
    assert set().union(*modes.values()) <= {0o600}


def test_the_database_of_an_issuer_is_private(tmp_path: Path) -> None:
    with watched(tmp_path) as modes:
        invited = Invited(tmp_path / "issued.db")
        invited.add(number.to_bytes(32, "big") for number in range(2_000))
        found = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
        invited.close()
    assert set(found) >= {"issued.db", "issued.db-wal"}
    assert set(found.values()) | set().union(*modes.values()) == {0o600}


def test_a_database_that_others_could_read_becomes_private(tmp_path: Path) -> None:
    (tmp_path / "issued.db").touch(mode=0o644)
    Invited(tmp_path / "issued.db").close()
    assert (tmp_path / "issued.db").stat().st_mode & 0o777 == 0o600
