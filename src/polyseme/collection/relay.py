"""A relay (RFC 9458): hands sealed requests to one gateway, and nothing that names who sent them.

What goes on is the body and its media type. The address, the agent, cookies and every other header end here, and no
log is written. It protects only if the collector does not run it: a relay and a gateway that combine
what each of them sees know who sent what.
"""

from __future__ import annotations

from polyseme.collection.small_server import SmallServer
from polyseme.device.bhttp import Response
from polyseme.device.ohttp import REQUEST_TYPE
from polyseme.device.relayed import posted, require_address

__all__ = ["Relay", "relay_server"]

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
