"""The collector's gateway and the relay of oblivious HTTP (RFC 9458), and their server.

The gateway opens what a relay brings and stands in front of the collector's endpoints: they get inner requests as if
these had come by themselves. An inner request has no sender: the connection it came on is the relay's, and its address
is not passed on.

A request that is sent again is not refused here: it is a report under the same id, a withdrawal of the same id or the
same blinded token, and each of these has the same effect as once. A gateway needs no memory of what it has seen, and a
relay that replays a request only learns the length of an answer, which is that of all others.

Keys rotate with campaigns: a campaign's document pins the key configurations, so that no respondent can be given a
key of their own and be recognized by it. New campaigns pin the new key, and an old one is dropped when the last
campaign that names it has closed; what was recorded before then can no longer be opened.

The relay passes sealed requests to one gateway, and nothing that names their sender.

It forwards the body and its media type. The address, the agent, cookies and every other header end here, and no log is
written. It protects only if the collector does not run it: a relay and a gateway that combine what each of them sees
know who sent what.

Relay and issuer run on a small HTTP server for one function. It needs only the standard library, writes no log and
keeps nothing of a request. In front of it belongs a server that speaks TLS, with its log off.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
import threading
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from polyseme.collection.credentials import read_secret, replace_secret, write_secret
from polyseme.device import hpke
from polyseme.device.ohttp import (
    KEYS_TYPE,
    REQUEST_TYPE,
    RESPONSE_NONCE_BYTES,
    RESPONSE_TYPE,
    Headers,
    KeyConfiguration,
    Request,
    Response,
    padded,
    posted,
    request_info,
    require_address,
    response_cipher,
)
from polyseme.kernel.errors import ChannelError

__all__ = [
    "GATEWAY_PATH",
    "KEYS_PATH",
    "Answering",
    "Gateway",
    "GatewayKey",
    "Opened",
    "Relay",
    "SmallServer",
    "add_gateway_key",
    "drop_gateway_key",
    "new_gateway",
    "read_gateway",
    "relay_server",
    "relayed",
    "with_gateway",
]

_HEADER_BYTES = 7
_STEP = 1_024
"""Answers are padded to a multiple of this: one length for every short one."""


@dataclass(frozen=True)
class GatewayKey:
    """A key pair of the gateway under its number."""

    number: int
    private: X25519PrivateKey = field(repr=False)

    @classmethod
    def fresh(cls, number: int) -> GatewayKey:
        return cls(number, X25519PrivateKey.generate())

    def configuration(self) -> KeyConfiguration:
        return KeyConfiguration(self.number, self.private.public_key().public_bytes_raw())


class Opened(NamedTuple):
    """A request that was sealed, and the way to seal its answer."""

    request: Request
    sealed: Callable[[Response], bytes]


@dataclass(frozen=True)
class Gateway:
    """The keys of a gateway, the newest first."""

    keys: tuple[GatewayKey, ...]

    def configurations(self) -> bytes:
        """The `application/ohttp-keys` document."""
        return b"".join(key.configuration().encoded() for key in self.keys)

    def has_key_of(self, encapsulated: bytes) -> bool:
        """Whether a request was sealed for a key and algorithms of this gateway."""
        return self._key(encapsulated[:_HEADER_BYTES]) is not None

    def opened(self, encapsulated: bytes) -> Opened:
        """The request inside an encapsulated one."""
        message, answered = self.opened_message(encapsulated)
        return Opened(Request.decoded(message), lambda response: answered(_rounded(response.encoded())))

    def opened_message(self, encapsulated: bytes) -> tuple[bytes, Callable[..., bytes]]:
        """The bytes inside an encapsulated request, and the way to seal bytes for an answer."""
        header, rest = encapsulated[:_HEADER_BYTES], encapsulated[_HEADER_BYTES:]
        once, ciphertext = rest[: hpke.ENCAPSULATED_BYTES], rest[hpke.ENCAPSULATED_BYTES :]
        key = self._key(header)
        if key is None:
            raise ChannelError("a request was sealed for a key or for algorithms that this gateway does not have")
        message, export = hpke.unseal(key.private, once, request_info(header), ciphertext)

        def sealed(answer: bytes, nonce: bytes | None = None) -> bytes:
            nonce = nonce or secrets.token_bytes(RESPONSE_NONCE_BYTES)
            cipher, counter = response_cipher(export, once, nonce)
            return nonce + cipher.encrypt(counter, answer, b"")

        return message, sealed

    def _key(self, header: bytes) -> GatewayKey | None:
        return next((key for key in self.keys if key.configuration().header() == header), None)


def new_gateway(file: Path) -> Gateway:
    """Write a file with a first key, readable by its owner only; never overwrites."""
    gateway = Gateway((GatewayKey.fresh(1),))
    write_secret(file, _stored(gateway))
    return gateway


def add_gateway_key(file: Path) -> Gateway:
    """Put a new key before the others: campaigns that are made from now on pin it."""
    gateway = read_gateway(file)
    taken = {key.number for key in gateway.keys}
    free = next((number for number in range(1, 256) if number not in taken), None)
    if free is None:
        raise ChannelError(f"{file}: all 255 numbers are taken", "drop the keys of campaigns that have closed")
    grown = Gateway((GatewayKey.fresh(free), *gateway.keys))
    replace_secret(file, _stored(grown))
    return grown


def drop_gateway_key(file: Path, number: int) -> Gateway:
    """Forget a key: from then on nothing that was sealed for it can be opened."""
    gateway = read_gateway(file)
    kept = Gateway(tuple(key for key in gateway.keys if key.number != number))
    if len(kept.keys) == len(gateway.keys):
        numbers = ", ".join(str(key.number) for key in gateway.keys)
        raise ChannelError(f"{file}: no key has the number {number}", f"there are: {numbers}")
    if not kept.keys:
        raise ChannelError(f"{file}: the last key cannot be dropped", "add another first")
    replace_secret(file, _stored(kept))
    return kept


def read_gateway(file: Path) -> Gateway:
    """The gateway whose keys are in a file; refuses one that others can read."""
    text = read_secret(file, "polyseme collect gateway new")
    try:
        keys = [(int(key["number"]), bytes.fromhex(key["private"])) for key in json.loads(text)["keys"]]
        found = tuple(GatewayKey(number, X25519PrivateKey.from_private_bytes(private)) for number, private in keys)
    except (ValueError, KeyError, TypeError):
        raise ChannelError(f"{file}: expected the keys of a gateway") from None
    if not found or any(not 0 <= key.number <= 255 for key in found) or len({key.number for key in found}) < len(found):
        raise ChannelError(f"{file}: expected keys with numbers from 0 to 255, each once")
    return Gateway(found)


def _rounded(message: bytes) -> bytes:
    return padded(message, -(-len(message) // _STEP) * _STEP)


def _stored(gateway: Gateway) -> str:
    keys = [{"number": key.number, "private": key.private.private_bytes_raw().hex()} for key in gateway.keys]
    return json.dumps({"keys": keys}) + os.linesep


GATEWAY_PATH = "/v1/gateway"
KEYS_PATH = "/v1/ohttp-keys"
"""Where the gateway and its key configurations are."""

_LONGEST = 8_192
"""Bytes of the longest request that is read: a report has at most 4,096, sealed and wrapped."""
_PATH = re.compile(r"/v1/campaigns/[A-Za-z0-9_/-]+")
"""What the gateway gives access to: campaigns, nothing of the administration."""
_MARK = "polyseme.relayed"

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


def with_gateway(application: Application, gateway: Gateway) -> Application:
    """The application with a gateway in front, which answers its own two paths."""
    keys = Response(200, (("content-type", KEYS_TYPE), ("cache-control", "no-store")), gateway.configurations())

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        target = (scope.get("method"), scope.get("path")) if scope["type"] == "http" else None
        if target == ("GET", KEYS_PATH):
            await _sent(send, keys)
        elif target == ("POST", GATEWAY_PATH):
            await _sent(send, await _through(application, gateway, scope, receive))
        else:
            await application(scope, receive, send)

    return answer


def relayed(scope: Scope) -> bool:
    """Whether a request came through the gateway: a campaign that names a relay takes no others."""
    return _MARK in (scope.get("extensions") or {})


async def _through(application: Application, gateway: Gateway, scope: Scope, receive: Receive) -> Response:
    """Open a request, let the application answer, seal the answer; opening errors are in clear."""
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
    answer = await _forwarded(application, opened.request, scope)
    return Response(200, (("content-type", RESPONSE_TYPE), ("cache-control", "no-store")), opened.sealed(answer))


async def _forwarded(application: Application, request: Request, outer: Scope) -> Response:
    """What the application answers to an inner request."""
    path, _, query = request.path.partition("?")
    if not _PATH.fullmatch(path):
        return _problem(404, "about:blank", "Nothing here is reached through the gateway")
    answered = _Answer()
    await application(_scope(request, path, query, outer), _at_once(request.body), answered.take)
    return answered.whole()


def _scope(request: Request, path: str, query: str, outer: Scope) -> Scope:
    """An inner request as an ASGI scope; it has no sender, since the connection is the relay's."""
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


