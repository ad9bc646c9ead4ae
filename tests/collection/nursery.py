"""Collectors that are born quickly, so that many can be killed: one process imports everything, and forks.

Reads a line with a JSON object from standard input for each collector that is wanted, {"store", "port", "admin_port"},
and answers with its process number. With {"early": true} the collector acknowledges before it stores: the fault that
tests must be able to find.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys

from polyseme.collection.server import listeners as running
from polyseme.collection.store.base import Entry, Outcome
from polyseme.collection.store.group_commit import Writer


async def _early(self: Writer, entry: Entry) -> Outcome:
    """As others do it: thank you first."""
    self._waiting.append((entry, asyncio.get_running_loop().create_future()))
    self._some.set()
    return Outcome.STORED


def main() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    print("ready", flush=True)
    for line in sys.stdin:
        wanted = json.loads(line)
        child = os.fork()
        if child == 0:
            os.close(0)
            if wanted.get("early"):
                Writer.submit = _early  # type: ignore[method-assign]
            try:
                running.serve(wanted["store"], "127.0.0.1", wanted["port"], wanted["admin_port"], rate=0)
            finally:
                os._exit(1)
        print(child, flush=True)


if __name__ == "__main__":
    main()
