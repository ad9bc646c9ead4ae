"""Whatever is sent that is no report: a clear no, nothing stored, nothing repeated."""

from __future__ import annotations

import asyncio
import io
import logging
from collections import Counter
from pathlib import Path

import crowd
import malformed
import pytest
from asgi import REPORT, ask
from collectors import Connection, Process
from malformed import MARK

from polyseme.collection.operations import open_document
from polyseme.collection.server.collector import Collector
from polyseme.collection.server.public import public_app
from polyseme.collection.store import Counts, open_store
from polyseme.collection.survey import Survey
from polyseme.collection.telemetry import log_lines

ALLOWED = {400, 413, 422}


def good_report() -> dict:
    survey = Survey.read(crowd.document())
    return next(report for report in crowd.reports(survey, crowd.people(50)) if report["open"]["sex"] == 0)


def flood(address: str, count: int, seed: int) -> tuple[Counter[int], str]:
    """So many bodies in this process; the statuses, and what was logged."""
    log = io.StringIO()

    async def whole() -> Counter[int]:
        store = open_store(address)
        campaign = open_document(store, crowd.document())
        collector = Collector(open_store(address), open_store(address))
        app, path = public_app(collector), f"/v1/campaigns/{campaign}/reports"
        collector.start()
        statuses: Counter[int] = Counter()
        made = malformed.bodies(count, seed, good_report())

        async def device() -> None:
            for body in made:
                answer = await ask(app, "POST", path, body, {"content-type": REPORT})
                statuses[answer.status] += 1
                assert answer.problem, body
                assert MARK.encode() not in answer.body

        # Those that pass the first look are checked together, before the store sees them.
        await asyncio.gather(*(device() for _ in range(32)))
        await collector.stop()
        assert store.counts(campaign) == Counts()
        store.close()
        return statuses

    handler = log_lines(logging.DEBUG)
    handler.setStream(log)  # type: ignore[attr-defined]
    try:
        return asyncio.run(whole()), log.getvalue()
    finally:
        for name in ("polyseme", "uvicorn"):
            logger = logging.getLogger(name)
            logger.removeHandler(handler)
            logger.propagate = True
            logger.setLevel(logging.NOTSET)


def test_20_000_malformed_bodies(tmp_path: Path) -> None:
    statuses, log = flood(f"sqlite:///{tmp_path}/reports.db", 20_000, 1)
    assert set(statuses) == ALLOWED
    assert statuses[422] > 1_000
    assert statuses.total() == 20_000
    assert MARK not in log


@pytest.mark.lane
def test_a_million_malformed_bodies(tmp_path: Path) -> None:
    statuses, log = flood(f"sqlite:///{tmp_path}/reports.db", 1_000_000, 2)
    print(f"a million malformed bodies: {dict(statuses)}")
    assert set(statuses) == ALLOWED
    assert MARK not in log


@pytest.mark.lane
def test_a_hundred_thousand_malformed_bodies_over_http(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/reports.db"
    store = open_store(address)
    campaign = open_document(store, crowd.document())
    statuses: Counter[int] = Counter()
    with Process(address) as process:

        async def device(made: object) -> None:
            connection = Connection(process.port)
            for body in made:  # type: ignore[attr-defined]
                status, _, answer = await connection.post(f"/v1/campaigns/{campaign}/reports", body)
                statuses[status] += 1
                assert MARK.encode() not in answer
            connection.close()

        async def whole() -> None:
            made = malformed.bodies(100_000, 3, good_report())
            await asyncio.gather(*(device(made) for _ in range(16)))

        asyncio.run(whole())
        assert process.stop() == 0
    print(f"a hundred thousand over HTTP: {dict(statuses)}")
    assert set(statuses) == ALLOWED
    assert statuses.total() == 100_000
    assert store.counts(campaign) == Counts()
    assert MARK not in "".join(process.log)
    left = b"".join(path.read_bytes() for path in tmp_path.glob("reports.db*"))
    assert MARK.encode() not in left
    store.close()
