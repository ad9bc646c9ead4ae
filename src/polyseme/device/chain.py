"""Sets as chains of places, in whole numbers, and the random bytes that draw them.

Lines, circles and clusters with weights share this.

A set of `l` places in ascending order is a chain in which place k is followed by one of `low[k] ... high[k] - 1`. Its
weight is the product of the weights of its places, and a chain is drawn in proportion to its weight. With

    before(r, k)   total weight of r places that can stand before k
    after(r, k)    total weight of r places that can stand after k

every draw is one number below such a total. Nothing is rounded: two implementations that read the same bytes draw the
same sets.

A *tight* window `[k, low[k])` holds exactly one place of every set. So a place is followed by none beyond the end of
the first tight window that starts after it.

The random bytes of `polyseme-draw-1` are the key stream of AES-256 in counter mode under a 32-byte *subkey*, the
counter starting at zero. A fresh subkey is random. A sticky one follows from the device's key and what is drawn for, so
that the same answer gives the same set again. Whole numbers are drawn from these bytes.
"""

from __future__ import annotations

import hmac
import os
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import accumulate
from math import inf
from operator import add

__all__ = ["DRAW", "SUBKEY_BYTES", "Chain", "KeyStream", "fresh_subkey", "least_between", "sticky_subkey"]

DRAW = "polyseme-draw-1"
"""The name of this way of drawing."""
SUBKEY_BYTES = 32
"""AES-256."""


def fresh_subkey() -> bytes:
    """A subkey from the operating system."""
    return os.urandom(SUBKEY_BYTES)


def sticky_subkey(key: bytes, fingerprint: str, stratum: int, code: int) -> bytes:
    """The subkey of a device for a true value.

    fingerprint  of the sampling document, in hexadecimal
    code         the value among those of the stratum
    """
    if len(key) != SUBKEY_BYTES:
        raise ValueError(f"a device key has {SUBKEY_BYTES} bytes")
    return hmac.digest(key, f"{DRAW}\n{fingerprint}\n{stratum}\n{code}".encode("ascii"), "sha256")


