"""Reports in PostgreSQL: for more than one collector, or for those who run one anyway.

The primary key makes reports unique across collectors. A batch is one transaction of a few statements, whatever its
size. Keys are locked in ascending order, so that two collectors with the same reports wait for each other, never both.
When a campaign closes its rows are rewritten in the order of their ids: neither their places nor their transaction
numbers tell the order of arrival any more.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, LiteralString, ParamSpec, TypeVar, cast

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

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

__all__ = ["PostgresStore"]

_LOCK = 0x706F6C79
"""The class of our advisory locks: batches share that of their campaign, and who changes its state has it alone."""
_PATIENCE = 5
"""Seconds in which the server must take a connection."""
_SESSION = ("SET statement_timeout = '20s'", "SET synchronous_commit = on")
"""A server that does not answer is given up, and a commit that returns is on the disk, whatever the defaults are."""

P = ParamSpec("P")
R = TypeVar("R")
Key = tuple[int, bytes]


def _reported(method: Callable[P, R]) -> Callable[P, R]:
    """A method whose errors of the database are said in our own words: its texts quote rows."""

    @wraps(method)
    def run(*arguments: P.args, **options: P.kwargs) -> R:
        try:
            return method(*arguments, **options)
        except psycopg.Error as error:
            cast("PostgresStore", arguments[0]).forget()
            raise _unavailable(error) from None

    return run


def _unavailable(error: psycopg.Error) -> StoreUnavailable:
    known = f", {error.sqlstate}" if error.sqlstate else ""
    return StoreUnavailable(
        f"the PostgreSQL store cannot be used now ({type(error).__name__}{known})",
        "is the server running, and is the address right? Nothing that was acknowledged is lost",
    )


class PostgresStore:
    """A store in a database; its tables are made where there are none.

    The next call reopens a connection that broke.
    """

    def __init__(self, address: str, create: bool = True) -> None:
        self._address = address
        self._connection: psycopg.Connection[Any] | None = None
        self._start(create)

    @_reported
    def _start(self, create: bool) -> None:
        if self._db.execute("SHOW fsync").fetchone() != ("on",):
            raise CollectionError(
                "the PostgreSQL server runs with fsync = off: it forgets what it has acknowledged",
                "set fsync = on in postgresql.conf",
            )
        self._migrate(create)

    @property
    def _db(self) -> psycopg.Connection[Any]:
        if self._connection is None or self._connection.closed:
            self._connection = psycopg.connect(self._address, autocommit=True, connect_timeout=_PATIENCE)
            for setting in _SESSION:
                self._connection.execute(setting)
        return self._connection

    def forget(self) -> None:
        """Give the connection up, whatever state it is in."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _migrate(self, create: bool) -> None:
        steps = migrations("postgres")
        with self._db.transaction():
            self._db.execute("SELECT pg_advisory_xact_lock(%s, 0)", (_LOCK,))
            if self._one("SELECT to_regclass('migrations')") is None:
                if not create:
                    raise CollectionError("no store in this database", "begin one with: polyseme collect serve")
                self._db.execute("CREATE TABLE migrations (number integer PRIMARY KEY)")
            present = self._one("SELECT coalesce(max(number), 0) FROM migrations")
            require_known(present, len(steps))
            for number, step in enumerate(steps[present:], present + 1):
                self._db.execute(step.encode())
                self._db.execute("INSERT INTO migrations VALUES (%s)", (number,))

    def _one(self, query: LiteralString, values: Sequence[object] = ()) -> Any:
        row = self._db.execute(query, values).fetchone()
        return None if row is None else row[0]

    @_reported
    def append(self, entries: Sequence[Entry]) -> list[Outcome]:
        outcomes = [Outcome.CLOSED] * len(entries)
        with self._db.transaction():
            numbers = self._open_numbers({entry.campaign for entry in entries})
            for group in rounds(entries):
                self._append_distinct(entries, group, numbers, outcomes)
        return outcomes

    def _open_numbers(self, names: Iterable[str]) -> dict[str, int]:
        """The numbers of the campaigns that take reports, and will until this transaction ends."""
        lock = "SELECT pg_advisory_xact_lock_shared(%s, number) FROM campaigns WHERE id = ANY(%s)"
        self._db.execute(lock, (_LOCK, sorted(names)))
        found = "SELECT id, number FROM campaigns WHERE id = ANY(%s) AND state = 'open'"
        return dict(self._db.execute(found, (sorted(names),)).fetchall())

    def _append_distinct(
        self, entries: Sequence[Entry], group: Sequence[int], numbers: dict[str, int], outcomes: list[Outcome]
    ) -> None:
        """Entries of which no two have the same id or invitation."""
        rows = {
            (numbers[entries[place].campaign], entries[place].id): place
            for place in group
            if entries[place].campaign in numbers
        }
        reports = {key: rows[key] for key in sorted(rows) if entries[rows[key]].payload is not None}
        stored = self._insert(reports, entries)
        for key in stored:
            outcomes[reports[key]] = Outcome.STORED
        self._compare([key for key in reports if key not in stored], reports, entries, outcomes)
        self._spend([key for key in reports if key in stored], reports, entries, outcomes)
        self._withdraw([key for key in sorted(rows) if key not in reports], rows, outcomes)

    def _insert(self, reports: dict[Key, int], entries: Sequence[Entry]) -> set[Key]:
        """The keys that were not there before."""
        if not reports:
            return set()
        query = """
            INSERT INTO reports SELECT * FROM unnest(%s::integer[], %s::bytea[], %s::bytea[])
            ON CONFLICT DO NOTHING RETURNING campaign, id"""
        payloads = [entries[place].payload for place in reports.values()]
        return set(self._db.execute(query, (*_split(reports), payloads), binary=True).fetchall())

    def _compare(
        self, keys: Sequence[Key], reports: dict[Key, int], entries: Sequence[Entry], outcomes: list[Outcome]
    ) -> None:
        """What it means that reports were there before."""
        if not keys:
            return
        query = """
            SELECT campaign, id, payload FROM reports
            JOIN unnest(%s::integer[], %s::bytea[]) AS asked (campaign, id) USING (campaign, id)"""
        for number, key, payload in self._db.execute(query, _split(keys), binary=True):
            place = reports[number, key]
            same = Outcome.SAME if payload == entries[place].payload else Outcome.DIFFERENT
            outcomes[place] = same if payload else Outcome.TOMBSTONED

    def _spend(
        self, keys: Sequence[Key], reports: dict[Key, int], entries: Sequence[Entry], outcomes: list[Outcome]
    ) -> None:
        """Use invitations up; a report whose invitation was not issued, or is spent, goes again."""
        spends = {(key[0], entries[reports[key]].spends): key for key in keys}
        wanted = sorted((number, found) for number, found in spends if found is not None)
        if not wanted:
            return
        query = """
            INSERT INTO spent
            SELECT campaign, hash FROM invitations
            JOIN unnest(%s::integer[], %s::bytea[]) AS asked (campaign, hash) USING (campaign, hash)
            ORDER BY campaign, hash
            ON CONFLICT DO NOTHING RETURNING campaign, hash"""
        spent = set(self._db.execute(query, _split(wanted), binary=True).fetchall())
        refused = [spends[item] for item in wanted if item not in spent]
        for key in refused:
            outcomes[reports[key]] = Outcome.UNINVITED
        if refused:
            query = """
                DELETE FROM reports USING unnest(%s::integer[], %s::bytea[]) AS asked (campaign, id)
                WHERE reports.campaign = asked.campaign AND reports.id = asked.id"""
            self._db.execute(query, _split(refused))

    def _withdraw(self, keys: Sequence[Key], rows: dict[Key, int], outcomes: list[Outcome]) -> None:
        if not keys:
            return
        query = """
            INSERT INTO reports SELECT campaign, id, NULL FROM unnest(%s::integer[], %s::bytea[]) AS gone (campaign, id)
            ON CONFLICT (campaign, id) DO UPDATE
            SET payload = CASE WHEN reports.payload IS NULL THEN NULL ELSE ''::bytea END"""
        self._db.execute(query, _split(keys))
        for key in keys:
            outcomes[rows[key]] = Outcome.WITHDRAWN

    @_reported
    def add_campaign(self, campaign: str, document: bytes, signature: bytes | None = None) -> None:
        query = """
            INSERT INTO campaigns (id, state, document, signature) VALUES (%s, 'draft', %s, %s)
            ON CONFLICT DO NOTHING RETURNING number"""
        with self._db.transaction():
            number = self._one(query, (campaign, document, signature))
            for table in ("reports", "spent") if number is not None else ():
                part = sql.SQL("CREATE TABLE {} PARTITION OF {} FOR VALUES IN ({})")
                names = sql.Identifier(f"{table}_{number}"), sql.Identifier(table)
                self._db.execute(part.format(*names, sql.Literal(number)))

    @_reported
    def campaign(self, campaign: str) -> Kept:
        return self._kept(campaign)

    def _kept(self, campaign: str) -> Kept:
        query = "SELECT id, state, document, signature FROM campaigns WHERE id = %s"
        row = self._db.execute(query, (campaign,)).fetchone()
        if row is None:
            raise UnknownCampaign(campaign)
        return Kept.of(row)

    @_reported
    def campaigns(self) -> list[Kept]:
        query = 'SELECT id, state, document, signature FROM campaigns ORDER BY id COLLATE "C"'
        return [Kept.of(row) for row in self._db.execute(query)]

    @_reported
    def move(self, campaign: str, state: State) -> None:
        number = self._number(campaign)
        with self._db.transaction():
            # No statement is given up half-way because a campaign is large.
            self._db.execute("SET LOCAL statement_timeout = 0")
            self._db.execute("SELECT pg_advisory_xact_lock(%s, %s)", (_LOCK, number))
            require_step(campaign, self._kept(campaign).state, state)
            self._db.execute("UPDATE campaigns SET state = %s WHERE id = %s", (state.value, campaign))
            if state is State.CLOSED:
                self._rewrite("reports", "id", number)
                self._rewrite("spent", "hash", number)
            if state is State.PURGED:
                self._db.execute("DELETE FROM invitations WHERE campaign = %s", (number,))
                for table in ("reports", "spent"):
                    self._db.execute(sql.SQL("TRUNCATE {}").format(sql.Identifier(f"{table}_{number}")))

    def _rewrite(self, table: str, key: str, number: int) -> None:
        """Rewrite the rows of a campaign in the order of their keys, in one transaction."""
        part, rows = sql.Identifier(f"{table}_{number}"), sql.Identifier(f"sorted_{table}_{number}")
        by = sql.SQL("campaign, {}").format(sql.Identifier(key))
        # Emptied and filled in one transaction, a table gets a new file: nothing of the old one is left in it.
        self._db.execute(
            sql.SQL("CREATE TEMPORARY TABLE {} ON COMMIT DROP AS SELECT * FROM {} ORDER BY {}").format(rows, part, by)
        )
        self._db.execute(sql.SQL("TRUNCATE {}").format(part))
        self._db.execute(sql.SQL("INSERT INTO {} SELECT * FROM {} ORDER BY {}").format(part, rows, by))

    def _number(self, campaign: str) -> int:
        number = self._one("SELECT number FROM campaigns WHERE id = %s", (campaign,))
        if number is None:
            raise UnknownCampaign(campaign)
        return int(number)

    @_reported
    def counts(self, campaign: str) -> Counts:
        number = self._number(campaign)
        query = """
            SELECT count(*) FILTER (WHERE payload <> ''), count(*) FILTER (WHERE payload = ''),
              (SELECT count(*) FROM invitations WHERE campaign = %(number)s),
              (SELECT count(*) FROM spent WHERE campaign = %(number)s)
            FROM reports WHERE campaign = %(number)s"""
        row = self._db.execute(query, {"number": number}).fetchone()
        return Counts(*row) if row is not None else Counts()

    def payloads(self, campaign: str) -> Iterator[list[bytes]]:
        number, last = self._numbered(campaign), b""
        while rows := self._piece(number, last):
            yield [payload for _, payload in rows]
            last = rows[-1][0]

    @_reported
    def _numbered(self, campaign: str) -> int:
        return self._number(campaign)

    @_reported
    def _piece(self, number: int, last: bytes) -> list[tuple[bytes, bytes]]:
        query = """
            SELECT id, payload FROM reports
            WHERE campaign = %s AND id > %s AND payload <> '' ORDER BY id LIMIT %s"""
        return self._db.execute(query, (number, last, PIECE), binary=True).fetchall()

    @_reported
    def invite(self, campaign: str, hashes: Iterable[bytes]) -> None:
        number = self._number(campaign)
        query = "INSERT INTO invitations SELECT %s, unnest(%s::bytea[]) ON CONFLICT DO NOTHING"
        self._db.execute(query, (number, list(hashes)))

    @_reported
    def add_credential(self, credential: Credential) -> None:
        query = "INSERT INTO credentials VALUES (%s, %s, %s) ON CONFLICT DO NOTHING RETURNING true"
        if not self._one(query, (credential.name, credential.role, credential.hash)):
            raise taken(credential.name)

    @_reported
    def remove_credential(self, name: str) -> None:
        if not self._one("DELETE FROM credentials WHERE name = %s RETURNING true", (name,)):
            raise CollectionError(f"no token has the name '{name}'")

    @_reported
    def credentials(self) -> list[Credential]:
        rows = self._db.execute('SELECT name, role, hash FROM credentials ORDER BY name COLLATE "C"')
        return [Credential(*row) for row in rows]

    def backup(self, target: Path) -> None:
        with whole_file(target, private=True) as partial:
            _run("pg_dump", "--format=custom", "--no-owner", f"--file={partial}", environment=self._environment())
            # A backup whose table of contents cannot be read is none.
            _run("pg_restore", "--list", str(partial))
            with partial.open("rb") as file:
                os.fsync(file.fileno())

    def _environment(self) -> dict[str, str]:
        """The address as environment variables: a command line would show the password."""
        names = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "password": "PGPASSWORD", "dbname": "PGDATABASE"}
        given = conninfo_to_dict(self._address)
        return {name: str(given[key]) for key, name in names.items() if given.get(key) is not None}

    @_reported
    def ping(self) -> None:
        if self._one("SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean"):
            raise StoreUnavailable("the PostgreSQL store can be read, but not written to")

    def close(self) -> None:
        self.forget()


def _split(pairs: Iterable[tuple[int, Any]]) -> tuple[list[int], list[Any]]:
    """Pairs as two lists, for `unnest`."""
    pairs = list(pairs)
    return [number for number, _ in pairs], [value for _, value in pairs]


@contextmanager
def _missing_program(name: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise CollectionError(f"the program {name} is not installed", "apt install postgresql-client") from None


def _run(program: str, *arguments: str, environment: dict[str, str] | None = None) -> None:
    with _missing_program(program):
        done = subprocess.run(  # noqa: S603 - a fixed program, its arguments are ours
            [program, *arguments], env={**os.environ, **(environment or {})}, capture_output=True, check=False
        )
    if done.returncode:
        raise StoreUnavailable(f"{program} ended with code {done.returncode}", "is it as new as the server?")
