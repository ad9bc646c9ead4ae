"""The workbench's server, on loopback: routes, and the state that all tabs share.

What takes long runs in threads or as jobs, so that the page always answers. A stream tells all tabs of new revisions
and of jobs; an edit made on an old revision is answered with 409 and the state as it is now.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import logging
import socket
import zipfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace
from importlib import resources
from pathlib import Path, PurePath
from typing import Any, TypeVar

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from polyseme.kernel.documents import parse
from polyseme.kernel.errors import Cancelled, InvalidInput, PolysemeError, QuestionError
from polyseme.kernel.version import __version__
from polyseme.kernel.work import Cancellation, working
from polyseme.workbench import receipts
from polyseme.workbench.guard import Guard, Tickets, new_token, problem
from polyseme.workbench.jobs import Job, Jobs, events
from polyseme.workbench.opened import Conflict, Opened, described, tables_below
from polyseme.workbench.outlook import LIMITS, card, light, settings

__all__ = ["Workbench", "serve"]

_log = logging.getLogger(__name__)
_LOOPBACK = "127.0.0.1"
_WATCHED = 0.7
"""Seconds between two looks at the policy file."""
_SHARED = ("dom.js", "icon.svg")
"""Files of the collector's page that this one uses too."""
_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".html": "text/html"}
T = TypeVar("T")