class KeyStream:
    """Whole numbers from the key stream of a subkey."""

    def __init__(self, subkey: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        if len(subkey) != SUBKEY_BYTES:
            raise ValueError(f"a subkey has {SUBKEY_BYTES} bytes")
        self._encryptor = Cipher(algorithms.AES(subkey), modes.CTR(bytes(16))).encryptor()

    def __repr__(self) -> str:
        return "KeyStream(<hidden>)"

    def below(self, bound: int) -> int:
        """A uniform whole number from 0 to below `bound`; nothing is read where there is only one.

        As many bytes as the largest number needs are read as a big-endian number, its superfluous top bits are cleared,
        and it is read again while it is too large.
        """
        if bound < 1:
            raise ValueError("there is nothing to draw from")
        bits = (bound - 1).bit_length()
        count, mask = -(-bits // 8), (1 << bits) - 1
        while bits:
            number = int.from_bytes(self._encryptor.update(bytes(count)), "big") & mask
            if number < bound:
                return number
        return 0

    def pick(self, weights: Sequence[int]) -> int:
        """A place in proportion to its weight."""
        return self.between([0, *accumulate(weights)], 0, len(weights))

    def between(self, sums: Sequence[int], low: int, high: int) -> int:
        """A place k from `low` to below `high` in proportion to `sums[k + 1] - sums[k]`."""
        target = sums[low] + self.below(sums[high] - sums[low])
        return bisect_right(sums, target, low, high + 1) - 1


class Chain:
    """Chains of `l` places with these weights.

    low    the first place that may follow each, F where there is none; never descending
    tight  first places of tight windows, ascending
    """

    def __init__(self, l: int, low: Sequence[int], tight: Sequence[int], weights: Sequence[int]) -> None:
        self.l, self.size, self.low, self.weights = l, len(low), low, weights
        ends = [*(low[place] for place in tight), self.size]
        self.high = [ends[bisect_right(tight, place)] for place in range(self.size)]
        self.first_end, self.last_start = ends[0], tight[-1] if tight else 0
        self.back_low = [bisect_right(self.high, place) for place in range(self.size)]
        self.back_high = [bisect_right(low, place) for place in range(self.size)]

    def _sums(self, row: Sequence[int]) -> list[int]:
        return [0, *accumulate(map(int.__mul__, self.weights, row))]

    @cached_property
    def prefix(self) -> list[list[int]]:
        """`prefix[r][k]`: total weight of r + 1 places of which the last stands before k."""
        rows = [self._sums([int(place < self.first_end) for place in range(self.size)])]
        for _ in range(1, self.l):
            sums = rows[-1]
            rows.append(
                self._sums([max(sums[high] - sums[low], 0) for low, high in zip(self.back_low, self.back_high)])
            )
        return rows

    @cached_property
    def onward(self) -> list[list[int]]:
        """`onward[r][k]`: total weight of r + 1 places of which the first stands before k."""
        rows = [self._sums([int(place >= self.last_start) for place in range(self.size)])]
        for _ in range(1, self.l):
            sums = rows[-1]
            rows.append(self._sums([max(sums[high] - sums[low], 0) for low, high in zip(self.low, self.high)]))
        return rows

    def before(self, r: int, place: int) -> int:
        """Total weight of r places that can stand before this one."""
        if r == 0:
            return int(place < self.first_end)
        sums = self.prefix[r - 1]
        return max(sums[self.back_high[place]] - sums[self.back_low[place]], 0)

    def after(self, r: int, place: int) -> int:
        """Total weight of r places that can stand after this one."""
        if r == 0:
            return int(place >= self.last_start)
        sums = self.onward[r - 1]
        return max(sums[self.high[place]] - sums[self.low[place]], 0)

    def splits(self, place: int) -> list[int]:
        """For each r, the total weight of the other places of sets with r of them before this one."""
        return [self.before(r, place) * self.after(self.l - 1 - r, place) for r in range(self.l)]

    @property
    def total(self) -> int:
        """The weight of all chains."""
        return self.onward[self.l - 1][self.first_end]

    def given(self, place: int, stream: KeyStream) -> list[int]:
        """A chain that holds this place.

        Drawn are how many stand before it, then those from the nearest on, then those after.
        """
        r = stream.pick(self.splits(place))
        earlier, here = list[int](), place
        for column in range(r - 1, -1, -1):
            here = stream.between(self.prefix[column], self.back_low[here], self.back_high[here])
            earlier.append(here)
        return [*reversed(earlier), place, *self._onwards(place, self.l - 1 - r, stream)]

    def blind(self, stream: KeyStream) -> list[int]:
        """Any chain, from the left."""
        first = stream.between(self.onward[self.l - 1], 0, self.first_end)
        return [first, *self._onwards(first, self.l - 1, stream)]

    def _onwards(self, here: int, count: int, stream: KeyStream) -> list[int]:
        found = []
        for left in range(count - 1, -1, -1):
            here = stream.between(self.onward[left], self.low[here], self.high[here])
            found.append(here)
        return found

    def inclusion(self) -> list[float]:
        """The probability that each place is in a chain."""
        total = self.total
        return [weight * sum(self.splits(place)) / total for place, weight in enumerate(self.weights)]

    def lightest(self, cost: Sequence[float]) -> list[float]:
        """For each place, the least total cost of a chain that holds it.

        Infinite where there is none.
        """
        return [one + other for one, other in zip(cost, self._others(cost, add))]

    def partners(self, values: Sequence[float]) -> list[float]:
        """For each place, the largest positive value of the other places of chains that hold it."""
        return [-least for least in self._others([-value for value in values], _smaller)]

    def _others(self, cost: Sequence[float], join: Callable[[float, float], float]) -> list[float]:
        """For each place, the least cost of the other places of a chain, by `join`; or infinity."""
        before = [[0.0 if place < self.first_end else inf for place in range(self.size)]]
        after = [[0.0 if place >= self.last_start else inf for place in range(self.size)]]
        for _ in range(1, self.l):
            before.append(least_between(list(map(join, cost, before[-1])), self.back_low, self.back_high))
            after.append(least_between(list(map(join, cost, after[-1])), self.low, self.high))
        return [min(map(join, *ways)) for ways in zip(zip(*before), zip(*reversed(after)))]


def _smaller(one: float, other: float) -> float:
    """The smaller cost; infinite where one of them cannot be had."""
    return min(one, other) if max(one, other) < inf else inf


def least_between(values: Sequence[float], low: Sequence[int], high: Sequence[int]) -> list[float]:
    """The minimum of `values[low:high]` for ranges whose ends never descend.

    Infinite for an empty one.
    """
    found, window, end = list[float](), deque[int](), 0
    for first, last in zip(low, high):
        while end < last:
            while window and values[window[-1]] >= values[end]:
                window.pop()
            window.append(end)
            end += 1
        while window and window[0] < first:
            window.popleft()
        found.append(values[window[0]] if window else inf)
    return found
