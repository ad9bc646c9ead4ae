"""One report a person, without saying which: tokens that are signed blind (RFC 9474).

A device makes a random number, blinds it and shows the blinded one to an issuer, who signs one for every invitation.
Unblinded, the signature is good for one report, and neither side can tell which of the issuer's signatures it was. The
variant is RSABSSA-SHA384-PSS-Deterministic, whose signatures are ordinary RSA-PSS ones; its messages must be hard to
guess, and ours hold 32 random bytes.

A token is these 32 bytes and the signature. The id of its report is a hash of it, so that the one key of the store
also says that each token is used once.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import math
import secrets
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import load_der_public_key

from polyseme.device.ohttp import posted, require_address
from polyseme.kernel.errors import ChannelError

__all__ = [
    "Blinding",
    "ask_issuer",
    "blind",
    "blind_message",
    "emsa_pss",
    "finalize",
    "from_text",
    "read_public_key",
    "report_id",
    "to_text",
    "token_message",
    "verify_token",
]

NONCE_BYTES = 32
ID_BYTES = 16
_SALT_BYTES = 48
"""As long as a hash, which is SHA-384."""
_SHORTEST, _LONGEST = 2_048, 4_096
"""Bits of a key: below, signatures can be forged; above, a token outgrows a report."""
_REFUSALS = {401: "there is no such invitation", 409: "this invitation was used for another token"}
_PSS = padding.PSS(mgf=padding.MGF1(hashes.SHA384()), salt_length=_SALT_BYTES)


@dataclass(frozen=True)
class Blinding:
    """What a device has to remember between asking for a signature and having it; as secret as the report.

    message  what is signed: the campaign and 32 random bytes
    inverse  takes the blinding off
    blinded  what the issuer sees
    """

    message: bytes = field(repr=False)
    inverse: int = field(repr=False)
    blinded: bytes

    def stored(self) -> dict[str, str]:
        """As JSON, for the queue: it must be on disk before the request to the issuer, who signs once."""
        return {
            "message": to_text(self.message),
            "inverse": to_text(self.inverse.to_bytes(len(self.blinded), "big")),
            "blinded": to_text(self.blinded),
        }

    @classmethod
    def read(cls, stored: dict[str, str]) -> Blinding:
        inverse = int.from_bytes(from_text(stored["inverse"]), "big")
        return cls(from_text(stored["message"]), inverse, from_text(stored["blinded"]))


def blind(key: bytes, campaign: str) -> Blinding:
    """A fresh token for a campaign, blinded.

    `key` is the issuer's public key (SPKI) from the campaign's document.
    """
    message = token_message(campaign, secrets.token_bytes(NONCE_BYTES))
    public = read_public_key(key)
    return blind_message(public, message, secrets.token_bytes(_SALT_BYTES), _unit(public.public_numbers().n))


def blind_message(public: rsa.RSAPublicKey, message: bytes, salt: bytes, factor: int) -> Blinding:
    """`Blind` of RFC 9474, with its random numbers given."""
    numbers = public.public_numbers()
    n, length = numbers.n, public.key_size // 8
    encoded = int.from_bytes(emsa_pss(message, salt, public.key_size - 1), "big")
    blinded = encoded * pow(factor, numbers.e, n) % n
    return Blinding(message, pow(factor, -1, n), blinded.to_bytes(length, "big"))


def finalize(key: bytes, blinding: Blinding, blind_signature: bytes) -> bytes:
    """The token, once the issuer has signed; raises where the signature is not the issuer's."""
    signature = _unblinded(read_public_key(key), blinding, blind_signature)
    return blinding.message[-NONCE_BYTES:] + signature


def ask_issuer(issuer: str, campaign: str, invitation: str, blinding: Blinding, timeout: float = 30.0) -> bytes:
    """The issuer's blind signature.

    The same blinding may be sent again where the answer was lost.
    """
    require_address(issuer)
    body = json.dumps({"invitation": invitation, "blinded": to_text(blinding.blinded)}).encode()
    try:
        answer = posted(f"{issuer.rstrip('/')}/v1/campaigns/{campaign}/tokens", "application/json", body, timeout)
    except OSError:
        raise ChannelError("the issuer does not answer", "ask it again later with the same blinding") from None
    if answer.status != 200:
        raise ChannelError(f"the issuer answered {answer.status}", _REFUSALS.get(answer.status, ""))
    try:
        return from_text(json.loads(answer.body)["signature"])
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ChannelError("the issuer's answer cannot be read") from None


