"""Reading what was sent: not longer than allowed, of the right media type, and not for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from polyseme.collection.server.problems import Refused

__all__ = ["Gone", "header", "media_type", "read_body"]

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
    """The whole body; `Refused` where it is longer than `most`, in a coding, or slow: then the sender may come back."""
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