Answering = Callable[[str, str, str, bytes], Response]
"""`(method, path, media type, body)` to the answer."""

_LONGEST_BODY = 8_192
_DROPPED = 1 << 16
_AT_ONCE = 64
_BUSY = Response(503, (("retry-after", "5"),))
_FAILED = Response(500)


class SmallServer(ThreadingHTTPServer):
    """Answers requests with a function of their method, path, media type and body.

    It looks at nothing else.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, answering: Answering, host: str, port: int) -> None:
        super().__init__((host, port), _Handler)
        self._answering, self._places = answering, threading.BoundedSemaphore(_AT_ONCE)

    @property
    def address(self) -> str:
        host = str(self.server_address[0])
        return f"http://{f'[{host}]' if ':' in host else host}:{self.server_port}"

    def answer(self, method: str, path: str, media_type: str, body: bytes) -> Response:
        """The function's answer, or that there are too many at once."""
        if not self._places.acquire(blocking=False):
            return _BUSY
        try:
            return self._answering(method, path, media_type, body)
        except Exception:  # noqa: BLE001 - whatever it was, its words might hold something of the request
            return _FAILED
        finally:
            self._places.release()

    def handle_error(self, request: object, client_address: object) -> None:
        """A client hung up: nothing is logged, least of all its address."""


