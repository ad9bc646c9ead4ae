"""What a collector answers, in process: every status, and that no answer repeats what was sent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import crowd
import pytest
from asgi import REPORT, Answer, ask
from jsonschema import Draft202012Validator

from polyseme.collection.credentials import new_credential
from polyseme.collection.operations import invite, open_document
from polyseme.collection.server.collector import Collector
from polyseme.collection.server.listeners import admin_app
from polyseme.collection.server.public import policy_for, public_app, public_document
from polyseme.collection.store import Outcome, State, Store, open_store
from polyseme.collection.survey import Survey
from polyseme.collection.telemetry import Limits
from polyseme.web import client_module

MARK = "mark-4711"
"""A text that must not come back."""


class Bench:
    """A collector with both its applications, and a campaign that is open."""

    def __init__(self, address: str, settings: dict[str, Any], **options: Any) -> None:
        self.address = address
        self.document = crowd.document(**settings)
        self.store = open_store(address)
        self.campaign = open_document(self.store, self.document)
        self.survey = Survey.read(self.document)
        self.collector = Collector(open_store(address), open_store(address), **options)
        self.public, self.admin = public_app(self.collector), admin_app(self.collector)
        self.path = f"/v1/campaigns/{self.campaign}"

    def reports(self, count: int = 1) -> list[dict[str, Any]]:
        return crowd.reports(self.survey, crowd.people(count))

    async def send(self, body: bytes, **options: Any) -> Answer:
        headers = {"content-type": REPORT, **options.pop("headers", {})}
        return await ask(self.public, "POST", f"{self.path}/reports", body, headers, **options)

    async def withdraw(self, body: Any) -> Answer:
        headers = {"content-type": "application/json"}
        return await ask(self.public, "POST", f"{self.path}/withdrawals", json.dumps(body).encode(), headers)

    async def get(self, path: str, app: Any = None, **options: Any) -> Answer:
        return await ask(app or self.public, "GET", path, **options)

    @property
    def stored(self) -> int:
        return self.store.counts(self.campaign).reports


Story = Callable[[Bench], Coroutine[Any, Any, None]]


def play(story: Story, tmp_path: Path, settings: dict[str, Any] | None = None, **options: Any) -> None:
    """Run a story against a collector that is started before and stopped after."""

    async def whole() -> None:
        bench = Bench(f"sqlite:///{tmp_path}/reports.db", settings or {}, **options)
        bench.collector.start()
        try:
            await story(bench)
        finally:
            await bench.collector.stop()
            bench.store.close()

    asyncio.run(whole())


def test_a_report_is_stored_once_and_said_so(tmp_path: Path) -> None:
    async def story(bench: Bench) -> None:
        first, second = bench.reports(2)
        body = crowd.padded(first)
        answers = [await bench.send(body), await bench.send(body), await bench.send(body, pieces=5)]
        assert [answer.status for answer in answers] == [201, 200, 200]
        assert answers[0].json == answers[1].json == {"status": "stored"}
        clash = await bench.send(crowd.padded({**second, "id": first["id"]}))
        assert (clash.status, clash.problem) == (409, "different")
        assert bench.stored == 1

    play(story, tmp_path)


def test_a_body_that_comes_too_slowly_may_come_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Devices take a 4xx for a final no: the report would be lost."""
    monkeypatch.setattr("polyseme.collection.server.requests.PATIENCE", 0.05)

    async def story(bench: Bench) -> None:
        body = crowd.padded(bench.reports(1)[0])
        slow = await bench.send(body, pieces=2, hangs=True)
        assert (slow.status, slow.problem, slow.headers["retry-after"]) == (503, "slow", "5")
        assert bench.stored == 0
        assert (await bench.send(body)).status == 201

    play(story, tmp_path)


def test_many_at_once_share_a_few_transactions(tmp_path: Path) -> None:
    async def story(bench: Bench) -> None:
        bodies = [crowd.padded(report) for report in bench.reports(300)]
        answers = await asyncio.gather(*(bench.send(body) for body in bodies * 2))
        assert sorted(answer.status for answer in answers) == [200] * 300 + [201] * 300
        assert bench.stored == 300
        text = (await bench.get("/metrics", bench.admin)).body.decode()
        assert 'polyseme_answers_total{endpoint="reports",status="201"} 300' in text
        transactions = int(text.split("polyseme_batch_seconds_count ")[1].split()[0])
        assert transactions < 20

    play(story, tmp_path)


