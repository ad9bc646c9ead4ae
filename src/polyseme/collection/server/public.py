"""The public listener: documents, states, the respondent's page, two endpoints to write to.

Pages and modules come from the wheel, none from another host, and headers say so to browsers. The endpoints are
described as an OpenAPI document, for authors of other clients.

The two endpoints that devices write to are plain ASGI applications for speed.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Awaitable, Callable
from importlib import resources
from pathlib import PurePath
from typing import Any
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from polyseme.collection.gateway import relayed
from polyseme.collection.server.collector import Collector, Known
from polyseme.collection.server.requests import (
    PREFIX,
    PROBLEM_MEDIA_TYPE,
    PROBLEMS,
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
from polyseme.kernel.version import __version__
from polyseme.web import client_module

__all__ = [
    "REPORT_MEDIA_TYPE",
    "Reports",
    "Withdrawals",
    "admin_file",
    "client_file",
    "handlers",
    "json_response",
    "page_file",
    "policy_for",
    "public_app",
    "public_document",
    "respondent_page",
]

REPORT_MEDIA_TYPE = "application/vnd.polyseme.report+json"
_JSON = b"application/json"
_ANY_ORIGIN_HEADER = (b"access-control-allow-origin", b"*")
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


class _Endpoint:
    """Takes something for a campaign, and answers when it is stored."""

    name: str

    def __init__(self, collector: Collector) -> None:
        self.collector = collector

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        try:
            status, body = await self._taken(scope, receive)
            media, headers = _JSON, [_ANY_ORIGIN_HEADER]
        except Gone:
            return
        except Refused as refused:
            status, body, media = refused.status, problem_body(refused.kind, refused.detail), PROBLEM_MEDIA_TYPE
            headers = [_ANY_ORIGIN_HEADER, *refused.headers]
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
        """Raise for a sender who writes too often; the address is used only here. A relay hides it."""
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


_ORIGIN = re.compile(r"https?://[A-Za-z0-9.:\[\]-]+")
_TYPES = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".json": "application/json",
    ".webmanifest": "application/manifest+json",
}
_HEADERS = {
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


def policy_for(*others: str | None) -> str:
    """The content security policy of a page: its own files, and the hosts its campaign names.

    others  addresses that the page may send to, such as that of a relay; None for none
    """
    connect = " ".join(["'self'", *filter(None, (_origin(address) for address in others if address))])
    return (
        f"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src {connect}; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        # One policy makes the address of the page's own worker; nothing else may make any.
        "require-trusted-types-for 'script'; trusted-types polyseme"
    )


def _origin(address: str) -> str:
    """Scheme and host of an address, and nothing else that could be written into the policy."""
    parts = urlsplit(address)
    origin = f"{parts.scheme}://{parts.netloc}"
    return origin if _ORIGIN.fullmatch(origin) else ""


def respondent_page(known: Known) -> Response:
    """The page on which people answer a campaign."""
    settings = known.survey.settings
    issuer = settings.issuer.address if settings.issuer else None
    return _file("page", "index.html", policy_for(settings.relay, issuer))


def stray_page(status: int) -> Response:
    """The same page where there is no campaign to answer, with a message for people."""
    return _file("page", "index.html", policy_for(), status)


async def client_file(request: Request) -> Response:
    """A module of the client."""
    try:
        module = client_module(request.path_params["name"])
    except KeyError:
        raise Refused("unknown") from None
    headers = {**_HEADERS, "access-control-allow-origin": "*", "cache-control": "no-cache"}
    return Response(module, media_type="text/javascript", headers=headers)


async def page_file(request: Request) -> Response:
    """What the respondent's page is made of.

    Its worker serves the pages of campaigns, which are not below it.
    """
    response = _file("page", request.path_params["name"], policy_for())
    response.headers["service-worker-allowed"] = "/"
    return response


async def admin_file(request: Request) -> Response:
    """The analyst's view, and what it is made of."""
    return _file("admin", request.path_params.get("name", "index.html"), policy_for())


def _file(folder: str, name: str, policy: str, status: int = 200) -> Response:
    """One of our own files, with the headers of a page; no name leads out of the folder."""
    try:
        found = {item.name: item for item in resources.files("polyseme.web").joinpath(folder).iterdir()}[name]
        content = found.read_bytes()
    except (KeyError, OSError):
        raise Refused("unknown") from None
    headers = {**_HEADERS, "content-security-policy": policy, "cache-control": "no-cache"}
    kind = _TYPES.get(PurePath(name).suffix, "application/octet-stream")
    return Response(content, status, headers, kind)


