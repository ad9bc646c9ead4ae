"""The pages and modules that the wheel brings: nothing comes from another host, and browsers are told so."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import PurePath
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from polyseme.collection.server.collector import Known
from polyseme.collection.server.problems import Refused
from polyseme.web import client_module

__all__ = ["admin_file", "client_file", "page_file", "policy_for", "respondent_page"]

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
    """The content security policy of a page: its own scripts and styles, and whom else its campaign names.

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
    """The same page where there is no campaign to answer: it says so to people, who cannot read problem documents."""
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
    """What the respondent's page is made of; its worker serves the pages of campaigns, which are not below it."""
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
