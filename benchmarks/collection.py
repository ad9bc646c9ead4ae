"""How fast reports are stored, as ratios, and how long a steady stream is held: `python benchmarks/collection.py`.

    throughput with a store over one that forgets      at least 0.5
    group commit over one commit a report              at least 5 (the writer alone; over HTTP it is printed)
    2,000 reports/s for 5 minutes, on both stores      without an error; p99 is printed
    kill -9, 1,000 times                               nothing acknowledged is lost

`--seconds 20` and `--kills 50` make it shorter. Collectors and senders share the machine's cores, so trust the ratios.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Coroutine, Sequence
from pathlib import Path
from statistics import median
from typing import Any, TypeVar, cast

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "collection")]

import crowd  # noqa: E402
import numpy as np  # noqa: E402
import postgres_server  # noqa: E402
from asgi import REPORT  # noqa: E402
from collectors import Connection, free_port  # noqa: E402
from test_collector_crashes import killed, report_bodies, survey  # noqa: E402

from polyseme.collection.operations import open_document  # noqa: E402
from polyseme.collection.server.listeners import _loop_factory  # noqa: E402
from polyseme.collection.store import Entry, Outcome, open_store  # noqa: E402
from polyseme.collection.store.group_commit import Writer  # noqa: E402

DEVICES = 128
CONNECTIONS = 512
REPEATS = 3
R = TypeVar("R")


class Forgetful:
    """A store that keeps no report: what HTTP and the checks cost without it."""

    def __init__(self, address: str) -> None:
        self._store = open_store(address)

    def append(self, entries: Sequence[Entry]) -> list[Outcome]:
        return [Outcome.STORED] * len(entries)

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)


def collector(address: str, port: int, batch: int, forgetful: bool) -> None:
    """The process of a collector: as `polyseme collect serve`, but that its store and its batches can be other ones."""
    from polyseme.collection.server import collector as room
    from polyseme.collection.server import listeners as running

    if forgetful:
        running.open_store = Forgetful  # type: ignore[assignment]
    inner = room.Writer.__init__

    def begin(
        self: object, store: object, check: object, watch: object, capacity: int, _: int, patience: float
    ) -> None:
        inner(self, store, check, watch, capacity, batch, patience)  # type: ignore[arg-type]

    room.Writer.__init__ = begin  # type: ignore[method-assign,assignment]
    running.serve(address, port=port, admin_port=free_port(), rate=0)


class Running:
    """Such a process while something is measured."""

    def __init__(self, address: str, batch: int = 2_000, forgetful: bool = False) -> None:
        store = open_store(address)
        self.campaign = open_document(store, crowd.document())
        store.close()
        self.port = free_port()
        options = ["--collector", address, "--port", str(self.port), "--batch", str(batch)]
        options += ["--forgetful"] if forgetful else []
        self._process = subprocess.Popen([sys.executable, __file__, *options], env={**os.environ})
        self.path = f"/v1/campaigns/{self.campaign}/reports"

    async def up(self) -> None:
        while True:
            try:
                await Connection(self.port).ask("GET", "/healthz")
                return
            except ConnectionError:
                await asyncio.sleep(0.1)

    def used(self) -> float:
        """Seconds of CPU that the collector has taken so far."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        self._process.terminate()
        assert self._process.wait(60) == 0


class Device(asyncio.Protocol):
    """A connection that costs its sender next to nothing: requests are ready, of answers only the status is read."""

    def __init__(self) -> None:
        self._transport: asyncio.WriteTransport | None = None
        self._answered: asyncio.Future[int] | None = None
        self._held = b""

    @classmethod
    async def connect(cls, port: int) -> Device:
        return (await asyncio.get_running_loop().create_connection(cls, "127.0.0.1", port))[1]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)

    def data_received(self, data: bytes) -> None:
        self._held += data
        head, end, body = self._held.partition(b"\r\n\r\n")
        # Every answer is a small JSON object.
        if end and body.endswith(b"}") and self._answered is not None:
            answered, self._answered, self._held = self._answered, None, b""
            if not answered.done():
                answered.set_result(int(head[9:12]))

    def connection_lost(self, error: Exception | None) -> None:
        if self._answered is not None and not self._answered.done():
            self._answered.set_exception(ConnectionError("closed"))

    async def send(self, request: bytes) -> int:
        """The status of the answer."""
        assert self._transport is not None
        self._answered = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._answered

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


