"""Runs a command, and ends it with everything it started when its caller is gone.

Run as a program, at the head of a session of its own: `python guard.py COMMAND ..`. It waits until its standard input
closes, which happens when the test closes it and also when the test was killed. Spark's processes start others, in
groups of their own, but none leaves the session; so all of them are found, even those whose parents died.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

__all__ = ["Guarded", "in_session"]

_STATE, _SESSION = 0, 3
"""Where a line of /proc has the state of a process and its session, after the name."""


def in_session(session: int) -> list[int]:
    """The living processes of a session, but for its head."""
    return [pid for pid in _processes() if pid != session and _alive_in(pid, session)]


def _processes() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _alive_in(pid: int, session: int) -> bool:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return False
    return fields[_STATE] not in "ZX" and int(fields[_SESSION]) == session


class Guarded:
    """A command under guard; what it says goes to a file."""

    def __init__(self, command: Sequence[str], log: Path, environment: dict[str, str]) -> None:
        self.log, self._output = log, log.open("ab")
        self._process = subprocess.Popen(
            [sys.executable, __file__, *command],
            stdin=subprocess.PIPE,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )

    @property
    def session(self) -> int:
        return self._process.pid

    def said(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def running(self) -> bool:
        """Whether anything is left of it."""
        return self._process.poll() is None and bool(in_session(self.session))

    def end(self) -> None:
        stdin: IO[bytes] | None = self._process.stdin
        assert stdin is not None
        stdin.close()
        self._process.wait(timeout=60)
        self._output.close()


def _main() -> None:
    child = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
    sys.stdin.buffer.read()
    while left := in_session(os.getpid()):
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
    child.wait()


if __name__ == "__main__":
    _main()