WRONG: dict[str, tuple[Any, int, str]] = {
    "no JSON": (lambda good: b"{" * crowd.SIZE, 400, "malformed"),
    "a list": (lambda good: b"[]".ljust(crowd.SIZE), 400, "malformed"),
    "not UTF-8": (lambda good: crowd.padded(good).replace(b"000", b"\xff\xfe\xfd", 1), 400, "malformed"),
    "too short": (lambda good: crowd.padded(good, crowd.SIZE - 1), 400, "malformed"),
    "too long for the campaign": (lambda good: crowd.padded(good, crowd.SIZE + 1), 400, "malformed"),
    "too long for any": (lambda good: crowd.padded(good, 4_097), 413, "too-large"),
    "another field": (lambda good: crowd.padded({**good, MARK: 1}), 400, "malformed"),
    "no field": (lambda good: crowd.padded({"id": good["id"]}), 400, "malformed"),
    "an id that is too short": (lambda good: crowd.padded({**good, "id": good["id"][:-1]}), 400, "malformed"),
    "an id that is not canonical": (lambda good: crowd.padded({**good, "id": "A" * 21 + "B"}), 400, "malformed"),
    "an id of another alphabet": (lambda good: crowd.padded({**good, "id": "+" * 21 + "A"}), 400, "malformed"),
    "no open column": (lambda good: crowd.padded({**good, "open": {}}), 400, "malformed"),
    "an unknown column": (
        lambda good: crowd.padded({**good, "open": {**good["open"], MARK: 0}}),
        400,
        "malformed",
    ),
    "a text for a code": (lambda good: crowd.padded({**good, "open": {"sex": MARK, "age": 1}}), 400, "malformed"),
    "a truth value for a code": (
        lambda good: crowd.padded({**good, "open": {"sex": True, "age": 1}}),
        400,
        "malformed",
    ),
    "a fraction for a code": (lambda good: crowd.padded({**good, "open": {"sex": 1.0, "age": 1}}), 400, "malformed"),
    "a token that the campaign does not use": (lambda good: crowd.padded({**good, "token": MARK}), 400, "malformed"),
    "a negative code": (lambda good: crowd.padded({**good, "open": {"sex": -1, "age": 1}}), 422, "impossible"),
    "a code beyond the domain": (lambda good: crowd.padded({**good, "open": {"sex": 2, "age": 1}}), 422, "impossible"),
    "candidates that descend": (lambda good: changed(good, income=[5, 3]), 422, "impossible"),
    "one candidate twice": (lambda good: changed(good, income=[3, 3]), 422, "impossible"),
    "too few candidates": (lambda good: changed(good, income=[3]), 422, "impossible"),
    "a candidate beyond the domain": (lambda good: changed(good, income=[3, 10]), 422, "impossible"),
    "candidates that are too close": (lambda good: changed(good, income=[3, 4]), 422, "impossible"),
    "no list of candidates": (lambda good: changed(good, income=MARK), 400, "malformed"),
    "a set of another stratum": (lambda good: stranger(good), 422, "impossible"),
}


def changed(good: dict[str, Any], **sets: Any) -> bytes:
    return crowd.padded({**good, "sets": {**good["sets"], **sets}})


