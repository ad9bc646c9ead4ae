"""How often one sender may write, without a list of senders.

An address is only ever held as a keyed hash, in memory, under a key that is thrown away every few minutes together with
everything counted under it.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
from collections.abc import Callable
from time import monotonic

__all__ = ["Limits"]

ROTATION = 600.0
"""Seconds for which a key is kept."""
HELD = 200_000
"""Senders that are told apart at a time (20 MB); more of them begin a new round."""


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
