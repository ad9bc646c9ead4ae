"""A gateway in front of the collector's endpoints: they get inner requests as if these had come by themselves.

An inner request has no sender: the connection it came on is the relay's, and its address is not handed on.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from polyseme.collection.ohttp import Gateway
from polyseme.device.bhttp import Headers, Request, Response
from polyseme.device.ohttp import KEYS_TYPE, REQUEST_TYPE, RESPONSE_TYPE
from polyseme.errors import ChannelError

__all__ = ["GATEWAY_PATH", "KEYS_PATH", "relayed", "with_gateway"]

GATEWAY_PATH = "/v1/gateway"
KEYS_PATH = "/v1/ohttp-keys"
"""Where the gateway and its key configurations are."""

_LONGEST = 8_192
"""Bytes of the longest request that is read: a report has at most 4,096, sealed and wrapped."""
_PATH = re.compile(r"/v1/campaigns/[A-Za-z0-9_/-]+")
"""What can be asked for through the gateway: campaigns, nothing of the administration."""
_MARK = "polyseme.relayed"

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


def with_gateway(application: Application, gateway: Gateway) -> Application:
    """The application with a gateway in front: its own two paths are answered here, all else passes."""
    keys = Response(200, (("content-type", KEYS_TYPE), ("cache-control", "no-store")), gateway.configurations())

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        asked = (scope.get("method"), scope.get("path")) if scope["type"] == "http" else None
        if asked == ("GET", KEYS_PATH):
            await _sent(send, keys)
        elif asked == ("POST", GATEWAY_PATH):
            await _sent(send, await _through(application, gateway, scope, receive))
        else:
            await application(scope, receive, send)

    return answer


def relayed(scope: Scope) -> bool:
    """Whether a request came through the gateway: a campaign that names a relay takes no others."""
    return _MARK in (scope.get("extensions") or {})


async def _through(application: Application, gateway: Gateway, scope: Scope, receive: Receive) -> Response:
    """Open a request, let the application answer it, seal the answer. What cannot be opened is answered in clear."""
    if dict(scope["headers"]).get(b"content-type") != REQUEST_TYPE.encode():
        return _problem(415, "about:blank", f"Expected {REQUEST_TYPE}")
    body = await _body(receive)
    if body is None:
        return _problem(413, "about:blank", "The request is too long")
    if not gateway.has_key_of(body):
        return _problem(400, "https://iana.org/assignments/http-problem-types#ohttp-key", "Unknown key configuration")
    try:
        opened = gateway.opened(body)
    except ChannelError:
        return _problem(400, "about:blank", "The request cannot be opened")
    answer = await _asked(application, opened.request, scope)
    return Response(200, (("content-type", RESPONSE_TYPE), ("cache-control", "no-store")), opened.sealed(answer))


async def _asked(application: Application, request: Request, outer: Scope) -> Response:
    """What the application answers to an inner request."""
    path, _, query = request.path.partition("?")
    if not _PATH.fullmatch(path):
        return _problem(404, "about:blank", "Nothing here is reached through the gateway")
    answered = _Answer()
    await application(_scope(request, path, query, outer), _at_once(request.body), answered.take)
    return answered.whole()


def _scope(request: Request, path: str, query: str, outer: Scope) -> Scope:
    """An inner request as ASGI sees one. It has no sender: the address of the connection is the relay's."""
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in request.headers]
    headers = [line for line in headers if line[0] not in (b"host", b"content-length")]
    headers.append((b"host", request.authority.encode("latin-1")))
    headers.append((b"content-length", str(len(request.body)).encode()))
    kept = {key: outer[key] for key in ("asgi", "http_version", "root_path", "server", "state") if key in outer}
    own = {"type": "http", "method": request.method, "scheme": "https", "path": path, "client": None}
    raw = {"raw_path": path.encode("latin-1"), "query_string": query.encode("latin-1"), "headers": headers}
    return {**kept, **own, **raw, "extensions": {_MARK: {}}}


def _at_once(body: bytes) -> Receive:
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        # A caller that waits for the end of the connection waits until the answer is there: it never ends in here.
        return messages.pop() if messages else await asyncio.get_running_loop().create_future()

    return receive


class _Answer:
    """Collects what an application sends."""

    def __init__(self) -> None:
        self._status, self._headers, self._body = 500, list[tuple[bytes, bytes]](), b""

    async def take(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status, self._headers = message["status"], list(message.get("headers", ()))
        elif message["type"] == "http.response.body":
            self._body += message.get("body", b"")

    def whole(self) -> Response:
        headers: Headers = tuple(
            (name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in self._headers
        )
        return Response(self._status, headers, self._body)


async def _body(receive: Receive) -> bytes | None:
    """The whole body, or None where it is too long."""
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > _LONGEST:
            return None
    return body


async def _sent(send: Send, response: Response) -> None:
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in response.headers]
    headers.append((b"content-length", str(len(response.body)).encode()))
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": response.body})


def _problem(status: int, kind: str, title: str) -> Response:
    body = json.dumps({"type": kind, "title": title, "status": status}).encode()
    return Response(status, (("content-type", "application/problem+json"),), body)
