"""Two listeners in one process: the public one, and that of the admins on loopback.

A signal stops both: nothing new is taken, what was taken is stored and answered, then the process ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import uvicorn
from starlette.applications import Starlette

from polyseme.collection.gateway import Application, Gateway, with_gateway
from polyseme.collection.server.admin import admin_app
from polyseme.collection.server.collector import Collector
from polyseme.collection.server.public import public_app
from polyseme.collection.store import open_store
from polyseme.collection.telemetry import Limits
from polyseme.kernel.errors import CollectionError

__all__ = ["Listening", "serve"]

GRACE = 20
"""Seconds in which requests that were taken must be answered after a signal."""
KEPT = 75
"""Seconds for which a connection is kept: longer than proxies keep theirs, or they would write into closed ones."""
LOOPBACK = "127.0.0.1"

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Listening:
    """Where a collector listens."""

    public: str
    admin: str


class _Server(uvicorn.Server):
    """One that leaves signals to us: there are two of them."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def serve(
    address: str,
    host: str = LOOPBACK,
    port: int = 8080,
    admin_port: int = 8081,
    rate: float = 120.0,
    gateway: Gateway | None = None,
    told: Callable[[Listening], None] = lambda listening: None,
) -> None:
    """Take reports until a signal comes.

    rate     reports a minute from one address; 0 for no limit
    gateway  opens what comes through a relay; None where no campaign names one
    told     called with its address, as soon as it listens
    """
    writing = open_store(address)
    collector_parts = writing, open_store(address), Limits(rate)
    public, admin = _bound(host, port), _bound(LOOPBACK, admin_port)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_serve(collector_parts, public, admin, gateway, told))


async def _serve(
    parts: Any,
    public: socket.socket,
    admin: socket.socket,
    gateway: Gateway | None,
    told: Callable[[Listening], None],
) -> None:
    collector = Collector(*parts)
    outer = public_app(collector) if gateway is None else with_gateway(public_app(collector), gateway)
    servers = [_server(outer), _server(admin_app(collector))]
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, _stop, servers)
    collector.start()
    work = [asyncio.create_task(server.serve([bound])) for server, bound in zip(servers, (public, admin))]
    while not all(server.started for server in servers) and not any(task.done() for task in work):
        await asyncio.sleep(0.01)
    told(Listening(_url(public), _url(admin)))
    _log.info("takes reports")
    await asyncio.gather(*work)
    await collector.stop()
    _log.info("stopped; everything that was acknowledged is stored")


def _stop(servers: list[_Server]) -> None:
    for server in servers:
        server.should_exit = True


def _server(app: Application | Starlette) -> _Server:
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        lifespan="off",
        ws="none",
        backlog=2_048,
        timeout_keep_alive=KEPT,
        timeout_graceful_shutdown=GRACE,
    )
    return _Server(config)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """A quicker event loop where one is installed."""
    if find_spec("uvloop") is None:
        return None
    import uvloop

    return uvloop.new_event_loop


def _bound(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 takes one that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except OSError as error:
        raise CollectionError(f"{host}, port {port}: {error.strerror}", "is another collector running?") from None
    return bound


def _url(bound: socket.socket) -> str:
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
