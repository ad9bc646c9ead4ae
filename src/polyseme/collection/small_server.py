"""A small HTTP server for one function: what the relay and the issuer run on.

It needs nothing but the standard library, writes no log and keeps nothing of a request. In front of it belongs a
server that speaks TLS, and whose log is off.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from polyseme.device.bhttp import Response

__all__ = ["Answering", "SmallServer"]

Answering = Callable[[str, str, str, bytes], Response]
"""`(method, path, media type, body)` to the answer."""

_LONGEST = 8_192
_DROPPED = 1 << 16
_AT_ONCE = 64
_BUSY = Response(503, (("retry-after", "5"),))
_FAILED = Response(500)


class SmallServer(ThreadingHTTPServer):
    """Answers requests with a function of their method, path, media type and body; of nothing else."""

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
        elif int(length) > _LONGEST:
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