class Workbench:
    """The application: what is open, its jobs, and the answers."""

    def __init__(self, opened: Opened, token: str | None = None) -> None:
        self.opened, self.token = opened, token or new_token()
        self.tickets, self.jobs = Tickets(), Jobs(opened.folder, self.touch)
        self.release = "release"
        self.cancellation = Cancellation()
        self._changed, self._number = asyncio.Event(), 0
        self._one: dict[str, asyncio.Lock] = {}
        self._reading: asyncio.Task[None] | None = None
        self._plans: dict[str, Any] = {}
        self._done: list[receipts.Receipt] = []

    # -- the application -------------------------------------------------------------------------------------------

    def app(self, host: str) -> Guard:
        """The application behind its guard.

        host  the only `Host` that is answered
        """
        routes = [
            Route("/", self.page),
            Route("/workbench/{name}", self.page),
            Route("/admin/{name}", self.page),
            Route("/api/state", self.guarded(self.state)),
            Route("/api/events", self.events),
            Route("/api/tables", self.guarded(self.tables)),
            Route("/api/open", self.guarded(self.open), methods=["POST"]),
            Route("/api/columns", self.guarded(self.columns)),
            Route("/api/columns/{name:path}", self.guarded(self.column), methods=["POST"]),
            Route("/api/edits", self.guarded(self.edits), methods=["POST"]),
            Route("/api/text", self.guarded(self.texts), methods=["POST"]),
            Route("/api/history", self.guarded(self.history), methods=["POST"]),
            Route("/api/what-if", self.guarded(self.what_if), methods=["POST"]),
            Route("/api/settings/{name:path}", self.guarded(self.settings)),
            Route("/api/beside/{name:path}", self.guarded(self.beside)),
            Route("/api/preview", self.guarded(self.preview)),
            Route("/api/jobs", self.guarded(self.started), methods=["POST"]),
            Route("/api/jobs/{id}", self.guarded(self.job)),
            Route("/api/jobs/{id}/cancel", self.guarded(self.canceled), methods=["POST"]),
            Route("/api/jobs/{id}/events", self.job_events),
            Route("/api/estimate", self.guarded(self.estimate)),
            Route("/api/tickets", self.guarded(self.ticket), methods=["POST"]),
            Route("/download/{ticket}", self.download),
        ]
        return Guard(Starlette(routes=routes), host, self.token)

    def guarded(self, work: Callable[[Request], Awaitable[Any]]) -> Callable[[Request], Awaitable[Response]]:
        """An endpoint whose errors are answered as problems."""

        async def endpoint(request: Request) -> Response:
            try:
                found = await work(request)
            except Conflict:
                title = "The policy was changed elsewhere and is shown as it is now. Your change was not made."
                return _problem(*problem(409, title, state=self._state()))
            except InvalidInput as error:
                return _problem(*problem(422, "This cannot be done", problems=described(error.problems, self._text())))
            except Cancelled:
                return _problem(*problem(503, "The workbench ends"))
            except PolysemeError as error:
                return _problem(*problem(500, "A fault of the workbench", detail=type(error).__name__))
            except (KeyError, ValueError, TypeError):
                return _problem(*problem(400, "This request is not one of the page's"))
            except OSError as error:
                return _problem(*problem(503, "A file cannot be read or written", detail=error.strerror or ""))
            return found if isinstance(found, Response) else JSONResponse(found)

        return endpoint

    def touch(self) -> None:
        """Something changed: all tabs hear of it."""
        self._number += 1
        self._changed.set()
        self._changed = asyncio.Event()

    async def alone(self, kind: str, work: Callable[[], T]) -> T:
        """Work in a thread; of a kind, one at a time."""

        def stoppable() -> T:
            with working(cancellation=self.cancellation):
                return work()

        async with self._one.setdefault(kind, asyncio.Lock()):
            return await asyncio.to_thread(stoppable)

    # -- the state -------------------------------------------------------------------------------------------------

    def _text(self) -> str:
        with contextlib.suppress(InvalidInput, OSError):
            return self.opened.text
        return ""

    def _state(self) -> dict[str, Any]:
        opened, text = self.opened, self.opened.noticed()
        history, looked = opened.history, opened.looked
        release = opened.folder / self.release
        made_with = next((entry.revision for entry in reversed(history.entries) if entry.release == self.release), None)
        reading = self._reading is not None and not self._reading.done()
        return {
            "version": __version__,
            "number": self._number,
            "table": None
            if opened.table is None
            else {
                "path": opened.table,
                "options": dict(opened.options),
                "rows": None if looked is None else looked.rows,
                "columns": [] if looked is None else [column.name for column in looked.draft.columns],
                "first": [] if looked is None else looked.first[:8],
                "unique": None if looked is None else looked.unique,
                "known": [] if looked is None else list(looked.known),
                "reading": reading,
                "share": opened.share,
                "problems": opened.wrong,
            },
            "policy": {
                "path": opened.policy_name,
                "text": text,
                "revision": opened.revision,
                "problems": opened.problems(text),
                "document": _document(text),
            },
            "history": {
                "undo": None if history.undo is None else history.undo.said,
                "redo": None if history.redo is None else history.redo.said,
                "entries": [entry.shown() for entry in history.entries[-40:]],
                "place": history.place,
            },
            "release": {
                "path": self.release,
                "exists": (release / "manifest.json").is_file(),
                "revision": made_with,
            },
            "jobs": [job.to_dict() for job in self.jobs.all.values()],
            "limits": list(LIMITS),
        }

    async def state(self, request: Request) -> Any:
        return await asyncio.to_thread(self._state)

    async def events(self, request: Request) -> Response:
        """A line for every change, as long as the page listens."""

        async def lines() -> AsyncIterator[bytes]:
            seen, revision = -1, ""
            while not await request.is_disconnected():
                waiting = self._changed
                now = self._revision()
                if self._number != seen or now != revision:
                    seen, revision = self._number, now
                    jobs = [job.to_dict() for job in self.jobs.all.values()]
                    share = self.opened.share
                    yield json.dumps({"number": seen, "revision": now, "jobs": jobs, "share": share}).encode() + b"\n"
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(waiting.wait(), _WATCHED)

        return StreamingResponse(lines(), media_type="application/x-ndjson")

    def _revision(self) -> str:
        with contextlib.suppress(InvalidInput, OSError):
            return self.opened.revision
        return ""

    # -- the table -------------------------------------------------------------------------------------------------

    async def tables(self, request: Request) -> Any:
        return {"tables": await asyncio.to_thread(tables_below, self.opened.folder)}

    async def open(self, request: Request) -> Any:
        """Open a table: it is looked at in the background."""
        given = await _body(request)
        self.opened.place(given["path"])
        options = {key: value for key, value in dict(given.get("options") or {}).items() if value not in (None, "")}
        self.opened.table, self.opened.options, self.opened.looked = given["path"], options, None  # type: ignore[assignment]
        self.read()
        return await asyncio.to_thread(self._state)

    def read(self) -> None:
        """Look at the table in a thread."""
        self._plans.clear()
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        try:
            await self.alone("read", self.opened.read)
        except InvalidInput as error:
            self.opened.wrong = described(error.problems)
        except OSError as error:
            self.opened.wrong = [{"where": "", "what": error.strerror or "cannot be read", "hint": "", "line": None}]
        asyncio.get_running_loop().call_soon(self.touch)

    async def columns(self, request: Request) -> Any:
        return {"columns": await asyncio.to_thread(self.opened.columns)}

    async def column(self, request: Request) -> Any:
        """The values of a column, and what each becomes at every level of a hierarchy."""
        given = await _body(request)
        name = request.path_params["name"]
        return await self.alone("column", lambda: self.opened.values(name, given.get("hierarchy")))

    # -- edits -----------------------------------------------------------------------------------------------------

    async def edits(self, request: Request) -> Any:
        given = await _body(request)
        changes, roles, remove = (
            dict(given.get("changes") or {}),
            dict(given.get("roles") or {}),
            given.get("remove") or [],
        )
        said = str(given.get("said") or "Edited")
        lines = await self.alone("edit", lambda: self.opened.change(given["revision"], said, changes, roles, remove))
        receipt = receipts.edit(self.opened.policy_name, changes, roles, self.opened.table if roles else None, remove)
        self._done.append(receipt)
        self.touch()
        return {"state": self._state(), "lines": list(lines), "receipt": receipt.to_dict()}

    async def texts(self, request: Request) -> Any:
        given = await _body(request)
        await self.alone("edit", lambda: self.opened.write(given["revision"], str(given["text"])))
        self.touch()
        return {"state": self._state()}

    async def history(self, request: Request) -> Any:
        given = await _body(request)
        by = -1 if given["step"] == "undo" else 1
        said = await self.alone("edit", lambda: self.opened.step(given["revision"], by))
        self.touch()
        return {"state": self._state(), "said": said}

    # -- what would come of it -------------------------------------------------------------------------------------

    async def what_if(self, request: Request) -> Any:
        """The plan of the policy as it is, or as it would be after some changes."""
        given = await _body(request)
        changes, roles, remove = (
            dict(given.get("changes") or {}),
            dict(given.get("roles") or {}),
            given.get("remove") or [],
        )
        return await self.alone("plan", lambda: self._outlook(self.opened.supposed(changes, roles, remove)))

    def _outlook(self, text: str) -> dict[str, Any]:
        if text not in self._plans:
            if len(self._plans) > 50:
                self._plans.clear()
            self._plans[text] = self.opened.plan(text)
        made = self._plans[text]
        return {
            "light": light(made, _document(text) or {}).to_dict(),
            "cards": [card(item) for item in made.attributes],
            "method": None if made.grouping is None else made.grouping.to_dict(),
            "records": made.records,
            "remarks": list(made.remarks),
            "receipt": receipts.verb("plan", self.opened.policy_name, data=self.opened.table).to_dict(),
        }

    async def beside(self, request: Request) -> Any:
        """For each value of a secret, what may stand beside it."""
        name = request.path_params["name"]
        return {"beside": await self.alone("plan", lambda: self.opened.beside(name, self.opened.text))}

    async def settings(self, request: Request) -> Any:
        """All pairs of candidates and distance of one secret."""
        name = request.path_params["name"]
        return await self.alone("plan", lambda: self._settings(name))

    def _settings(self, name: str) -> dict[str, Any]:
        from polyseme.inference.knowledge.tradeoff import tradeoff
        from polyseme.verbs.plan import frontier

        made = self._plans.get(self.opened.text) or self.opened.plan(self.opened.text)
        item = next((one for one in made.attributes if one.name == name), None)
        if item is None:
            raise QuestionError(f"'{name}' is not a protected column")
        only = replace(made, attributes=(item,))
        found = settings(tradeoff(only).get(name, ()), frontier(only).get(name, ()), (item.choice.l, item.choice.d))
        arguments = {"data": self.opened.table, "frontier": True}
        return {"settings": found, "receipt": receipts.verb("plan", self.opened.policy_name, **arguments).to_dict()}

    async def preview(self, request: Request) -> Any:
        """Ten records before and after."""

        def shown() -> dict[str, Any]:
            from polyseme.verbs.preview import preview

            if self.opened.looked is None:
                raise QuestionError("no table is open", "choose one first")
            found = preview(self.opened.looked.source, self.opened.loaded(self.opened.text), 10)
            rows = [
                {"before": _texts(one.before), "after": None if one.after is None else _texts(one.after)}
                for one in found.records
            ]
            return {"columns": list(found.columns), "rows": rows}

        return await self.alone("preview", shown)

    # -- jobs ------------------------------------------------------------------------------------------------------

    async def started(self, request: Request) -> Any:
        given = await _body(request)
        receipt = self._command(given["kind"], given)
        revision = self.opened.revision
        job = self.jobs.start(
            given["kind"],
            [*receipt.arguments[0], *_asked(given["kind"])],
            lambda one: self._ended(one, given, revision),
        )
        self._done.append(receipt)
        return {"job": job.to_dict(), "receipt": receipt.to_dict()}

    def _command(self, kind: str, given: Mapping[str, Any]) -> receipts.Receipt:
        policy, table, release = self.opened.policy_name, self.opened.table, self.release
        if table is None:
            raise QuestionError("no table is open", "choose one first")
        if kind == "anonymize":
            self.release = release = self._folder(str(given.get("out") or "release"))
            options = {
                "out": release,
                "format": given.get("format") or None,
                "accept_risk": bool(given.get("accept")),
                "force": (self.opened.folder / release / "manifest.json").is_file(),
                "key_file": given.get("key") or None,
                "seed": given.get("seed"),
            }
            return receipts.verb("anonymize", policy, table, **options)
        if kind == "alternatives":
            return receipts.verb("plan", policy, data=table, alternatives=True)
        if kind == "attack":
            return receipts.verb("attack", release, original=table if given.get("truth") else None)
        if kind == "report":
            return receipts.verb("report", release, original=table, out="report.html", force=True)
        if kind == "prior":
            name = str(given["attribute"])
            place = f"{name}-statistics.csv"
            by = given.get("by") or None
            arguments = ("prior", "from-table", table, "--of", name, *(("--by", by) if by else ()), "--epsilon", "1")
            call = f'ps.prior_from_table("{table}", of="{name}", epsilon=1).save("{place}")'
            return receipts.Receipt(((*arguments, "--policy", policy, "--out", place, "--force"),), call)
        if kind == "verify":
            return receipts.verb("verify", release)
        raise ValueError(kind)

    def _folder(self, out: str) -> str:
        target = (self.opened.folder / out).resolve()
        if not self.opened.allow_outside and not target.is_relative_to(self.opened.folder.resolve()):
            raise QuestionError("the release would be outside of the start folder", "choose a folder below it")
        return out

    def _ended(self, job: Job, given: Mapping[str, Any], revision: str) -> None:
        if job.kind == "anonymize" and job.state == "done":
            self.opened.history.released(revision, self.release)

    async def job(self, request: Request) -> Any:
        job = self.jobs.all[request.path_params["id"]]
        return {"job": job.to_dict(), "result": _worded(job)}

    async def canceled(self, request: Request) -> Any:
        job = self.jobs.all[request.path_params["id"]]
        await self.jobs.cancel(job)
        return {"job": job.to_dict()}

    async def job_events(self, request: Request) -> Response:
        job = self.jobs.all.get(request.path_params["id"])
        if job is None:
            return _problem(*problem(404, "There is no such job"))
        after = request.query_params.get("after", "0")
        start = int(after) if after.isdecimal() else 0
        return StreamingResponse(events(job, start), media_type="application/x-ndjson")

    # -- results ---------------------------------------------------------------------------------------------------

    async def estimate(self, request: Request) -> Any:
        """A table of the release, with intervals; on request the true counts beside it."""
        of, by = request.query_params["of"], request.query_params.get("by") or None
        truth = request.query_params.get("truth") == "yes"
        return await self.alone("estimate", lambda: self._estimated(of, by, truth))

    def _estimated(self, of: str, by: str | None, truth: bool) -> dict[str, Any]:
        from polyseme.verbs.estimate import estimate

        found = estimate(self.opened.folder / self.release, of=of, by=by or ())
        document = found.to_dict()
        receipt = receipts.verb("estimate", self.release, of=of, by=by)
        kept = ("estimator", "records", "level", "notes", "cells")
        answer: dict[str, Any] = {key: document[key] for key in kept if key in document}
        if truth and by is None:
            answer["truth"] = self.opened.counts(of)
        return {**answer, "of": of, "by": by, "receipt": receipt.to_dict()}

    # -- downloads -------------------------------------------------------------------------------------------------

    async def ticket(self, request: Request) -> Any:
        name = str((await _body(request))["name"])
        if name not in _DOWNLOADS:
            raise ValueError(name)
        return {"url": f"/download/{self.tickets.issue(name)}"}

    async def download(self, request: Request) -> Response:
        """One file, for a ticket."""
        name = self.tickets.redeem(request.path_params["ticket"])
        if name is None:
            return _problem(
                *problem(404, "This link has been used, or is too old", detail="Ask for it again on the page.")
            )
        try:
            content = await asyncio.to_thread(self._content, name)
        except FileNotFoundError:
            return _problem(*problem(404, "This is not there yet", detail="Make the release and the report first."))
        file, kind = _DOWNLOADS[name]
        if name == "report":
            return Response(content, media_type=kind, headers={"content-security-policy": _SANDBOX})
        headers = {"content-disposition": f'attachment; filename="{file}"'}
        return Response(content, media_type=kind, headers=headers)

    def _content(self, name: str) -> bytes:
        folder, release = self.opened.folder, self.opened.folder / self.release
        if name == "policy":
            return self.opened.policy.read_bytes()
        if name == "report":
            return (folder / "report.html").read_bytes()
        if name == "release":
            return _zipped({f"{self.release}/{path.relative_to(release).as_posix()}": path for path in _files(release)})
        if name == "commands":
            return receipts.script(self._whole_way()).encode()
        if name == "python":
            return receipts.program(self._whole_way()).encode()
        if name == "board":
            kept = {self.opened.policy.name: self.opened.policy, "report.html": folder / "report.html"}
            return _zipped({**kept, "manifest.json": release / "manifest.json"})
        raise FileNotFoundError(name)

    def _whole_way(self) -> list[receipts.Receipt]:
        """From the table and the policy to the release, its check and its report."""
        policy, table = self.opened.policy_name, self.opened.table or ""
        return [
            receipts.verb("plan", policy, data=table),
            receipts.verb("anonymize", policy, table, out=self.release),
            receipts.verb("verify", self.release),
            receipts.verb("report", self.release, original=table, out="report.html"),
        ]

    # -- the page --------------------------------------------------------------------------------------------------

    async def page(self, request: Request) -> Response:
        """The page, its modules and its styles: no data, no token."""
        name = request.path_params.get("name", "index.html")
        kind = _TYPES.get(PurePath(name).suffix)
        shared = request.url.path.startswith("/admin/")
        folder = resources.files("polyseme.web").joinpath("admin" if shared else "workbench")
        known = _SHARED if shared else {item.name for item in folder.iterdir()}
        if kind is None or name not in known:
            return _problem(*problem(404, "There is nothing here"))
        content = folder.joinpath(name).read_text(encoding="utf-8")
        return Response(content, media_type=kind)


