"""Oblivious HTTP between the device's side and the gateway's."""

from __future__ import annotations

import asyncio
import json
import stat
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

import pytest
from channel_vectors import rfc
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from polyseme.collection.gateway import (
    Gateway,
    GatewayKey,
    add_gateway_key,
    drop_gateway_key,
    new_gateway,
    read_gateway,
    relayed,
    with_gateway,
)
from polyseme.device.ohttp import KeyConfiguration, Request, Response, encapsulate, read_configurations, wrapped
from polyseme.kernel.errors import ChannelError

EXAMPLE = rfc("ohttp")
MARK = b"MARKEDVALUE77"
REPORTS = "/v1/campaigns/abc/reports"


def counted(configuration: bytes) -> bytes:
    return len(configuration).to_bytes(2, "big") + configuration


def report(path: str = REPORTS, body: bytes = MARK) -> Request:
    return Request("POST", "https", "collect.example.org", path, (("content-type", "application/json"),), body)


class Collector:
    """An ASGI application that remembers what it was asked."""

    def __init__(self) -> None:
        self.scopes, self.bodies = list[MutableMapping[str, Any]](), list[bytes]()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.scopes.append(scope)
        self.bodies.append((await receive()).get("body", b""))
        await send({"type": "http.response.start", "status": 201, "headers": [(b"content-type", b"text/plain")]})
        await send({"type": "http.response.body", "body": b"sto", "more_body": True})
        await send({"type": "http.response.body", "body": b"red"})


def answer_to(application: Any, method: str, path: str, body: bytes = b"", kind: str = "message/ohttp-req") -> Response:
    """What an ASGI application answers."""
    sent = list[Any]()
    pieces = [body[at : at + 1_000] for at in range(0, len(body), 1_000)] or [b""]
    messages = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]
    messages[-1]["more_body"] = False

    async def receive() -> Any:
        return messages.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"content-type", kind.encode()), (b"user-agent", b"somebody"), (b"cookie", b"somebody")]
    scope = {"type": "http", "method": method, "path": path, "headers": headers, "client": ("192.0.2.7", 1)}
    asyncio.run(application(scope, receive, send))
    shown = tuple((name.decode(), value.decode()) for name, value in sent[0]["headers"])
    return Response(sent[0]["status"], shown, b"".join(message.get("body", b"") for message in sent[1:]))


def test_the_example_of_the_rfc_on_the_device() -> None:
    configuration = read_configurations(counted(EXAMPLE["configuration"]))[0]
    sealed = encapsulate(configuration, EXAMPLE["request"], X25519PrivateKey.from_private_bytes(EXAMPLE["once"]))
    assert sealed.body == EXAMPLE["encapsulated_request"]
    assert sealed.opened(EXAMPLE["encapsulated_response"]) == EXAMPLE["response"]


def test_the_example_of_the_rfc_at_the_gateway() -> None:
    gateway = Gateway((GatewayKey(1, X25519PrivateKey.from_private_bytes(EXAMPLE["private"])),))
    message, sealed = gateway.opened_message(EXAMPLE["encapsulated_request"])
    assert message == EXAMPLE["request"]
    assert sealed(EXAMPLE["response"], EXAMPLE["response_nonce"]) == EXAMPLE["encapsulated_response"]


def test_a_request_and_its_answer_pass() -> None:
    gateway = Gateway((GatewayKey.fresh(7),))
    body, opened = wrapped(gateway.configurations(), report(), 1_024)
    assert MARK not in body
    inside = gateway.opened(body)
    assert inside.request == report()
    answer = inside.sealed(Response(201, (("content-type", "text/plain"),), MARK))
    assert MARK not in answer
    assert opened(answer) == Response(201, (("content-type", "text/plain"),), MARK)


def test_all_requests_and_all_short_answers_have_one_length() -> None:
    gateway = Gateway((GatewayKey.fresh(7),))
    bodies = [report(body=bytes(length)) for length in (0, 20, 1_024)]
    bodies.append(report("/v1/campaigns/abc/withdrawals", bytes(16)))
    sealed = [wrapped(gateway.configurations(), request, 1_024)[0] for request in bodies]
    assert len({len(body) for body in sealed}) == 1
    answers = [gateway.opened(body).sealed(Response(201 + at, (), bytes(at * 50))) for at, body in enumerate(sealed)]
    assert len({len(answer) for answer in answers}) == 1


def test_an_answer_opens_only_for_its_own_request() -> None:
    gateway = Gateway((GatewayKey.fresh(7),))
    first, _ = wrapped(gateway.configurations(), report(), 1_024)
    _, second = wrapped(gateway.configurations(), report(), 1_024)
    for answer in (gateway.opened(first).sealed(Response(201)), b"", bytes(16), bytes(40)):
        with pytest.raises(ChannelError, match="did not come from the gateway"):
            second(answer)


def test_a_configuration_for_other_algorithms_is_passed_over() -> None:
    ours = KeyConfiguration(9, GatewayKey.fresh(9).configuration().public)
    p256 = counted(bytes([1, 0, 0x10]) + bytes(65) + bytes([0, 4, 0, 1, 0, 1]))
    chacha = counted(bytes([2, 0, 0x20]) + bytes(32) + bytes([0, 4, 0, 1, 0, 3]))
    assert read_configurations(p256 + chacha + ours.encoded()) == (ours,)
    with pytest.raises(ChannelError, match="no key for DHKEM"):
        read_configurations(p256 + chacha)
    for cut in (b"", b"\0", ours.encoded()[:-1], b"\0\0" * 3):
        with pytest.raises(ChannelError):
            read_configurations(cut)


