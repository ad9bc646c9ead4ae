"""The command `polyseme` with random numbers that are the same in every run: for pages and pictures, never for data."""

from __future__ import annotations

import hashlib
import io
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout, suppress
from itertools import count
from pathlib import Path
from unittest.mock import patch

from polyseme.cli import main
from polyseme.kernel import randomness


@contextmanager
def repeatable(words: list[str]) -> Iterator[None]:
    """Keys that depend on the words of the command, so that two releases have different decoys."""
    requested = count()

    def drawn() -> bytes:
        return hashlib.shake_256(f"{words} {next(requested)}".encode()).digest(randomness.KEY_BYTES)

    with patch.object(randomness, "fresh_key", drawn):
        yield


@contextmanager
def _signals_as_before() -> Iterator[None]:
    """The command listens to signals of its own."""
    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


def said(words: list[str], folder: Path, settings: dict[str, str]) -> str:
    """What the command prints when it is called in `folder`: in this process, which saves a second each time."""
    heard = io.StringIO()
    with (
        repeatable(words),
        _signals_as_before(),
        patch.dict(os.environ, settings),
        chdir(folder),
        redirect_stdout(heard),
        redirect_stderr(heard),
        suppress(SystemExit),
    ):
        main(words)
    return heard.getvalue()


if __name__ == "__main__":
    with repeatable(sys.argv[1:]):
        main()
