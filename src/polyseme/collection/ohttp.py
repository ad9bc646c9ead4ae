"""The collector's side of oblivious HTTP (RFC 9458): the gateway that opens what a relay brings.

`gateway.py` puts one in front of the collector's endpoints.

A request that is sent again is not refused here: it is a report under the same id, a withdrawal of the same id or the
same blinded token, and each of these is the same thing done once. A gateway needs no memory of what it has seen, and
a relay that replays a request only learns the length of an answer, which is that of all others.

Keys rotate with campaigns: a campaign's document pins the key configurations, so that no respondent can be given a
key of their own and be recognized by it. New campaigns pin the new key, and an old one is dropped when the last
campaign that names it has closed; what was recorded before then can no longer be opened.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from polyseme.collection.secret_files import read_secret, replace_secret, write_secret
from polyseme.device import hpke
from polyseme.device.bhttp import Request, Response, padded
from polyseme.device.ohttp import RESPONSE_NONCE_BYTES, KeyConfiguration, request_info, response_cipher
from polyseme.errors import ChannelError

__all__ = [
    "Gateway",
    "GatewayKey",
    "Opened",
    "add_gateway_key",
    "drop_gateway_key",
    "new_gateway",
    "read_gateway",
]

_HEADER_BYTES = 7
_STEP = 1_024
"""Answers are padded to a multiple of this: one length for every short one."""


@dataclass(frozen=True)
class GatewayKey:
    """A key pair of the gateway under its number."""

    number: int
    private: X25519PrivateKey = field(repr=False)

    @classmethod
    def fresh(cls, number: int) -> GatewayKey:
        return cls(number, X25519PrivateKey.generate())

    def configuration(self) -> KeyConfiguration:
        return KeyConfiguration(self.number, self.private.public_key().public_bytes_raw())


class Opened(NamedTuple):
    """A request that was sealed, and the way to seal its answer."""

    request: Request
    sealed: Callable[[Response], bytes]


@dataclass(frozen=True)
class Gateway:
    """The keys of a gateway, the newest first."""

    keys: tuple[GatewayKey, ...]

    def configurations(self) -> bytes:
        """The `application/ohttp-keys` document."""
        return b"".join(key.configuration().encoded() for key in self.keys)

    def has_key_of(self, encapsulated: bytes) -> bool:
        """Whether a request was sealed for a key and algorithms of this gateway."""
        return self._key(encapsulated[:_HEADER_BYTES]) is not None

    def opened(self, encapsulated: bytes) -> Opened:
        """The request inside an encapsulated one."""
        message, answered = self.opened_message(encapsulated)
        return Opened(Request.decoded(message), lambda response: answered(_rounded(response.encoded())))

    def opened_message(self, encapsulated: bytes) -> tuple[bytes, Callable[..., bytes]]:
        """The bytes inside an encapsulated request, and the way to seal bytes for an answer."""
        header, rest = encapsulated[:_HEADER_BYTES], encapsulated[_HEADER_BYTES:]
        once, ciphertext = rest[: hpke.ENCAPSULATED_BYTES], rest[hpke.ENCAPSULATED_BYTES :]
        key = self._key(header)
        if key is None:
            raise ChannelError("a request was sealed for a key or for algorithms that this gateway does not have")
        message, export = hpke.unseal(key.private, once, request_info(header), ciphertext)

        def sealed(answer: bytes, nonce: bytes | None = None) -> bytes:
            nonce = nonce or secrets.token_bytes(RESPONSE_NONCE_BYTES)
            cipher, counter = response_cipher(export, once, nonce)
            return nonce + cipher.encrypt(counter, answer, b"")

        return message, sealed

    def _key(self, header: bytes) -> GatewayKey | None:
        return next((key for key in self.keys if key.configuration().header() == header), None)


def new_gateway(file: Path) -> Gateway:
    """Write a file with a first key, readable by its owner only; never overwrites."""
    gateway = Gateway((GatewayKey.fresh(1),))
    write_secret(file, _stored(gateway))
    return gateway


def add_gateway_key(file: Path) -> Gateway:
    """Put a new key before the others: campaigns that are made from now on pin it."""
    gateway = read_gateway(file)
    taken = {key.number for key in gateway.keys}
    free = next((number for number in range(1, 256) if number not in taken), None)
    if free is None:
        raise ChannelError(f"{file}: all 255 numbers are taken", "drop the keys of campaigns that have closed")
    grown = Gateway((GatewayKey.fresh(free), *gateway.keys))
    replace_secret(file, _stored(grown))
    return grown


def drop_gateway_key(file: Path, number: int) -> Gateway:
    """Forget a key: from then on nothing that was sealed for it can be opened."""
    gateway = read_gateway(file)
    kept = Gateway(tuple(key for key in gateway.keys if key.number != number))
    if len(kept.keys) == len(gateway.keys):
        numbers = ", ".join(str(key.number) for key in gateway.keys)
        raise ChannelError(f"{file}: no key has the number {number}", f"there are: {numbers}")
    if not kept.keys:
        raise ChannelError(f"{file}: the last key cannot be dropped", "add another first")
    replace_secret(file, _stored(kept))
    return kept


def read_gateway(file: Path) -> Gateway:
    """The gateway whose keys are in a file; refuses one that others can read."""
    text = read_secret(file, "polyseme collect gateway new")
    try:
        keys = [(int(key["number"]), bytes.fromhex(key["private"])) for key in json.loads(text)["keys"]]
        found = tuple(GatewayKey(number, X25519PrivateKey.from_private_bytes(private)) for number, private in keys)
    except (ValueError, KeyError, TypeError):
        raise ChannelError(f"{file}: expected the keys of a gateway") from None
    if not found or any(not 0 <= key.number <= 255 for key in found) or len({key.number for key in found}) < len(found):
        raise ChannelError(f"{file}: expected keys with numbers from 0 to 255, each once")
    return Gateway(found)


def _rounded(message: bytes) -> bytes:
    return padded(message, -(-len(message) // _STEP) * _STEP)


def _stored(gateway: Gateway) -> str:
    keys = [{"number": key.number, "private": key.private.private_bytes_raw().hex()} for key in gateway.keys]
    return json.dumps({"keys": keys}) + os.linesep