def requests(path: str, count: int) -> list[bytes]:
    """Whole requests, head and body, for reports that were never sent before."""
    head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: {REPORT}\r\ncontent-length: {crowd.SIZE}\r\n\r\n"
    return [head.encode() + body for body in report_bodies(count)]


def run(work: Coroutine[Any, Any, R]) -> R:
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(work)


def throughput(address: str, seconds: float, batch: int = 2_000, forgetful: bool = False) -> tuple[float, float]:
    """Acknowledged reports a second when devices send as fast as they can; microseconds of the collector for each."""
    running = Running(address, batch, forgetful)
    waiting = iter(requests(running.path, int(12_000 * seconds)))
    counts: Counter[int] = Counter()

    async def device(until: float) -> None:
        connection = await Device.connect(running.port)
        while time.perf_counter() < until:
            counts[await connection.send(next(waiting))] += 1
        connection.close()

    async def whole() -> float:
        await running.up()
        await device(time.perf_counter() + 0.5)
        counts.clear()
        began = time.perf_counter()
        await asyncio.gather(*(device(began + seconds) for _ in range(DEVICES)))
        return counts[201] / (time.perf_counter() - began)

    try:
        rate = run(whole())
        assert set(counts) == {201}, counts
        return rate, running.used() / counts[201] * 1e6
    finally:
        running.stop()


def transactions(address: str, seconds: float, batch: int) -> float:
    """Reports that the writer alone stores in a second, so many at the most in one transaction."""
    store = open_store(address)
    open_document(store, crowd.document())
    entries = iter([survey().entry(body) for body in report_bodies(int(40_000 * seconds))])

    async def whole() -> float:
        writer, stored = Writer(store, batch=batch), 0
        writer.start()
        began = time.perf_counter()

        async def device() -> None:
            nonlocal stored
            # A quick machine stores all of them before the time is over.
            for entry in entries:
                await writer.submit(entry)
                stored += 1
                if time.perf_counter() > began + seconds:
                    break

        await asyncio.gather(*(device() for _ in range(DEVICES)))
        rate = stored / (time.perf_counter() - began)
        await writer.stop()
        return rate

    return run(whole())


def steady(address: str, rate: int, seconds: float) -> tuple[float, float, float, float]:
    """A stream of so many reports a second: the rate that was held, median and p99 in ms, share of a core."""
    running = Running(address)
    ready = requests(running.path, int(rate * seconds))
    taken: list[float] = []
    statuses: Counter[int] = Counter()

    async def whole() -> tuple[float, float]:
        await running.up()
        idle: asyncio.Queue[Device] = asyncio.Queue()
        for _ in range(CONNECTIONS):
            idle.put_nowait(await Device.connect(running.port))
        began, used, tasks = time.perf_counter(), running.used(), set()

        async def device(request: bytes, due: float) -> None:
            # Where a collector is too slow, reports wait here; their time runs from when they were due.
            connection = await idle.get()
            try:
                statuses[await connection.send(request)] += 1
            except ConnectionError:
                # A connection that was idle for too long; devices send again, and so do we.
                connection = await Device.connect(running.port)
                statuses[await connection.send(request)] += 1
            taken.append(time.perf_counter() - due)
            idle.put_nowait(connection)

        for number, request in enumerate(ready):
            due = began + number / rate
            if (wait := due - time.perf_counter()) > 0.0:
                await asyncio.sleep(wait)
            elif number % 20 == 0:
                await asyncio.sleep(0)
            task = asyncio.create_task(device(request, due))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        await asyncio.gather(*tasks)
        took = time.perf_counter() - began
        return len(taken) / took, (running.used() - used) / took

    try:
        held, cores = run(whole())
    finally:
        running.stop()
    assert set(statuses) <= {200, 201}, statuses
    store = open_store(address)
    assert store.counts(running.campaign).reports == len(ready)
    store.close()
    return held, float(np.median(taken)) * 1e3, float(np.quantile(taken, 0.99)) * 1e3, cores


