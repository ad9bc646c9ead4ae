"""Access to the workbench: only for this machine's browser with the printed token.

A page on another host can make a browser send requests to loopback. So `Host` must be exactly ours (DNS rebinding),
`Sec-Fetch-Site` must not name another site, there is no cookie that could be sent along, and everything that reads or
changes something needs the token. The token is in the fragment of the printed address, which no server and no log sees.
Downloads are links, which cannot carry a header: they have a ticket instead, for one use within a minute.
"""

from __future__ import annotations

import hmac
import json
import secrets
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

__all__ = ["HEADERS", "MOST_BYTES", "Guard", "Tickets", "new_token", "problem"]

Scope = MutableMapping[str, Any]
Application = Callable[[Scope, Any, Any], Awaitable[None]]

MOST_BYTES = 4 << 20
"""Of a request: the text of a policy with 70,000 codes has 2 MB."""
_SECONDS = 60.0
"""For which a ticket is good."""

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
        "trusted-types 'none'"
    ),
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
"""On every answer."""


def new_token() -> str:
    """A token of 256 bits."""
    return secrets.token_urlsafe(32)


def problem(status: int, title: str, **more: Any) -> tuple[int, dict[str, Any]]:
    """The status and the document of a problem (RFC 9457)."""
    return status, {"type": "about:blank", "title": title, "status": status, **more}


class Guard:
    """Answers what may not pass; everything else goes on to the application.

    host   the only `Host` that is answered, with its port
    token  of the requests below /api/
    """

    def __init__(self, app: Application, host: str, token: str) -> None:
        self._app, self._host, self._token = app, host, token

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        refused = self._refused(scope)
        if refused is None:
            await self._app(scope, receive, _with_headers(send))
            return
        await _answer(_with_headers(send), *refused)

    def _refused(self, scope: Scope) -> tuple[int, dict[str, Any]] | None:
        hosts = _headers(scope, b"host")
        if hosts != [self._host]:
            return problem(421, "This address is not the workbench's", detail="Open the address that was printed.")
        if any(site not in ("same-origin", "none") for site in _headers(scope, b"sec-fetch-site")):
            return problem(403, "Another site asked for this")
        if scope["method"] not in ("GET", "POST"):
            return problem(405, "This cannot be done here")
        if scope["method"] == "POST" and not _is_json(scope):
            return problem(415, "Only JSON is read here")
        lengths = [value for value in _headers(scope, b"content-length") if value.isdecimal()]
        if any(int(value[:12]) > MOST_BYTES for value in lengths):
            return problem(413, "This is longer than any policy")
        if scope["path"].startswith("/api/") and not self._has_token(scope):
            return problem(401, "This page belongs to a workbench that has ended")
        return None

    def _has_token(self, scope: Scope) -> bool:
        given = _headers(scope, b"authorization")
        return len(given) == 1 and hmac.compare_digest(given[0].encode(), f"Bearer {self._token}".encode())


def _headers(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]


def _is_json(scope: Scope) -> bool:
    kinds = _headers(scope, b"content-type")
    return len(kinds) == 1 and kinds[0].partition(";")[0].strip().lower() == "application/json"


def _with_headers(send: Any) -> Any:
    """The same `send`, which adds our headers to answers that do not have them."""

    async def sent(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            own = {key.lower() for key, _ in message.get("headers", ())}
            missing = [(key.encode(), value.encode()) for key, value in HEADERS.items() if key.encode() not in own]
            message = {**message, "headers": [*message.get("headers", ()), *missing]}
        await send(message)

    return sent


async def _answer(send: Any, status: int, document: dict[str, Any]) -> None:
    body = json.dumps(document).encode()
    headers = [(b"content-type", b"application/problem+json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class Tickets:
    """Links to downloads: each is good once, for a minute.

    >>> tickets = Tickets()
    >>> one = tickets.issue("policy")
    >>> tickets.redeem(one), tickets.redeem(one)
    ('policy', None)
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._issued: dict[str, tuple[str, float]] = {}

    def issue(self, name: str) -> str:
        """A ticket for a download of this name."""
        now = self._clock()
        self._issued = {key: kept for key, kept in self._issued.items() if kept[1] > now}
        ticket = secrets.token_urlsafe(32)
        self._issued[ticket] = name, now + _SECONDS
        return ticket

    def redeem(self, ticket: str) -> str | None:
        """The name that a ticket is for; None where it is unknown, used or too old."""
        name, until = self._issued.pop(ticket, ("", 0.0))
        return name if until > self._clock() else None
