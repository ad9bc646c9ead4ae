"""Issuing tokens over HTTP: one blind signature for every invitation, the same one if a device asks again.

    POST /v1/campaigns/ID/tokens     {"invitation": CODE, "blinded": base64url}
    200 {"signature": base64url}     401 no such invitation     409 used for another token     400 anything else

What is kept is a hash of each code and, once it was used, one of the blinded message. The blinded message says nothing
about the token, so what is kept leads to no report.
"""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from polyseme.collection.invitations import code_hash
from polyseme.collection.issuer import IssuerKey
from polyseme.device.bhttp import Response
from polyseme.device.tokens import from_text, to_text
from polyseme.errors import ChannelError
from polyseme.secret_files import reserve

__all__ = ["Invited", "Issuer"]

_PATH = re.compile(r"/v1/campaigns/([A-Za-z0-9_-]{43})/tokens")
_JSON = "application/json"

Spent = Literal["signed", "used", "unknown"]


class Invited:
    """The invitations of an issuer, in a file of their own (SQLite)."""

    def __init__(self, file: Path) -> None:
        self._lock = threading.Lock()
        # The hashes of invitations are for the issuer alone.
        reserve(file)
        self._database = sqlite3.connect(file, check_same_thread=False, isolation_level=None)
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = FULL")
        # Ordered by the hash of the code, so that the file does not say who came first.
        columns = "code BLOB PRIMARY KEY, message BLOB"
        self._database.execute(f"CREATE TABLE IF NOT EXISTS invitations ({columns}) WITHOUT ROWID")

    def add(self, hashes: Iterable[bytes]) -> int:
        """Invite those whose codes have these hashes; returns how many of them are new."""
        with self._transaction() as database:
            before = database.total_changes
            database.executemany("INSERT OR IGNORE INTO invitations (code) VALUES (?)", [(code,) for code in hashes])
            return database.total_changes - before

    def spend(self, code: bytes, blinded: bytes) -> Spent:
        """Use an invitation for a blinded message. On disk when this returns; the same message may be signed again."""
        message = hashlib.sha256(blinded).digest()
        with self._transaction() as database:
            found = database.execute("SELECT message FROM invitations WHERE code = ?", (code,)).fetchone()
            if found is None:
                return "unknown"
            if found[0] not in (None, message):
                return "used"
            database.execute("UPDATE invitations SET message = ? WHERE code = ?", (message, code))
        return "signed"

    def counts(self) -> tuple[int, int]:
        """How many were invited, and how many of them have a token."""
        with self._transaction() as database:
            invited, used = database.execute("SELECT count(*), count(message) FROM invitations").fetchone()
        return int(invited), int(used)

    def close(self) -> None:
        self._database.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        # Immediate: two processes at one file take turns instead of both reading an unused invitation.
        with self._lock:
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield self._database
            except BaseException:
                self._database.execute("ROLLBACK")
                raise
            self._database.execute("COMMIT")


@dataclass(frozen=True)
class Issuer:
    """Who signs tokens for one campaign."""

    campaign: str
    key: IssuerKey
    invited: Invited

    def answer(self, method: str, path: str, media_type: str, body: bytes) -> Response:
        """Answer a request for a token."""
        asked = _PATH.fullmatch(path)
        if asked is None or asked[1] != self.campaign:
            return _problem(404, "No tokens are issued here for such a campaign")
        if method != "POST":
            return _problem(405, "Tokens are asked for by POST")
        if media_type.partition(";")[0].strip() != _JSON:
            return _problem(415, f"Expected {_JSON}")
        return self.issued(body)

    def issued(self, body: bytes) -> Response:
        """Answer the body of a request for a token of this campaign."""
        try:
            code, blinded = _request(self.campaign, body)
            # A message that cannot be signed uses up no invitation, and a device without one gets no signature.
            self.key.check(blinded)
        except ChannelError:
            return _problem(400, "Expected an invitation and a blinded message")
        spent = self.invited.spend(code, blinded) if code is not None else "unknown"
        if spent == "unknown":
            return _problem(401, "No such invitation")
        if spent == "used":
            return _problem(409, "This invitation was used for another token")
        return _answer(200, _JSON, {"signature": to_text(self.key.signed(blinded))})


def _request(campaign: str, body: bytes) -> tuple[bytes | None, bytes]:
    """The hash of the code, or None where it cannot be one, and the blinded message."""
    try:
        given = json.loads(body)
        code, blinded = given["invitation"], given["blinded"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ChannelError("not a request for a token") from None
    if not isinstance(code, str) or not isinstance(blinded, str) or len(given) != 2:
        raise ChannelError("not a request for a token")
    return code_hash(campaign, code), from_text(blinded)


def _problem(status: int, title: str) -> Response:
    return _answer(status, "application/problem+json", {"type": "about:blank", "title": title, "status": status})


def _answer(status: int, media_type: str, content: dict[str, object]) -> Response:
    headers = (("content-type", media_type), ("cache-control", "no-store"))
    return Response(status, headers, json.dumps(content).encode())