def verify_token(key: bytes, campaign: str, token: bytes) -> bytes | None:
    """The id that a report with this token must have, or None where the token is not good for the campaign."""
    public, nonce, signature = read_public_key(key), token[:NONCE_BYTES], token[NONCE_BYTES:]
    try:
        public.verify(signature, token_message(campaign, nonce), _PSS, hashes.SHA384())
    except InvalidSignature:
        return None
    return report_id(token)


def report_id(token: bytes) -> bytes:
    """The 16 bytes under which a report with this token is stored."""
    return hashlib.sha256(token).digest()[:ID_BYTES]


def token_message(campaign: str, nonce: bytes) -> bytes:
    """What is signed. The campaign is in it, so that a token is good for no other one of the same issuer's key."""
    return b"polyseme-token-1\n" + campaign.encode("ascii") + b"\n" + nonce


def read_public_key(key: bytes) -> rsa.RSAPublicKey:
    """An issuer's public key from its DER bytes (SPKI)."""
    try:
        public = load_der_public_key(key)
    except (ValueError, UnsupportedAlgorithm):
        public = None
    if not isinstance(public, rsa.RSAPublicKey):
        raise ChannelError("the issuer's key is not an RSA public key")
    if not _SHORTEST <= public.key_size <= _LONGEST or public.key_size % 8:
        raise ChannelError(f"the issuer's key has {public.key_size:,} bits, expected {_SHORTEST:,} to {_LONGEST:,}")
    return public


def emsa_pss(message: bytes, salt: bytes, bits: int) -> bytes:
    """EMSA-PSS-ENCODE of RFC 8017 with SHA-384."""
    length = -(-bits // 8)
    digest = hashlib.sha384(bytes(8) + hashlib.sha384(message).digest() + salt).digest()
    block = b"\1".rjust(length - len(salt) - len(digest) - 1, b"\0") + salt
    masked = bytearray(left ^ right for left, right in zip(block, _mask(digest, len(block)), strict=True))
    masked[0] &= 0xFF >> (8 * length - bits)
    return bytes(masked) + digest + b"\xbc"


def to_text(content: bytes) -> str:
    """base64url without padding."""
    return base64.urlsafe_b64encode(content).decode("ascii").rstrip("=")


def from_text(text: str) -> bytes:
    """The bytes of a base64url text without padding; refuses any other way to write them."""
    try:
        content = base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), b"-_", validate=True)
    except (ValueError, binascii.Error):
        content = b""
    if to_text(content) != text:
        raise ChannelError("expected base64url without padding")
    return content


def _unblinded(public: rsa.RSAPublicKey, blinding: Blinding, blind_signature: bytes) -> bytes:
    """`Finalize` of RFC 9474."""
    n, length = public.public_numbers().n, public.key_size // 8
    if len(blind_signature) != length:
        raise ChannelError(f"the issuer's answer has {len(blind_signature):,} bytes, expected {length:,}")
    signature = (int.from_bytes(blind_signature, "big") * blinding.inverse % n).to_bytes(length, "big")
    try:
        public.verify(signature, blinding.message, _PSS, hashes.SHA384())
    except InvalidSignature:
        raise ChannelError("the issuer's signature does not fit the key in the campaign's document") from None
    return signature


def _unit(n: int) -> int:
    """A random number that has an inverse."""
    while True:
        drawn = secrets.randbelow(n - 1) + 1
        if math.gcd(drawn, n) == 1:
            return drawn


def _mask(seed: bytes, length: int) -> bytes:
    """MGF1 of RFC 8017 with SHA-384."""
    blocks = (hashlib.sha384(seed + number.to_bytes(4, "big")).digest() for number in range(-(-length // 48)))
    return b"".join(blocks)[:length]
