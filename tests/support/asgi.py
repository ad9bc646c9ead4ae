"""Requests to an application in this process, without a network."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

REPORT = "application/vnd.polyseme.report+json;v=1"


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def problem(self) -> str:
        """The kind of a problem document; empty for another answer."""
        if self.headers.get("content-type") != "application/problem+json":
            return ""
        assert self.json["status"] == self.status
        return str(self.json["type"]).removeprefix("urn:polyseme:problem:")


async def ask(
    app: Any,
    method: str,
    path: str,
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
    client: str = "127.0.0.1",
    pieces: int = 1,
    hangs: bool = False,
) -> Answer:
    """One request and its answer; the body comes in so many pieces, or its end never comes (`hangs`)."""
    step = -(-len(body) // pieces) or 1
    parts = [body[start : start + step] for start in range(0, len(body), step)] or [b""]
    messages = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    messages[-1]["more_body"] = False
    waiting, sent = iter(messages), list[dict[str, Any]]()
    given = {"content-length": str(len(body)), **(headers or {})}
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path.partition("?")[0],
        "raw_path": path.partition("?")[0].encode(),
        "query_string": path.partition("?")[2].encode(),
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in given.items()],
        "client": (client, 40_000),
        "server": ("127.0.0.1", 80),
    }

    async def receive() -> dict[str, Any]:
        message = next(waiting, {"type": "http.disconnect"})
        if hangs and message is messages[-1]:
            await asyncio.sleep(60)
        return message

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    content = b"".join(message.get("body", b"") for message in sent[1:])
    found = {name.decode(): value.decode("latin-1") for name, value in sent[0]["headers"]}
    return Answer(sent[0]["status"], found, content)
