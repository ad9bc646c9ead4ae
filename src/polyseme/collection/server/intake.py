"""The two endpoints that devices write to, as plain ASGI applications for speed."""

from __future__ import annotations

import logging
from typing import Any

from polyseme.collection.gateway import relayed
from polyseme.collection.server.collector import Collector, Known
from polyseme.collection.server.requests import (
    PROBLEM_MEDIA_TYPE,
    Gone,
    Refused,
    media_type,
    problem_body,
    read_body,
    reply,
)
from polyseme.collection.store import Entry, Outcome
from polyseme.collection.store.group_commit import Overloaded
from polyseme.collection.survey import Impossible, Malformed, TokenNeeded, read_id, read_object
from polyseme.device.terms import LARGEST_REPORT
from polyseme.kernel.errors import StoreUnavailable

__all__ = ["REPORT_MEDIA_TYPE", "Reports", "Withdrawals"]

REPORT_MEDIA_TYPE = "application/vnd.polyseme.report+json"
_JSON = b"application/json"
_ANY_ORIGIN = (b"access-control-allow-origin", b"*")
"""Pages of others may send reports: there are no cookies here that they could misuse."""
_TAKEN = {
    Outcome.STORED: (201, b'{"status":"stored"}'),
    Outcome.SAME: (200, b'{"status":"stored"}'),
    Outcome.WITHDRAWN: (200, b'{"status":"withdrawn"}'),
}
_REFUSED = {
    Outcome.DIFFERENT: "different",
    Outcome.TOMBSTONED: "withdrawn",
    Outcome.UNINVITED: "token",
    Outcome.IMPOSSIBLE: "impossible",
    Outcome.CLOSED: "closed",
}

_log = logging.getLogger(__name__)


class _Endpoint:
    """Takes something for a campaign, and answers when it is stored."""

    name: str

    def __init__(self, collector: Collector) -> None:
        self.collector = collector

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        try:
            status, body = await self._taken(scope, receive)
            media, headers = _JSON, [_ANY_ORIGIN]
        except Gone:
            return
        except Refused as refused:
            status, body, media = refused.status, problem_body(refused.kind, refused.detail), PROBLEM_MEDIA_TYPE
            headers = [_ANY_ORIGIN, *refused.headers]
        self.collector.metrics.answered(self.name, status)
        await reply(send, status, body, media, headers)

    async def _taken(self, scope: dict[str, Any], receive: Any) -> tuple[int, bytes]:
        try:
            outcome = await self.collector.writer.submit(await self._entry(scope, receive))
        except Malformed as error:
            raise Refused("malformed", str(error)) from None
        except Impossible as error:
            raise Refused("impossible", str(error)) from None
        except TokenNeeded as error:
            raise Refused("token", str(error)) from None
        except Overloaded:
            raise Refused("overloaded", retry=2) from None
        except StoreUnavailable:
            raise Refused("unavailable", retry=5) from None
        except (Refused, Gone):
            raise
        except Exception as error:  # noqa: BLE001 - a fault of ours; its text may quote what was sent
            _log.error("a report met a fault: %s", type(error).__name__)
            raise Refused("internal") from None
        if outcome in _REFUSED:
            if outcome is Outcome.CLOSED:
                self.collector.forget(scope["path_params"]["campaign"])
            raise Refused(_REFUSED[outcome])
        return _TAKEN[outcome]

    async def _entry(self, scope: dict[str, Any], receive: Any) -> Entry:
        raise NotImplementedError

    async def _known(self, scope: dict[str, Any]) -> Known:
        """The campaign, if it is open and this is the way that its reports take."""
        known = await self.collector.known(scope["path_params"]["campaign"])
        self.collector.require_open(known)
        if known.survey.relay is not None and not relayed(scope):
            raise Refused("direct")
        return known

    def _limit(self, scope: dict[str, Any]) -> None:
        """Raise for a sender who writes too often; the address goes no further than this. A relay hides it."""
        if relayed(scope):
            return
        client = scope.get("client")
        wait = self.collector.limits.wait(client[0] if client else "")
        if wait:
            raise Refused("rate", retry=wait)


class Reports(_Endpoint):
    """`POST /v1/campaigns/{campaign}/reports`."""

    name = "reports"

    async def _entry(self, scope: dict[str, Any], receive: Any) -> Entry:
        self._limit(scope)
        kind, parameters = media_type(scope)
        if kind != REPORT_MEDIA_TYPE or parameters != {"v": "1"}:
            raise Refused("media-type", f"expected {REPORT_MEDIA_TYPE};v=1")
        known = await self._known(scope)
        return known.survey.entry(await read_body(scope, receive, LARGEST_REPORT))


class Withdrawals(_Endpoint):
    """`POST /v1/campaigns/{campaign}/withdrawals`: withdraw a report by its id."""

    name = "withdrawals"

    async def _entry(self, scope: dict[str, Any], receive: Any) -> Entry:
        self._limit(scope)
        if media_type(scope)[0] != "application/json":
            raise Refused("media-type", "expected application/json")
        known = await self._known(scope)
        given = read_object(await read_body(scope, receive, LARGEST_REPORT))
        if given.keys() != {"id"}:
            raise Malformed("a withdrawal has the id of a report, and nothing else")
        return Entry(known.kept.id, read_id(given["id"]), None)
