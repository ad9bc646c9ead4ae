"""The modules of the page for relays and tokens, run by Node: the RFCs' examples, and with our own servers."""

from __future__ import annotations

import gzip
import itertools
import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from channel_vectors import VECTORS
from cryptography.hazmat.primitives.asymmetric import rsa

import polyseme
from polyseme.collection.credentials import ALPHABET, Invited, Issuer, IssuerKey, code_hash, new_codes, read_code
from polyseme.collection.gateway import Gateway, GatewayKey, Relay, SmallServer
from polyseme.device.ohttp import Request, Response
from polyseme.device.tokens import blind, from_text, verify_token

MODULES = Path(polyseme.__file__).parent / "web" / "client"
EXAMPLES = json.loads(VECTORS.read_text())
CAMPAIGN = "A" * 43
BODY = bytes(range(256)) * 4


def node_version() -> int:
    if shutil.which("node") is None:
        return 0
    printed = subprocess.run(["node", "--version"], capture_output=True, text=True, check=False).stdout
    return int(printed.lstrip("v").partition(".")[0] or 0)


pytestmark = [
    pytest.mark.node,
    pytest.mark.skipif(node_version() < 20, reason="Node.js 20 or later is not on this machine"),
]


def run(task: str, given: dict[str, Any]) -> Any:
    """What a task of `drive.mjs` returns; raises with what it threw."""
    command = ["node", "--no-warnings", str(Path(__file__).parent / "drive.mjs"), str(MODULES)]
    request = json.dumps({"task": task, "given": given})
    result = subprocess.run(command, input=request, capture_output=True, text=True, check=False, timeout=60)
    assert result.returncode == 0, result.stderr
    answer = json.loads(result.stdout)
    if "error" in answer:
        raise ValueError(answer["error"])
    return answer["result"]


@contextmanager
def serving(answering: Any) -> Iterator[str]:
    server = SmallServer(answering, "127.0.0.1", 0)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.address
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_hpke_as_the_rfc() -> None:
    example = EXAMPLES["hpke"]
    assert run("hpke", example) == {key: example[key] for key in ("encapsulated", "ciphertext", "exports")}


def test_oblivious_http_as_the_rfc() -> None:
    example = EXAMPLES["ohttp"]
    configuration = bytes.fromhex(example["configuration"])
    result = run("ohttp", {**example, "keys": (len(configuration).to_bytes(2, "big") + configuration).hex()})
    assert result == {"body": example["encapsulated_request"], "response": example["response"]}


def test_blind_signatures_as_the_rfc() -> None:
    example = EXAMPLES["blind"]
    assert run("blind", example) == {key: example[key] for key in ("encoded", "blinded", "signature")}


def test_a_page_sends_through_our_relay_to_our_gateway() -> None:
    gateway, inner = Gateway((GatewayKey.fresh(3), GatewayKey.fresh(2))), list[Request]()

    def collector(_method: str, _path: str, _kind: str, body: bytes) -> Response:
        opened = gateway.opened(body)
        inner.append(opened.request)
        answer = opened.sealed(Response(201, (("content-type", "text/plain"),), BODY))
        return Response(200, (("content-type", "message/ohttp-res"),), answer)

    with serving(collector) as behind, serving(Relay(behind).answer) as relay:
        given = {"url": "https://collect.example.org/here/v1/campaigns/abc/reports", "size": 1_024}
        result = run("send", {**given, "relay": relay, "keys": gateway.configurations().hex(), "body": BODY.hex()})
    assert result == {"status": 201, "headers": [["content-type", "text/plain"]], "body": BODY.hex()}
    kind = (("content-type", "application/json"),)
    assert inner == [Request("POST", "https", "collect.example.org", "/here/v1/campaigns/abc/reports", kind, BODY)]


def test_a_page_sends_no_other_way() -> None:
    gateway, direct = Gateway((GatewayKey.fresh(3),)), list[str]()

    def collector(method: str, path: str, _kind: str, _body: bytes) -> Response:
        direct.append(f"{method} {path}")
        return Response(200)

    with serving(collector) as behind:
        given = {"url": behind + "/v1/campaigns/abc/reports", "size": 1_024, "body": BODY.hex()}
        keys = gateway.configurations().hex()
        for status in (302, 307):
            elsewhere = Response(status, (("location", behind + "/v1/gateway"),))
            with serving(lambda *_, answer=elsewhere: answer) as relay, pytest.raises(ValueError, match="fetch failed"):
                run("send", {**given, "relay": relay, "keys": keys})
        with pytest.raises(ValueError, match="fetch failed"):
            run("send", {**given, "relay": relay, "keys": keys})
        with serving(lambda *_: Response(502)) as relay, pytest.raises(ValueError, match="answered 502"):
            run("send", {**given, "relay": relay, "keys": keys})
        with pytest.raises(ValueError, match="no key"):
            run("send", {**given, "relay": behind, "keys": ""})
    assert direct == []


def test_a_page_gets_a_token_that_we_take(tmp_path: Path) -> None:
    key, (code,) = IssuerKey(rsa.generate_private_key(65_537, 2_048)), new_codes(1)
    invited = Invited(tmp_path / "issued.db")
    invited.add([code_hash(CAMPAIGN, code) or b""])
    given = {"key": key.public().hex(), "campaign": CAMPAIGN, "invitation": code.lower()}
    with serving(Issuer(CAMPAIGN, key, invited).answer) as issuer:
        result = run("token", {**given, "issuer": issuer})
        with pytest.raises(ValueError, match="the issuer answered 409"):
            run("token", {**given, "issuer": issuer})
    made = verify_token(key.public(), CAMPAIGN, from_text(result["token"]))
    assert made is not None
    assert made.hex() == result["id"]
    stray = key.signed(blind(key.public(), CAMPAIGN).blinded).hex()
    with pytest.raises(ValueError, match="does not fit the key"):
        run("wrong", {"key": key.public().hex(), "campaign": CAMPAIGN, "signature": stray})


def test_a_page_knows_a_mistyped_code() -> None:
    code = read_code(new_codes(1)[0]) or ""
    wrong = [code[:at] + other + code[at + 1 :] for at in range(20) for other in ALPHABET if other != code[at]]
    swapped = [
        code[:left] + code[right] + code[left + 1 : right] + code[left] + code[right + 1 :]
        for left, right in itertools.combinations(range(20), 2)
    ]
    codes = [*new_codes(50), code.lower(), *wrong, *swapped, "", "0" * 20]
    assert run("invitations", {"codes": codes}) == [read_code(one) is not None for one in codes]


def test_answers_of_any_length_are_read() -> None:
    headers = (("content-type", "application/problem+json"), ("x", ""))
    answers = [Response(409, headers, bytes(length)) for length in (0, 63, 64, 16_383, 16_384, 70_000)]
    results = run("responses", {"messages": [answer.encoded().hex() for answer in answers]})
    lines = [list(line) for line in headers]
    assert results == [{"status": 409, "headers": lines, "body": answer.body.hex()} for answer in answers]


def test_the_modules_are_small_and_stand_alone() -> None:
    for name, most in (("ohttp.js", 4_000), ("tokens.js", 3_300)):
        text = (MODULES / name).read_text(encoding="utf-8")
        assert len(gzip.compress(text.encode(), 9)) <= most
        assert "import " not in text