def stranger(good: dict[str, Any]) -> bytes:
    """A man's report with a woman's set."""
    return changed({**good, "open": {"sex": 1, "age": 0}}, disease=[0, 1, 6])


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_report_is_refused(name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    make, status, kind = WRONG[name]

    async def story(bench: Bench) -> None:
        answer = await bench.send(make(bench.reports()[0]))
        assert (answer.status, answer.problem) == (status, kind)
        assert MARK not in answer.body.decode()
        assert bench.stored == 0

    caplog.set_level(0)
    play(story, tmp_path)
    assert MARK not in caplog.text


def test_a_key_that_occurs_twice_is_refused(tmp_path: Path) -> None:
    async def story(bench: Bench) -> None:
        good = crowd.padded(bench.reports()[0])
        twice = good.replace(b'"open":', b'"open":{"sex":0,"age":0},"open":', 1)
        cut = len(twice) - len(good)
        answer = await bench.send(twice.replace(b"0" * cut + b'"}', b'"}'))
        assert (answer.status, answer.problem) == (400, "malformed")

    play(story, tmp_path)


@pytest.mark.parametrize(
    "headers",
    [
        {"content-type": "application/json"},
        {"content-type": ""},
        {"content-type": "application/vnd.polyseme.report+json"},
        {"content-type": "application/vnd.polyseme.report+json;v=2"},
        {"content-encoding": "gzip"},
    ],
)
def test_another_media_type_is_refused(headers: dict[str, str], tmp_path: Path) -> None:
    async def story(bench: Bench) -> None:
        answer = await bench.send(crowd.padded(bench.reports()[0]), headers=headers)
        assert (answer.status, answer.problem) == (415, "media-type")
        assert bench.stored == 0

    play(story, tmp_path)


def test_the_media_type_may_be_written_in_its_usual_ways(tmp_path: Path) -> None:
    async def story(bench: Bench) -> None:
        kinds = ["application/vnd.polyseme.report+json; v=1", 'Application/vnd.Polyseme.report+JSON;v="1"']
        for kind, report in zip(kinds, bench.reports(2)):
            assert (await bench.send(crowd.padded(report), headers={"content-type": kind})).status == 201

    play(story, tmp_path)


def test_withdrawn_for_ever(tmp_path: Path) -> None:
    async def story(bench: Bench) -> None:
        report = bench.reports()[0]
        assert (await bench.send(crowd.padded(report))).status == 201
        for _ in range(2):
            answer = await bench.withdraw({"id": report["id"]})
            assert (answer.status, answer.json) == (200, {"status": "withdrawn"})
        again = await bench.send(crowd.padded(report))
        assert (again.status, again.problem) == (410, "withdrawn")
        assert bench.stored == 0
        for wrong in ({}, {"id": MARK}, {"id": report["id"], "more": 1}, []):
            refused = await bench.withdraw(wrong)
            assert (refused.status, refused.problem) == (400, "malformed")
            assert MARK not in refused.body.decode()
        other = await ask(bench.public, "POST", f"{bench.path}/withdrawals", b"{}", {"content-type": REPORT})
        assert other.status == 415

    play(story, tmp_path)


def test_after_closing_nothing_is_taken(tmp_path: Path) -> None:
    async def story(bench: Bench) -> None:
        first, second = bench.reports(2)
        assert (await bench.get(f"{bench.path}/state")).json == {"state": "open"}
        await bench.send(crowd.padded(first))
        bench.store.move(bench.campaign, State.CLOSED)
        # Another process closed it: this one asks the store before it takes anything.
        answers = [await bench.send(crowd.padded(second)), await bench.withdraw({"id": first["id"]})]
        assert [(answer.status, answer.problem) for answer in answers] == [(410, "closed")] * 2
        assert (await bench.get(f"{bench.path}/state")).json == {"state": "closed"}
        assert bench.stored == 1

    play(story, tmp_path)


def test_a_draft_is_not_open_yet(tmp_path: Path) -> None:
    async def story(bench: Bench) -> None:
        document = crowd.document(wave=2)
        draft = Survey.read(document).id
        bench.store.add_campaign(draft, document)
        answer = await ask(
            bench.public,
            "POST",
            f"/v1/campaigns/{draft}/reports",
            crowd.padded(bench.reports()[0]),
            {"content-type": REPORT},
        )
        assert (answer.status, answer.problem, answer.headers["retry-after"]) == (503, "not-yet", "3600")
        assert (await bench.get(f"/v1/campaigns/{draft}/state")).json == {"state": "draft"}

    play(story, tmp_path)


def test_a_campaign_opens_and_closes_by_its_dates_whatever_the_clock_does(tmp_path: Path) -> None:
    now = [0.0]
    settings = {"opens": "2026-01-01T00:00:00+00:00", "closes": "2026-02-01T00:00:00+00:00"}
    new_year = 1_767_225_600.0

    async def story(bench: Bench) -> None:
        reports = [crowd.padded(report) for report in bench.reports(4)]
        steps = [(-60.0, 503), (10.0, 201), (40 * 86_400.0, 410), (20.0, 201)]
        for (moment, status), body in zip(steps, reports):
            now[0] = new_year + moment
            answer = await bench.send(body)
            assert answer.status == status
            if status == 503:
                assert 1 <= int(answer.headers["retry-after"]) <= 60
        # What was acknowledged stays, and the same report is the same wherever the clock jumps.
        assert (await bench.send(reports[1])).status == 200
        assert bench.stored == 2

    play(story, tmp_path, settings, clock=lambda: now[0])


def test_documents_are_served_byte_by_byte(tmp_path: Path) -> None:
    async def story(bench: Bench) -> None:
        answer = await bench.get(bench.path)
        assert answer.body == bench.document
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert answer.headers["content-type"] == "application/json"
        for path in (f"/v1/campaigns/{'A' * 43}", "/v1/campaigns/short", f"{bench.path}/nothing"):
            missing = await bench.get(path)
            assert (missing.status, missing.problem) == (404, "unknown")
        wrong = await bench.get(f"{bench.path}/reports")
        assert (wrong.status, wrong.problem) == (405, "method")

    play(story, tmp_path)


def test_a_changed_document_behind_a_known_link_is_not_used(tmp_path: Path) -> None:
    async def story(bench: Bench) -> None:
        changed = bench.document.replace(b'"minimum":100', b'"minimum":1')
        bench.store._db.execute("UPDATE campaigns SET document = ?", (changed,))  # type: ignore[attr-defined]
        for answer in (await bench.get(bench.path), await bench.send(crowd.padded(bench.reports()[0]))):
            assert (answer.status, answer.problem) == (500, "internal")
        assert bench.stored == 0

    play(story, tmp_path)


def test_an_invitation_lets_one_report_in(tmp_path: Path) -> None:
    async def story(bench: Bench) -> None:
        code, other = invite(bench.store, bench.campaign, 2)
        first, second, third = bench.reports(3)
        sent = [
            await bench.send(crowd.padded(first)),
            await bench.send(crowd.padded({**first, "token": MARK})),
            await bench.send(crowd.padded({**first, "token": code})),
            await bench.send(crowd.padded({**first, "token": code})),
            await bench.send(crowd.padded({**second, "token": code})),
            await bench.send(crowd.padded({**third, "token": other})),
        ]
        assert [answer.status for answer in sent] == [401, 401, 201, 200, 401, 201]
        assert sent[0].headers["www-authenticate"] == "Polyseme-Invitation"
        assert not any(text in answer.body.decode() for answer in sent for text in (MARK, code, other))
        assert bench.stored == 2
        kept = b"".join(path.read_bytes() for path in tmp_path.glob("reports.db*"))
        assert code.encode() not in kept

    play(story, tmp_path, {"tokens": "invitation"})


def test_one_sender_may_not_write_too_often(tmp_path: Path) -> None:
    now = [0.0]

    async def story(bench: Bench) -> None:
        bodies = [crowd.padded(report) for report in bench.reports(8)]
        statuses = [(await bench.send(body, client="192.0.2.1")).status for body in bodies[:4]]
        assert statuses == [201, 201, 201, 429]
        refused = await bench.send(bodies[3], client="192.0.2.1")
        assert (refused.problem, refused.headers["retry-after"]) == ("rate", "1")
        assert (await bench.send(bodies[3], client="192.0.2.2")).status == 201
        # A subscriber of the new protocol has a whole network.
        several = [await bench.send(body, client=f"2001:db8::{n}") for n, body in enumerate(bodies[4:], 1)]
        assert [answer.status for answer in several] == [201, 201, 201, 429]
        assert (await bench.send(bodies[7])).status == 201
        now[0] += 1.0
        assert (await bench.send(bodies[0], client="192.0.2.1")).status == 200

    play(story, tmp_path, limits=Limits(60.0, burst=3, clock=lambda: now[0]))


def test_limits_forget_their_senders() -> None:
    now = [0.0]
    limits = Limits(60.0, burst=1, clock=lambda: now[0])
    assert limits.wait("192.0.2.1") == 0.0
    assert limits.wait("192.0.2.1") == 1.0
    held = dict(limits._buckets)
    assert not any(b"192.0.2" in key or bytes([192, 0, 2, 1]) in key for key in held)
    now[0] = 601.0
    limits.wait("192.0.2.9")
    assert not held.keys() & limits._buckets.keys()


def test_what_is_wrong_with_the_store_is_said_and_nothing_is_lost(tmp_path: Path) -> None:
    """A disk that is full for a while."""

    async def story(bench: Bench) -> None:
        bodies = [crowd.padded(report) for report in bench.reports(400)]
        writing = bench.collector.writer._store._db  # type: ignore[attr-defined]
        writing.execute(f"PRAGMA max_page_count={writing.execute('PRAGMA page_count').get + 2}")
        first = await asyncio.gather(*(bench.send(body) for body in bodies[:5]))
        later = await asyncio.gather(*(bench.send(body) for body in bodies[5:]))
        assert {answer.status for answer in first} == {201}
        assert {(answer.status, answer.problem) for answer in later} == {(503, "unavailable")}
        assert later[0].headers["retry-after"] == "5"
        assert bench.stored == 5
        writing.execute("PRAGMA max_page_count=1000000")
        again = await asyncio.gather(*(bench.send(body) for body in bodies))
        assert sorted(answer.status for answer in again) == [200] * 5 + [201] * 395

    play(story, tmp_path)


def test_more_than_can_wait_is_refused_at_once(tmp_path: Path) -> None:
    async def story(bench: Bench) -> None:
        bodies = [crowd.padded(report) for report in bench.reports(100)]
        await bench.collector.known(bench.campaign)
        answers = await asyncio.gather(*(bench.send(body) for body in bodies))
        refused = [answer for answer in answers if answer.status != 201]
        assert {(answer.status, answer.problem) for answer in refused} == {(503, "overloaded")}
        assert all(int(answer.headers["retry-after"]) >= 1 for answer in refused)
        assert bench.stored == 100 - len(refused)
        assert len(refused) > 50

    play(story, tmp_path, capacity=10)


def test_the_admin_listener_asks_for_tokens(tmp_path: Path) -> None:
    async def story(bench: Bench) -> None:
        designer, designs = new_credential("anna", "designer")
        analyst, looks = new_credential("ben", "analyst")
        bench.store.add_credential(designer)
        bench.store.add_credential(analyst)

        async def admin(method: str, path: str, token: str, body: bytes = b"") -> Answer:
            return await ask(bench.admin, method, path, body, {"authorization": f"Bearer {token}"})

        assert (await bench.get("/v1/campaigns", bench.admin)).problem == "unauthorized"
        assert (await admin("GET", "/v1/campaigns", "guess")).status == 401
        found = (await admin("GET", "/v1/campaigns", looks)).json["campaigns"]
        assert [(item["id"], item["state"], item["reports"], item["enough"]) for item in found] == [
            (bench.campaign, "open", 0, False)
        ]
        assert (await admin("POST", f"{bench.path}/state", looks, b'{"state":"closed"}')).problem == "forbidden"
        assert (await admin("POST", f"{bench.path}/state", designs, b'{"state":"shut"}')).problem == "malformed"
        assert (await admin("GET", f"/v1/campaigns/{'A' * 43}", looks)).problem == "unknown"
        document = crowd.document(wave=2)
        made = await admin("POST", "/v1/campaigns", designs, document)
        assert (made.status, made.json["state"], made.json["wave"]) == (201, "draft", 2)
        assert (
            await admin("POST", f"/v1/campaigns/{made.json['id']}/state", designs, b'{"state":"open"}')
        ).status == 200
        assert (await bench.get(f"/v1/campaigns/{made.json['id']}/state")).json == {"state": "open"}
        for report in bench.reports(120):
            assert (await bench.send(crowd.padded(report))).status == 201
        early = await admin("POST", f"{bench.path}/release", looks)
        assert (early.status, early.problem) == (422, "refused")
        assert (await admin("POST", f"{bench.path}/state", designs, b'{"state":"closed"}')).json["enough"]
        archive = await admin("POST", f"{bench.path}/release", looks)
        assert (archive.status, archive.headers["content-type"], archive.body[:2]) == (200, "application/zip", b"PK")
        assert (await admin("POST", f"{bench.path}/state", designs, b'{"state":"purged"}')).json["reports"] == 0

    play(story, tmp_path)


def test_health_says_whether_reports_would_be_stored(tmp_path: Path) -> None:
    async def story(bench: Bench) -> None:
        for path in ("/healthz", "/readyz"):
            assert (await bench.get(path, bench.admin)).status == 200
        assert "polyseme_ready 1" in (await bench.get("/metrics", bench.admin)).body.decode()
        bench.collector._reading.close()
        assert (await bench.get("/healthz", bench.admin)).status == 200
        assert (await bench.get("/readyz", bench.admin)).status == 503
        assert "polyseme_ready 0" in (await bench.get("/metrics", bench.admin)).body.decode()

    play(story, tmp_path)


def test_the_openapi_document_says_what_is_answered(tmp_path: Path) -> None:
    async def story(bench: Bench) -> None:
        document = (await bench.get("/v1/openapi.json")).json
        assert document == json.loads(json.dumps(public_document()))
        schemas = document["components"]["schemas"]
        good = bench.reports()[0]
        Draft202012Validator(schemas["Report"]).validate(json.loads(crowd.padded(good)))
        declared = document["paths"]["/v1/campaigns/{campaign}/reports"]["post"]["responses"]
        for make, _, _ in WRONG.values():
            answer = await bench.send(make(good))
            assert str(answer.status) in declared
            Draft202012Validator(schemas["Problem"]).validate(answer.json)

    play(story, tmp_path)


def test_modules_and_pages_come_from_the_wheel(tmp_path: Path) -> None:
    async def story(bench: Bench) -> None:
        module = await bench.get("/client/campaign.js")
        assert (module.status, module.headers["content-type"]) == (200, "text/javascript; charset=utf-8")
        assert module.body == client_module("campaign.js")
        for path in ("/client/nothing.js", "/client/..", "/page/nothing", "/page/../__init__.py"):
            missing = await bench.get(path)
            assert (missing.status, missing.problem) == (404, "unknown")

    play(story, tmp_path)


def test_the_policy_of_a_page_names_the_relay_and_nothing_else() -> None:
    assert "connect-src 'self';" in policy_for()
    assert "connect-src 'self' https://relay.example:8443;" in policy_for("https://relay.example:8443/path?query")
    assert "evil" not in policy_for("https://relay; script-src evil")
    for part in ("default-src 'none'", "script-src 'self'", "require-trusted-types-for 'script'"):
        assert part in policy_for()


def test_other_pages_may_send_reports(tmp_path: Path) -> None:
    async def story(bench: Bench) -> None:
        preflight = await ask(bench.public, "OPTIONS", f"{bench.path}/reports")
        assert (preflight.status, preflight.headers["access-control-allow-origin"]) == (204, "*")
        sent = await bench.send(crowd.padded(bench.reports()[0]))
        assert sent.headers["access-control-allow-origin"] == "*"

    play(story, tmp_path)


class Broken:
    """A store with a fault of ours in it."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def append(self, entries: Any) -> list[Outcome]:
        raise RuntimeError(f"{MARK} {entries}")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def test_a_fault_of_ours_tells_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def story(bench: Bench) -> None:
        bench.collector.writer._store = Broken(bench.collector.writer._store)  # type: ignore[assignment]
        answer = await bench.send(crowd.padded(bench.reports()[0]))
        assert (answer.status, answer.problem) == (503, "unavailable")
        assert MARK not in answer.body.decode()

    caplog.set_level(0)
    play(story, tmp_path)
    assert MARK not in caplog.text
    assert "RuntimeError" in caplog.text
