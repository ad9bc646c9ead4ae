"""Sending what waits in a queue, until the collector has it.

A report is stored when the collector says so (201, or 200 when it had it already), refused when it says that it never
will be, and tried again otherwise. A campaign that names a relay is never sent to directly: without a transport through
that very relay nothing leaves the device.
"""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from random import SystemRandom
from typing import Protocol
from urllib.parse import urlsplit

from polyseme.device.campaign import MEDIA_TYPE, Campaign
from polyseme.device.ohttp import Relayed, Reply
from polyseme.device.queue import Queue, Queued
from polyseme.device.tokens import from_text
from polyseme.kernel.errors import CampaignError

__all__ = ["Direct", "Reply", "Sent", "Transport", "send", "transport_of", "withdraw"]

_TIMEOUT = 30.0
_LONGEST_BACKOFF = 3_600.0
_LONGEST_ANSWER = 1 << 16
_PROBLEM = "urn:polyseme:problem:"
_REFUSED = {
    400: "the collector cannot read the report",
    401: "the token is missing, not valid or used already",
    404: "the collector does not know this campaign",
    409: "the collector has another report under this id",
    410: "the campaign is closed, or the report was withdrawn",
    413: "the report is longer than the collector takes",
    415: "the collector takes no reports of this format",
    422: "no device of this campaign can have sent this report",
}
"""Answers that another try would not change."""


class Transport(Protocol):
    """A way to the collector.

    relay  the address of the relay that it goes through; None for none
    """

    @property
    def relay(self) -> str | None: ...

    def post(self, url: str, body: bytes, media_type: str) -> Reply:
        """Post, and raise `OSError` where nothing came back."""
        ...


