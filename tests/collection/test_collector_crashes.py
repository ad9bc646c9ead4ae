"""Whatever is killed: what was acknowledged is there, and once. And a collector that is wrong about it is found out."""

from __future__ import annotations

import asyncio
import base64
import json
import random
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import crowd
import postgres_server
import pytest
from collectors import Clique, Connection, Nursery, Process

from polyseme.collection.operations import open_document
from polyseme.collection.store import Counts, State, Store, open_store
from polyseme.collection.survey import Survey


def campaign_in(store: Store) -> str:
    return open_document(store, crowd.document())


def report_bodies(count: int) -> list[bytes]:
    """As many different reports; what they say is that of a few people again and again."""
    some = crowd.reports(survey(), crowd.people(200))
    bodies = [crowd.padded(report).split(report["id"].encode(), 1) for report in some]
    return [crowd.report_id(number).encode().join(bodies[number % len(bodies)]) for number in range(count)]


@cache
def survey() -> Survey:
    return Survey.read(crowd.document())


def lost(store: Store, campaign: str, sent: Clique) -> int:
    """Acknowledged reports that are not in the store."""
    entries = [survey().entry(sent.bodies[number]) for number in sorted(sent.acknowledged)]
    outcomes = [
        outcome.value
        for start in range(0, len(entries), 1_000)
        for outcome in store.append(entries[start : start + 1_000])
    ]
    return len(outcomes) - outcomes.count("same")


async def kill_again_and_again(nursery: Nursery, sent: Clique, kills: int, seed: int) -> None:
    """Send while the collector is killed at random moments; then let everything arrive."""
    draw = random.Random(seed)
    endless = iter(range(len(sent.bodies)))
    devices = [asyncio.create_task(sent._device(endless)) for _ in range(8)]
    for _ in range(kills):
        child = nursery.begin()
        began = len(sent.acknowledged)
        while len(sent.acknowledged) == began and not all(task.done() for task in devices):
            await asyncio.sleep(0.002)
        await asyncio.sleep(draw.uniform(0.0, 0.05))
        nursery.kill(child)
    assert not all(task.done() for task in devices), "too few reports for so many kills"
    for task in devices:
        task.cancel()
    await asyncio.gather(*devices, return_exceptions=True)


def killed(address: str, kills: int, reports: int, early: bool = False, seed: int = 1) -> tuple[int, Clique, Counts]:
    """How many acknowledged reports are lost after so many kills, who sent, and what is in the store."""
    store = open_store(address)
    campaign = campaign_in(store)
    nursery = Nursery(address, early)
    sent = Clique(nursery.port, f"/v1/campaigns/{campaign}/reports", report_bodies(reports))
    try:
        asyncio.run(kill_again_and_again(nursery, sent, kills, seed))
    finally:
        nursery.close()
    counts = store.counts(campaign)
    missing = lost(store, campaign, sent)
    store.close()
    return missing, sent, counts


def test_kill_9_loses_nothing(tmp_path: Path) -> None:
    missing, sent, counts = killed(f"sqlite:///{tmp_path}/reports.db", 3, 20_000)
    assert missing == 0
    # Reports on their way at a kill may be stored without an answer, one for each of the 8 devices.
    assert len(sent.acknowledged) <= counts.reports <= len(sent.acknowledged) + 8 * 3


@pytest.mark.lane
def test_a_collector_that_acknowledges_early_is_found_out(tmp_path: Path) -> None:
    missing, sent, _ = killed(f"sqlite:///{tmp_path}/reports.db", 4, 60_000, early=True)
    assert sent.acknowledged
    assert missing > 0


@pytest.mark.lane
def test_kill_9_200_times_loses_nothing(address: str) -> None:
    missing, sent, counts = killed(address, 200, 200_000)
    print(f"200 kills: {len(sent.acknowledged):,} acknowledged, {missing} lost, {sent.retries:,} sent again")
    assert missing == 0
    assert len(sent.acknowledged) <= counts.reports <= len(sent.acknowledged) + 8 * 200


def crash_server(postgres: postgres_server.PostgresServer, crashes: int, reports: int) -> tuple[int, Clique, Counts]:
    address = postgres.new_database()
    store = open_store(address)
    campaign = campaign_in(store)
    store.close()
    draw = random.Random(2)

    async def whole(sent: Clique) -> None:
        endless = iter(range(len(sent.bodies)))
        devices = [asyncio.create_task(sent._device(endless)) for _ in range(8)]
        for _ in range(crashes):
            began = len(sent.acknowledged)
            while len(sent.acknowledged) < began + 20:
                await asyncio.sleep(0.002)
            await asyncio.sleep(draw.uniform(0.0, 0.1))
            await asyncio.to_thread(postgres.crash)
            await asyncio.to_thread(postgres.start)
        for task in devices:
            task.cancel()
        await asyncio.gather(*devices, return_exceptions=True)

    with Process(address) as process:
        sent = Clique(process.port, f"/v1/campaigns/{campaign}/reports", report_bodies(reports))
        asyncio.run(whole(sent))
        assert process.stop() == 0
    store = open_store(address)
    counts = store.counts(campaign)
    missing = lost(store, campaign, sent)
    store.close()
    return missing, sent, counts


@pytest.mark.lane
@pytest.mark.postgres
def test_a_store_that_goes_away_and_comes_back(postgres: postgres_server.PostgresServer) -> None:
    missing, sent, counts = crash_server(postgres, 2, 50_000)
    assert missing == 0
    assert sent.statuses[503] > 0
    assert len(sent.acknowledged) <= counts.reports <= len(sent.acknowledged) + 8 * 3


