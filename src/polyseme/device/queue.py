"""Reports that wait to be sent, on the disk, and the questions that were answered before.

A report is sent as often as it takes, always the same bytes under the same id, and the collector stores it once. So
nothing is lost, and nothing counted twice, whenever the device dies.

The file holds sets and ids, never a true value. The id of a report is enough to withdraw it, so only the owner may read
the file. It also holds which questions were answered, to notice a second campaign that asks the same.

Two independent sets of one answer can be intersected. A device keeps no answers. It remembers which protected questions
it sent sets for: the name of the column, a sketch of its labels, and what the set was drawn from. Another campaign asks
*the same question* where the column has the same name, or where the domains have at least five labels and share at
least half of them; upper case and blanks do not count. Its set is independent of the earlier one unless both are sticky
and drawn from the same document in the same stratum.

The sketch holds the smallest hashes of the labels, so the share of labels in common is exact up to 64 labels and an
estimate beyond.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import SystemRandom

from polyseme.device.campaign import Campaign, label_text
from polyseme.device.protected import Protected
from polyseme.device.reports import Report
from polyseme.kernel.errors import CampaignError, Problem

__all__ = ["LONGEST_WAIT", "Question", "Queue", "Queued", "questions_of"]

_KEPT = 64
"""Hashes of a sketch."""
_FEW = 5
"""Domains with fewer labels, such as yes and no, are those of too many questions to tell which one it is."""


@dataclass(frozen=True)
class Question:
    """A question for which a set was sent.

    labels  the smallest hashes of its labels, ascending
    drawn   what a sticky set was drawn from; empty for a fresh one, which is never drawn again
    """

    name: str
    labels: tuple[str, ...]
    drawn: str

    def adds_to(self, earlier: Question) -> bool:
        """Whether a set for this question could be intersected with one for an earlier question."""
        return self._same(earlier) and not (self.drawn and self.drawn == earlier.drawn)

    def _same(self, other: Question) -> bool:
        if _plain(self.name) == _plain(other.name):
            return True
        smallest = sorted({*self.labels, *other.labels})[:_KEPT]
        common = set(self.labels).intersection(other.labels, smallest)
        return min(len(self.labels), len(other.labels)) >= _FEW and 2 * len(common) >= len(smallest)


def questions_of(campaign: Campaign, report: Report) -> list[Question]:
    """The protected questions of a report."""
    return [Question(column.name, _sketch(column), _drawn(campaign, column, report)) for column in campaign.protected]


def _sketch(column: Protected) -> tuple[str, ...]:
    hashes = {hashlib.sha256(_plain(label_text(label)).encode()).hexdigest()[:16] for label in column.labels}
    return tuple(sorted(hashes)[:_KEPT])


def _drawn(campaign: Campaign, column: Protected, report: Report) -> str:
    number = column.placing.stratum(report.open)
    return f"{column.strata[number].fingerprint} {number}" if campaign.collection.sticky else ""


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


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
        body, questions = report.body(campaign.collection.size), questions_of(campaign, report)
        with self._writing() as connection:
            _require_allowed(connection, campaign)
            if not again and (names := _repeats(connection, campaign.id, questions)):
                raise CampaignError(Problem(name, _BEFORE, _AGREE) for name in names)
            connection.executemany(
                "INSERT OR IGNORE INTO asked (campaign, name, drawn, labels) VALUES (?, ?, ?, ?)",
                [(campaign.id, item.name, item.drawn, " ".join(item.labels)) for item in questions],
            )
            connection.execute(
                "INSERT INTO reports (id, campaign, relay, body, due) VALUES (?, ?, ?, ?, ?)",
                (report.id, campaign.id, campaign.collection.relay, body, due),
            )

    def repeats(self, campaign: Campaign, report: Report) -> list[str]:
        """The columns whose sets could be intersected with those sent to other campaigns."""
        with self._writing() as connection:
            return _repeats(connection, campaign.id, questions_of(campaign, report))

    def all(self) -> list[Queued]:
        """Every report, in no order that says anything."""
        return self._found("SELECT * FROM reports")

    def _found(self, query: str, *values: object) -> list[Queued]:
        with self._writing() as connection:
            names = "id, campaign, relay, body, state, due, tries, said"
            rows = connection.execute(query.replace("*", names), values).fetchall()
        return [Queued(*row) for row in rows]

    def claim(self, now: float, lease: float) -> Queued | None:
        """A report that is due, reserved for this caller for `lease` seconds.

        None where there is none.
        """
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


def _repeats(connection: sqlite3.Connection, campaign: str, questions: list[Question]) -> list[str]:
    rows = connection.execute("SELECT name, labels, drawn FROM asked WHERE campaign <> ?", (campaign,)).fetchall()
    earlier = [Question(name, tuple(labels.split()), drawn) for name, labels, drawn in rows]
    return [item.name for item in questions if any(item.adds_to(one) for one in earlier)]
