"""Long work as the command itself, in a process of its own that can be canceled.

One job runs at a time and the others wait. Its progress is what `polyseme --progress json` writes to standard error,
its result what it writes to standard output. Jobs end with the workbench.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Literal

__all__ = ["Job", "Jobs"]

State = Literal["waiting", "running", "done", "refused", "failed", "canceled"]

PATIENCE = 10.0
"""Seconds in which a canceled command must have ended before it is killed."""
_MOST_OUTPUT = 64 << 20
"""Bytes of standard output that are kept."""
_MOST_LINES = 5_000
"""Events of a job that are kept."""
_KEPT = 20
"""Ended jobs that are remembered."""
if sys.platform == "win32":
    _STOP = signal.CTRL_BREAK_EVENT
else:
    _STOP = signal.SIGTERM


@dataclass(eq=False)
class Job:
    """A command that runs, waits or has ended.

    kind       the verb
    arguments  of the command, as a person would type them
    events     what it has reported so far, one document each
    text       standard output
    messages   other lines of standard error: warnings, and what is wrong
    """

    id: str
    kind: str
    arguments: tuple[str, ...]
    state: State = "waiting"
    code: int | None = None
    events: list[dict[str, Any]] = field(default_factory=list)
    text: str = ""
    messages: list[str] = field(default_factory=list)
    process: asyncio.subprocess.Process | None = field(default=None, repr=False)
    changed: asyncio.Event = field(default_factory=asyncio.Event, repr=False)
    seconds: float = 0.0

    @property
    def ended(self) -> bool:
        return self.state not in ("waiting", "running")

    @property
    def result(self) -> Any:
        """The document that a command with `--json` printed; None where it printed none."""
        with contextlib.suppress(ValueError):
            return json.loads(self.text)
        return None

    def to_dict(self) -> dict[str, Any]:
        last = next((one for one in reversed(self.events) if one.get("share") is not None), None)
        stage = next((one["label"] for one in reversed(self.events) if one.get("state") != "ended"), "")
        gap = next((one["gap"] for one in reversed(self.events) if one.get("gap") is not None), None)
        return {
            "id": self.id,
            "kind": self.kind,
            "state": self.state,
            "code": self.code,
            "share": None if last is None else last["share"],
            "stage": stage,
            "gap": gap,
            "messages": self.messages,
            "events": len(self.events),
        }

    def report(self, event: dict[str, Any]) -> None:
        if len(self.events) < _MOST_LINES:
            self.events.append(event)
        self.touch()

    def touch(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()


class Jobs:
    """The jobs of one workbench.

    folder   where commands run
    changed  called when a job begins or ends
    """

    def __init__(self, folder: Path, changed: Callable[[], None] = lambda: None) -> None:
        self._folder, self._changed = folder, changed
        self._numbers = count(1)
        self.all: dict[str, Job] = {}
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, kind: str, arguments: Sequence[str], ended: Callable[[Job], None] = lambda job: None) -> Job:
        """Run a command as soon as those before it have ended."""
        job = Job(str(next(self._numbers)), kind, tuple(arguments))
        self.all[job.id] = job
        for old in [one.id for one in self.all.values() if one.ended][:-_KEPT]:
            del self.all[old]
        task = asyncio.create_task(self._run(job, ended))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self._changed()
        return job

    async def _run(self, job: Job, ended: Callable[[Job], None]) -> None:
        async with self._turn:
            if job.state == "waiting":
                await self._command(job)
        ended(job)
        job.touch()
        self._changed()

    async def _command(self, job: Job) -> None:
        began = time.monotonic()
        options: dict[str, Any] = {"start_new_session": True}
        if sys.platform == "win32":
            options = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
        job.process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "polyseme", "--progress", "json", *job.arguments,
            cwd=self._folder, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE, env=dict(os.environ, PYTHONUTF8="1"), **options,
        )  # fmt: skip
        job.state = "running"
        self._changed()
        _, job.text = await asyncio.gather(_progress(job), _output(job))
        job.code = await job.process.wait()
        job.seconds = time.monotonic() - began
        if job.state == "running":
            job.state = "done" if job.code == 0 else "refused" if job.code in (1, 2) else "failed"

    async def cancel(self, job: Job) -> None:
        """Stop a job: by a signal, and after some seconds by killing it."""
        if job.ended:
            return
        running, job.state = job.process, "canceled"
        job.touch()
        if running is None or running.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            running.send_signal(_STOP)
        try:
            await asyncio.wait_for(running.wait(), PATIENCE)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                running.kill()
            await running.wait()
            self._sweep(job)

    def _sweep(self, job: Job) -> None:
        """Remove what a killed command had begun: hidden files beside its targets."""
        for word in job.arguments:
            target = self._folder / word
            for left in target.parent.glob(f".{target.name[:40]}.*.partial*") if target.parent.is_dir() else ():
                shutil.rmtree(left) if left.is_dir() else left.unlink(missing_ok=True)

    async def stop(self) -> None:
        """End all jobs, with the workbench."""
        await asyncio.gather(*(self.cancel(job) for job in list(self.all.values())))
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _progress(job: Job) -> None:
    """Read what a command reports until it ends."""
    stream = job.process.stderr if job.process is not None else None
    while stream is not None and (line := await _line(stream)):
        text = line.decode("utf-8", "replace").rstrip()
        try:
            event = json.loads(text)
        except ValueError:
            event = None
        if isinstance(event, dict) and "stage" in event:
            job.report(event)
        elif text:
            job.messages.append(text)
            job.touch()


async def _line(stream: asyncio.StreamReader) -> bytes:
    try:
        return await stream.readuntil(b"\n")
    except asyncio.IncompleteReadError as error:
        return error.partial
    except asyncio.LimitOverrunError as error:
        return await stream.readexactly(error.consumed)


async def _output(job: Job) -> str:
    stream = job.process.stdout if job.process is not None else None
    parts, size = list[bytes](), 0
    while stream is not None and (part := await stream.read(1 << 16)):
        size += len(part)
        if size <= _MOST_OUTPUT:
            parts.append(part)
    return b"".join(parts).decode("utf-8", "replace")


async def events(job: Job, after: int) -> AsyncIterator[bytes]:
    """The events of a job from a number on as JSON lines, and at its end the job itself."""
    sent = after
    while True:
        waiting = job.changed
        while sent < len(job.events):
            yield json.dumps(job.events[sent]).encode() + b"\n"
            sent += 1
        if job.ended:
            yield json.dumps({"job": job.to_dict()}).encode() + b"\n"
            return
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(waiting.wait(), 15.0)
