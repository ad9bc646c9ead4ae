"""The only home of random numbers.

Four kinds of stream, one interface (`Stream.uniforms`):

- `SystemStream`: AES-256 in counter mode under a key from the operating system. The default.
- `RecordStream`: the same cipher, but every number belongs to a record: it depends on the key, on the record's place in
  its table and on nothing else. Whichever machine publishes the record, in whatever batch and at whatever attempt, its
  sets are the same. `StreamKey` makes them.
- `SystemStream.seeded(n)`: the same generator under a key derived from a number, for experiments. Anyone who guesses
  the number can recompute every decoy, so a release made with it says that it is not for publication.
- `StickyStream`: a keyed pseudo-random function of (record key, attribute, true value). The same person reporting the
  same value draws the same decoys in every run, file, batch and machine, so repeated releases cannot be intersected.

Samplers are pure functions of uniform numbers, so each of them works with every stream.
"""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from polyseme.kernel.errors import InvalidInput
from polyseme.kernel.files import write_once

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers import modes

__all__ = [
    "KEY_BYTES",
    "RecordStream",
    "StickyStream",
    "Stream",
    "StreamKey",
    "SystemStream",
    "discrete_laplace",
    "experiment",
    "key_check",
    "new_key",
    "read_key",
]

KEY_BYTES = 32
"""AES-256."""
_BLOCK = 16
"""The block of AES, in bytes."""
_CHUNK = 1 << 20
"""Bytes encrypted at a time: fits the second-level cache."""

_WORDS = 4_096
"""Words that are drawn ahead for coins: calls of the cipher cost more than its work."""

Words = NDArray[np.uint64]
Floats = NDArray[np.float64]


class Stream(Protocol):
    """Where a sampler's uniform numbers come from."""

    def uniforms(self, draws: int, records: int) -> Floats:
        """`draws` x `records` independent numbers, uniform on the multiples of 2**-53 in [0, 1)."""
        ...


def _to_unit(words: Words) -> Floats:
    words >>= np.uint64(11)
    unit = words.astype(np.float64)
    unit *= 2.0**-53
    return unit


def fresh_key() -> bytes:
    """From the operating system: the one place where keys come from."""
    return os.urandom(KEY_BYTES)


