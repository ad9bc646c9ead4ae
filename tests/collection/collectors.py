"""Real collectors in processes of their own, and devices that send to them over real connections."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from asgi import REPORT

SOURCE = Path(__file__).resolve().parents[2] / "src"


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(SOURCE), "OPENBLAS_NUM_THREADS": "1"}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Process:
    """`polyseme collect serve`, as an operator starts it."""

    store: str
    options: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    port: int = field(default_factory=free_port)
    admin_port: int = field(default_factory=free_port)

    def __enter__(self) -> Process:
        command = [sys.executable, "-m", "polyseme", "collect", "serve", "--store", self.store, "--rate", "0"]
        ports = ["--port", str(self.port), "--admin-port", str(self.admin_port)]
        self.running = subprocess.Popen(
            [*self.before, *command, *ports, *self.options], stderr=subprocess.PIPE, text=True, env=environment()
        )
        assert self.running.stderr is not None
        self.log: list[str] = []
        for line in self.running.stderr:
            self.log.append(line)
            if found := re.search(
                r"Takes reports at http://127.0.0.1:(\d+); admin listener at http://127.0.0.1:(\d+)", line
            ):
                self.port, self.admin_port = int(found[1]), int(found[2])
                return self
        raise AssertionError("".join(self.log))

    @property
    def _own(self) -> int:
        """The process itself, where another program has started it for us."""
        parent = self.running.pid
        return int(Path(f"/proc/{parent}/task/{parent}/children").read_text().split()[0]) if self.before else parent

    def stop(self) -> int:
        """Ask it to stop, and wait; its exit code."""
        os.kill(self._own, signal.SIGTERM)
        assert self.running.stderr is not None
        self.log += self.running.stderr.readlines()
        return self.running.wait(60)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.running.poll() is None:
            os.kill(self._own, signal.SIGKILL)
        self.running.wait(60)
        assert self.running.stderr is not None
        self.log += self.running.stderr.readlines()
        self.running.stderr.close()


class Nursery:
    """Where collectors come from that are going to be killed."""

    def __init__(self, store: str, early: bool = False) -> None:
        self.port = free_port()
        self._wanted = {"store": store, "port": self.port, "admin_port": 0, "early": early}
        self._parent = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("nursery.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        assert self._read() == "ready"

    def _read(self) -> str:
        assert self._parent.stdout is not None
        return self._parent.stdout.readline().strip()

    def begin(self) -> int:
        """The process number of a new collector, which may not listen yet."""
        assert self._parent.stdin is not None
        self._parent.stdin.write(json.dumps(self._wanted) + "\n")
        self._parent.stdin.flush()
        return int(self._read())

    def kill(self, child: int) -> None:
        """kill -9, and wait until the process is gone and its port is free."""
        os.kill(child, signal.SIGKILL)
        for _ in range(5_000):
            try:
                os.kill(child, 0)
            except ProcessLookupError:
                return
            time.sleep(0.001)
        raise AssertionError("a process survived kill -9")

    def close(self) -> None:
        self._parent.terminate()
        self._parent.communicate(timeout=60)


class Connection:
    """One connection that is kept open, with as little as HTTP needs."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def post(self, path: str, body: bytes, media_type: str = REPORT) -> tuple[int, dict[str, str], bytes]:
        return await self.ask("POST", path, body, {"content-type": media_type})

    async def ask(
        self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of the answer; `OSError` where there is none."""
        try:
            if self._writer is None or self._reader is None:
                self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
            lines = [f"{method} {path} HTTP/1.1", "host: localhost", f"content-length: {len(body)}"]
            lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
            self._writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
            return await self._answer(self._reader)
        except (OSError, asyncio.IncompleteReadError, ValueError) as error:
            self.close()
            raise ConnectionError(type(error).__name__) from None

    async def _answer(self, reader: asyncio.StreamReader) -> tuple[int, dict[str, str], bytes]:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        if headers.get("connection") == "close":
            self.close()
        return int(head[0].split()[1]), headers, body

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._reader = self._writer = None


@dataclass
class Clique:
    """Devices that send until each report is acknowledged.

    acknowledged  the numbers of the reports that the collector said were stored
    """

    port: int
    path: str
    bodies: list[bytes]
    acknowledged: set[int] = field(default_factory=set)
    statuses: Counter[int] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    retries: int = 0

    async def send_all(self, devices: int, numbers: Iterable[int] | None = None) -> None:
        waiting = iter(range(len(self.bodies)) if numbers is None else numbers)
        await asyncio.gather(*(self._device(waiting) for _ in range(devices)))

    async def _device(self, waiting: Any) -> None:
        connection = Connection(self.port)
        for number in waiting:
            await self._send(connection, number)
        connection.close()

    async def _send(self, connection: Connection, number: int) -> None:
        """As a device does it: again and again, until it hears that the report is stored."""
        while True:
            began = time.perf_counter()
            try:
                status, _, _ = await connection.post(self.path, self.bodies[number])
            except ConnectionError:
                self.retries += 1
                await asyncio.sleep(0.01)
                continue
            self.statuses[status] += 1
            if status in (200, 201):
                self.acknowledged.add(number)
                self.seconds.append(time.perf_counter() - began)
                return
            assert status == 503, status
            await asyncio.sleep(0.02)
