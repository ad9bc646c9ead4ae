"""Random bytes of `polyseme-draw-1` and the whole numbers that are drawn from them.

The bytes are the key stream of AES-256 in counter mode under a 32-byte *subkey*, the counter starting at zero. A fresh
subkey is random. A sticky one follows from the device's key and what is drawn for, so that the same answer gives the
same set again.
"""

from __future__ import annotations

import hmac
import os
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

__all__ = ["DRAW", "SUBKEY_BYTES", "KeyStream", "fresh_subkey", "sticky_subkey"]

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
