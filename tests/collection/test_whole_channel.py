"""A campaign through a relay, with blind tokens: collector, relay and issuer are real servers on this machine."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import crowd
import pytest
from collectors import Process

from polyseme.collection.credentials import Invited, Issuer, code_hash, new_codes, new_issuer_key
from polyseme.collection.gateway import SmallServer, new_gateway, relay_server
from polyseme.collection.operations import invite, open_document
from polyseme.collection.store import open_store
from polyseme.device import Campaign, Queue, answer, send, transport_of, withdraw
from polyseme.device.delivery import Direct
from polyseme.device.tokens import ask_issuer, blind, finalize, from_text, to_text
from polyseme.kernel.errors import CampaignError

RECORD = {"sex": "f", "age": "old", "disease": "flu", "income": 3}


@contextmanager
def running(server: Any) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


def opened(store: str, **collection: Any) -> Campaign:
    data = crowd.document(**collection)
    with closing(open_store(store)) as keeper:
        open_document(keeper, data)
    return Campaign.read(data)


def stored(store: str, campaign: Campaign) -> int:
    with closing(open_store(store)) as keeper:
        return keeper.counts(campaign.id).reports


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/reports.db"


def test_a_relay_is_the_only_way(store: str, tmp_path: Path) -> None:
    gateway = new_gateway(tmp_path / "gateway.json")
    with Process(store, ("--gateway", str(tmp_path / "gateway.json"))) as collector:
        address = f"http://127.0.0.1:{collector.port}"
        relay = relay_server(f"{address}/v1/gateway", "127.0.0.1", 0)
        with running(relay):
            keys = to_text(gateway.configurations())
            campaign = opened(store, relay=relay.address, gateway=keys, size=1_024)
            queue = Queue(tmp_path / "queue.db")
            queue.put(campaign, answer(campaign, RECORD))
            with pytest.raises(CampaignError, match="no other way"):
                send(queue, address)
            assert stored(store, campaign) == 0
            assert send(queue, address, transport_of(campaign)).stored == 1
            assert stored(store, campaign) == 1
            # A device that does not care is refused by the collector as well.
            body = answer(campaign, RECORD).body(campaign.collection.size)
            url = f"{address}/v1/campaigns/{campaign.id}/reports"
            kind = "application/vnd.polyseme.report+json;v=1"
            assert Direct().post(url, body, kind).status == 403
            assert stored(store, campaign) == 1
            assert withdraw(queue, address, queue.all()[0].id, transport_of(campaign))
            assert stored(store, campaign) == 0


def test_a_blind_token_is_good_for_one_report(store: str, tmp_path: Path) -> None:
    key = new_issuer_key(tmp_path / "issuer.pem")
    invited = Invited(tmp_path / "issued.db")
    issuing: list[Issuer] = []
    with running(server := SmallServer(lambda *given: issuing[0].answer(*given), "127.0.0.1", 0)):
        issuer = {"address": server.address, "key": to_text(key.public())}
        campaign = opened(store, tokens="blind-rsa", issuer=issuer, size=2_048)
        issuing.append(Issuer(campaign.id, key, invited))
        code = new_codes(1)[0]
        found = code_hash(campaign.id, code)
        assert found is not None
        invited.add([found])
        assert campaign.collection.issuer is not None
        spki = from_text(campaign.collection.issuer.key)
        blinding = blind(spki, campaign.id)
        token = to_text(finalize(spki, blinding, ask_issuer(server.address, campaign.id, code, blinding)))
    with Process(store) as collector:
        url = f"http://127.0.0.1:{collector.port}/v1/campaigns/{campaign.id}/reports"
        kind = "application/vnd.polyseme.report+json;v=1"
        way, size = Direct(), campaign.collection.size
        first = answer(campaign, RECORD, token=token)
        assert way.post(url, first.body(size), kind).status == 201
        assert way.post(url, first.body(size), kind).status == 200
        # Another answer under the same token has the same id.
        other = answer(campaign, {**RECORD, "income": 9, "disease": "burn"}, token=token)
        assert other.id == first.id
        assert other.sets != first.sets
        assert way.post(url, other.body(size), kind).status == 409
        # This one is not signed.
        forged = to_text(bytes([from_text(token)[0] ^ 1]) + from_text(token)[1:])
        assert way.post(url, answer(campaign, RECORD, token=forged).body(size), kind).status == 401
    assert stored(store, campaign) == 1


def test_an_invitation_may_be_typed_in_any_way(store: str, tmp_path: Path) -> None:
    campaign = opened(store, tokens="invitation")
    with closing(open_store(store)) as keeper:
        code = invite(keeper, campaign.id, 1)[0]
    with Process(store) as collector:
        url = f"http://127.0.0.1:{collector.port}/v1/campaigns/{campaign.id}/reports"
        kind = "application/vnd.polyseme.report+json;v=1"
        way, size = Direct(), campaign.collection.size
        slip = code[:-1] + ("2" if code[-1] != "2" else "3")
        assert way.post(url, answer(campaign, RECORD, token=slip).body(size), kind).status == 401
        typed = code.lower().replace("-", " ")
        assert way.post(url, answer(campaign, RECORD, token=typed).body(size), kind).status == 201
        assert way.post(url, answer(campaign, RECORD, token=code).body(size), kind).status == 401
    assert stored(store, campaign) == 1