def test_keys_rotate(tmp_path: Path) -> None:
    file = tmp_path / "gateway.json"
    old = new_gateway(file)
    before, _ = wrapped(old.configurations(), report(), 1_024)
    both = add_gateway_key(file)
    assert [key.number for key in both.keys] == [2, 1]
    assert read_configurations(both.configurations())[0].number == 2
    assert read_gateway(file).opened(before).request == report()
    after, _ = wrapped(both.configurations(), report(), 1_024)
    new = drop_gateway_key(file, 1)
    assert read_gateway(file).opened(after).request == report()
    assert not new.has_key_of(before)
    with pytest.raises(ChannelError, match="does not have"):
        read_gateway(file).opened(before)


def test_the_file_of_keys_is_guarded(tmp_path: Path) -> None:
    file = tmp_path / "gateway.json"
    new_gateway(file)
    add_gateway_key(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with pytest.raises(ChannelError, match="already exists"):
        new_gateway(file)
    with pytest.raises(ChannelError, match="no key has the number 9"):
        drop_gateway_key(file, 9)
    drop_gateway_key(file, 1)
    with pytest.raises(ChannelError, match="last key"):
        drop_gateway_key(file, 2)
    file.chmod(0o644)
    with pytest.raises(ChannelError, match="others can read"):
        read_gateway(file)
    with pytest.raises(ChannelError, match="no such file"):
        read_gateway(tmp_path / "other.json")


@pytest.mark.parametrize(
    "content",
    ["", "[]", '{"keys": []}', '{"keys": [{"number": 1}]}', '{"keys": [{"number": 1, "private": "00"}]}', "é"],
)
def test_a_broken_file_of_keys_is_refused(tmp_path: Path, content: str) -> None:
    file = tmp_path / "gateway.json"
    file.write_text(content, encoding="utf-8")
    file.chmod(0o600)
    with pytest.raises(ChannelError, match=r"gateway\.json: expected"):
        read_gateway(file)


def test_keys_are_not_shown() -> None:
    key = GatewayKey.fresh(1)
    assert repr(key) == "GatewayKey(number=1)"
    assert key.private.private_bytes_raw().hex() not in repr(Gateway((key,)))


def test_the_application_sees_the_request_but_no_sender() -> None:
    gateway, collector = Gateway((GatewayKey.fresh(7),)), Collector()
    application = with_gateway(collector, gateway)
    keys = answer_to(application, "GET", "/v1/ohttp-keys")
    assert keys.header("content-type") == "application/ohttp-keys"
    body, opened = wrapped(keys.body, report(), 1_024)
    answer = answer_to(application, "POST", "/v1/gateway", body)
    assert (answer.status, answer.header("content-type")) == (200, "message/ohttp-res")
    assert opened(answer.body) == Response(201, (("content-type", "text/plain"),), b"stored")
    (scope,) = collector.scopes
    assert collector.bodies == [MARK]
    assert scope["client"] is None
    assert (scope["method"], scope["path"]) == ("POST", REPORTS)
    assert "somebody" not in str(scope)
    assert "192.0.2.7" not in str(scope)
    assert relayed(scope)


def test_what_is_not_for_the_gateway_passes_untouched() -> None:
    collector = Collector()
    answer = answer_to(with_gateway(collector, Gateway((GatewayKey.fresh(7),))), "POST", REPORTS, MARK)
    assert answer.status == 201
    assert collector.scopes[0]["client"] == ("192.0.2.7", 1)
    assert not relayed(collector.scopes[0])


@pytest.mark.parametrize(
    "path",
    ["/", "/metrics", "/v1/gateway", "/admin", "/v1/campaigns/a/../../x", "/v1/campaigns/%2e", "", "/v1/campaigns/"],
)
def test_only_campaigns_are_reached_through_the_gateway(path: str) -> None:
    gateway, collector = Gateway((GatewayKey.fresh(7),)), Collector()
    body, opened = wrapped(gateway.configurations(), report(path), 1_024)
    answer = answer_to(with_gateway(collector, gateway), "POST", "/v1/gateway", body)
    assert opened(answer.body).status == 404
    assert collector.scopes == []


def test_what_cannot_be_opened_is_refused_in_clear() -> None:
    gateway, collector = Gateway((GatewayKey.fresh(7),)), Collector()
    application = with_gateway(collector, gateway)
    body, _ = wrapped(gateway.configurations(), report(), 1_024)
    stranger, _ = wrapped(Gateway((GatewayKey.fresh(8),)).configurations(), report(), 1_024)
    broken = body[:-1] + bytes([body[-1] ^ 1])
    not_http = encapsulate(gateway.keys[0].configuration(), MARK).body
    for sent, status in ((b"", 400), (MARK, 400), (stranger, 400), (broken, 400), (not_http, 400), (bytes(9_000), 413)):
        answer = answer_to(application, "POST", "/v1/gateway", sent)
        assert (answer.status, answer.header("content-type")) == (status, "application/problem+json")
        assert json.loads(answer.body)["status"] == status
        assert MARK not in answer.body
    kind = json.loads(answer_to(application, "POST", "/v1/gateway", stranger).body)["type"]
    assert kind == "https://iana.org/assignments/http-problem-types#ohttp-key"
    assert answer_to(application, "POST", "/v1/gateway", body, "application/json").status == 415
    assert collector.scopes == []
