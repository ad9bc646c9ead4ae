"""The way through a relay over real sockets, and that there is no other."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.error import URLError
from urllib.parse import urlsplit

import pytest

from polyseme.collection.gateway import Gateway, GatewayKey, SmallServer, relay_server
from polyseme.device.ohttp import Relayed, Reply, Request, Response, posted, wrapped
from polyseme.kernel.errors import ChannelError

MARK = b"MARKEDVALUE77"
PATH, KIND = "/v1/campaigns/abc/reports", "application/vnd.polyseme.report+json;v=1"
GATEWAY = Gateway((GatewayKey.fresh(7),))
KEYS = GATEWAY.configurations()


class Collector(HTTPServer):
    """A gateway that remembers every byte and header that reached it."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.headers, self.paths, self.inner = list[dict[str, str]](), list[str](), list[bytes]()
        self.address = f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        self.server.headers.append({name.lower(): value for name, value in self.headers.items()})
        self.server.paths.append(self.path)
        opened = GATEWAY.opened(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.inner.append(opened.request.body)
        answer = opened.sealed(Response(201, (("retry-after", "5"),), b"stored"))
        self.send_response(200)
        self.send_header("Content-Type", "message/ohttp-res")
        self.send_header("Set-Cookie", "who=1")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def running(server: HTTPServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def collector() -> Iterator[Collector]:
    server = Collector()
    with running(server):
        yield server


@pytest.fixture
def relay(collector: Collector) -> Iterator[SmallServer]:
    server = relay_server(collector.address + "/v1/gateway", "127.0.0.1", 0)
    with running(server):
        yield server


def closed_port() -> str:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{listening.getsockname()[1]}"


def test_a_report_passes_and_its_answer_comes_back(collector: Collector, relay: SmallServer) -> None:
    way = Relayed(relay.address, KEYS, 1_024)
    assert way.relay == relay.address
    assert way.post(collector.address + PATH, MARK, KIND) == Reply(201, {"retry-after": "5"})
    assert collector.inner == [MARK]
    assert collector.paths == ["/v1/gateway"]


def test_the_relay_hands_on_nothing_that_names_the_sender(collector: Collector, relay: SmallServer) -> None:
    place = urlsplit(relay.address)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=10)
    sealed = sealed_report(collector)
    named = ("User-Agent", "Cookie", "X-Forwarded-For", "Forwarded", "Via", "Referer", "Origin", "Accept-Language")
    headers = {"Content-Type": "message/ohttp-req", **dict.fromkeys(named, "somebody")}
    connection.request("POST", "/somebody?somebody", sealed, headers)
    answer = connection.getresponse()
    assert (answer.status, answer.getheader("Content-Type")) == (200, "message/ohttp-res")
    assert answer.getheader("Set-Cookie") is None
    connection.close()
    (seen,) = collector.headers
    assert set(seen) <= {
        "content-type",
        "content-length",
        "host",
        "user-agent",
        "accept",
        "accept-encoding",
        "connection",
    }
    assert "somebody" not in str(seen) + str(collector.paths)


def sealed_report(collector: Collector) -> bytes:
    return wrapped(KEYS, Request("POST", "http", urlsplit(collector.address).netloc, PATH, (), MARK), 1_024)[0]


def test_a_page_may_ask_the_relay(relay: SmallServer) -> None:
    place = urlsplit(relay.address)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=10)
    connection.request("OPTIONS", "/", headers={"Origin": "https://collect.example.org"})
    answer = connection.getresponse()
    answer.read()
    assert answer.status == 204
    assert answer.getheader("Access-Control-Allow-Origin") == "*"
    assert answer.getheader("Access-Control-Allow-Headers") == "content-type"
    connection.close()


def test_the_relay_takes_sealed_requests_only(collector: Collector, relay: SmallServer) -> None:
    place = urlsplit(relay.address)
    for method, kind, body, status in (
        ("GET", "message/ohttp-req", None, 405),
        ("POST", "application/json", MARK, 415),
        ("POST", "message/ohttp-req", bytes(9_000), 413),
    ):
        connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=10)
        connection.request(method, "/", body, {"Content-Type": kind})
        assert connection.getresponse().status == status
        connection.close()
    assert collector.inner == []


def test_the_log_is_empty(relay: SmallServer, collector: Collector, capfd: pytest.CaptureFixture[str]) -> None:
    Relayed(relay.address, KEYS, 1_024).post(collector.address + PATH, MARK, KIND)
    assert capfd.readouterr() == ("", "")


def test_without_its_relay_nothing_is_sent(collector: Collector) -> None:
    with pytest.raises(URLError):
        Relayed(closed_port(), KEYS, 1_024).post(collector.address + PATH, MARK, KIND)
    assert collector.paths == []


def test_without_a_key_nothing_is_sent(collector: Collector, relay: SmallServer) -> None:
    for keys in (b"", b"\0\1\0"):
        with pytest.raises(ChannelError, match="key"):
            Relayed(relay.address, keys, 1_024)
    assert collector.paths == []


def test_a_relay_cannot_send_a_device_to_the_collector(collector: Collector) -> None:
    elsewhere = (("location", collector.address + "/v1/gateway"),)
    for status in (301, 302, 303, 307, 308):
        server = SmallServer(lambda *_, status=status: Response(status, elsewhere), "127.0.0.1", 0)
        with running(server), pytest.raises(OSError, match=f"answered {status}"):
            Relayed(server.address, KEYS, 1_024).post(collector.address + PATH, MARK, KIND)
    assert collector.paths == []


def test_a_relay_cannot_answer_in_place_of_the_gateway(collector: Collector) -> None:
    kind = (("content-type", "message/ohttp-res"),)
    for body in (b"", bytes(60), GATEWAY.opened(sealed_report(collector)).sealed(Response(201, (), b"stored"))):
        server = SmallServer(lambda *_, body=body: Response(200, kind, body), "127.0.0.1", 0)
        with running(server), pytest.raises(OSError, match="did not come from the gateway"):
            Relayed(server.address, KEYS, 1_024).post(collector.address + PATH, MARK, KIND)


def test_a_gateway_that_is_away_is_said_to_be(collector: Collector) -> None:
    server = relay_server(closed_port(), "127.0.0.1", 0)
    with running(server), pytest.raises(OSError, match="answered 502"):
        Relayed(server.address, KEYS, 1_024).post(collector.address + PATH, MARK, KIND)


def test_an_error_of_the_relay_is_not_told(capfd: pytest.CaptureFixture[str]) -> None:
    def fails(*_: object) -> Response:
        raise ValueError(MARK)

    server = SmallServer(fails, "127.0.0.1", 0)
    with running(server):
        answer = posted(server.address, KIND, MARK, 10)
    assert (answer.status, answer.body) == (500, b"")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "address", ["http://relay.example.org", "ftp://a.example", "relay.example.org", "https://", ""]
)
def test_only_encrypted_connections(address: str) -> None:
    with pytest.raises(ChannelError, match="https"):
        Relayed(address, KEYS, 1_024)