_SANDBOX = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data:; font-src data:"
)
"""The report opens in a tab of its own, without our origin."""
_DOWNLOADS = {
    "policy": ("policy.yaml", "application/yaml"),
    "release": ("release.zip", "application/zip"),
    "report": ("report.html", "text/html"),
    "commands": ("commands.sh", "text/x-shellscript"),
    "python": ("release.py", "text/x-python"),
    "board": ("for-the-ethics-board.zip", "application/zip"),
}
"""What can be taken away: the name of the file and its media type."""


def _asked(kind: str) -> list[str]:
    """Options that make a command answer to a program, beside those of its receipt."""
    return ["--json"] if kind in ("anonymize", "verify", "attack", "alternatives") else []


def _worded(job: Job) -> Any:
    """A job's result, with words for checks and attacks."""
    found = job.result
    if isinstance(found, dict) and job.kind in ("verify", "attack"):
        from polyseme.results.views.words import attack_words, check_words

        for verdict in found.get("verdicts", ()):
            verdict["words"] = check_words(verdict["model"])
        for finding in found.get("findings", ()):
            finding["words"] = attack_words(finding["attack"])
    return found


def _document(text: str) -> Any:
    """A policy as YAML gives it; None where it is no YAML."""
    try:
        return parse(text.removeprefix("\ufeff")) if text.strip() else None
    except InvalidInput:
        return None


