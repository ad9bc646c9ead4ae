"""The way to a collector through a relay, and no other.

A campaign that names a relay promises that the collector does not learn who sends. `Relayed` is a transport for
`sending.send` that has only this way: no key is an error before anything is sent, and where the relay or the gateway
does not answer nothing has come back, and the report stays in the queue.
"""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.message import Message
from http.client import HTTPException
from typing import IO
from urllib.parse import urlsplit

from polyseme.device.bhttp import Request, Response
from polyseme.device.ohttp import REQUEST_TYPE, RESPONSE_TYPE, read_configurations, wrapped
from polyseme.errors import ChannelError

__all__ = ["Relayed", "Reply", "posted", "require_address"]

_LONGEST_ANSWER = 1 << 20
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class Reply:
    """What the collector answered; header names in lower case."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Relayed:
    """Sealed for the collector, handed to the relay.

    relay  its address, from the campaign's document
    keys   the gateway's key configurations, from the campaign's document
    size   bytes of a padded report in this campaign: all requests have the same length
    """

    relay: str
    keys: bytes = field(repr=False)
    size: int
    timeout: float = 30.0

    def __post_init__(self) -> None:
        require_address(self.relay)
        if not self.keys:
            raise ChannelError(
                "the campaign names a relay but no key of the gateway behind it, so nothing can be sent",
                "those who run it put the gateway's key into the campaign's document",
            )
        read_configurations(self.keys)

    def post(self, url: str, body: bytes, media_type: str) -> Reply:
        """Post to the collector through the relay; raise `OSError` where nothing came back."""
        place = urlsplit(url)
        request = Request("POST", place.scheme, place.netloc, place.path, (("content-type", media_type),), body)
        sealed, opened = wrapped(self.keys, request, self.size)
        answer = posted(self.relay, REQUEST_TYPE, sealed, self.timeout)
        if answer.status != 200 or answer.header("content-type") != RESPONSE_TYPE:
            raise ConnectionError(f"the relay answered {answer.status} and brought nothing back from the gateway")
        try:
            inner = opened(answer.body)
        except ChannelError as error:
            raise ConnectionError(str(error)) from None
        return Reply(inner.status, dict(inner.headers))


def require_address(address: str) -> None:
    """Only encrypted connections, except on this machine."""
    place = urlsplit(address)
    if place.scheme == "https" and place.hostname:
        return
    if place.scheme == "http" and place.hostname in _LOOPBACK:
        return
    raise ChannelError("expected an address that begins with https://", "http:// is for tests on this machine only")


def posted(address: str, media_type: str, body: bytes, timeout: float) -> Response:
    """Post a body with no header that tells about the sender; raise `OSError` where there is no answer."""
    headers = {"Content-Type": media_type, "User-Agent": "polyseme-device", "Accept": "*/*"}
    request = urllib.request.Request(address, body, headers, method="POST")  # noqa: S310 - see `require_address`
    try:
        with _opener.open(request, timeout=timeout) as answer:
            return _read(answer.status, answer.headers, answer)
    except urllib.error.HTTPError as refusal:
        with refusal:
            return _read(refusal.code, refusal.headers, refusal)
    except HTTPException as error:
        raise ConnectionError(f"the answer broke off: {type(error).__name__}") from None


def _read(status: int, headers: Message, content: IO[bytes]) -> Response:
    kept = tuple((name.lower(), value) for name, value in headers.items())
    return Response(status, kept, content.read(_LONGEST_ANSWER))


class _Stay(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: a relay could name the collector, which would then see the sender."""

    def redirect_request(self, *_: object) -> None:
        return None


_opener = urllib.request.build_opener(_Stay)