_CODE = {"type": "integer", "minimum": 0, "maximum": (1 << 32) - 1}
_ID = {"type": "string", "pattern": "^[A-Za-z0-9_-]{21}[AQgw]$", "description": "16 random bytes in base64url."}
_REPORT = {
    "type": "object",
    "description": (
        "What leaves a device, padded to exactly the number of bytes that the campaign says. Which columns, attributes "
        "and codes there are follows from the campaign's document."
    ),
    "required": ["id", "open", "sets", "pad"],
    "additionalProperties": False,
    "properties": {
        "id": _ID,
        "open": {"type": "object", "additionalProperties": _CODE, "description": "Column: code in its domain."},
        "sets": {
            "type": "object",
            "additionalProperties": {"type": "array", "items": _CODE, "uniqueItems": True},
            "description": "Attribute: the codes of its candidates, ascending.",
        },
        "token": {
            "type": "string",
            "minLength": 1,
            "maxLength": 1024,
            "description": "Where the campaign asks for one.",
        },
        "pad": {"type": "string", "description": "Makes every report equally long; thrown away."},
    },
}
_PROBLEM = {
    "type": "object",
    "description": "RFC 9457. Nothing of what was sent is repeated in it.",
    "required": ["type", "title", "status"],
    "additionalProperties": False,
    "properties": {
        "type": {"type": "string", "enum": [f"{PREFIX}{kind}" for kind in PROBLEMS]},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
    },
}


def public_document() -> dict[str, Any]:
    """The whole document."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "polyseme collector",
            "version": __version__,
            "description": "Devices publish before they send: reports are sets of candidates, never values.",
        },
        "paths": {
            "/v1/campaigns/{campaign}": {"parameters": [_campaign()], "get": _document()},
            "/v1/campaigns/{campaign}/state": {"parameters": [_campaign()], "get": _state()},
            "/v1/campaigns/{campaign}/reports": {"parameters": [_campaign()], "post": _reports()},
            "/v1/campaigns/{campaign}/withdrawals": {"parameters": [_campaign()], "post": _withdrawals()},
        },
        "components": {"schemas": {"Report": _REPORT, "Problem": _PROBLEM}},
    }


def _campaign() -> dict[str, Any]:
    text = "SHA-256 of the campaign's document in base64url."
    schema = {"type": "string", "pattern": "^[A-Za-z0-9_-]{43}$"}
    return {"name": "campaign", "in": "path", "required": True, "description": text, "schema": schema}


def _document() -> dict[str, Any]:
    found = {"description": "Its exact bytes; a device that uses it checks the hash.", **_json({"type": "object"})}
    return {"operationId": "document", "responses": {"200": found, **_problems(404, 503)}}


def _state() -> dict[str, Any]:
    schema = _closed({"state": {"enum": ["draft", "open", "closed"]}})
    found = {"description": "Whether it takes reports now.", **_json(schema)}
    return {"operationId": "state", "responses": {"200": found, **_problems(404, 503)}}


def _reports() -> dict[str, Any]:
    stored = _json(_closed({"status": {"const": "stored"}}))
    body = {f"{REPORT_MEDIA_TYPE};v=1": {"schema": {"$ref": "#/components/schemas/Report"}}}
    return {
        "operationId": "report",
        "description": f"At most {LARGEST_REPORT:,} bytes. Sending the same report again is safe.",
        "requestBody": {"required": True, "content": body},
        "responses": {
            "201": {"description": "On the disk.", **stored},
            "200": {"description": "The same report again; it was on the disk already.", **stored},
            **_problems(400, 401, 404, 409, 410, 413, 415, 422, 429, 503),
        },
    }


def _withdrawals() -> dict[str, Any]:
    return {
        "operationId": "withdraw",
        "description": "Until the campaign closes. A report that has not come yet will not be taken any more.",
        "requestBody": {"required": True, **_json(_closed({"id": _ID}))},
        "responses": {
            "200": {"description": "Gone for ever.", **_json(_closed({"status": {"const": "withdrawn"}}))},
            **_problems(400, 404, 410, 413, 415, 429, 503),
        },
    }


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"content": {"application/json": {"schema": schema}}}


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _problems(*statuses: int) -> dict[str, Any]:
    content = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {str(status): {"description": _titles(status), "content": content} for status in statuses}


def _titles(status: int) -> str:
    return "; ".join(title for found, title in PROBLEMS.values() if found == status)


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