class SystemStream:
    """AES-256-CTR key stream; 64-bit words, uniform numbers, unbiased integers and permutations.

    partition  where the counter starts, in steps of 2**64 blocks: streams of one key never overlap
    """

    def __init__(self, key: bytes | None = None, partition: int = 0) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        start = partition.to_bytes(_BLOCK // 2, "big") + bytes(_BLOCK // 2)
        cipher = algorithms.AES(fresh_key() if key is None else key)
        self._encryptor = Cipher(cipher, modes.CTR(start)).encryptor()

    @classmethod
    def seeded(cls, seed: int | str) -> SystemStream:
        """A repeatable stream for experiments; never for a release that is published."""
        return StreamKey.seeded(seed).derive(0)

    def __repr__(self) -> str:
        return "SystemStream(<hidden>)"

    def words(self, count: int) -> Words:
        """`count` independent 64-bit words."""
        out = np.empty(count, dtype="<u8")
        view = out.view(np.uint8)
        zeros = bytes(min(_CHUNK, 8 * count))
        for start in range(0, 8 * count, _CHUNK):
            stop = min(start + _CHUNK, 8 * count)
            self._encryptor.update_into(zeros[: stop - start], view[start:stop].data)
        return out.astype(np.uint64, copy=False)

    def uniforms(self, draws: int, records: int) -> Floats:
        """`draws` x `records` numbers uniform on the multiples of 2**-53 in [0, 1)."""
        return _to_unit(self.words(draws * records)).reshape(draws, records)

    def integers(self, bound: int, count: int) -> NDArray[np.int64]:
        """`count` integers, exactly uniform on 0 ... bound-1.

        Words beyond the last whole multiple are drawn again.
        """
        if not 1 <= bound <= 1 << 63:
            raise ValueError("bound must be between 1 and 2**63")
        limit = (1 << 64) - ((1 << 64) % bound)
        words = self.words(count)
        if limit < 1 << 64:
            late = np.flatnonzero(words >= np.uint64(limit))
            while late.size:
                words[late] = self.words(late.size)
                late = late[words[late] >= np.uint64(limit)]
        return (words % np.uint64(bound)).astype(np.int64)

    def bits(self, size: int, count: int) -> NDArray[np.uint16]:
        """`count` integers of `size` bits, from 1 to 16."""
        if not 1 <= size <= 16:
            raise ValueError("size must be between 1 and 16")
        return self.words(-(-count // 4)).view(np.uint16)[:count] >> np.uint16(16 - size)

    def permutation(self, count: int) -> NDArray[np.int64]:
        """A uniform random order of 0 ... count-1 (equal sort keys are drawn again)."""
        while True:
            words = self.words(count)
            order = _order(words)
            ordered = words[order]
            if not np.any(ordered[1:] == ordered[:-1]):
                return order


def _order(words: Words) -> NDArray[np.int64]:
    """The places of random words in ascending order.

    A permutation is mostly this sort. By counting, one digit of 16 bits after the other, it takes a fraction of the
    time; the leading two tell nearly all words apart, and the few that they do not are put in order afterwards.
    """
    digits = words.astype("<u8", copy=False).view("<u2").reshape(-1, 4)
    order = np.argsort(np.ascontiguousarray(digits[:, 2]), kind="stable")
    order = order.take(np.argsort(digits[:, 3].take(order), kind="stable"))
    leading = words.take(order)
    leading >>= np.uint64(32)
    tied = np.flatnonzero(leading[1:] == leading[:-1])
    if tied.size:
        places = np.union1d(tied, tied + 1)
        among = order[places]
        order[places] = among[np.argsort(words[among])]
    return order


def discrete_laplace(scale: Fraction, count: int, stream: SystemStream) -> NDArray[np.int64]:
    """Whole numbers x with probability proportional to `exp(-|x| / scale)`, exactly.

    Only uniform whole numbers are drawn. A coin that falls with probability `exp(-g)`, g up to 1, is the parity of how
    often coins of g, g/2, g/3 ... fall in a row; of such coins a geometric number is made, and a sign is put to it.
    """
    draw = _Coins(stream)
    return np.array([draw.laplace(scale.numerator, scale.denominator) for _ in range(count)], dtype=np.int64)


class _Coins:
    """Exact coins from a stream, which is read some words at a time."""

    def __init__(self, stream: SystemStream) -> None:
        self._stream, self._words = stream, list[int]()

    def below(self, bound: int) -> int:
        """A uniform whole number from 0 to below `bound`."""
        limit = (1 << 64) - (1 << 64) % bound
        while True:
            if not self._words:
                self._words = self._stream.words(_WORDS).tolist()
            word = self._words.pop()
            if word < limit:
                return word % bound

    def exponential(self, top: int, bottom: int) -> bool:
        """Falls with probability `exp(-top / bottom)`; the fraction is at most one."""
        turn = 1
        while self.below(bottom * turn) < top:
            turn += 1
        return turn % 2 == 1

    def laplace(self, top: int, bottom: int) -> int:
        """A number with probability proportional to `exp(-|x| bottom / top)`."""
        while True:
            rest = self.below(top)
            if not self.exponential(rest, top):
                continue
            whole = 0
            while self.exponential(1, 1):
                whole += 1
            size, negative = (rest + top * whole) // bottom, self.below(2) == 1
            # Zero has one sign only.
            if size or not negative:
                return -size if negative else size


@dataclass(frozen=True)
class StreamKey:
    """The secret behind independent streams: one a partition, or one for a table's records.

    A stream depends on this key and what it was derived for, and on nothing else: whichever machine asks for it, and
    however often, the numbers are the same. A key cannot draw, and a stream derives no others, so that no two share
    numbers by mistake. One key serves one purpose: partitions or records, not both.
    """

    key: bytes = field(repr=False)

    @classmethod
    def fresh(cls) -> StreamKey:
        """A key from the operating system."""
        return cls(fresh_key())

    @classmethod
    def seeded(cls, seed: int | str) -> StreamKey:
        """A repeatable key for experiments; never for a release that is published."""
        return cls(hashlib.sha256(f"polyseme seed {seed}".encode()).digest())

    def derive(self, partition: int) -> SystemStream:
        """The stream of a partition, from its beginning."""
        return SystemStream(self.key, partition)

    def partitions(self) -> Iterator[SystemStream]:
        """The streams of all partitions, one after the other."""
        return map(self.derive, itertools.count())

    def records(self, rows: NDArray[np.int64]) -> RecordStream:
        """The numbers of the records in these rows of a table."""
        return RecordStream(self.key, rows)


class RecordStream:
    """Uniform numbers of single records.

    Each depends on a key, on the record's row and on what it is drawn for.

    rows  where the records are in their table, from 0
    lane  what the numbers are for: those of two lanes are independent

    Every number is half a block of AES-256, whose counter is (lane, which pair of numbers, row). Where rows follow each
    other this is counter mode, from the first row on.
    """

    def __init__(self, key: bytes, rows: NDArray[np.int64], lane: int = 0) -> None:
        self._key, self._rows, self._lane = key, np.asarray(rows, dtype=np.int64), lane

    def __repr__(self) -> str:
        return "RecordStream(<hidden>)"

    def __len__(self) -> int:
        return len(self._rows)

    def lane(self, number: int) -> RecordStream:
        """Other numbers for the same records."""
        return RecordStream(self._key, self._rows, number)

    def take(self, places: NDArray[np.int64] | slice) -> RecordStream:
        """The same numbers, for some of the records."""
        return RecordStream(self._key, self._rows[places], self._lane)

    def words(self, draws: int = 1) -> Words:
        """`draws` x records 64-bit words; the same on every call."""
        words = np.empty((draws + draws % 2, len(self)), dtype=np.uint64)
        for pair in range(len(words) // 2):
            words[2 * pair : 2 * pair + 2] = self._pair(pair).T
        return words[:draws]

    def uniforms(self, draws: int, records: int) -> Floats:
        """`draws` x `records` numbers; the same for the same row."""
        if records != len(self):
            raise ValueError("a stream of records serves exactly its own records")
        return _to_unit(self.words(draws))

    def _pair(self, pair: int) -> Words:
        """Two words for each record: (n, 2)."""
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        count, head = len(self), self._lane.to_bytes(4, "big") + pair.to_bytes(4, "big")
        if not count:
            return np.empty((0, 2), dtype=np.uint64)
        first = int(self._rows[0])
        if np.array_equal(self._rows, np.arange(first, first + count)):
            mode: modes.CTR | modes.ECB = modes.CTR(head + first.to_bytes(8, "big"))
            blocks = bytes(_BLOCK * count)
        else:
            # Single blocks: the counter is written out, since it does not go up by one.
            counters = np.empty((count, _BLOCK // 8), dtype=">u8")
            counters[:, 0], counters[:, 1] = int.from_bytes(head, "big"), self._rows
            mode, blocks = modes.ECB(), counters.tobytes()  # noqa: S305
        drawn = Cipher(algorithms.AES(self._key), mode).encryptor().update(blocks)
        return np.frombuffer(drawn, dtype="<u8").reshape(count, 2)


class StickyStream:
    """Uniform numbers that depend only on a secret key, an attribute, a record key and a value.

    The message (lengths, attribute, value code, record key) goes through AES-CBC-MAC with its length in front, which is
    a pseudo-random function on messages of any length; the tag is then expanded by AES under a second key. Both keys
    are derived from the secret. All records pass through each block at once, so it runs at the speed of AES.
    """

    def __init__(self, secret: bytes, attribute: str, record_keys: Sequence[bytes], codes: NDArray[np.int64]) -> None:
        if len(record_keys) != len(codes):
            raise ValueError("one record key for each code")
        self._secret = secret
        self._tags = self._mac(attribute.encode(), record_keys, codes)

    def __repr__(self) -> str:
        return "StickyStream(<hidden>)"

    @property
    def prints(self) -> Words:
        """Eight bytes that tell (record key, attribute, value) of each record from others.

        Secret like the numbers.
        """
        return np.ascontiguousarray(self._tags[:, :8]).view("<u8")[:, 0].astype(np.uint64)

    def lane(self, purpose: bytes, rows: NDArray[np.int64], numbers: NDArray[np.int64] | None = None) -> StickyStream:
        """Further numbers for some records, independent of those of other purposes or numbers.

        rows     the records, in any order and any number of times
        numbers  one for each of these rows, to tell several tries of the same record apart
        """
        tags = self._tags[rows]
        if numbers is not None:
            tags[:, :8] ^= np.ascontiguousarray(numbers, dtype="<i8").view(np.uint8).reshape(-1, 8)
        return self._with(self._encrypt(b"lane " + hashlib.sha256(purpose).digest(), tags))

    def take(self, rows: NDArray[np.int64]) -> StickyStream:
        """The same numbers, for some of the records."""
        return self._with(self._tags[rows])

    def _with(self, tags: NDArray[np.uint8]) -> StickyStream:
        made = StickyStream.__new__(StickyStream)
        made._secret, made._tags = self._secret, tags
        return made

    def _derive(self, purpose: bytes) -> bytes:
        return hashlib.blake2b(purpose, key=self._secret[:64], digest_size=32, person=b"polyseme-sticky").digest()

    def _encrypt(self, purpose: bytes, blocks: NDArray[np.uint8]) -> NDArray[np.uint8]:
        # A single application of AES to each 16-byte block: the building block of the MAC, not a mode for secrets.
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        encryptor = Cipher(algorithms.AES(self._derive(purpose)), modes.ECB()).encryptor()  # noqa: S305
        return np.frombuffer(encryptor.update(blocks.tobytes()), dtype=np.uint8).reshape(blocks.shape)

    def _mac(self, attribute: bytes, record_keys: Sequence[bytes], codes: NDArray[np.int64]) -> NDArray[np.uint8]:
        count = len(record_keys)
        lengths = np.fromiter(map(len, record_keys), dtype=np.int64, count=count)
        header = np.zeros((count, _BLOCK), dtype=np.uint8)
        header[:, :8] = lengths.astype("<i8").view(np.uint8).reshape(count, 8)
        header[:, 8:] = codes.astype("<i8").view(np.uint8).reshape(count, 8)
        # The attribute is the same for all records of a stream: a fixed-length digest of it selects the MAC key.
        purpose = b"mac " + hashlib.sha256(attribute).digest()
        state = self._encrypt(purpose, header)
        blocks = -(-lengths // _BLOCK)
        order = np.argsort(-blocks, kind="stable")
        width = int(blocks.max(initial=0)) * _BLOCK
        if width:
            padded = np.array(record_keys, dtype=f"S{width}")
            body = padded.view(np.uint8).reshape(count, width)
            still = np.searchsorted(-blocks[order], -np.arange(width // _BLOCK), side="left")
            state = state.copy()
            for index, active in enumerate(still):
                rows = order[:active]
                state[rows] = self._encrypt(purpose, state[rows] ^ body[rows, index * _BLOCK : (index + 1) * _BLOCK])
        return state

    def uniforms(self, draws: int, records: int) -> Floats:
        """`draws` x `records` numbers; the same for the same record, attribute and value."""
        if records != len(self._tags):
            raise ValueError("a sticky stream serves exactly its own records")
        pairs = -(-draws // 2)
        words = np.empty((2 * pairs, records), dtype=np.uint64)
        for index in range(pairs):
            blocks = self._tags ^ np.frombuffer(index.to_bytes(_BLOCK, "little"), dtype=np.uint8)
            out = self._encrypt(b"expand", blocks).copy().view("<u8").reshape(records, 2)
            words[2 * index] = out[:, 0]
            words[2 * index + 1] = out[:, 1]
        return _to_unit(words[:draws])


def experiment(seed: int) -> np.random.Generator:
    """An ordinary generator for bootstraps, simulations and demonstrations; never for decoys."""
    return np.random.default_rng(seed)


def new_key(path: Path) -> None:
    """Write a fresh secret key that only its owner may read; never overwrites."""
    try:
        write_once(path, fresh_key().hex() + "\n")
    except FileExistsError:
        raise InvalidInput(
            f"{path}: the file already exists", "choose another name; an overwritten key cannot be recovered"
        ) from None


def key_check(secret: bytes) -> str:
    """A public value that tells two keys apart and reveals nothing about either.

    A keyed pseudo-random function of a fixed text, with a purpose that no numbers are drawn for.
    """
    return hashlib.blake2b(b"polyseme key check", key=secret[:64], digest_size=16, person=b"polyseme-check").hexdigest()


def read_key(path: Path) -> bytes:
    """The key in a file written by `new_key`; refuses one that others can read."""
    try:
        text = path.read_text(encoding="ascii").strip()
        key = bytes.fromhex(text)
    except FileNotFoundError:
        raise InvalidInput(f"{path}: no such key file", f"make one with: polyseme key new {path}") from None
    except (UnicodeDecodeError, ValueError):
        raise InvalidInput(f"{path}: not a key file", "make one with: polyseme key new FILE") from None
    if len(key) != KEY_BYTES:
        raise InvalidInput(f"{path}: expected {KEY_BYTES} bytes in hexadecimal, found {len(key)}")
    if os.name == "posix" and path.stat().st_mode & 0o077:
        raise InvalidInput(f"{path}: other users can read this key", f"chmod 600 {path}")
    return key