@pytest.mark.lane
@pytest.mark.postgres
def test_postgres_crashed_20_times_loses_nothing(postgres: postgres_server.PostgresServer) -> None:
    missing, sent, counts = crash_server(postgres, 20, 200_000)
    print(f"20 crashes: {len(sent.acknowledged):,} acknowledged, {missing} lost, {sent.statuses[503]:,} answers 503")
    assert missing == 0
    assert len(sent.acknowledged) <= counts.reports <= len(sent.acknowledged) + 8 * 21


@pytest.mark.lane
@pytest.mark.postgres
def test_two_collectors_store_what_both_are_sent_once(postgres: postgres_server.PostgresServer) -> None:
    address = postgres.new_database()
    store = open_store(address)
    campaign = campaign_in(store)
    bodies = report_bodies(400)
    with Process(address) as one, Process(address) as two:
        cliques = [Clique(process.port, f"/v1/campaigns/{campaign}/reports", bodies) for process in (one, two)]

        async def both() -> None:
            orders = (range(400), range(399, -1, -1))
            await asyncio.gather(*(sent.send_all(8, order) for sent, order in zip(cliques, orders)))

        asyncio.run(both())
        assert one.stop() == two.stop() == 0
    assert sum(sent.statuses[201] for sent in cliques) == 400
    assert sum(sent.statuses[200] for sent in cliques) == 400
    assert store.counts(campaign) == Counts(reports=400)
    store.close()


def test_a_signal_stops_it_when_everything_is_answered(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/reports.db"
    store = open_store(address)
    campaign = campaign_in(store)
    with Process(address) as process:
        sent = Clique(process.port, f"/v1/campaigns/{campaign}/reports", report_bodies(500))

        async def whole() -> None:
            devices = asyncio.create_task(sent.send_all(8))
            while len(sent.acknowledged) < 50:
                await asyncio.sleep(0.005)
            code = await asyncio.to_thread(process.stop)
            assert code == 0
            devices.cancel()
            await asyncio.gather(devices, return_exceptions=True)

        asyncio.run(whole())
    assert set(sent.statuses) <= {201, 503}
    assert store.counts(campaign).reports >= len(sent.acknowledged)
    assert lost(store, campaign, sent) == 0
    events = [json.loads(line)["event"] for line in process.log if line.startswith("{")]
    assert events == ["takes reports", "stopped; everything that was acknowledged is stored"]
    store.close()


@pytest.mark.lane
def test_the_disk_is_synced_before_the_answer_leaves(tmp_path: Path) -> None:
    """As the system sees it: the report comes, the log is synced, 201 goes."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed here (Debian: apt install strace)")
    if subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True).returncode:
        pytest.skip("strace may not be used here")
    address = f"sqlite:///{tmp_path}/reports.db"
    store = open_store(address)
    campaign = campaign_in(store)
    trace = tmp_path / "trace"
    calls = "trace=read,recvfrom,recvmsg,write,writev,sendto,sendmsg,fsync,fdatasync"
    with Process(address, before=("strace", "-f", "-y", "-s", "2000", "-e", calls, "-o", str(trace))) as process:
        sent = Clique(process.port, f"/v1/campaigns/{campaign}/reports", report_bodies(5))
        asyncio.run(sent.send_all(1))
        assert sent.statuses == {201: 5}
        assert process.stop() == 0
    ids = [json.loads(body)["id"] for body in sent.bodies]
    order = []
    for line in trace.read_text(encoding="utf-8", errors="replace").splitlines():
        named = [number for number, text in enumerate(ids) if text in line]
        if named and "POST " in line:
            order.append(f"report {named[0]}")
        elif re.search(r"f(data)?sync(\(\d+<[^>]*reports\.db-wal>| resumed>)\) += 0", line):
            order.append("sync")
        elif "HTTP/1.1 201" in line:
            order.append("201")
    for number in range(5):
        since = order[order.index(f"report {number}") :]
        assert "sync" in since[: since.index("201")], order
    store.close()


@pytest.mark.lane
def test_what_is_left_behind_names_no_respondent(tmp_path: Path) -> None:
    """Neither store nor log holds an address, an agent or a time of a report."""
    address = f"sqlite:///{tmp_path}/reports.db"
    store = open_store(address)
    campaign = campaign_in(store)
    agent = "Agent-Of-4711"
    with Process(address) as process:

        async def send() -> int:
            headers = {"content-type": "application/vnd.polyseme.report+json;v=1", "user-agent": agent, "cookie": agent}
            path = f"/v1/campaigns/{campaign}/reports"
            return (await Connection(process.port).ask("POST", path, report_bodies(1)[0], headers))[0]

        assert asyncio.run(send()) == 201
        assert process.stop() == 0
    store.move(campaign, State.CLOSED)
    left = b"".join(path.read_bytes() for path in tmp_path.glob("reports.db*"))
    log = "".join(process.log)
    assert agent.encode() not in left
    assert agent not in log
    body = json.loads(report_bodies(1)[0])
    assert body["id"] not in log
    assert base64.urlsafe_b64decode(body["id"] + "==") in left
    # A row has a campaign, an id and codes, and no column for anything else.
    names = store._db.execute("SELECT group_concat(name) FROM pragma_table_info('reports')").get  # type: ignore[attr-defined]
    assert names == "campaign,id,payload"
    store.close()
