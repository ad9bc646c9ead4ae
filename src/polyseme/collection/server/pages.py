"""The pages and modules that the wheel brings: nothing comes from another host, and browsers are told so."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from urllib.parse import urlsplit

from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from polyseme.collection.server.collector import Known
from polyseme.collection.server.problems import Refused

__all__ = ["admin_files", "client_files", "page_files", "policy_for", "respondent_page"]

_HEADERS = {
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


def policy_for(relay: str | None = None) -> str:
    """The content security policy of a page: its own scripts and styles, and the relay where the campaign names one."""
    connect = "'self'" if relay is None else f"'self' {_origin(relay)}"
    return (
        f"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; manifest-src 'self'; "
        f"connect-src {connect}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'"
    )


def _origin(address: str) -> str:
    """Scheme and host of a relay; nothing else could be written into the policy."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}" if parts.scheme == "https" else "'none'"


def respondent_page(known: Known) -> Response:
    """The page on which people answer a campaign."""
    file = _folder("page") / "index.html"
    if not file.is_file():
        raise Refused("unknown", "this collector has no page")
    policy = policy_for(known.survey.settings.relay)
    headers = {**_HEADERS, "content-security-policy": policy, "cache-control": "no-cache"}
    return Response(file.read_bytes(), media_type="text/html", headers=headers)


class _Files:
    """The files of one folder, with the headers of pages; nothing where the folder is not there."""

    def __init__(self, folder: Path, policy: str) -> None:
        self._files = StaticFiles(directory=folder, check_dir=False)
        self._headers = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
        self._headers += [(b"content-security-policy", policy.encode()), (b"cache-control", b"no-cache")]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: dict[str, object]) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *self._headers]  # type: ignore[misc]
            await send(message)

        await self._files(scope, receive, with_headers)  # type: ignore[arg-type]


def client_files() -> _Files:
    """The modules of the client."""
    return _Files(_folder("client"), policy_for())


def page_files() -> _Files:
    """What the respondent's page is made of."""
    return _Files(_folder("page"), policy_for())


def admin_files() -> _Files:
    """The analyst's view."""
    return _Files(_folder("admin"), policy_for())


def _folder(name: str) -> Path:
    return Path(str(resources.files("polyseme"))) / "web" / name