def _texts(record: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: [str(one) for one in value]
        if isinstance(value, list | tuple | set)
        else ""
        if value is None
        else str(value)
        for name, value in record.items()
    }


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _zipped(files: Mapping[str, Path]) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, path in files.items():
            archive.write(path, name)
    return held.getvalue()


def _problem(status: int, document: dict[str, Any]) -> Response:
    return JSONResponse(document, status, media_type="application/problem+json")


async def _body(request: Request) -> dict[str, Any]:
    found = json.loads(await request.body())
    if not isinstance(found, dict):
        raise ValueError("expected an object")
    return found


# -- the process ---------------------------------------------------------------------------------------------------


def serve(opened: Opened, port: int, listening: Callable[[str], None]) -> None:
    """Serve until a signal comes.

    listening  called with the address to open, token and all
    """
    bound = socket.socket(socket.AF_INET)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((_LOOPBACK, port))
    except OSError as error:
        bound.close()
        raise InvalidInput(f"port {port}: {error.strerror}", "choose another --port, or leave it out") from None
    asyncio.run(_serve(opened, bound, listening))


async def _serve(opened: Opened, bound: socket.socket, listening: Callable[[str], None]) -> None:
    bench, host = Workbench(opened), f"{_LOOPBACK}:{bound.getsockname()[1]}"
    config = uvicorn.Config(
        bench.app(host), log_config=None, access_log=False, server_header=False, date_header=False,
        proxy_headers=False, lifespan="off", ws="none", timeout_graceful_shutdown=1,
    )  # fmt: skip
    server = uvicorn.Server(config)
    work = asyncio.create_task(server.serve([bound]))
    while not server.started and not work.done():
        await asyncio.sleep(0.01)
    if opened.table is not None:
        bench.read()
    listening(f"http://{host}/#{bench.token}")
    try:
        await work
    finally:
        bench.cancellation.cancel("the workbench ends")
        await bench.jobs.stop()
