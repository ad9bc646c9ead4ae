"""Whatever a store is made of, it keeps the same promises."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import subprocess
import threading
from pathlib import Path

import postgres_server
import psycopg
import pytest

from polyseme.collection.store import Counts, Credential, Entry, Outcome, State, Store, open_store
from polyseme.collection.store.base import migrations
from polyseme.kernel.errors import CollectionError, StoreUnavailable

C, D = "campaign-c", "campaign-d"


def key(number: int) -> bytes:
    """A random id that is the same in every run."""
    return hashlib.sha256(str(number).encode()).digest()[:16]


def report(number: int, payload: bytes = b"set", campaign: str = C, spends: bytes | None = None) -> Entry:
    return Entry(campaign, key(number), payload, spends)


def begin(store: Store, *campaigns: str) -> None:
    for campaign in campaigns or (C,):
        store.add_campaign(campaign, f"document of {campaign}".encode())
        store.move(campaign, State.OPEN)


def stored(store: Store, campaign: str = C) -> list[bytes]:
    return [payload for piece in store.payloads(campaign) for payload in piece]


def test_a_report_is_stored_once(store: Store) -> None:
    begin(store)
    assert store.append([report(1), report(2)]) == [Outcome.STORED] * 2
    assert store.append([report(1), report(3), report(2, b"other")]) == [
        Outcome.SAME,
        Outcome.STORED,
        Outcome.DIFFERENT,
    ]
    assert store.counts(C) == Counts(reports=3)
    assert stored(store) == [b"set"] * 3


def test_a_batch_may_hold_a_report_twice(store: Store) -> None:
    begin(store)
    batch = [report(1), report(1), report(1, b"other"), Entry(C, key(1), None), report(1)]
    assert store.append(batch) == [
        Outcome.STORED,
        Outcome.SAME,
        Outcome.DIFFERENT,
        Outcome.WITHDRAWN,
        Outcome.TOMBSTONED,
    ]
    assert store.counts(C) == Counts(withdrawn=1)


def test_rows_come_in_the_order_of_their_ids_not_of_their_arrival(store: Store) -> None:
    begin(store)
    numbers = list(range(11_000))
    for start in range(0, len(numbers), 3_000):
        store.append([report(number, str(number).encode()) for number in numbers[start : start + 3_000]])
    expected = [str(number).encode() for number in sorted(numbers, key=key)]
    assert stored(store) == expected
    store.move(C, State.CLOSED)
    assert stored(store) == expected


def test_campaigns_do_not_mix(store: Store) -> None:
    begin(store, C, D)
    assert store.append([report(1, b"c"), report(1, b"d", D)]) == [Outcome.STORED] * 2
    assert (stored(store), stored(store, D)) == ([b"c"], [b"d"])
    store.move(C, State.CLOSED)
    assert store.append([report(2), report(2, b"d", D), report(3, b"x", "nobody")]) == [
        Outcome.CLOSED,
        Outcome.STORED,
        Outcome.CLOSED,
    ]
    store.move(C, State.PURGED)
    assert (store.counts(C), store.counts(D)) == (Counts(), Counts(reports=2))


def test_what_was_withdrawn_does_not_come_back(store: Store) -> None:
    begin(store)
    store.append([report(1), report(2)])
    # The second withdrawal names a report that has not come yet, and must not come any more.
    assert store.append([Entry(C, key(1), None), Entry(C, key(9), None)]) == [Outcome.WITHDRAWN] * 2
    assert store.append([Entry(C, key(1), None), Entry(C, key(9), None)]) == [Outcome.WITHDRAWN] * 2
    assert store.append([report(1), report(9), report(1, b"other")]) == [Outcome.TOMBSTONED] * 3
    assert store.counts(C) == Counts(reports=1, withdrawn=1)
    assert stored(store) == [b"set"]


def test_an_invitation_lets_one_report_in(store: Store) -> None:
    begin(store)
    store.invite(C, [b"a" * 32, b"b" * 32])
    store.invite(C, [b"b" * 32])
    batch = [
        report(1, spends=b"a" * 32),
        report(2, spends=b"a" * 32),
        report(3, spends=b"z" * 32),
        report(4, spends=b"b" * 32),
    ]
    first = [Outcome.STORED, Outcome.UNINVITED, Outcome.UNINVITED, Outcome.STORED]
    assert store.append(batch) == first
    again = [Outcome.SAME, Outcome.UNINVITED, Outcome.UNINVITED, Outcome.SAME]
    assert store.append(batch) == again
    assert store.counts(C) == Counts(reports=2, invited=2, spent=2)
    # What is withdrawn does not give an invitation back: nothing says whose it was.
    store.append([Entry(C, key(1), None)])
    assert store.append([report(5, spends=b"a" * 32)]) == [Outcome.UNINVITED]


def test_states_go_one_way(store: Store) -> None:
    store.add_campaign(C, b"document", b"signature")
    store.add_campaign(C, b"document")
    assert (store.campaign(C).state, store.campaign(C).signature) == (State.DRAFT, b"signature")
    assert store.append([report(1)]) == [Outcome.CLOSED]
    with pytest.raises(CollectionError, match="it is draft and cannot become closed"):
        store.move(C, State.CLOSED)
    for state in (State.OPEN, State.CLOSED, State.RELEASED, State.PURGED):
        store.move(C, state)
        for earlier in (State.DRAFT, State.OPEN, state):
            with pytest.raises(CollectionError, match="cannot become"):
                store.move(C, earlier)
    assert [kept.state for kept in store.campaigns()] == [State.PURGED]
    assert store.campaign(C).document == b"document"


def test_an_unknown_campaign_is_named(store: Store) -> None:
    for ask in (
        store.campaign,
        store.counts,
        lambda name: store.move(name, State.OPEN),
        lambda name: list(store.payloads(name)),
    ):
        with pytest.raises(CollectionError, match="campaign nowhere: the store has no such campaign"):
            ask("nowhere")


def test_purging_forgets_everything_but_the_document(store: Store) -> None:
    begin(store)
    store.invite(C, [b"a" * 32])
    store.append([report(1, spends=b"a" * 32), Entry(C, key(2), None)])
    store.move(C, State.CLOSED)
    store.move(C, State.PURGED)
    assert store.counts(C) == Counts()
    assert not stored(store)


def test_credentials(store: Store) -> None:
    store.add_credential(Credential("anna", "designer", b"h" * 32))
    with pytest.raises(CollectionError, match="there is a token with the name 'anna' already"):
        store.add_credential(Credential("anna", "analyst", b"g" * 32))
    store.add_credential(Credential("Ben", "analyst", b"g" * 32))
    assert [(item.name, item.role) for item in store.credentials()] == [("Ben", "analyst"), ("anna", "designer")]
    store.remove_credential("anna")
    with pytest.raises(CollectionError, match="no token has the name 'anna'"):
        store.remove_credential("anna")
    assert len(store.credentials()) == 1


def test_everything_is_there_when_the_store_is_opened_again(store: Store, address: str) -> None:
    begin(store)
    store.append([report(1), Entry(C, key(2), None)])
    store.close()
    again = open_store(address, create=False)
    assert again.append([report(1), report(2)]) == [Outcome.SAME, Outcome.TOMBSTONED]
    again.ping()
    again.close()


def test_a_transaction_that_fails_leaves_nothing(store: Store) -> None:
    begin(store)
    broken = Entry(C, key(2), object())  # type: ignore[arg-type]
    with pytest.raises((TypeError, CollectionError)):
        store.append([report(1), broken])
    assert store.append([report(1)]) == [Outcome.STORED]


def test_two_collectors_agree_on_who_was_first(address: str) -> None:
    """Both are sent the same reports, some of them with another content, in opposite orders."""
    one, two = open_store(address), open_store(address)
    begin(one)
    outcomes: dict[str, dict[int, Outcome]] = {"one": {}, "two": {}}

    def collect(store: Store, name: str, numbers: list[int]) -> None:
        for start in range(0, len(numbers), 50):
            part = numbers[start : start + 50]
            payloads = [name.encode() if number % 3 == 0 else b"same" for number in part]
            found = store.append([report(number, payload) for number, payload in zip(part, payloads)])
            outcomes[name].update(zip(part, found))

    numbers = list(range(1_000))
    threads = [
        threading.Thread(target=collect, args=(one, "one", numbers)),
        threading.Thread(target=collect, args=(two, "two", numbers[::-1])),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in numbers:
        second = Outcome.DIFFERENT if number % 3 == 0 else Outcome.SAME
        assert {outcomes["one"][number], outcomes["two"][number]} == {Outcome.STORED, second}
    assert one.counts(C) == Counts(reports=1_000)
    one.close()
    two.close()


def test_one_invitation_at_two_collectors(address: str) -> None:
    one, two = open_store(address), open_store(address)
    begin(one)
    hashes = [hashlib.sha256(str(number).encode()).digest() for number in range(60)]
    one.invite(C, hashes)
    found: list[list[Outcome]] = [[], []]

    def collect(store: Store, place: int) -> None:
        order = range(60) if place == 0 else range(59, -1, -1)
        for number in order:
            entry = report(1_000 * (place + 1) + number, spends=hashes[number])
            found[place] += store.append([entry])

    threads = [threading.Thread(target=collect, args=(store, place)) for place, store in enumerate((one, two))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {*found[0], *found[1]} == {Outcome.STORED, Outcome.UNINVITED}
    assert one.counts(C) == Counts(reports=60, invited=60, spent=60)
    one.close()
    two.close()


def test_closing_waits_for_batches_and_refuses_those_after(address: str) -> None:
    """Whatever was acknowledged as stored is there after closing, and nothing else."""
    one, two = open_store(address), open_store(address)
    begin(one)
    acknowledged: list[int] = []
    going = threading.Event()

    def collect() -> None:
        for number in range(100_000):
            if one.append([report(number)]) == [Outcome.CLOSED]:
                return
            acknowledged.append(number)
            if number == 20:
                going.set()

    thread = threading.Thread(target=collect)
    thread.start()
    assert going.wait(30)
    two.move(C, State.CLOSED)
    thread.join(30)
    assert not thread.is_alive()
    assert two.counts(C).reports == len(acknowledged)
    one.close()
    two.close()


def test_restore_drill(store: Store, address: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """A backup made while the store is in use becomes a store that answers the same."""
    begin(store)
    store.invite(C, [b"a" * 32])
    store.append([report(number, spends=b"a" * 32 if number == 0 else None) for number in range(500)])
    store.append([Entry(C, key(3), None)])
    store.add_credential(Credential("anna", "designer", b"h" * 32))
    store.backup(tmp_path / "backup")
    store.append([report(1_000)])
    with pytest.raises(Exception, match="exists already"):
        store.backup(tmp_path / "backup")
    assert (tmp_path / "backup").stat().st_mode & 0o077 == 0
    if address.startswith("sqlite"):
        shutil.copy(tmp_path / "backup", tmp_path / "restored.db")
        restored_address = f"sqlite:///{tmp_path}/restored.db"
    else:
        server: postgres_server.PostgresServer = request.getfixturevalue("postgres")
        restored_address = server.new_database()
        subprocess.run(
            ["pg_restore", "--no-owner", f"--dbname={restored_address}", tmp_path / "backup"],
            check=True,
            env={**os.environ, "PGUSER": "polyseme"},
        )
    restored = open_store(restored_address, create=False)
    assert restored.counts(C) == Counts(reports=499, withdrawn=1, invited=1, spent=1)
    assert restored.campaigns() == store.campaigns()
    assert restored.credentials() == store.credentials()
    assert restored.append([report(1), report(3), report(1_000)]) == [
        Outcome.SAME,
        Outcome.TOMBSTONED,
        Outcome.STORED,
    ]
    assert stored(restored) == stored(store)
    restored.close()


def test_migrations_bring_an_old_store_up_to_date(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    with sqlite3.connect(path) as old:
        if sqlite3.sqlite_version_info < (3, 37):
            pytest.skip("Python's own SQLite is too old for strict tables")
        old.executescript(migrations("sqlite")[0])
        old.execute("PRAGMA user_version=1")
        old.execute("INSERT INTO campaigns VALUES (1, 'campaign-c', 'open', x'00', NULL)")
        old.execute("INSERT INTO reports VALUES (1, ?, ?)", (key(1), b"set"))
    store = open_store(f"sqlite:///{path}")
    store.add_credential(Credential("anna", "designer", b"h" * 32))
    assert store.append([report(1)]) == [Outcome.SAME]
    store.close()


@pytest.mark.postgres
def test_migrations_bring_an_old_database_up_to_date(postgres: postgres_server.PostgresServer) -> None:
    address = postgres.new_database()
    with psycopg.connect(address, autocommit=True) as old:
        old.execute(migrations("postgres")[0].encode())
        old.execute("CREATE TABLE migrations (number integer PRIMARY KEY)")
        old.execute("INSERT INTO migrations VALUES (1)")
    store = open_store(address)
    store.add_credential(Credential("anna", "designer", b"h" * 32))
    store.close()


def test_a_store_of_a_newer_program_is_refused(address: str) -> None:
    open_store(address).close()
    if address.startswith("sqlite"):
        with sqlite3.connect(address.removeprefix("sqlite:///")) as newer:
            newer.execute("PRAGMA user_version=99")
    else:
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("INSERT INTO migrations VALUES (99)")
    with pytest.raises(CollectionError, match="the store has tables of version 99"):
        open_store(address)


def test_addresses_that_lead_nowhere(tmp_path: Path) -> None:
    with pytest.raises(CollectionError, match="not one of those that are known") as wrong:
        open_store("mysql://root:secret@host/name")
    assert "secret" not in str(wrong.value)
    with pytest.raises(CollectionError, match="no such folder"):
        open_store(f"sqlite:///{tmp_path}/none/reports.db")
    with pytest.raises(CollectionError, match="no store here"):
        open_store(f"sqlite:///{tmp_path}/reports.db", create=False)
    (tmp_path / "text.db").write_text("not a database at all, " * 100, encoding="utf-8")
    with pytest.raises(CollectionError, match="not a store of reports"):
        open_store(f"sqlite:///{tmp_path}/text.db")


def test_a_server_that_is_not_there_is_unavailable() -> None:
    with pytest.raises(StoreUnavailable, match="cannot be used now") as wrong:
        open_store("postgresql://somebody:secret@127.0.0.1:9/reports")
    assert "secret" not in str(wrong.value)


def test_only_the_owner_reads_the_file(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/reports.db")
    begin(store)
    store.append([report(1)])
    assert all(path.stat().st_mode & 0o077 == 0 for path in tmp_path.glob("reports.db*"))
    store.close()


def test_a_full_disk_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/reports.db")
    begin(store)
    store._db.execute("PRAGMA max_page_count=60")  # type: ignore[attr-defined]
    acknowledged = 0

    def fill() -> None:
        nonlocal acknowledged
        for start in range(0, 100_000, 100):
            store.append([report(number, bytes(100)) for number in range(start, start + 100)])
            acknowledged += 100

    with pytest.raises(StoreUnavailable, match="no space is left"):
        fill()
    assert acknowledged > 0
    assert store.counts(C).reports == acknowledged
    store._db.execute("PRAGMA max_page_count=1000000")  # type: ignore[attr-defined]
    assert store.append([report(200_000, b"x")]) == [Outcome.STORED]
    store.close()


@pytest.mark.postgres
def test_a_server_without_fsync_is_refused(postgres: postgres_server.PostgresServer) -> None:
    address = postgres.new_database()
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET fsync = off")
        connection.execute("SELECT pg_reload_conf()")
    try:
        for _ in range(100):
            with psycopg.connect(address) as connection:
                if connection.execute("SHOW fsync").fetchone() == ("off",):
                    break
        with pytest.raises(CollectionError, match="fsync = off"):
            open_store(address)
    finally:
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM RESET fsync")
            connection.execute("SELECT pg_reload_conf()")


@pytest.mark.postgres
def test_a_commit_is_on_the_disk_whatever_the_database_is_told(postgres: postgres_server.PostgresServer) -> None:
    address = postgres.new_database()
    with psycopg.connect(address, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(f"ALTER DATABASE {name} SET synchronous_commit = off".encode())
    store = open_store(address)
    assert store._one("SHOW synchronous_commit") == "on"  # type: ignore[attr-defined]
    store.forget()  # type: ignore[attr-defined]
    assert store._one("SHOW synchronous_commit") == "on"  # type: ignore[attr-defined]
    store.close()


@pytest.mark.postgres
def test_after_closing_nothing_in_the_database_tells_the_order_of_arrival(
    postgres: postgres_server.PostgresServer,
) -> None:
    address = postgres.new_database()
    store = open_store(address)
    begin(store)
    store.invite(C, [key(number) for number in range(30)])
    for number in range(30):
        store.append([report(number, spends=key(number))])
    query = "SELECT id, ctid::text, xmin::text FROM reports ORDER BY reports.ctid"
    with psycopg.connect(address, autocommit=True) as connection:
        before = connection.execute(query).fetchall()
        store.move(C, State.CLOSED)
        after = connection.execute(query).fetchall()
        spent = connection.execute("SELECT hash, xmin::text FROM spent ORDER BY ctid").fetchall()
    assert [row[0] for row in before] == [key(number) for number in range(30)]
    assert [row[0] for row in after] == sorted(map(key, range(30)))
    assert len({row[2] for row in before}) == 30
    assert len({row[2] for row in after}) == 1
    assert [row[0] for row in spent] == sorted(map(key, range(30)))
    assert len({row[1] for row in spent}) == 1
    store.close()
