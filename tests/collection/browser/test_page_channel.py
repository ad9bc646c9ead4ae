"""The page of a campaign with a relay and blind tokens: collector, relay, issuer and browser are all real."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import clinic
import pytest
from answering import FORM, GONE, QUEUED, STORED, fill, hurry, look, visit, withdraw
from collectors import Process
from sites import NewPage

from polyseme.collection.credentials import Invited, Issuer, code_hash, new_codes, new_issuer_key
from polyseme.collection.gateway import SmallServer, new_gateway, relay_server
from polyseme.collection.operations import open_document
from polyseme.collection.store import open_store
from polyseme.device.tokens import to_text

pytestmark = [pytest.mark.browser, pytest.mark.lane]


@contextmanager
def running(server: Any) -> Iterator[str]:
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.address
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


def test_a_token_that_cannot_be_traced_and_a_relay_that_cannot_read(tmp_path: Path, new_page: NewPage) -> None:
    address = f"sqlite:///{tmp_path}/reports.db"
    gateway, key = new_gateway(tmp_path / "gateway.json"), new_issuer_key(tmp_path / "issuer.pem")
    invited, issuing = Invited(tmp_path / "issued.db"), list[Issuer]()
    requests: list[tuple[str, str]] = []
    page = new_page(390)
    page.context.on("request", lambda request: requests.append((request.method, request.url)))
    with closing(open_store(address)) as store, ExitStack() as stack:
        collector = stack.enter_context(Process(address, ("--gateway", str(tmp_path / "gateway.json"))))
        url = f"http://127.0.0.1:{collector.port}"
        relay = stack.enter_context(running(relay_server(f"{url}/v1/gateway", "127.0.0.1", 0)))
        signing = SmallServer(lambda *given: issuing[0].answer(*given), "127.0.0.1", 0)
        issuer = stack.enter_context(running(signing))
        settings = {"relay": relay, "gateway": to_text(gateway.configurations()), "size": 2_048, "tokens": "blind-rsa"}
        named = {"address": issuer, "key": to_text(key.public())}
        campaign = open_document(store, clinic.document(**settings, issuer=named))
        issuing.append(Issuer(campaign, key, invited))
        code = new_codes(1)[0]
        invited.add([code_hash(campaign, code) or b""])
        visit(page, url, campaign)
        fill(page)
        page.fill("#code", new_codes(1)[0])
        page.click("#onward")
        page.wait_for_selector("#missing:not(:empty)")
        assert "not valid" in page.inner_text("#missing")
        page.fill("#code", code)
        look(page)
        assert "goes through a relay" in page.inner_text(".know")
        assert code not in page.inner_text("main")
        page.route(f"{relay}/**", lambda route: route.abort())
        page.click("#send")
        # The relay cannot be reached, and there is no other way.
        page.wait_for_selector(f"{QUEUED} #next-try")
        page.unroute(f"{relay}/**")
        hurry(page)
        page.wait_for_selector(STORED)
        assert store.counts(campaign).reports == 1
        withdraw(page)
        page.wait_for_selector(GONE)
        assert store.counts(campaign).reports == 0
        page.reload()
        page.wait_for_selector(FORM)
    posted = [place for method, place in requests if method == "POST"]
    assert {place.split("/")[2] for place in posted} == {relay[7:], issuer[7:]}
