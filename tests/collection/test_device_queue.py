"""Reports survive the end of the program and reach a collector exactly once."""

from __future__ import annotations

import json
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from survey import POLICY, RECORD, questions

from polyseme.collection.campaigns import make_campaign
from polyseme.device import delivery as sending
from polyseme.device.campaign import MEDIA_TYPE, Campaign
from polyseme.device.delivery import Direct, Reply, send, withdraw
from polyseme.device.queue import LONGEST_WAIT, Queue
from polyseme.device.reports import answer
from polyseme.kernel.errors import CampaignError
from polyseme.policy import Policy

HERE = "http://127.0.0.1:9"


def campaign_with(**collection):
    return make_campaign(Policy.loads(POLICY), questions(**collection)).campaign


@pytest.fixture(scope="module")
def campaign():
    return campaign_with()


@pytest.fixture
def queue(tmp_path):
    return Queue(tmp_path / "queue.sqlite")


class Collector:
    """A transport that stores by id, and answers as it is told to first."""

    relay = None

    def __init__(self, *answers):
        self.answers, self.stored, self.posts = list(answers), {}, []

    def post(self, url, body, media_type):
        self.posts.append((url, media_type))
        if self.answers:
            answer = self.answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer if isinstance(answer, Reply) else Reply(answer)
        report = json.loads(body)
        known = self.stored.setdefault(report["id"], body)
        return Reply(201 if known is body else 200 if known == body else 409)


class Clock:
    def __init__(self, at=1_000_000.0):
        self.at, self.slept = at, []

    def __call__(self):
        return self.at

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.at += seconds


def put(queue, campaign, count=1, now=0.0):
    for _ in range(count):
        # Of many people: the same question of two campaigns is not asked of one of them.
        queue.put(campaign, answer(campaign, RECORD), now, again=True)


def test_reports_are_stored_once(queue, campaign):
    put(queue, campaign, 5)
    collector = Collector()
    assert send(queue, HERE, collector).stored == 5
    assert send(queue, HERE, collector).stored == 0
    assert len(collector.stored) == len(collector.posts) == 5
    assert collector.posts[0] == (f"{HERE}/v1/campaigns/{campaign.id}/reports", MEDIA_TYPE)
    assert all(len(body) == campaign.collection.size for body in collector.stored.values())
    assert {item.state for item in queue.all()} == {"stored"}


def test_a_lost_answer_is_no_second_report(queue, campaign):
    put(queue, campaign)

    class Forgetful(Collector):
        def post(self, url, body, media_type):
            reply = super().post(url, body, media_type)
            if len(self.posts) == 1:
                raise TimeoutError("the answer was lost")
            return reply

    collector, clock = Forgetful(), Clock()
    done = send(queue, HERE, collector, wait=True, now=clock, sleep=clock.sleep)
    assert (done.stored, done.refused, done.waiting) == (1, 0, 0)
    assert len(collector.posts) == 2
    assert len(collector.stored) == 1


@pytest.mark.parametrize("status", sorted(sending._REFUSED))
def test_what_another_try_would_not_change_is_refused_and_explained(queue, campaign, status):
    put(queue, campaign)
    done = send(queue, HERE, Collector(status))
    assert (done.stored, done.refused, done.waiting) == (0, 1, 0)
    assert done.reasons == (sending._REFUSED[status],)
    assert [item.state for item in queue.all()] == ["refused"]


@pytest.mark.parametrize("trouble", [500, 502, 503, 429, 408, 302, OSError("no network"), TimeoutError()])
def test_trouble_is_waited_out_with_longer_and_longer_pauses(queue, campaign, trouble):
    put(queue, campaign)
    clock, collector = Clock(), Collector(*[trouble] * 6)
    done = send(queue, HERE, collector, wait=True, now=clock, sleep=clock.sleep)
    assert done.stored == 1
    assert len(collector.posts) == 7
    # Six pauses, each between half of it and all of it: 2 + 4 + .. + 64 seconds.
    assert 62 <= clock.at - 1_000_000.0 <= 130


