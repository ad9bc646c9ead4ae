"""The pages and modules that the wheel brings: nothing comes from another host, and browsers are told so."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from urllib.parse import urlsplit

from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from polyseme.collection.server.collector import Known
from polyseme.collection.server.problems import Refused
from polyseme.web import client_module

__all__ = ["admin_files", "client_files", "page_files", "policy_for", "respondent_page"]

_HEADERS = {
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def policy_for(*others: str | None) -> str:
    """The content security policy of a page: its own scripts and styles, and what else its campaign names.

    others  addresses that the page may send to, such as that of a relay; None for none
    """
    connect = " ".join(["'self'", *(_origin(address) for address in others if address is not None)])
    return (
        f"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src {connect}; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types polyseme"
    )


def _origin(address: str) -> str:
    """Scheme and host of an address; nothing else could be written into the policy."""
    parts = urlsplit(address)
    safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
    plain = bool(parts.hostname) and not set(parts.netloc) & set(" ;,'\"@")
    return f"{parts.scheme}://{parts.netloc}" if safe and plain else "'none'"


def respondent_page(known: Known) -> Response:
    """The page on which people answer a campaign."""
    file = _folder("page") / "index.html"
    if not file.is_file():
        raise Refused("unknown", "this collector has no page")
    settings = known.survey.settings
    policy = policy_for(settings.relay, settings.issuer.address if settings.issuer else None)
    headers = {**_HEADERS, "content-security-policy": policy, "cache-control": "no-cache"}
    return Response(file.read_bytes(), media_type="text/html", headers=headers)


class _Files:
    """The files of one folder, with the headers of pages; nothing where the folder is not there."""

    def __init__(self, folder: Path, **headers: str) -> None:
        self._files = StaticFiles(directory=folder, check_dir=False, html=True)
        policy = {"content-security-policy": policy_for(), "cache-control": "no-cache"}
        given = {**_HEADERS, **policy, **{name.replace("_", "-"): value for name, value in headers.items()}}
        self._headers = [(name.encode(), value.encode()) for name, value in given.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: dict[str, object]) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *self._headers]  # type: ignore[misc]
            await send(message)

        await self._files(scope, receive, with_headers)  # type: ignore[arg-type]


async def _module(scope: Scope, receive: Receive, send: Send) -> None:
    """A module of the client without its comments, for pages of others too."""
    name = scope["path"].rsplit("/", 1)[-1]
    if scope["method"] not in ("GET", "HEAD"):
        raise Refused("method")
    try:
        content = client_module(name)
    except KeyError:
        raise Refused("unknown") from None
    headers = {**_HEADERS, "cache-control": "no-cache", "access-control-allow-origin": "*"}
    headers["cross-origin-resource-policy"] = "cross-origin"
    await Response(content, media_type="text/javascript", headers=headers)(scope, receive, send)


def client_files() -> ASGIApp:
    """The modules of the client."""
    return _module


def page_files() -> ASGIApp:
    """What the respondent's page is made of; its worker serves the pages of campaigns, which are not below it."""
    return _Files(_folder("page"), service_worker_allowed="/")


def admin_files() -> ASGIApp:
    """The analyst's view."""
    return _Files(_folder("admin"))


def _folder(name: str) -> Path:
    return Path(str(resources.files("polyseme"))) / "web" / name
