"""The issuer of blind tokens (RFC 9474): signs one blinded message for every invitation, and never sees a report.

A party other than the collector should run it: an issuer knows who was invited, the collector what was
reported. Blinding keeps the two apart even where one organization has both; then only times and addresses connect
them, which is why devices wait and use a relay.

Python's `pow` takes longer for some numbers than for others. So it never sees the number that a device sent nor the
same exponent twice: base and exponents are blinded by fresh random numbers. What comes out is checked against the
public key before it leaves, since one wrong half of it would give the key away.
"""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from polyseme.collection.secret_files import read_secret, write_secret
from polyseme.errors import ChannelError, InternalError

__all__ = ["IssuerKey", "new_issuer_key", "read_issuer_key"]

_BITS = 2_048
"""A token then has 288 bytes, 384 characters in a report."""
_EXPONENT_BITS = 64


@dataclass(frozen=True)
class IssuerKey:
    """An issuer's key pair; one campaign each, because an issuer cannot see for which campaign it signs."""

    private: rsa.RSAPrivateKey = field(repr=False)

    def public(self) -> bytes:
        """The public key (SPKI), which the campaign's document pins."""
        return self.private.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)

    def check(self, blinded: bytes) -> int:
        """A blinded message as a number; raises where it cannot be one."""
        length, n = self.private.key_size // 8, self.private.public_key().public_numbers().n
        message = int.from_bytes(blinded, "big")
        if len(blinded) != length or not 0 < message < n:
            raise ChannelError(f"a blinded message has {length:,} bytes and is less than the key's modulus")
        return message

    def signed(self, blinded: bytes) -> bytes:
        """`BlindSign` of RFC 9474: the same answer to the same message."""
        numbers = self.private.private_numbers()
        n, e = numbers.public_numbers.n, numbers.public_numbers.e
        message = self.check(blinded)
        factor = _unit(n)
        signature = _power(numbers, message * pow(factor, e, n) % n) * pow(factor, -1, n) % n
        if pow(signature, e, n) != message:
            raise InternalError("a blind signature came out wrong and is withheld")
        return signature.to_bytes(len(blinded), "big")


def new_issuer_key(file: Path) -> IssuerKey:
    """Write a fresh key, readable by its owner only; never overwrites."""
    key = IssuerKey(rsa.generate_private_key(65_537, _BITS))
    pem = key.private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    write_secret(file, pem.decode("ascii"))
    return key


def read_issuer_key(file: Path) -> IssuerKey:
    """The key in a file; refuses one that others can read."""
    text = read_secret(file, "polyseme collect issuer key")
    try:
        private = load_pem_private_key(text.encode("ascii"), None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        private = None
    if not isinstance(private, rsa.RSAPrivateKey):
        raise ChannelError(f"{file}: expected an RSA private key in PEM, without a password")
    return IssuerKey(private)


def _power(numbers: rsa.RSAPrivateNumbers, base: int) -> int:
    """`base` to the private exponent, by the two primes, with exponents that are different every time."""
    halves = []
    for prime, exponent in ((numbers.p, numbers.dmp1), (numbers.q, numbers.dmq1)):
        disguised = exponent + secrets.randbits(_EXPONENT_BITS) * (prime - 1)
        halves.append(pow(base, disguised, prime))
    return halves[1] + (halves[0] - halves[1]) * numbers.iqmp % numbers.p * numbers.q


def _unit(n: int) -> int:
    """A random number that has an inverse."""
    while True:
        drawn = secrets.randbelow(n - 1) + 1
        if math.gcd(drawn, n) == 1:
            return drawn