@pytest.mark.parametrize("value", ["90", formatdate(1_000_090.0, usegmt=True)])
def test_the_collector_says_when_to_come_back(queue, campaign, value):
    put(queue, campaign)
    clock, collector = Clock(), Collector(Reply(503, {"retry-after": value}))
    assert send(queue, HERE, collector, wait=True, now=clock, sleep=clock.sleep).stored == 1
    assert 90 <= clock.at - 1_000_000.0 <= 152


@pytest.mark.parametrize("value", ["", "soon", "-5", "9" * 400])
def test_a_strange_retry_after_is_no_harm(queue, campaign, value):
    put(queue, campaign)
    clock = Clock()
    collector = Collector(Reply(503, {"retry-after": value}))
    assert send(queue, HERE, collector, wait=True, now=clock, sleep=clock.sleep).stored == 1
    assert clock.at - 1_000_000.0 <= 3_700


def test_reports_wait_for_a_random_part_of_the_delay(queue):
    campaign = campaign_with(delay=1000)
    put(queue, campaign, 20, now=5_000.0)
    due = [item.due for item in queue.all()]
    assert all(5_000.0 <= one <= 6_000.0 for one in due)
    assert max(due) - min(due) > 250
    assert send(queue, HERE, Collector(), now=lambda: 4_999.0).stored == 0
    assert send(queue, HERE, Collector(), now=lambda: 6_001.0).stored == 20


def test_a_clock_that_was_put_back_does_not_hold_reports_for_ever(queue, campaign):
    put(queue, campaign, now=1e9 + 2 * LONGEST_WAIT)
    assert send(queue, HERE, Collector(), now=lambda: 1e9).stored == 1


def test_a_campaign_with_a_relay_is_never_sent_directly(queue, campaign):
    relayed = campaign_with(relay="https://relay.example", gateway="AAAA")
    put(queue, campaign)
    put(queue, relayed)
    collector = Collector()
    with pytest.raises(CampaignError, match="names a relay"):
        send(queue, HERE, collector)
    assert collector.posts == []


def test_the_relay_is_the_one_of_the_document(queue):
    put(queue, campaign_with(relay="https://relay.example", gateway="AAAA"))
    other = Collector()
    other.relay = "https://other.example"
    with pytest.raises(CampaignError, match="nothing was sent"):
        send(queue, HERE, other)
    through = Collector()
    through.relay = "https://relay.example"
    assert send(queue, HERE, through).stored == 1


@pytest.mark.parametrize("address", ["http://collector.example", "ftp://127.0.0.1", "collector.example", "file:///x"])
def test_addresses_without_tls_are_refused(queue, address):
    with pytest.raises(CampaignError, match="https://"):
        send(queue, address, Collector())


def test_a_report_leaves_the_queue_or_is_withdrawn(queue, campaign):
    put(queue, campaign, 2)
    first, second = queue.all()
    assert withdraw(queue, HERE, first.id, Collector())
    collector = Collector()
    send(queue, HERE, collector)
    taken = Collector(200)
    assert withdraw(queue, HERE, second.id, taken)
    assert taken.posts == [(f"{HERE}/v1/campaigns/{campaign.id}/withdrawals", "application/json")]
    assert queue.all() == []
    with pytest.raises(CampaignError, match="no report"):
        withdraw(queue, HERE, second.id, taken)


def test_a_report_that_is_being_sent_belongs_to_one_sender(queue, campaign):
    put(queue, campaign)
    assert queue.claim(10.0, 60.0) is not None
    assert queue.claim(11.0, 60.0) is None
    assert queue.claim(71.0, 60.0) is not None


def test_only_the_owner_reads_the_queue(queue):
    assert stat.S_IMODE(queue.path.stat().st_mode) == 0o600