def transport_of(campaign: Campaign) -> Transport:
    """The transport of a campaign's reports: through its relay where it names one, else direct."""
    settings = campaign.collection
    if settings.relay is None:
        return Direct()
    return Relayed(settings.relay, from_text(settings.gateway or ""), settings.size)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A report goes where it was meant to go, or nowhere."""

    def redirect_request(self, *_: object) -> None:
        return None


class Direct:
    """Straight to the collector, over TLS; without it only to this machine."""

    relay: str | None = None

    def __init__(self, timeout: float = _TIMEOUT) -> None:
        self.timeout = timeout
        self._opener = urllib.request.build_opener(_NoRedirects)

    def post(self, url: str, body: bytes, media_type: str) -> Reply:
        headers = {"Content-Type": media_type, "User-Agent": "polyseme-device"}
        request = urllib.request.Request(url, body, headers, method="POST")  # noqa: S310 - checked by `_require_safe`
        try:
            with self._opener.open(request, timeout=self.timeout) as answer:
                return _own(answer.status, answer.headers, answer.read(_LONGEST_ANSWER))
        except urllib.error.HTTPError as error:
            with error:
                return _own(error.code, error.headers, error.read(_LONGEST_ANSWER))
        except http.client.HTTPException as error:
            raise OSError(f"the answer broke off: {type(error).__name__}") from None


def _own(status: int, headers: object, body: bytes) -> Reply:
    """The collector's answer; `OSError` for an answer of another server.

    The page of a hotel's network answers everything with 200, a proxy with a 403 of its own: neither has the report.
    """
    try:
        said = json.loads(body)
    except ValueError:
        said = None
    said = said if isinstance(said, dict) else {}
    yes = 200 <= status < 300 and said.get("status") in ("stored", "withdrawn")
    no = 400 <= status < 500 and str(said.get("type")).startswith(_PROBLEM)
    if (status < 300 and not yes) or (400 <= status < 500 and status != 429 and not no):
        raise OSError("this is not an answer of a collector")
    return Reply(status, _lower(headers))


def _lower(headers: object) -> dict[str, str]:
    items = headers.items() if hasattr(headers, "items") else ()
    return {str(name).lower(): str(value) for name, value in items}


@dataclass(frozen=True)
class Sent:
    """What became of the reports of one call."""

    stored: int = 0
    refused: int = 0
    waiting: int = 0
    reasons: tuple[str, ...] = ()


def send(
    queue: Queue,
    address: str,
    transport: Transport | None = None,
    wait: bool = False,
    now: Callable[[], float] = time.time,
    sleep: Callable[[float], None] = time.sleep,
) -> Sent:
    """Send every report that is due.

    address  of the collector, as https://collector.example
    wait     go on until none is left, sleeping until the next may be sent

    Raises `CampaignError` before anything is sent where a campaign names a relay and the transport goes another way.
    """
    _require_safe(address)
    way = Direct() if transport is None else transport
    _require_relays(queue, way)
    found: list[tuple[str, str]] = []
    while True:
        item = queue.claim(now(), _lease(way))
        if item is None:
            due = queue.next_due() if wait else None
            if due is None:
                break
            sleep(max(min(due - now(), 60.0), 0.05))
            continue
        _require_relay(item, way)
        outcome = _tried(queue, item, address, way, now)
        if outcome is not None:
            found.append(outcome)
    left = sum(item.state == "waiting" for item in queue.all())
    states = [state for state, _ in found]
    reasons = tuple(dict.fromkeys(said for _, said in found if said))
    return Sent(states.count("stored"), states.count("refused"), left, reasons)


def _lease(way: Transport) -> float:
    """Longer than a try takes: other senders of this queue leave the report alone so long."""
    return 2.0 * float(getattr(way, "timeout", _TIMEOUT)) + 5.0


def _require_safe(address: str) -> None:
    parts = urlsplit(address)
    local = parts.hostname in ("localhost", "127.0.0.1", "::1")
    if not parts.hostname or parts.scheme not in ("https", "http") or (parts.scheme == "http" and not local):
        raise CampaignError("the address of a collector begins with https://", "http:// only on this machine itself")


def _require_relays(queue: Queue, way: Transport) -> None:
    for item in queue.all():
        if item.state == "waiting":
            _require_relay(item, way)


def _require_relay(item: Queued, way: Transport) -> None:
    if item.relay != way.relay:
        named = "a relay" if item.relay else "no relay"
        raise CampaignError(
            f"the campaign names {named}, and reports go no other way: nothing was sent",
            "send(queue, address, transport_of(campaign))" if item.relay else "send it without a relay",
        )


def _tried(
    queue: Queue, item: Queued, address: str, way: Transport, now: Callable[[], float]
) -> tuple[str, str] | None:
    """One try; what became of the report, or None where it still waits."""
    url = f"{address.rstrip('/')}/v1/campaigns/{item.campaign}/reports"
    try:
        reply = way.post(url, item.body, MEDIA_TYPE)
    except OSError:
        queue.postpone(item.id, now() + _backoff(item.tries), "the collector could not be reached")
        return None
    if reply.status in (200, 201):
        queue.settle(item.id, "stored")
        return "stored", ""
    if reply.status in _REFUSED:
        queue.settle(item.id, "refused", _REFUSED[reply.status])
        return "refused", _REFUSED[reply.status]
    pause = max(_retry_after(reply, now()), _backoff(item.tries))
    queue.postpone(item.id, now() + pause, f"the collector asks to come back (status {reply.status})")
    return None


def _backoff(tries: int) -> float:
    """Twice as long after every try, and never at the same moment as other devices."""
    return float(min(2.0 ** min(tries, 20), _LONGEST_BACKOFF) * SystemRandom().uniform(0.5, 1.0))


def _retry_after(reply: Reply, now: float) -> float:
    """Seconds that the collector asks for: a number, or a date."""
    value = reply.headers.get("retry-after", "").strip()
    if value.isdecimal():
        return min(float(value), _LONGEST_BACKOFF)
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return 0.0
    seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - datetime.fromtimestamp(now, UTC)
    return min(max(seconds.total_seconds(), 0.0), _LONGEST_BACKOFF)


def withdraw(queue: Queue, address: str, id: str, transport: Transport | None = None) -> bool:  # noqa: A002
    """Take a report back, as long as the campaign is open; whether it is gone now.

    One that was never sent only leaves the queue.
    """
    _require_safe(address)
    way = Direct() if transport is None else transport
    item = next((item for item in queue.all() if item.id == id), None)
    if item is None:
        raise CampaignError("no report with this id in the queue")
    if item.state == "waiting" and item.tries == 0:
        queue.forget(id)
        return True
    _require_relay(item, way)
    url = f"{address.rstrip('/')}/v1/campaigns/{item.campaign}/withdrawals"
    try:
        reply = way.post(url, json.dumps({"id": id}).encode(), "application/json")
    except OSError:
        return False
    if reply.status == 200:
        queue.forget(id)
    return reply.status == 200
