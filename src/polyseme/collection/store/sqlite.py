"""Reports in one SQLite file: the default, without any set-up.

The write-ahead log is synced at every commit (`synchronous=FULL`), so what `append` has returned for survives a loss of
power. What is deleted is overwritten (`secure_delete`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import apsw

from polyseme.collection.store.base import (
    PIECE,
    Counts,
    Credential,
    Entry,
    Kept,
    Outcome,
    State,
    UnknownCampaign,
    migrations,
    require_known,
    require_step,
    rounds,
    taken,
)
from polyseme.kernel.errors import CollectionError, StoreUnavailable
from polyseme.kernel.files import whole_file

__all__ = ["SqliteStore"]

BUSY_MS = 30_000
"""How long to wait for another process, such as `polyseme collect close`, to finish its transaction."""
_ANSWERS = {None: Outcome.TOMBSTONED, b"": Outcome.TOMBSTONED}

P = ParamSpec("P")
R = TypeVar("R")


def _reported(method: Callable[P, R]) -> Callable[P, R]:
    """A method whose database errors get our own texts, since SQLite's may quote the data."""

    @wraps(method)
    def run(*arguments: P.args, **options: P.kwargs) -> R:
        try:
            return method(*arguments, **options)
        except apsw.Error as error:
            raise _unavailable(error, cast("SqliteStore", arguments[0]).path) from None

    return run


def _unavailable(error: apsw.Error, path: Path) -> CollectionError:
    if isinstance(error, apsw.NotADBError):
        return CollectionError(f"{path}: this is not a store of reports", "give another file")
    if isinstance(error, apsw.FullError):
        return StoreUnavailable(f"{path}: no space is left", "free some space; nothing that was acknowledged is lost")
    return StoreUnavailable(f"{path}: the store cannot be used now ({type(error).__name__})")