def test_the_truth_is_not_in_the_queue(queue, campaign):
    put(queue, campaign, 3)
    raw = queue.path.read_bytes()
    assert b"flu" not in raw
    assert b"200, 300" not in raw


def test_a_damaged_queue_is_said(tmp_path):
    (tmp_path / "queue").write_bytes(b"x" * 5_000)
    with pytest.raises(CampaignError, match="the queue cannot be used"):
        Queue(tmp_path / "queue")


KILLED = """
import sys
from pathlib import Path
from polyseme.device.campaign import Campaign
from polyseme.device.queue import Queue
from polyseme.device.reports import answer_codes
campaign = Campaign.read(Path(sys.argv[1]).read_bytes())
queue = Queue(sys.argv[2])
codes = {"sex": 0, "region": 0, "age": 1, "income": 4, "disease": 2}
while True:
    report = answer_codes(campaign, codes)
    queue.put(campaign, report, 0.0)
    print(report.id, flush=True)
"""


def test_what_was_put_survives_kill_9(tmp_path, campaign):
    (tmp_path / "campaign.json").write_bytes(campaign.data)
    acknowledged = []
    for _ in range(3):
        arguments = [sys.executable, "-c", KILLED, str(tmp_path / "campaign.json"), str(tmp_path / "queue")]
        with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            acknowledged += [process.stdout.readline().strip() for _ in range(5)]
            process.send_signal(signal.SIGKILL)
            acknowledged += [line.strip() for line in process.stdout if line.endswith("\n")]
    queue = Queue(tmp_path / "queue")
    assert set(acknowledged) <= {item.id for item in queue.all()}
    assert sqlite3.connect(queue.path).execute("PRAGMA integrity_check").fetchone() == ("ok",)
    collector = Collector()
    assert send(queue, HERE, collector).stored == len(collector.stored) >= 15


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        server = self.server
        server.seen.append((self.path, self.headers["content-type"], len(body)))
        status, said = server.answers.pop(0) if server.answers else (201, b'{"status":"stored"}')
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as found:
        found.seen, found.answers = [], []
        thread = threading.Thread(target=found.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield found
        found.shutdown()


def test_over_http(queue, campaign, server):
    put(queue, campaign, 2)
    server.answers = [(302, b"")]
    address = f"http://127.0.0.1:{server.server_port}"
    done = send(queue, address)
    # A redirection is not followed: the report waits.
    assert (done.stored, done.waiting) == (1, 1)
    path = f"/v1/campaigns/{campaign.id}/reports"
    assert server.seen == [(path, MEDIA_TYPE, campaign.collection.size)] * 2
    assert Direct().post(f"{address}{path}", b"{}", MEDIA_TYPE).status == 201


@pytest.mark.parametrize(
    "said", [b"<html>Welcome to our hotel</html>", b"", b'{"status":"fine"}', b"[]", b"x" * 100_000]
)
@pytest.mark.parametrize("status", [200, 201, 403, 404, 410])
def test_an_answer_of_another_server_is_none(queue, campaign, server, status, said):
    put(queue, campaign)
    server.answers = [(status, said)]
    assert send(queue, f"http://127.0.0.1:{server.server_port}").waiting == 1
    assert [item.state for item in queue.all()] == ["waiting"]


def test_a_refusal_of_the_collector_is_one(queue, campaign, server):
    put(queue, campaign)
    server.answers = [(410, b'{"type":"urn:polyseme:problem:closed","title":"The campaign is closed","status":410}')]
    done = send(queue, f"http://127.0.0.1:{server.server_port}")
    assert (done.refused, done.waiting) == (1, 0)


def test_a_closed_port_is_waited_out(queue, campaign):
    put(queue, campaign)
    done = send(queue, "http://127.0.0.1:1")
    assert (done.stored, done.waiting) == (0, 1)
    assert [item.said for item in queue.all()] == ["the collector could not be reached"]


def test_a_campaign_is_read_back(campaign):
    assert Campaign.read(campaign.data).id == campaign.id
