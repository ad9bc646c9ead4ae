"""The public listener: documents, states, the respondent's page, and the two endpoints that take something."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from polyseme.collection.server.collector import Collector
from polyseme.collection.server.openapi import public_document
from polyseme.collection.server.pages import client_file, page_file, respondent_page, stray_page
from polyseme.collection.server.problems import PROBLEM_MEDIA_TYPE, Refused, problem_body
from polyseme.collection.server.reports import Reports, Withdrawals

__all__ = ["handlers", "json_response", "public_app"]

FOR_EVER = "public, max-age=31536000, immutable"
_ANY_ORIGIN = {"access-control-allow-origin": "*"}
_PREFLIGHT = {
    **_ANY_ORIGIN,
    "access-control-allow-methods": "GET, POST",
    "access-control-allow-headers": "content-type",
    "access-control-max-age": "86400",
}
_KINDS = {404: "unknown", 405: "method"}

_log = logging.getLogger(__name__)


def public_app(collector: Collector) -> Starlette:
    """What everybody can reach."""

    async def document(request: Request) -> Response:
        known = await collector.known(request.path_params["campaign"])
        headers = {**_ANY_ORIGIN, "cache-control": FOR_EVER, "etag": f'"{known.kept.id}"'}
        if known.kept.signature is not None:
            headers["polyseme-signature"] = known.kept.signature.decode("ascii")
        return Response(known.kept.document, media_type="application/json", headers=headers)

    async def state(request: Request) -> Response:
        known = await collector.known(request.path_params["campaign"], fresh=True)
        return json_response({"state": collector.public_state(known)}, headers=_ANY_ORIGIN)

    async def page(request: Request) -> Response:
        try:
            return respondent_page(await collector.known(request.path_params["campaign"]))
        except Refused as refused:
            return stray_page(refused.status)

    async def openapi(request: Request) -> Response:
        return json_response(public_document(), headers=_ANY_ORIGIN)

    async def preflight(request: Request) -> Response:
        return Response(status_code=204, headers=_PREFLIGHT)

    writing = {"reports": Reports(collector), "withdrawals": Withdrawals(collector)}
    campaign = "/v1/campaigns/{campaign}"
    routes: list[BaseRoute] = [
        *(Route(f"{campaign}/{name}", endpoint, methods=["POST"]) for name, endpoint in writing.items()),
        *(Route(f"{campaign}/{name}", preflight, methods=["OPTIONS"]) for name in writing),
        Route(campaign, document),
        Route(f"{campaign}/state", state),
        Route("/v1/openapi.json", openapi),
        Route("/c/{campaign}", page),
        Route("/client/{name}", client_file),
        Route("/page/{name}", page_file),
        Route("/healthz", _healthy),
    ]
    return Starlette(routes=routes, exception_handlers=handlers())


def json_response(document: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """JSON that no proxy on the way may store."""
    kept = {"cache-control": "no-store", **(headers or {})}
    return Response(json.dumps(document).encode(), status, kept, "application/json")


async def _healthy(request: Request) -> Response:
    return Response("ok\n", media_type="text/plain", headers={"cache-control": "no-store"})


Handler = Callable[[Request, Exception], Awaitable[Response]]


def handlers() -> dict[Any, Handler]:
    """Whatever goes wrong is answered by a problem document."""
    return {Refused: _refused, HTTPException: _http, Exception: _fault}


def _problem(refused: Refused, status: int | None = None, headers: dict[str, str] | None = None) -> Response:
    given = {name.decode(): value.decode() for name, value in refused.headers}
    return Response(
        problem_body(refused.kind, refused.detail),
        status or refused.status,
        {"cache-control": "no-store", **_ANY_ORIGIN, **given, **(headers or {})},
        PROBLEM_MEDIA_TYPE.decode(),
    )


async def _refused(request: Request, error: Exception) -> Response:
    return _problem(error if isinstance(error, Refused) else Refused("internal"))


async def _http(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    headers = dict(error.headers or {}) if isinstance(error, HTTPException) else {}
    return _problem(Refused(_KINDS.get(status, "unknown" if status < 500 else "internal")), headers=headers)


async def _fault(request: Request, error: Exception) -> Response:
    _log.error("a request met a fault: %s", type(error).__name__)
    return _problem(Refused("internal"))
