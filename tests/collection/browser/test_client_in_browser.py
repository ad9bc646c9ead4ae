"""The client's modules in a real browser: the vectors, and what they make of every answer of a collector."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from sites import NewPage, Site

from polyseme.collection.server.requests import PROBLEMS, problem_body

pytestmark = [pytest.mark.browser, pytest.mark.lane]

HERE = Path(__file__).parents[1]
VECTORS = HERE / "vectors" / "draw-1.json.gz"
KEPT = """async ({ campaign, codes }) => {
  const { Device, Queue } = await import("/client/polyseme-client.js");
  window.device = new Device(location.origin, new Queue("test"));
  window.campaign = await device.campaign(campaign);
  window.report = await device.answer(window.campaign, codes);
  await device.keep(window.campaign, report);
  return report;
}"""
SENT = """async (now) => {
  const { send } = await import("/client/send.js");
  const began = Date.now();
  await send(device.queue, () => {}, now);
  const { state, said, tries, due } = (await device.queue.all()).find(({ id }) => id === report.id);
  return { state, said, tries, least: (due - began) / 1000, most: (due - Date.now()) / 1000 };
}"""
"""One round of sending, without what the page would do by itself later: seconds to the next try, from both ends."""
CODES = {"sex": 0, "age": 2, "condition": 1, "complaint": 77}


@pytest.fixture
def bare(site: Site, new_page: NewPage) -> Any:
    """A page of another site on the same host, without our policy."""
    page = new_page()
    page.route(
        "**/bare/", lambda route: route.fulfill(body="<!doctype html><title>bare</title>", content_type="text/html")
    )
    page.route(
        "**/bare/check.mjs",
        lambda route: route.fulfill(path=HERE / "check_vectors.mjs", content_type="text/javascript"),
    )
    page.route("**/bare/vectors.json", lambda route: route.fulfill(body=gzip.decompress(VECTORS.read_bytes())))
    page.goto(f"{site.url}/bare/")
    return page


def test_the_vectors_in_chromium(bare: Any) -> None:
    vectors = json.loads(gzip.decompress(VECTORS.read_bytes()))
    found = bare.evaluate("""async () => {
      const { checkVectors } = await import("/bare/check.mjs");
      const vectors = await (await fetch("/bare/vectors.json")).json();
      return checkVectors(vectors, (name) => import(`/client/${name}`));
    }""")
    ways = ("fresh", "sticky", "blind")
    expected = sum(len(case[way]) // case["document"]["l"] for case in vectors["cases"] for way in ways)
    assert found["wrong"] == []
    assert (found["draws"], found["posteriors"]) == (expected, len(vectors["posteriors"]))
    assert found["answers"] == len(vectors["campaign"]["answers"])
    assert found["worst"] < 1e-12


def answered(page: Any, status: int, body: bytes | str, kind: str = "application/problem+json", **headers: str) -> None:
    page.unroute("**/reports")
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    page.route("**/reports", lambda route: route.fulfill(status=status, body=body, content_type=kind, headers=given))


def test_every_answer_of_a_collector(site: Site, bare: Any) -> None:
    campaign = site.open()
    for kind, (status, _) in PROBLEMS.items():
        bare.evaluate(KEPT, {"campaign": campaign, "codes": CODES})
        answered(bare, status, problem_body(kind), retry_after="120")
        found = bare.evaluate(SENT, True)
        if status in (429, 500, 503):
            assert (found["state"], found["said"], found["tries"]) == ("waiting", kind, 1)
            assert found["least"] >= 120 >= found["most"]
        else:
            assert (found["state"], found["said"]) == ("refused", kind)
        bare.evaluate("device.queue.change(report.id, () => null)")
    # An attacker between us and the collector who says yes to everything, or no, is not the collector.
    for status, body in ((200, "<html>welcome</html>"), (200, "null"), (404, "not found"), (201, '{"status": "ok"}')):
        bare.evaluate(KEPT, {"campaign": campaign, "codes": CODES})
        answered(bare, status, body, "text/html")
        found = bare.evaluate(SENT, True)
        assert (found["state"], found["said"]) == ("waiting", "unreachable")
        assert found["least"] >= 1
        assert found["most"] <= 2
        bare.evaluate("device.queue.change(report.id, () => null)")
    bare.evaluate(KEPT, {"campaign": campaign, "codes": CODES})
    for status in (201, 200):
        bare.evaluate("device.queue.change(report.id, () => ({ state: 'waiting', due: 0 }))")
        answered(bare, status, '{"status":"stored"}', "application/json")
        assert bare.evaluate(SENT, False)["state"] == "stored"
    assert site.store.counts(campaign).reports == 0


def test_tries_are_further_and_further_apart(site: Site, bare: Any) -> None:
    bare.evaluate(KEPT, {"campaign": site.open(), "codes": CODES})
    bare.route("**/reports", lambda route: route.abort())
    for number in range(1, 7):
        found = bare.evaluate(SENT, True)
        assert found["least"] >= 2**number / 2
        assert found["most"] <= 2**number
    # Not before its time, unless it is told to.
    assert bare.evaluate(SENT, False)["tries"] == 6
    # A clock that was put back by a year does not keep it for a year.
    bare.evaluate("device.queue.change(report.id, () => ({ due: Date.now() + 365 * 864e5 }))")
    assert bare.evaluate(SENT, False)["tries"] == 7


def test_the_campaigns_delay_is_waited_out(site: Site, bare: Any) -> None:
    bare.evaluate(KEPT, {"campaign": site.open(delay=600_000), "codes": CODES})
    # Whatever was drawn, at least a minute of it is left.
    bare.evaluate("device.queue.change(report.id, ({ due }) => ({ earliest: Math.max(due, Date.now() + 6e4) }))")
    assert bare.evaluate(SENT, True)["tries"] == 0
    assert bare.evaluate("device.withdraw(report.id).then(() => device.queue.all()).then((all) => all.length)") == 0


def test_a_campaign_with_a_relay_is_never_sent_directly(site: Site, bare: Any) -> None:
    requests: list[str] = []
    bare.on("request", lambda request: requests.append(request.url))
    found = bare.evaluate(
        """async (campaign) => {
      const { Device, Queue } = await import("/client/polyseme-client.js");
      const device = new Device(location.origin, new Queue("relayed"));
      const found = await device.campaign(campaign);
      const report = await device.answer(found, { sex: 0, age: 2, condition: 1, complaint: 77 });
      const relay = "https://relay.invalid/";
      const without = { ...found, collection: { ...found.collection, relay } };
      const refused = await device.keep(without, report).then(() => "", (error) => error.name);
      await device.keep({ ...found, collection: { ...without.collection, gateway: "AAAA" } }, report);
      const { send } = await import("/client/send.js");
      await send(device.queue);
      return { refused, state: (await device.queue.all()).map(({ state, tries }) => [state, tries]) };
    }""",
        site.open(),
    )
    assert found == {"refused": "CampaignError", "state": [["waiting", 1]]}
    assert any(url.endswith("/ohttp.js") for url in requests)
    assert not [url for url in requests if "reports" in url]


def test_the_devices_key_is_made_once_and_cannot_be_read(site: Site, bare: Any) -> None:
    campaign = site.open(draws="sticky")
    work = """async (campaign) => {
      const { Device } = await import("/client/polyseme-client.js");
      const device = new Device();
      const found = await device.campaign(campaign);
      const codes = { sex: 0, age: 2, condition: 1, complaint: 77 };
      const sets = (await Promise.all([1, 2, 3].map(() => device.answer(found, codes)))).map(({ sets }) => sets);
      const key = await device.queue.key();
      const out = await crypto.subtle.exportKey("raw", key).then(() => "read", () => "not readable");
      return { sets, out, reports: (await device.queue.all()).length };
    }"""
    first = bare.evaluate(work, campaign)
    bare.reload()
    second = bare.evaluate(work, campaign)
    assert first == second
    assert first["sets"][0] == first["sets"][1] == first["sets"][2]
    assert (first["out"], first["reports"]) == ("not readable", 0)
