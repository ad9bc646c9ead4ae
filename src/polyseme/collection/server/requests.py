"""Requests and problem answers: bodies read within limits, errors as in RFC 9457.

A body must not be longer than allowed, must have the right media type, and must arrive in time. No answer repeats
anything of what was sent.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = [
    "PROBLEMS",
    "Gone",
    "ProblemType",
    "Refused",
    "Send",
    "header",
    "media_type",
    "problem_body",
    "read_body",
    "reply",
]

Send = Any
"""What an ASGI server gives an application to answer with."""

PROBLEM_MEDIA_TYPE = b"application/problem+json"
PREFIX = "urn:polyseme:problem:"

ProblemType = str
PROBLEMS: dict[ProblemType, tuple[int, str]] = {
    "malformed": (400, "This is not a report"),
    "token": (401, "An unused invitation is needed"),
    "unauthorized": (401, "A token is needed"),
    "forbidden": (403, "This token may not do that"),
    "direct": (403, "This campaign takes reports through its relay only"),
    "unknown": (404, "There is nothing here"),
    "method": (405, "This cannot be done here"),
    "different": (409, "Another report has this id"),
    "state": (409, "The campaign is in another state"),
    "closed": (410, "The campaign is closed"),
    "withdrawn": (410, "A report with this id was withdrawn"),
    "too-large": (413, "This is longer than any report"),
    "media-type": (415, "This is not the media type of a report"),
    "impossible": (422, "No device of this campaign can have sent this"),
    "refused": (422, "This cannot be done"),
    "rate": (429, "Too many reports from one place"),
    "internal": (500, "A fault of the collector"),
    "not-yet": (503, "The campaign is not open yet"),
    "overloaded": (503, "Too many reports at once"),
    "slow": (503, "The report did not come in time"),
    "unavailable": (503, "The store does not answer now"),
}


class Refused(Exception):
    """An answer that is not yes.

    retry  seconds after which asking again makes sense
    """

    def __init__(self, kind: ProblemType, detail: str = "", retry: float | None = None) -> None:
        super().__init__(kind)
        self.kind, self.detail, self.retry = kind, detail, retry

    @property
    def status(self) -> int:
        return PROBLEMS[self.kind][0]

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        found = [] if self.retry is None else [(b"retry-after", str(max(1, round(self.retry))).encode())]
        if self.status == 401:
            found.append((b"www-authenticate", b"Bearer" if self.kind == "unauthorized" else b"Polyseme-Invitation"))
        return found


def problem_body(kind: ProblemType, detail: str = "") -> bytes:
    """The document of a problem."""
    status, title = PROBLEMS[kind]
    found: dict[str, Any] = {"type": f"{PREFIX}{kind}", "title": title, "status": status}
    return json.dumps({**found, "detail": detail} if detail else found).encode()


async def reply(
    send: Send, status: int, body: bytes, media_type: bytes, headers: Iterable[tuple[bytes, bytes]] = ()
) -> None:
    """One whole answer."""
    fixed = [
        (b"content-type", media_type),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": [*fixed, *headers]})
    await send({"type": "http.response.body", "body": body})


PATIENCE = 20.0
"""Seconds in which a body must have come."""
_LATER = 5.0
"""Seconds after which a sender whose network was too slow should try again."""


class Gone(Exception):
    """The sender has hung up."""


def header(scope: Mapping[str, Any], name: bytes) -> str:
    """A header; empty where there is none."""
    for key, value in scope["headers"]:
        if key == name:
            return str(value.decode("latin-1"))
    return ""


def media_type(scope: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    """The media type of a request and its parameters, in lower case."""
    kind, *parameters = header(scope, b"content-type").lower().split(";")
    pairs = (text.partition("=") for text in parameters)
    return kind.strip(), {name.strip(): value.strip().strip('"') for name, _, value in pairs}


async def read_body(scope: Mapping[str, Any], receive: Any, most: int) -> bytes:
    """The whole body; `Refused` where it is longer than `most`, in a coding, or slow.

    A slow sender may come back.
    """
    if header(scope, b"content-encoding") not in ("", "identity"):
        raise Refused("media-type", "content codings are not taken")
    length = header(scope, b"content-length")
    if length.isdecimal() and int(length[:12]) > most:
        raise Refused("too-large")
    try:
        async with asyncio.timeout(PATIENCE):
            return await _all(receive, most)
    except TimeoutError:
        raise Refused("slow", retry=_LATER) from None


async def _all(receive: Any, most: int) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Gone
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > most:
            raise Refused("too-large")
    return body