class _Handler(BaseHTTPRequestHandler):
    server: SmallServer
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "polyseme", ""
    timeout = 30

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not length.isascii() or not length.isdigit():
            self._refuse(411)
        elif int(length) > _LONGEST_BODY:
            # Closing on unread bytes would discard the answer; a little too much is read and dropped.
            self.rfile.read(min(int(length), _DROPPED))
            self._refuse(413)
        else:
            self._answer(self.rfile.read(int(length)))

    def do_GET(self) -> None:
        self._answer(b"")

    def do_OPTIONS(self) -> None:
        """Pages of any collector may ask: what is answered depends on the body alone."""
        allowed = (("access-control-allow-methods", "POST"), ("access-control-allow-headers", "content-type"))
        self._send(Response(204, (*allowed, ("access-control-max-age", "86400"))))

    def log_message(self, *_: object) -> None:
        """No log: it would name the sender."""

    def _answer(self, body: bytes) -> None:
        self._send(self.server.answer(self.command, self.path, self.headers.get("Content-Type", ""), body))

    def _refuse(self, status: int) -> None:
        # The body was not read to its end, so the connection cannot be used again.
        self.close_connection = True
        self._send(Response(status, (("connection", "close"),)))

    def _send(self, response: Response) -> None:
        self.send_response(response.status)
        for name, value in (*response.headers, ("access-control-allow-origin", "*")):
            self.send_header(name, value)
        if response.status != 204:
            self.send_header("Content-Length", str(len(response.body)))
        self.end_headers()
        self.wfile.write(response.body)


_SHOWN = ("content-type", "cache-control", "retry-after")
"""Headers of an answer that go back to the sender."""


class Relay:
    """Hands sealed requests on to the address of a gateway."""

    def __init__(self, gateway: str, timeout: float = 30.0) -> None:
        require_address(gateway)
        self._gateway, self._timeout = gateway, timeout

    def answer(self, method: str, path: str, media_type: str, body: bytes) -> Response:
        """The gateway's answer to a sealed request."""
        if method != "POST":
            return Response(405)
        if media_type != REQUEST_TYPE:
            return Response(415)
        try:
            brought = posted(self._gateway, REQUEST_TYPE, body, self._timeout)
        except OSError:
            return Response(502)
        kept = tuple((name, value) for name, value in brought.headers if name in _SHOWN)
        return Response(brought.status, kept, brought.body)


def relay_server(gateway: str, host: str, port: int) -> SmallServer:
    """A relay for the gateway at an address, such as `https://collect.example.org/v1/gateway`."""
    return SmallServer(Relay(gateway).answer, host, port)
