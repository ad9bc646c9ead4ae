"""The way from a device to a collector: direct, or through a relay, and then never direct.

A campaign that names a relay promises that the collector does not learn who sends. So a channel is chosen once, from
the campaign's document, and the one through a relay has no other way: no relay, no key or no answer is an error, and
the report stays in the queue.
"""

from __future__ import annotations

import urllib.error
import urllib.request
from dataclasses import dataclass
from email.message import Message
from http.client import HTTPException
from typing import IO, Protocol
from urllib.parse import urlsplit

from polyseme.device.bhttp import Request, Response
from polyseme.device.ohttp import REQUEST_TYPE, RESPONSE_TYPE, read_configurations, wrapped
from polyseme.errors import ChannelError

__all__ = ["Channel", "Direct", "Relayed", "channel", "posted", "require_address"]

_LONGEST_ANSWER = 1 << 20
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Channel(Protocol):
    """How requests reach a collector."""

    def post(self, path: str, media_type: str, body: bytes) -> Response:
        """Send a body to a path of the collector, such as `/v1/campaigns/ID/reports`; raise where nobody answers."""
        ...


def channel(collector: str, relay: str | None, keys: bytes | None, size: int, timeout: float = 30.0) -> Channel:
    """The channel of a campaign.

    collector  where the collector is, such as `https://collect.example.org`
    relay      the relay that the campaign's document names; with one, nothing is ever sent direct
    keys       the gateway's key configurations, from the campaign's document
    size       bytes of a padded report in this campaign
    """
    require_address(collector)
    if relay is None:
        return Direct(collector, timeout)
    require_address(relay)
    if not keys:
        raise ChannelError(
            "the campaign names a relay but no key of the gateway behind it, so nothing can be sent",
            "those who run it put the gateway's keys into the campaign's document",
        )
    read_configurations(keys)
    return Relayed(collector, relay, keys, size, timeout)


@dataclass(frozen=True)
class Direct:
    """Straight to the collector, which then sees the sender's address."""

    collector: str
    timeout: float = 30.0

    def post(self, path: str, media_type: str, body: bytes) -> Response:
        return posted(self.collector.rstrip("/") + path, media_type, body, self.timeout)


@dataclass(frozen=True)
class Relayed:
    """Sealed for the collector, handed to the relay. There is no other way out of here."""

    collector: str
    relay: str
    keys: bytes
    size: int
    timeout: float = 30.0

    def post(self, path: str, media_type: str, body: bytes) -> Response:
        place = urlsplit(self.collector)
        headers = (("content-type", media_type),)
        request = Request("POST", place.scheme, place.netloc, place.path.rstrip("/") + path, headers, body)
        sealed, opened = wrapped(self.keys, request, self.size)
        answer = posted(self.relay, REQUEST_TYPE, sealed, self.timeout)
        if answer.status != 200 or answer.header("content-type") != RESPONSE_TYPE:
            raise ChannelError(f"the relay answered {answer.status} and brought nothing back from the gateway")
        return opened(answer.body)


def require_address(address: str) -> None:
    """Only encrypted connections, except on this machine."""
    place = urlsplit(address)
    if place.scheme == "https" and place.hostname:
        return
    if place.scheme == "http" and place.hostname in _LOOPBACK:
        return
    raise ChannelError("expected an address that begins with https://", "http:// is for tests on this machine only")


def posted(address: str, media_type: str, body: bytes, timeout: float) -> Response:
    """Post a body, with no header that tells more about the sender than it must."""
    headers = {"Content-Type": media_type, "User-Agent": "polyseme", "Accept": "*/*"}
    request = urllib.request.Request(address, body, headers, method="POST")  # noqa: S310 - see require_address
    try:
        with _opener.open(request, timeout=timeout) as answer:
            return _read(answer.status, answer.headers, answer)
    except urllib.error.HTTPError as refusal:
        with refusal:
            return _read(refusal.code, refusal.headers, refusal)
    except (OSError, HTTPException) as error:
        raise ChannelError(f"nobody answered ({type(error).__name__})", "the report can be sent again later") from None


def _read(status: int, headers: Message, content: IO[bytes]) -> Response:
    kept = tuple((name.lower(), value) for name, value in headers.items())
    return Response(status, kept, content.read(_LONGEST_ANSWER))


class _Stay(urllib.request.HTTPRedirectHandler):
    """Nobody is sent elsewhere: a relay could name the collector, which would then see the sender."""

    def redirect_request(self, *_: object) -> None:
        return None


_opener = urllib.request.build_opener(_Stay)
