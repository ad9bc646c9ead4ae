"""Reports that wait to be sent, on the disk: what was put here survives whatever ends the program.

A report is sent as often as it takes, always the same bytes under the same id, and the collector stores it once. So
nothing is lost, and nothing counted twice, whenever the device dies.

The file holds sets and ids, never a true value. The id of a report is enough to withdraw it, so only the owner may
read the file. It also holds which questions were answered: a second campaign that asks the same is noticed.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import SystemRandom

from polyseme.device.campaign import Campaign
from polyseme.device.recurrence import Asked, asked_by
from polyseme.device.reports import Report
from polyseme.errors import CampaignError, Problem

__all__ = ["LONGEST_WAIT", "Queue", "Queued"]

LONGEST_WAIT = 8 * 24 * 3600.0
"""No report waits longer than this for its moment: the clock has been put back."""

_SCHEMAS = (
    """
CREATE TABLE IF NOT EXISTS reports (
    id TEXT PRIMARY KEY, campaign TEXT NOT NULL, relay TEXT, body BLOB NOT NULL,
    state TEXT NOT NULL DEFAULT 'waiting', due REAL NOT NULL, tries INTEGER NOT NULL DEFAULT 0,
    said TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID
""",
    """
CREATE TABLE IF NOT EXISTS asked (
    campaign TEXT NOT NULL, name TEXT NOT NULL, drawn TEXT NOT NULL, labels TEXT NOT NULL,
    PRIMARY KEY (campaign, name, drawn)
) WITHOUT ROWID
""",
)
_BEFORE = "this device has answered this question for another campaign, and both sets could be intersected"
_AGREE = "tell the person, and put the report with again=True if they agree"
_BUSY = 30.0
"""Seconds to wait for another process that uses the same file."""


@dataclass(frozen=True)
class Queued:
    """A report in the queue.

    relay  through which alone it may be sent; None where it goes to the collector itself
    state  waiting, stored (the collector said so) or refused
    due    when it may be sent, in seconds since 1970
    said   why it is not stored yet, or was refused
    """

    id: str = field(repr=False)
    campaign: str
    relay: str | None
    body: bytes = field(repr=False)
    state: str
    due: float
    tries: int
    said: str


class Queue:
    """A file of reports; any number of processes may use it."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        # The file exists with narrow permissions before anything is in it.
        os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        with self._writing() as connection:
            for schema in _SCHEMAS:
                connection.execute(schema)

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction, on the disk when the block ends."""
        connection = sqlite3.connect(self.path, timeout=_BUSY, isolation_level=None)
        try:
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")
        except sqlite3.DatabaseError as error:
            raise CampaignError(f"{self.path}: the queue cannot be used ({error})", "is the disk full?") from None
        finally:
            # What was not committed is undone.
            connection.close()

    def put(self, campaign: Campaign, report: Report, now: float | None = None, again: bool = False) -> None:
        """Keep a report; it is on the disk when this returns.

        It is sent after a random part of the campaign's delay, so that the moment of sending does not tell the moment
        of answering.

        again  whether the person agrees where `repeats` names a question, or the queue serves many people; otherwise
               such a report is refused
        """
        delay = SystemRandom().uniform(0.0, campaign.collection.delay) if campaign.collection.delay else 0.0
        due = (time.time() if now is None else now) + delay
        body, asked = report.body(campaign.collection.size), asked_by(campaign, report)
        with self._writing() as connection:
            _require_allowed(connection, campaign)
            if not again and (names := _repeats(connection, campaign.id, asked)):
                raise CampaignError(Problem(name, _BEFORE, _AGREE) for name in names)
            connection.executemany(
                "INSERT OR IGNORE INTO asked (campaign, name, drawn, labels) VALUES (?, ?, ?, ?)",
                [(campaign.id, item.name, item.drawn, " ".join(item.labels)) for item in asked],
            )
            connection.execute(
                "INSERT INTO reports (id, campaign, relay, body, due) VALUES (?, ?, ?, ?, ?)",
                (report.id, campaign.id, campaign.collection.relay, body, due),
            )

    def repeats(self, campaign: Campaign, report: Report) -> list[str]:
        """The columns whose sets could be intersected with those that this device sent to other campaigns."""
        with self._writing() as connection:
            return _repeats(connection, campaign.id, asked_by(campaign, report))

    def all(self) -> list[Queued]:
        """Every report, in no order that says anything."""
        return self._found("SELECT * FROM reports")

    def _found(self, query: str, *values: object) -> list[Queued]:
        with self._writing() as connection:
            names = "id, campaign, relay, body, state, due, tries, said"
            rows = connection.execute(query.replace("*", names), values).fetchall()
        return [Queued(*row) for row in rows]

    def claim(self, now: float, lease: float) -> Queued | None:
        """A report that is due, reserved for this caller for `lease` seconds; None where there is none."""
        with self._writing() as connection:
            row = connection.execute(
                "SELECT id FROM reports WHERE state = 'waiting' AND (due <= ? OR due > ?) ORDER BY due LIMIT 1",
                (now, now + LONGEST_WAIT),
            ).fetchone()
            if row is None:
                return None
            connection.execute("UPDATE reports SET due = ?, tries = tries + 1 WHERE id = ?", (now + lease, row[0]))
        return self._found("SELECT * FROM reports WHERE id = ?", row[0])[0]

    def settle(self, id: str, state: str, said: str = "") -> None:  # noqa: A002 - the report's own word
        """Note that a report is stored, or was refused for good."""
        with self._writing() as connection:
            connection.execute("UPDATE reports SET state = ?, said = ? WHERE id = ?", (state, said, id))

    def postpone(self, id: str, due: float, said: str) -> None:  # noqa: A002
        """Try again later."""
        with self._writing() as connection:
            connection.execute("UPDATE reports SET due = ?, said = ? WHERE id = ?", (due, said, id))

    def next_due(self) -> float | None:
        """When the next waiting report may be sent; None where none waits."""
        with self._writing() as connection:
            row = connection.execute("SELECT min(due) FROM reports WHERE state = 'waiting'").fetchone()
        return None if row[0] is None else float(row[0])

    def forget(self, id: str) -> None:  # noqa: A002
        """Remove a report; one that was stored can then no longer be withdrawn from here."""
        with self._writing() as connection:
            connection.execute("DELETE FROM reports WHERE id = ?", (id,))


def _require_allowed(connection: sqlite3.Connection, campaign: Campaign) -> None:
    """Refuse more reports of a device than the campaign allows: readers count on it."""
    most = campaign.collection.most
    query = "SELECT count(*) FROM reports WHERE campaign = ? AND state <> 'refused'"
    if most is None or connection.execute(query, (campaign.id,)).fetchone()[0] < most:
        return
    times = "one report" if most == 1 else f"{most:,} reports"
    raise CampaignError(f"this campaign takes {times} of a device", "withdraw the earlier one to answer again")


def _repeats(connection: sqlite3.Connection, campaign: str, asked: list[Asked]) -> list[str]:
    rows = connection.execute("SELECT name, labels, drawn FROM asked WHERE campaign <> ?", (campaign,)).fetchall()
    earlier = [Asked(name, tuple(labels.split()), drawn) for name, labels, drawn in rows]
    return [item.name for item in asked if any(item.adds_to(one) for one in earlier)]
