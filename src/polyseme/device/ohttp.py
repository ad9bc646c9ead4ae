"""The device's side of oblivious HTTP (RFC 9458): the relay sees who sends, the collector sees what, neither sees both.

A request is sealed for the key configuration of the collector's gateway and posted to the relay. All requests of a
campaign have one length, whatever they are for, so that a relay cannot tell a report from a withdrawal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from polyseme.device import hpke
from polyseme.device.bhttp import Request, Response, padded
from polyseme.errors import ChannelError

__all__ = [
    "ENVELOPE",
    "KEYS_TYPE",
    "REQUEST_TYPE",
    "RESPONSE_NONCE_BYTES",
    "RESPONSE_TYPE",
    "Encapsulated",
    "KeyConfiguration",
    "encapsulate",
    "read_configurations",
    "request_info",
    "response_cipher",
    "wrapped",
]

KEYS_TYPE = "application/ohttp-keys"
REQUEST_TYPE = "message/ohttp-req"
RESPONSE_TYPE = "message/ohttp-res"

ENVELOPE = 512
"""Bytes that a request may need beside its body: its method, address and headers."""
RESPONSE_NONCE_BYTES = 16
"""The larger of the key and the nonce of the cipher."""

_SUITE = hpke.KDF_ID.to_bytes(2, "big") + hpke.AEAD_ID.to_bytes(2, "big")


@dataclass(frozen=True)
class KeyConfiguration:
    """The number of a gateway's key and its public half."""

    number: int
    public: bytes

    def header(self) -> bytes:
        """What a request begins with: which key, which algorithms."""
        return bytes([self.number]) + hpke.KEM_ID.to_bytes(2, "big") + _SUITE

    def encoded(self) -> bytes:
        content = bytes([self.number]) + hpke.KEM_ID.to_bytes(2, "big") + self.public
        content += len(_SUITE).to_bytes(2, "big") + _SUITE
        return len(content).to_bytes(2, "big") + content


class Encapsulated(NamedTuple):
    """A sealed request, and the way to read its answer."""

    body: bytes
    opened: Callable[[bytes], bytes]


def read_configurations(keys: bytes) -> tuple[KeyConfiguration, ...]:
    """The configurations in an `application/ohttp-keys` document that we can use, in its order; at least one."""
    found = tuple(filter(None, map(_configuration, _counted(keys))))
    if not found:
        expected = "DHKEM(X25519, HKDF-SHA256), HKDF-SHA256 and AES-128-GCM"
        raise ChannelError(f"the gateway has no key for {expected}", "ask those who run the campaign for its keys")
    return found


def encapsulate(configuration: KeyConfiguration, message: bytes, once: X25519PrivateKey | None = None) -> Encapsulated:
    """Seal a binary HTTP request; `once` is a key pair from a test vector, otherwise a fresh one."""
    header = configuration.header()
    sealed = hpke.seal(configuration.public, request_info(header), message, once=once)

    def opened(answer: bytes) -> bytes:
        nonce, ciphertext = answer[:RESPONSE_NONCE_BYTES], answer[RESPONSE_NONCE_BYTES:]
        cipher, counter = response_cipher(sealed.export, sealed.encapsulated, nonce)
        try:
            return cipher.decrypt(counter, ciphertext, b"")
        except (InvalidTag, ValueError):
            raise ChannelError("the answer did not come from the gateway that the request was sealed for") from None

    return Encapsulated(header + sealed.encapsulated + sealed.ciphertext, opened)


def wrapped(keys: bytes, request: Request, size: int) -> tuple[bytes, Callable[[bytes], Response]]:
    """A request as it goes to a relay, and the way to read what the relay brings back.

    keys  the gateway's key configurations; its first one that we can use is taken
    size  bytes of the largest body in this campaign: all requests have the same length
    """
    message = padded(request.encoded(), size + ENVELOPE)
    sealed = encapsulate(read_configurations(keys)[0], message)
    return sealed.body, lambda answer: Response.decoded(sealed.opened(answer))


def request_info(header: bytes) -> bytes:
    """What binds a sealed request to its key and its media type."""
    return b"message/bhttp request\0" + header


def response_cipher(export: hpke.Export, encapsulated: bytes, nonce: bytes) -> tuple[AESGCM, bytes]:
    """The cipher of an answer, and its counter, on both sides."""
    secret = export(b"message/bhttp response", RESPONSE_NONCE_BYTES)
    key = hpke.extract(encapsulated + nonce, secret)
    return AESGCM(hpke.expand(key, b"key", hpke.KEY_BYTES)), hpke.expand(key, b"nonce", hpke.NONCE_BYTES)


def _counted(keys: bytes) -> Iterator[bytes]:
    """The parts of a document in which each follows its length."""
    at = 0
    while at < len(keys):
        end = at + 2 + int.from_bytes(keys[at : at + 2], "big")
        if end > len(keys) or end < at + 3:
            raise ChannelError("the key configurations of the gateway are cut short")
        yield keys[at + 2 : end]
        at = end


def _configuration(content: bytes) -> KeyConfiguration | None:
    """One configuration, or None where it is for other algorithms."""
    kem, rest = content[1:3], content[3:]
    if int.from_bytes(kem, "big") != hpke.KEM_ID or len(rest) < hpke.ENCAPSULATED_BYTES + 2:
        return None
    public, suites = rest[: hpke.ENCAPSULATED_BYTES], rest[hpke.ENCAPSULATED_BYTES + 2 :]
    if _SUITE not in (suites[at : at + 4] for at in range(0, len(suites), 4)):
        return None
    return KeyConfiguration(content[0], public)