class SqliteStore:
    """A store in a file; begun where there is none."""

    def __init__(self, path: Path, create: bool = True) -> None:
        self.path = path
        if not create and not path.exists():
            raise CollectionError(f"{path}: no store here", "begin one with: polyseme collect serve")
        if not path.parent.is_dir():
            raise CollectionError(f"{path.parent}: no such folder", "make it, readable by the collector only")
        try:
            self._db = self._open()
        except apsw.Error as error:
            raise _unavailable(error, path) from None

    def _open(self) -> apsw.Connection:
        if not self.path.exists():
            # SQLite would let everybody on the machine read it.
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        db = apsw.Connection(str(self.path))
        db.set_busy_timeout(BUSY_MS)
        for setting in ("journal_mode=WAL", "synchronous=FULL", "secure_delete=ON", "foreign_keys=ON"):
            db.execute(f"PRAGMA {setting}").fetchall()
        self._migrate(db)
        return db

    def _migrate(self, db: apsw.Connection) -> None:
        steps = migrations("sqlite")
        present = int(db.execute("PRAGMA user_version").get)
        require_known(present, len(steps))
        if present == len(steps):
            return
        with _transaction(db):
            present = int(db.execute("PRAGMA user_version").get)
            for number, step in enumerate(steps[present:], present + 1):
                db.execute(step).fetchall()
                db.execute(f"PRAGMA user_version={number}").fetchall()

    @_reported
    def append(self, entries: Sequence[Entry]) -> list[Outcome]:
        outcomes = [Outcome.CLOSED] * len(entries)
        with _transaction(self._db):
            numbers = {name: self._open_number(name) for name in {entry.campaign for entry in entries}}
            for group in rounds(entries):
                self._append_distinct(entries, group, numbers, outcomes)
        return outcomes

    def _open_number(self, campaign: str) -> int | None:
        """The number of a campaign that takes reports; None for others."""
        found = self._db.execute("SELECT number FROM campaigns WHERE id = ? AND state = 'open'", (campaign,)).get
        return None if found is None else int(found)

    def _append_distinct(
        self, entries: Sequence[Entry], group: Sequence[int], numbers: dict[str, int | None], outcomes: list[Outcome]
    ) -> None:
        """Entries of which no two have the same id or invitation."""
        rows: dict[tuple[int, bytes], int] = {}
        for place in group:
            number = numbers[entries[place].campaign]
            if number is not None:
                rows[number, entries[place].id] = place
        reports = {key: place for key, place in rows.items() if entries[place].payload is not None}
        stored = self._insert([(*key, entries[place].payload) for key, place in reports.items()])
        for key, place in reports.items():
            outcomes[place] = Outcome.STORED if key in stored else self._already(key, entries[place].payload)
        for key in stored:
            spends = entries[reports[key]].spends
            if spends is not None and not self._spend(key[0], spends):
                self._db.execute("DELETE FROM reports WHERE campaign = ? AND id = ?", key)
                outcomes[reports[key]] = Outcome.UNINVITED
        for key in rows.keys() - reports.keys():
            self._withdraw(key)
            outcomes[rows[key]] = Outcome.WITHDRAWN

    def _insert(self, rows: Sequence[tuple[int, bytes, bytes | None]]) -> list[tuple[int, bytes]]:
        """The keys that were not there before."""
        sql = "INSERT INTO reports VALUES (?, ?, ?) ON CONFLICT DO NOTHING RETURNING campaign, id"
        return [(int(number), bytes(key)) for number, key in self._db.executemany(sql, rows)]

    def _already(self, key: tuple[int, bytes], payload: bytes | None) -> Outcome:
        """What it means that a report was there before."""
        found = self._db.execute("SELECT payload FROM reports WHERE campaign = ? AND id = ?", key).get
        return _ANSWERS.get(found, Outcome.SAME if found == payload else Outcome.DIFFERENT)

    def _spend(self, number: int, invitation: bytes) -> bool:
        """Use an invitation up; whether it was issued and not used before."""
        sql = """
            INSERT INTO spent SELECT campaign, hash FROM invitations WHERE campaign = ? AND hash = ?
            ON CONFLICT DO NOTHING RETURNING 1"""
        return bool(self._db.execute(sql, (number, invitation)).fetchall())

    def _withdraw(self, key: tuple[int, bytes]) -> None:
        sql = """
            INSERT INTO reports VALUES (?, ?, NULL) ON CONFLICT DO UPDATE
            SET payload = CASE WHEN payload IS NULL THEN NULL ELSE x'' END"""
        self._db.execute(sql, key)

    @_reported
    def add_campaign(self, campaign: str, document: bytes, signature: bytes | None = None) -> None:
        sql = "INSERT INTO campaigns (id, state, document, signature) VALUES (?, 'draft', ?, ?) ON CONFLICT DO NOTHING"
        with _transaction(self._db):
            self._db.execute(sql, (campaign, document, signature))

    @_reported
    def campaign(self, campaign: str) -> Kept:
        return self._kept(campaign)

    def _kept(self, campaign: str) -> Kept:
        rows = self._rows("SELECT id, state, document, signature FROM campaigns WHERE id = ?", campaign)
        if not rows:
            raise UnknownCampaign(campaign)
        return Kept.of(rows[0])

    @_reported
    def campaigns(self) -> list[Kept]:
        rows = self._rows("SELECT id, state, document, signature FROM campaigns ORDER BY id")
        return [Kept.of(row) for row in rows]

    @_reported
    def move(self, campaign: str, state: State) -> None:
        with _transaction(self._db):
            require_step(campaign, self._kept(campaign).state, state)
            self._db.execute("UPDATE campaigns SET state = ? WHERE id = ?", (state.value, campaign))
            if state is State.PURGED:
                for table in ("reports", "spent", "invitations"):
                    self._db.execute(f"DELETE FROM {table} WHERE campaign = ?", (self._number(campaign),))
        if state in (State.CLOSED, State.PURGED):
            # The log keeps what came in the order in which it came, and what is purged until it is overwritten.
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _number(self, campaign: str) -> int:
        return self._count("SELECT number FROM campaigns WHERE id = ?", campaign)

    def _count(self, query: str, *values: object) -> int:
        return int(self._rows(query, *values)[0][0])

    def _rows(self, query: str, *values: object) -> list[Any]:
        return self._db.execute(query, cast("Any", values)).fetchall()

    @_reported
    def counts(self, campaign: str) -> Counts:
        self._kept(campaign)
        number = self._number(campaign)
        query = "SELECT count(*) FILTER (WHERE payload != x''), count(*) FILTER (WHERE payload = x'') FROM reports"
        reports, withdrawn = self._rows(f"{query} WHERE campaign = ?", number)[0]
        invited, spent = (
            self._count(f"SELECT count(*) FROM {table} WHERE campaign = ?", number)
            for table in ("invitations", "spent")
        )
        return Counts(reports, withdrawn, invited, spent)

    def payloads(self, campaign: str) -> Iterator[list[bytes]]:
        number, last = self._numbered(campaign), b""
        while rows := self._piece(number, last):
            yield [payload for _, payload in rows]
            last = rows[-1][0]

    @_reported
    def _numbered(self, campaign: str) -> int:
        self._kept(campaign)
        return self._number(campaign)

    @_reported
    def _piece(self, number: int, last: bytes) -> list[tuple[bytes, bytes]]:
        query = "SELECT id, payload FROM reports WHERE campaign = ? AND id > ? AND payload != x'' ORDER BY id LIMIT ?"
        return self._rows(query, number, last, PIECE)

    @_reported
    def invite(self, campaign: str, hashes: Iterable[bytes]) -> None:
        with _transaction(self._db):
            self._kept(campaign)
            number = self._number(campaign)
            sql = "INSERT INTO invitations VALUES (?, ?) ON CONFLICT DO NOTHING"
            self._db.executemany(sql, [(number, found) for found in hashes])

    @_reported
    def add_credential(self, credential: Credential) -> None:
        sql = "INSERT INTO credentials VALUES (?, ?, ?) ON CONFLICT DO NOTHING RETURNING 1"
        with _transaction(self._db):
            added = self._db.execute(sql, (credential.name, credential.role, credential.hash)).fetchall()
        if not added:
            raise taken(credential.name)

    @_reported
    def remove_credential(self, name: str) -> None:
        with _transaction(self._db):
            gone = self._db.execute("DELETE FROM credentials WHERE name = ? RETURNING 1", (name,)).fetchall()
        if not gone:
            raise CollectionError(f"no token has the name '{name}'")

    @_reported
    def credentials(self) -> list[Credential]:
        return [Credential(*row) for row in self._rows("SELECT name, role, hash FROM credentials ORDER BY name")]

    def backup(self, target: Path) -> None:
        with whole_file(target, private=True) as partial:
            # SQLite copies into an empty file, which is private already.
            self._copy(partial)
            _check_copy(partial)
            with partial.open("rb") as file:
                os.fsync(file.fileno())

    @_reported
    def _copy(self, target: Path) -> None:
        self._db.execute("VACUUM INTO ?", (str(target),)).fetchall()

    @_reported
    def ping(self) -> None:
        with _transaction(self._db):
            self._db.execute("SELECT 1 FROM campaigns LIMIT 1").fetchall()

    def close(self) -> None:
        self._db.close()


@contextmanager
def _transaction(db: apsw.Connection) -> Iterator[None]:
    """A transaction that locks for writing at once, since a later lock could fail."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _check_copy(path: Path) -> None:
    """A backup that cannot be read is none."""
    copy = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        if copy.execute("PRAGMA integrity_check").get != "ok":
            raise CollectionError(f"{path}: the copy is damaged", "make it again, on another disk")
    finally:
        copy.close()
