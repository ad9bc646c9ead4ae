"""What the admin listener tells analysts: expected errors while a campaign runs, estimates when it is closed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import crowd
import pytest
from asgi import Answer
from test_collector_answers import Bench, play

import polyseme as ps
from polyseme.collection.campaigns import summary
from polyseme.collection.credentials import new_credential
from polyseme.collection.releases import write_release
from polyseme.collection.server.public import policy_for
from polyseme.collection.store import State

NAMES = ["disease", "income"]


async def got(bench: Bench, path: str, role: str = "analyst") -> Answer:
    credential, token = new_credential(f"{role} {path}", role)
    bench.store.add_credential(credential)
    headers = {"authorization": f"Bearer {token}"}
    return await bench.get(path, bench.admin, headers=headers)


def fill(bench: Bench, count: int) -> None:
    entries = [bench.survey.entry(crowd.padded(report)) for report in bench.reports(count)]
    assert {outcome.value for outcome in bench.store.append(entries)} == {"stored"}


def test_the_expected_error_now_and_at_the_plan(tmp_path: Path) -> None:
    async def story(bench: Bench) -> None:
        none = (await got(bench, f"{bench.path}/precision")).json
        assert [item["now"] for item in none["columns"]] == [None, None]
        fill(bench, 250)
        found = (await got(bench, f"{bench.path}/precision", "designer")).json
        assert (found["reports"], found["planned"]) == (250, 1_000)
        assert [item["name"] for item in found["columns"]] == NAMES
        assert [item["name"] for item in found["open"]] == ["sex", "age"]
        for key, records in (("now", 250), ("planned", 1_000)):
            expected = [item.error for item in summary(bench.survey.campaign, records).columns]
            assert [item[key] for item in found["columns"]] == pytest.approx(expected, rel=1e-9)
        assert found["columns"][0]["promised"] == pytest.approx(1 / 3)
        assert (await bench.get(f"{bench.path}/precision", bench.admin)).status == 401

    play(story, tmp_path)


def test_estimates_are_those_of_the_release(tmp_path: Path) -> None:
    async def story(bench: Bench) -> None:
        fill(bench, 300)
        early = await got(bench, f"{bench.path}/estimates", "analyst")
        assert early.status in (400, 422)
        bench.store.move(bench.campaign, State.CLOSED)
        for of, by in (("disease", None), ("income", "sex")):
            await compare(bench, tmp_path, of, by)
        assert bench.store.campaign(bench.campaign).state is State.CLOSED

    async def compare(bench: Bench, folder: Path, of: str, by: str | None) -> None:
        answer = await estimates(bench, of, by)
        assert answer.status == 200
        found = answer.json
        release = write_release(bench.store, bench.campaign, folder / f"release-{of}")
        table = ps.estimate(release, [of], [by] if by else [])
        shares = table.proportions()
        assert (found["records"], found["level"]) == (300, 0.95)
        assert found["labels"] == [str(label) for label in table.labels[0]]
        assert found["ordered"] is (of == "income")
        for place, group in enumerate(found["groups"]):
            assert group["share"] == pytest.approx(shares.values[place].tolist())
            assert group["low"] == pytest.approx(shares.low[place].tolist())
            assert group["high"] == pytest.approx(shares.high[place].tolist())
        assert sum(group["records"] for group in found["groups"]) == 300
        assert len(found["groups"]) == (2 if by else 1)
        assert (await estimates(bench, of, by)).json == found

    play(story, tmp_path)


async def estimates(bench: Bench, of: str, by: str | None = None) -> Answer:
    import asgi

    credential, token = new_credential(f"{of} {by} {len(bench.store.credentials())}", "analyst")
    bench.store.add_credential(credential)
    query = f"of={of}&by={by}" if by else f"of={of}"
    return await asgi.ask(
        _with_query(bench.admin, query), "GET", f"{bench.path}/estimates", headers={"authorization": f"Bearer {token}"}
    )


def _with_query(app: Any, query: str) -> Any:
    async def asking(scope: dict[str, Any], receive: Any, send: Any) -> None:
        await app({**scope, "query_string": query.encode()}, receive, send)

    return asking


def test_no_estimates_before_closing_nor_of_a_small_crowd(tmp_path: Path) -> None:
    async def story(bench: Bench) -> None:
        fill(bench, 60)
        assert (await estimates(bench, "disease")).problem == "refused"
        bench.store.move(bench.campaign, State.CLOSED)
        small = await estimates(bench, "disease")
        assert (small.status, small.problem) == (422, "refused")
        assert "none is released below 100" in small.json["detail"]
        for of, by in (("sex", None), ("disease", "income"), ("mark-4711", None)):
            wrong = await estimates(bench, of, by)
            assert wrong.status == 422
            assert "mark" not in wrong.body.decode()

    play(story, tmp_path)


def test_the_pages_are_there_and_say_what_they_may_do(tmp_path: Path) -> None:
    async def story(bench: Bench) -> None:
        page = await bench.get(f"/c/{bench.campaign}")
        assert (page.status, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert page.headers["content-security-policy"] == policy_for()
        worker = await bench.get("/page/sw.js")
        assert worker.headers["service-worker-allowed"] == "/"
        module = await bench.get("/client/polyseme-client.js")
        assert (module.status, b"@param" in module.body) == (200, False)
        assert (await bench.get("/client/../__init__.py")).status == 404
        for stray in ("/c/unknown", "/c/" + "A" * 43):
            # People read it: a page, which then says that there is no such survey.
            missing = await bench.get(stray)
            assert (missing.status, missing.headers["content-type"]) == (404, "text/html; charset=utf-8")
            assert missing.headers["content-security-policy"] == policy_for()
        view = await bench.get("/", bench.admin)
        assert (view.status, view.headers["content-security-policy"]) == (200, policy_for())

    play(story, tmp_path)


def test_a_policy_names_no_more_than_a_host() -> None:
    assert "connect-src 'self';" in policy_for("https://a;script-src *", None)
    both = policy_for("https://relay.example.org/", "https://issuer.example.org/")
    assert "connect-src 'self' https://relay.example.org https://issuer.example.org;" in both


@pytest.mark.parametrize(
    ("address", "origin"),
    [
        ("https://relay.example.org/x?y", "https://relay.example.org"),
        ("http://127.0.0.1:90/relay", "http://127.0.0.1:90"),
        ("https://[::1]:8443", "https://[::1]:8443"),
    ],
)
def test_a_policy_names_hosts_and_nothing_else(address: str, origin: str) -> None:
    assert f"connect-src 'self' {origin};" in policy_for(address)


def test_the_worker_knows_every_file_of_the_page() -> None:
    web = Path(ps.__file__).parent / "web"
    listed = (web / "page" / "offline.js").read_text(encoding="utf-8")
    words = set(listed.replace('"', " ").split())
    for folder in ("page", "client"):
        for module in (web / folder).glob("*.js"):
            assert module.stem in words or module.name == "sw.js", module.name
