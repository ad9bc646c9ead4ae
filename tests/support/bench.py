"""A workbench for tests: in this process, or as the command itself in a folder of its own."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from asgi import Answer, ask

from polyseme.workbench.opened import Opened
from polyseme.workbench.server import Workbench

HOST = "127.0.0.1:8001"
PATIENTS = Path(__file__).resolve().parents[2] / "docs" / "patients.csv"


class Bench:
    """The application without a network; the table is read."""

    def __init__(self, folder: Path, table: str | None = "patients.csv") -> None:
        self.folder = folder
        if table == "patients.csv" and not (folder / table).exists():
            shutil.copy(PATIENTS, folder / table)
        self.opened = Opened(folder, folder / "policy.yaml", table=table)
        if table is not None:
            self.opened.read()
        self._loop = asyncio.new_event_loop()
        self.bench = self._loop.run_until_complete(self._made())
        self.app = self.bench.app(HOST)

    async def _made(self) -> Workbench:
        return Workbench(self.opened, "token")

    def ask(self, method: str, path: str, body: Any = None) -> Answer:
        headers = {"host": HOST, "authorization": "Bearer token", "content-type": "application/json"}
        content = b"" if body is None else json.dumps(body).encode()
        return self._loop.run_until_complete(ask(self.app, method, path, content, headers))

    def get(self, path: str) -> Any:
        answer = self.ask("GET", path)
        assert answer.status == 200, answer.body
        return answer.json

    def post(self, path: str, **body: Any) -> Any:
        answer = self.ask("POST", path, body)
        assert answer.status == 200, answer.body
        return answer.json

    @property
    def revision(self) -> str:
        return str(self.get("/api/state")["policy"]["revision"])

    def close(self) -> None:
        self._loop.run_until_complete(self.bench.jobs.stop())
        self._loop.close()


class Served:
    """`polyseme workbench` in a process of its own."""

    def __init__(self, folder: Path, *arguments: str, port: int = 0) -> None:
        self.folder = folder
        command = [sys.executable, "-m", "polyseme", "workbench", *arguments, "--no-browser", "--port", str(port)]
        environment = dict(os.environ, PYTHONUNBUFFERED="1")
        self.process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/#(\S+)", line)
        assert found, line + self.process.stdout.read()
        self.port, self.token = int(found[1]), found[2]
        self.address, self.url = found[0], f"http://127.0.0.1:{found[1]}/"

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)
        until = time.monotonic() + 30
        while self.process.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        self.process.kill()
        self.process.wait()
