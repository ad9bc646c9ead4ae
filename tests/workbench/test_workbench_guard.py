"""Only this machine's browser with the printed token is answered."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from polyseme.workbench.guard import MOST_BYTES, Guard, Tickets, new_token

HOST, TOKEN = "127.0.0.1:8001", "a-token-of-some-length"
RIGHT = {"host": HOST, "authorization": f"Bearer {TOKEN}"}


async def _application(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"in"})


def answer(path: str, headers: dict[str, str], method: str = "GET") -> tuple[int, dict[str, str], bytes]:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
    asyncio.run(Guard(_application, HOST, TOKEN)(scope, None, send))
    found = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], found, b"".join(message.get("body", b"") for message in sent[1:])


@pytest.mark.parametrize(
    ("path", "headers", "method", "status"),
    [
        ("/api/state", RIGHT, "GET", 200),
        ("/", {"host": HOST}, "GET", 200),
        ("/api/state", {"host": HOST}, "GET", 401),
        ("/api/state", RIGHT | {"authorization": "Bearer another"}, "GET", 401),
        ("/api/state", RIGHT | {"authorization": TOKEN}, "GET", 401),
        ("/", {"host": "evil.example:8001"}, "GET", 421),
        ("/", {"host": "localhost:8001"}, "GET", 421),
        ("/", {"host": "127.0.0.1:8002"}, "GET", 421),
        ("/", {}, "GET", 421),
        ("/api/state", RIGHT | {"sec-fetch-site": "cross-site"}, "GET", 403),
        ("/api/state", RIGHT | {"sec-fetch-site": "same-site"}, "GET", 403),
        ("/api/state", RIGHT | {"sec-fetch-site": "same-origin"}, "GET", 200),
        ("/download/x", {"host": HOST, "sec-fetch-site": "none"}, "GET", 200),
        ("/api/edits", RIGHT | {"content-type": "text/plain"}, "POST", 415),
        ("/api/edits", RIGHT | {"content-type": "application/json"}, "POST", 200),
        (
            "/api/edits",
            RIGHT | {"content-type": "application/json", "content-length": str(MOST_BYTES + 1)},
            "POST",
            413,
        ),
        ("/api/state", RIGHT, "OPTIONS", 405),
        ("/api/state", RIGHT, "DELETE", 405),
    ],
)
def test_wrong_host_token_site(path: str, headers: dict[str, str], method: str, status: int) -> None:
    found, sent, body = answer(path, headers, method)
    assert found == status
    assert "default-src 'none'" in sent["content-security-policy"]
    assert sent["cache-control"] == "no-store"
    assert "access-control-allow-origin" not in sent
    if status != 200:
        assert json.loads(body)["status"] == status
        assert TOKEN not in body.decode()


def test_tokens_differ_and_are_long() -> None:
    assert len({new_token() for _ in range(100)}) == 100
    assert len(new_token()) >= 43  # 256 bits in base64


def test_a_ticket_is_good_once_and_for_a_minute() -> None:
    now = [0.0]
    tickets = Tickets(lambda: now[0])
    used, old = tickets.issue("policy"), tickets.issue("release")
    assert tickets.redeem(used) == "policy"
    assert tickets.redeem(used) is None
    now[0] = 61.0
    assert tickets.redeem(old) is None
    assert tickets.redeem("guessed") is None
