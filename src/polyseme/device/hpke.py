"""One sealed message to the holder of a public key: HPKE (RFC 9180), base mode.

One suite only, the one that every gateway for oblivious HTTP must have: DHKEM(X25519, HKDF-SHA256), HKDF-SHA256,
AES-128-GCM. `seal` and `unseal` are for one message a context, so that no nonce can be used twice; what oblivious
HTTP needs besides is a secret that both sides export from the context.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from typing import NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from polyseme.kernel.errors import ChannelError

__all__ = [
    "AEAD_ID",
    "ENCAPSULATED_BYTES",
    "KDF_ID",
    "KEM_ID",
    "KEY_BYTES",
    "NONCE_BYTES",
    "Export",
    "Sealed",
    "expand",
    "extract",
    "seal",
    "unseal",
]

KEM_ID, KDF_ID, AEAD_ID = 0x0020, 0x0001, 0x0001
ENCAPSULATED_BYTES = 32
"""An encapsulated key is the public half of a key pair that is used once."""
KEY_BYTES, NONCE_BYTES = 16, 12
"""AES-128-GCM."""

_KEM_SUITE = b"KEM" + KEM_ID.to_bytes(2, "big")
_SUITE = b"HPKE" + b"".join(number.to_bytes(2, "big") for number in (KEM_ID, KDF_ID, AEAD_ID))
_BASE_MODE = b"\x00"

Export = Callable[[bytes, int], bytes]
"""`(context, length)` to a secret that only the two sides of one message can compute."""


class Sealed(NamedTuple):
    """A message for the holder of a key, and the source of secrets that both share."""

    encapsulated: bytes
    ciphertext: bytes
    export: Export


def seal(public: bytes, info: bytes, message: bytes, aad: bytes = b"", once: X25519PrivateKey | None = None) -> Sealed:
    """Seal a message; `once` is a key pair from a test vector, otherwise a fresh one."""
    once = once or X25519PrivateKey.generate()
    encapsulated = once.public_key().public_bytes_raw()
    secret = _shared(once, public, encapsulated + public)
    cipher, nonce, export = _schedule(secret, info)
    return Sealed(encapsulated, cipher.encrypt(nonce, message, aad), export)


def unseal(
    private: X25519PrivateKey, encapsulated: bytes, info: bytes, ciphertext: bytes, aad: bytes = b""
) -> tuple[bytes, Export]:
    """The message, and the way to the secrets shared with its sender."""
    secret = _shared(private, encapsulated, encapsulated + private.public_key().public_bytes_raw())
    cipher, nonce, export = _schedule(secret, info)
    try:
        return cipher.decrypt(nonce, ciphertext, aad), export
    except InvalidTag:
        raise ChannelError("a sealed message was damaged, or was made for another key") from None


def extract(salt: bytes, secret: bytes) -> bytes:
    """HKDF-Extract with SHA-256 (RFC 5869)."""
    return hmac.digest(salt or bytes(32), secret, "sha256")


def expand(key: bytes, info: bytes, length: int) -> bytes:
    """HKDF-Expand with SHA-256 (RFC 5869)."""
    block, whole = b"", b""
    for number in range(1, -(-length // hashlib.sha256().digest_size) + 1):
        block = hmac.digest(key, block + info + bytes([number]), "sha256")
        whole += block
    return whole[:length]


def _shared(private: X25519PrivateKey, public: bytes, kem_context: bytes) -> bytes:
    try:
        agreed = private.exchange(X25519PublicKey.from_public_bytes(public))
    except ValueError:
        # 32 bytes are wanted, and no point of small order: with one, everybody knows what was agreed.
        raise ChannelError("not a public key of X25519") from None
    key = _labeled_extract(_KEM_SUITE, b"", b"eae_prk", agreed)
    return _labeled_expand(_KEM_SUITE, key, b"shared_secret", kem_context, 32)


def _schedule(secret: bytes, info: bytes) -> tuple[AESGCM, bytes, Export]:
    """The cipher, the nonce of the first message, and the way to exported secrets."""
    context = (
        _BASE_MODE
        + _labeled_extract(_SUITE, b"", b"psk_id_hash", b"")
        + _labeled_extract(_SUITE, b"", b"info_hash", info)
    )
    key = _labeled_extract(_SUITE, secret, b"secret", b"")
    exporter = _labeled_expand(_SUITE, key, b"exp", context, 32)
    return (
        AESGCM(_labeled_expand(_SUITE, key, b"key", context, KEY_BYTES)),
        _labeled_expand(_SUITE, key, b"base_nonce", context, NONCE_BYTES),
        lambda label, length: _labeled_expand(_SUITE, exporter, b"sec", label, length),
    )


def _labeled_extract(suite: bytes, salt: bytes, label: bytes, secret: bytes) -> bytes:
    return extract(salt, b"HPKE-v1" + suite + label + secret)


def _labeled_expand(suite: bytes, key: bytes, label: bytes, info: bytes, length: int) -> bytes:
    return expand(key, length.to_bytes(2, "big") + b"HPKE-v1" + suite + label + info, length)
