"""Two listeners in one process: the public one, and that of the admins on loopback.

A signal stops both: nothing new is taken, what was taken is stored and answered, then the process ends.

The admin listener is for the operators of campaigns, on loopback and behind a token.

What it answers with are states and counts, and releases of closed campaigns; there is nothing else to be seen.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import logging
import signal
import socket
import tempfile
import zipfile
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from polyseme.collection.credentials import role_of
from polyseme.collection.gateway import Application, Gateway, with_gateway
from polyseme.collection.operations import add_document, invite, require_answerable, standing, standings
from polyseme.collection.releases import (
    Expected,
    expected_errors,
    question_of,
    release_campaign,
    require_columns,
    shares,
    write_release,
)
from polyseme.collection.server.collector import Collector
from polyseme.collection.server.public import admin_file, handlers, json_response, public_app
from polyseme.collection.server.requests import Refused, read_body
from polyseme.collection.store import State, Store, UnknownCampaign, open_store
from polyseme.collection.survey import Malformed, Survey, read_object
from polyseme.collection.telemetry import MEDIA_TYPE, Limits
from polyseme.kernel.errors import CollectionError, InvalidInput, StoreUnavailable

__all__ = ["Listening", "admin_app", "serve"]

MOST_BYTES = 16 << 20
"""Of a campaign's document: 70,000 codes with a prior take 547 KB."""
MOST_ESTIMATES = 100
"""Answers to analysts that are kept in memory."""


def admin_app(collector: Collector) -> Starlette:
    """What those who run campaigns can reach."""
    admin = _Admin(collector)
    campaign = "/v1/campaigns/{campaign}"
    routes: list[BaseRoute] = [
        Route("/healthz", admin.healthy),
        Route("/readyz", admin.ready),
        Route("/metrics", admin.metrics),
        Route("/v1/campaigns", admin.guarded(admin.listed, "analyst"), methods=["GET"]),
        Route("/v1/campaigns", admin.guarded(admin.added, "designer"), methods=["POST"]),
        Route(campaign, admin.guarded(admin.shown, "analyst"), methods=["GET"]),
        Route(f"{campaign}/state", admin.guarded(admin.moved, "designer"), methods=["POST"]),
        Route(f"{campaign}/invitations", admin.guarded(admin.invited, "designer"), methods=["POST"]),
        Route(f"{campaign}/precision", admin.guarded(admin.precision, "analyst"), methods=["GET"]),
        Route(f"{campaign}/estimates", admin.guarded(admin.estimates, "analyst"), methods=["GET"]),
        Route(f"{campaign}/release", admin.guarded(admin.released, "analyst"), methods=["POST"]),
        Route("/", admin_file),
        Route("/admin/{name}", admin_file),
    ]
    return Starlette(routes=routes, exception_handlers=handlers())