def measured(options: argparse.Namespace, server: postgres_server.PostgresServer | None) -> list[str]:
    """Measure everything; what is not as promised."""
    failed: list[str] = []
    with tempfile.TemporaryDirectory(prefix="polyseme-bench-") as folder:
        numbers = iter(range(1_000))

        def place(kind: str) -> str:
            return (
                f"sqlite:///{folder}/{next(numbers)}.db"
                if kind == "sqlite" or server is None
                else server.new_database()
            )

        kinds = ["sqlite"] + (["postgres"] if server else [])
        if server is None:
            print(f"postgres: {postgres_server.missing()}")
        for kind in kinds:
            pairs = [
                (throughput(place(kind), 4.0), throughput(place("sqlite"), 4.0, forgetful=True)) for _ in range(REPEATS)
            ]
            share = median(kept[0] / forgotten[0] for kept, forgotten in pairs)
            (stored, cost), (forgotten, less) = (
                (median(item[side][0] for item in pairs), median(item[side][1] for item in pairs)) for side in (0, 1)
            )
            print(f"{kind:9} over HTTP {stored:,.0f} reports/s ({cost:.0f} us of the collector for each)")
            print(f"{'':9} without a store {forgotten:,.0f} reports/s ({less:.0f} us): ratio {share:.2f}")
            failed += [f"{kind}: with store over without is {share:.2f}"] if share < 0.5 else []
            single = median(throughput(place(kind), 4.0, batch=1)[0] for _ in range(REPEATS))
            print(f"{'':9} one commit a report {single:,.0f} reports/s: ratio {stored / single:.1f}")
        for kind in kinds:
            pairs = [(transactions(place(kind), 2.0, 2_000), transactions(place(kind), 2.0, 1)) for _ in range(REPEATS)]
            gain = median(many / one for many, one in pairs)
            many, one = (median(item[side] for item in pairs) for side in (0, 1))
            print(f"{kind:9} group commit {many:,.0f} reports/s, one commit a report {one:,.0f}: ratio {gain:.1f}")
            failed += [f"{kind}: group commit over one commit a report is {gain:.1f}"] if gain < 5.0 else []
        for kind in kinds:
            held, middle, p99, cores = steady(place(kind), options.rate, options.seconds)
            said = f"median {middle:.0f} ms, p99 {p99:.0f} ms, {cores:.2f} of a core"
            print(f"{kind:9} {held:,.0f} reports/s for {options.seconds:.0f} s: {said}")
            failed += [f"{kind}: only {held:,.0f} reports/s were held"] if held < 0.98 * options.rate else []
        missing, sent, _ = killed(place("sqlite"), options.kills, 600 * options.kills)
        print(f"{options.kills:,} kills: {len(sent.acknowledged):,} acknowledged, {missing} lost")
        failed += [f"{missing} acknowledged reports lost"] if missing else []
    return failed


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=300.0, help="of the steady stream, on each store")
    parser.add_argument("--rate", type=int, default=2_000)
    parser.add_argument("--kills", type=int, default=1_000)
    parser.add_argument("--collector", help="(for this program itself)")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--batch", type=int, default=2_000)
    parser.add_argument("--forgetful", action="store_true")
    options = parser.parse_args()
    if options.collector:
        collector(options.collector, options.port, options.batch, options.forgetful)
        return 0
    server = None if postgres_server.missing() else postgres_server.PostgresServer(quick=False)
    try:
        failed = measured(options, server)
    finally:
        if server is not None:
            server.remove()
    print("\n".join(failed) or "all as promised")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
