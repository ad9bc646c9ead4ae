"""Rate limits, logs and counts of a collector, without a list of senders.

Rate limits: an address is only ever held as a keyed hash, in memory, under a key that is thrown away every few minutes
together with everything counted under it.

Logs: one JSON object a line, about the collector. No line says that, when or from where a report came.

Counts for Prometheus, in its text format: nothing in them names a campaign, a sender or a value.
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import logging
import secrets
import sys
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from time import monotonic

__all__ = ["MEDIA_TYPE", "Limits", "Metrics", "log_lines"]

ROTATION = 600.0
"""Seconds for which a key is kept."""
HELD = 200_000
"""Senders that are distinguished at a time (20 MB); more of them begin a new round."""


class Limits:
    """A bucket for each sender: it holds `burst` and is filled by `rate` a minute.

    rate  0 for no limit
    """

    def __init__(self, rate: float, burst: int = 30, clock: Callable[[], float] = monotonic) -> None:
        self.rate, self.burst, self._clock = rate, burst, clock
        self._turn()

    def _turn(self) -> None:
        self._key, self._since = secrets.token_bytes(32), self._clock()
        self._buckets: dict[bytes, tuple[float, float]] = {}

    def wait(self, address: str) -> float:
        """Seconds after which this sender may write again; 0 for now, and then it has done so."""
        if not self.rate or is_loopback(address):
            return 0.0
        now = self._clock()
        if now - self._since > ROTATION or len(self._buckets) > HELD:
            self._turn()
        name = hmac.digest(self._key, _network(address), "sha256")[:12]
        level, seen = self._buckets.get(name, (float(self.burst), now))
        level = min(level + (now - seen) * self.rate / 60.0, float(self.burst))
        if level < 1.0:
            self._buckets[name] = (level, now)
            return (1.0 - level) * 60.0 / self.rate
        self._buckets[name] = (level - 1.0, now)
        return 0.0


def is_loopback(address: str) -> bool:
    """Whether it comes from this machine: then it is a proxy, which knows its senders itself."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def _network(address: str) -> bytes:
    """What one subscriber has: an address, or in the new protocol a network of them."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return b"unknown"
    return found.packed[:8] if found.version == 6 else found.packed


class _Lines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="seconds")
        line = {"time": moment, "level": record.levelname.lower(), "from": record.name, "event": record.getMessage()}
        if record.exc_info and record.exc_info[0] is not None:
            # Its text and its lines may quote what was sent.
            line["error"] = record.exc_info[0].__name__
        return json.dumps(line)


def log_lines(level: int = logging.INFO) -> logging.Handler:
    """Log to standard error from now on; who wants it to end removes what is returned."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines())
    for name, least in (("polyseme", level), ("uvicorn", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.addHandler(handler)
        logger.setLevel(least)
        logger.propagate = False
    return handler


MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000)


class _Histogram:
    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds, self._counts, self._sum = bounds, [0] * (len(bounds) + 1), 0.0

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def lines(self, name: str) -> list[str]:
        total, lines = 0, []
        for bound, count in zip((*self._bounds, None), self._counts):
            total += count
            lines.append(f'{name}_bucket{{le="{"+Inf" if bound is None else f"{bound:g}"}"}} {total}')
        return [*lines, f"{name}_sum {self._sum:.6f}", f"{name}_count {total}"]


class Metrics:
    """What one collector has done since it started."""

    def __init__(self) -> None:
        self.answers: Counter[tuple[str, int]] = Counter()
        self._seconds, self._sizes = _Histogram(_SECONDS), _Histogram(_SIZES)

    def answered(self, endpoint: str, status: int) -> None:
        """One more answer."""
        self.answers[endpoint, status] += 1

    def stored(self, entries: int, seconds: float) -> None:
        """One more transaction."""
        self._sizes.observe(entries)
        self._seconds.observe(seconds)

    def text(self, waiting: int, ready: bool) -> str:
        """All of it."""
        answers = [
            f'polyseme_answers_total{{endpoint="{endpoint}",status="{status}"}} {count}'
            for (endpoint, status), count in sorted(self.answers.items())
        ]
        parts = [
            ("polyseme_answers_total", "counter", "Answers by endpoint and status.", answers),
            ("polyseme_waiting", "gauge", "Reports that wait for a transaction.", [f"polyseme_waiting {waiting}"]),
            ("polyseme_ready", "gauge", "Whether the store answers.", [f"polyseme_ready {int(ready)}"]),
            *(
                (name, "histogram", text, found.lines(name))
                for name, text, found in (
                    ("polyseme_batch_entries", "Reports and withdrawals of a transaction.", self._sizes),
                    ("polyseme_batch_seconds", "From taking a batch to its acknowledgement.", self._seconds),
                )
            ),
        ]
        return "".join(
            f"# HELP {name} {text}\n# TYPE {name} {kind}\n" + "".join(f"{line}\n" for line in lines)
            for name, kind, text, lines in parts
        )