class _Admin:
    def __init__(self, collector: Collector) -> None:
        self.collector = collector
        self._expected: dict[str, tuple[Expected, ...]] = {}
        self._estimates: dict[tuple[str, str, str | None], dict[str, Any]] = {}

    def guarded(self, work: Callable[[Request], Awaitable[Response]], role: str) -> Any:
        """An endpoint for those who have a token of this role, or one that may more."""

        async def endpoint(request: Request) -> Response:
            await self._require(request, role)
            try:
                return await work(request)
            except Malformed as error:
                raise Refused("malformed", str(error)) from None
            except UnknownCampaign:
                raise Refused("unknown") from None
            except StoreUnavailable:
                raise Refused("unavailable", retry=5) from None
            except InvalidInput as error:
                raise Refused("refused", str(error)) from None

        return endpoint

    async def _require(self, request: Request, role: str) -> None:
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        try:
            credentials = await self.collector.read(lambda store: store.credentials())
        except StoreUnavailable:
            raise Refused("unavailable", retry=5) from None
        found = role_of(token.strip(), credentials) if kind.lower() == "bearer" else None
        if found is None:
            raise Refused("unauthorized")
        if found not in (role, "designer"):
            raise Refused("forbidden", f"this needs the role {role}")

    async def healthy(self, request: Request) -> Response:
        """The process lives."""
        return _text("ok\n")

    async def ready(self, request: Request) -> Response:
        """Reports would be stored now."""
        if await self._ready():
            return _text("ok\n")
        raise Refused("unavailable", retry=5)

    async def _ready(self) -> bool:
        try:
            await self.collector.read(lambda store: store.ping())
        except InvalidInput:
            return False
        return not self.collector.writer.away

    async def metrics(self, request: Request) -> Response:
        """Counts for Prometheus."""
        text = self.collector.metrics.text(self.collector.writer.waiting, await self._ready())
        return Response(text, media_type=MEDIA_TYPE, headers={"cache-control": "no-store"})

    async def listed(self, request: Request) -> Response:
        """All campaigns."""
        found = await self.collector.read(standings)
        return json_response({"campaigns": [item.to_dict() for item in found]})

    async def shown(self, request: Request) -> Response:
        """One campaign."""
        return json_response(await self._standing(request.path_params["campaign"]))

    async def _standing(self, campaign: str) -> dict[str, Any]:
        found = await self.collector.read(lambda store: standing(store, campaign))
        return found.to_dict()

    async def added(self, request: Request) -> Response:
        """Keep a document as a draft."""
        document = await read_body(request.scope, request.receive, MOST_BYTES)
        campaign = await self.collector.read(lambda store: add_document(store, document))
        return json_response(await self._standing(campaign), 201)

    async def moved(self, request: Request) -> Response:
        """Open, close or purge; releasing is what `release` does."""
        campaign, wanted = request.path_params["campaign"], (await _body(request)).get("state")
        states = {state.value: state for state in (State.OPEN, State.CLOSED, State.PURGED)}
        if type(wanted) is not str or wanted not in states:
            raise Malformed("state is open, closed or purged")
        if states[wanted] is State.OPEN:
            await self.collector.read(lambda store: require_answerable(store, campaign))
        # Between two transactions of the writer: there is no other way in which they could not meet.
        await self.collector.writer.alone_with(lambda store: store.move(campaign, states[wanted]))
        self.collector.forget(campaign)
        return json_response(await self._standing(campaign))

    async def invited(self, request: Request) -> Response:
        """New invitations, which are shown only this once."""
        campaign, count = request.path_params["campaign"], (await _body(request)).get("count")
        if type(count) is not int:
            raise Malformed("count is a whole number")
        codes = await self.collector.read(lambda store: invite(store, campaign, count))
        return json_response({"invitations": list(codes)}, 201)

    async def precision(self, request: Request) -> Response:
        """The expected error of the shares of each protected column, now and at the planned number."""
        campaign = request.path_params["campaign"]
        found = await self.collector.read(lambda store: standing(store, campaign))
        kept = await self.collector.read(lambda store: store.campaign(campaign))
        survey = Survey.read(kept.document)
        if campaign not in self._expected:
            # Reports do not wait for this: it is not done by the thread that reads for them.
            self._expected[campaign] = await asyncio.to_thread(expected_errors, survey)
        reports, planned = found.counts.reports, found.planned
        columns = [item.to_dict(reports, planned) for item in self._expected[campaign]]
        opened = [{"name": column.name, "question": question_of(survey, column.name)} for column in survey.open]
        return json_response({"reports": reports, "planned": planned, "columns": columns, "open": opened})

    async def estimates(self, request: Request) -> Response:
        """The shares of a protected column of a closed campaign, with intervals."""
        campaign, query = request.path_params["campaign"], request.query_params
        if not query.keys() <= {"of", "by"} or "of" not in query:
            raise Malformed("of names a protected column, by an open one or nothing")
        question = campaign, query["of"], query.get("by") or None
        kept = await self.collector.read(lambda store: store.campaign(campaign))
        if kept.state is State.PURGED:
            self._estimates.pop(question, None)
        elif question in self._estimates:
            # Nothing changes after closing.
            return json_response(self._estimates[question])
        found = await self._estimated(Survey.read(kept.document), *question[1:])
        if len(self._estimates) >= MOST_ESTIMATES:
            self._estimates.clear()
        self._estimates[question] = found
        return json_response(found)

    async def _estimated(self, survey: Survey, of: str, by: str | None) -> dict[str, Any]:
        """An estimate for operators; refused while a campaign is open or has too few answers."""
        require_columns(survey, of, by)
        with tempfile.TemporaryDirectory(prefix="polyseme-") as folder:
            out = Path(folder) / "release"
            release = await self.collector.read(lambda store: write_release(store, survey.id, out))
            return await asyncio.to_thread(lambda: shares(survey, release, of, by))

    async def released(self, request: Request) -> Response:
        """The release of a closed campaign, as an archive."""
        campaign, k = request.path_params["campaign"], (await _body(request)).get("k")
        if k is not None and type(k) is not int:
            raise Malformed("k is a whole number")
        archive = await self.collector.read(lambda store: _archive(store, campaign, k))
        self.collector.forget(campaign)
        name = f'attachment; filename="release-{campaign[:12]}.zip"'
        headers = {"content-disposition": name, "cache-control": "no-store"}
        return Response(archive, media_type="application/zip", headers=headers)


async def _body(request: Request) -> dict[str, Any]:
    body = await read_body(request.scope, request.receive, 4_096)
    return read_object(body or b"{}")


def _archive(store: Store, campaign: str, k: int | None) -> bytes:
    held = io.BytesIO()
    with tempfile.TemporaryDirectory(prefix="polyseme-") as folder:
        release_campaign(store, campaign, Path(folder) / "release", k)
        with zipfile.ZipFile(held, "w") as archive:
            for path in sorted((Path(folder) / "release").iterdir()):
                archive.write(path, f"release/{path.name}")
    return held.getvalue()


def _text(text: str) -> Response:
    return Response(text, media_type="text/plain", headers={"cache-control": "no-store"})


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
    on_start: Callable[[Listening], None] = lambda listening: None,
) -> None:
    """Take reports until a signal comes.

    rate      reports a minute from one address; 0 for no limit
    gateway   opens what comes through a relay; None where no campaign names one
    on_start  called with its address, as soon as it listens
    """
    writing = open_store(address)
    collector_parts = writing, open_store(address), Limits(rate)
    public, admin = _bound(host, port), _bound(LOOPBACK, admin_port)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_serve(collector_parts, public, admin, gateway, on_start))


async def _serve(
    parts: Any,
    public: socket.socket,
    admin: socket.socket,
    gateway: Gateway | None,
    on_start: Callable[[Listening], None],
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
    on_start(Listening(_url(public), _url(admin)))
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
