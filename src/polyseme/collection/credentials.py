"""Invitations, blind tokens and their issuer, operator tokens, and files of secret keys.

Invitations are codes that are handed to people, each good for one report or for one blind token.

A code has 19 random characters (94 bits) and one that catches every mistyped character and every two that changed
places. The collector keeps a hash of each; at 94 bits a hash does not reveal its code, so a plain one will do. Codes
are looked up by their hash: how long that takes says something about hashes, and nothing about codes.

What a store needs: one table, apart from the reports, with no column that leads to one:

    invitations (campaign, code, spent)   key (campaign, code); `code` is the 32 bytes of `code_hash`

Its rows are there before the first report and are never inserted with one, so their order says nothing. Spending is
`UPDATE ... SET spent = 1 WHERE campaign = ? AND code = ? AND spent = 0` in the transaction that stores the report, and
counts when it changed one row; a report that is there already under its id is answered before that. A withdrawn
report does not give its code back: nothing leads from one to the other.

The issuer of blind tokens (RFC 9474): signs one blinded message for every invitation, and never sees a report.

A party other than the collector should run it: an issuer knows who was invited, the collector what was
reported. Blinding keeps the two apart even where one organization has both; then only times and addresses connect
them, which is why devices wait and use a relay.

Python's `pow` takes longer for some numbers than for others. So it never sees the number that a device sent nor the
same exponent twice: base and exponents are blinded by fresh random numbers. What comes out is checked against the
public key before it leaves, since one wrong half of it would give the key away.

It issues tokens over HTTP: one blind signature for every invitation, the same one if a device asks again.

    POST /v1/campaigns/ID/tokens     {"invitation": CODE, "blinded": base64url}
    200 {"signature": base64url}     401 no such invitation     409 used for another token     400 anything else

What is kept is a hash of each code and, once it was used, one of the blinded message. The blinded message says nothing
about the token, so what is kept leads to no report.

Operator tokens admit to the admin listener. Only hashes are kept. Tokens are random and long, so a plain SHA-256 is
enough: they cannot be guessed. Files with the secret keys of a channel must not be readable by others.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import os
import re
import secrets
import sqlite3
import stat
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from polyseme.collection.store.base import Credential
from polyseme.device.ohttp import Response
from polyseme.device.tokens import from_text, to_text
from polyseme.kernel.errors import ChannelError, CollectionError, InternalError, nearest
from polyseme.kernel.files import reserve, write_once

__all__ = [
    "ALPHABET",
    "ROLES",
    "Invited",
    "Issuer",
    "IssuerKey",
    "code_hash",
    "hash_lines",
    "new_codes",
    "new_credential",
    "new_issuer_key",
    "read_code",
    "read_hashes",
    "read_issuer_key",
    "read_secret",
    "replace_secret",
    "role_of",
    "write_secret",
]

ALPHABET = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"
"""No 0 and O, no 1, I and L. A prime number of characters, which is what the last one of a code needs to be sure."""

_LENGTH, _GROUP = 20, 5
_HASH = re.compile(r"[0-9a-f]{64}")
_INVERSE = pow(_LENGTH, -1, len(ALPHABET))


def new_codes(count: int) -> list[str]:
    """Fresh codes, as they are handed out: four groups of five characters."""
    return [_new_code() for _ in range(count)]


def read_code(text: str) -> str | None:
    """A code as a respondent typed it, without the dashes between groups.

    None where it cannot be one.

    >>> read_code("22222-22222-22222-22222")
    '22222222222222222222'
    >>> read_code("22222-22222-22222-22232") is None
    True
    """
    typed = "".join(text.replace("-", " ").split())
    code = typed.upper()
    # Beyond ASCII there are other letters whose capital is one of ours.
    if not typed.isascii() or len(code) != _LENGTH or any(character not in ALPHABET for character in code):
        return None
    return code if _weighted([ALPHABET.index(character) for character in code]) == 0 else None


def code_hash(campaign: str, text: str) -> bytes | None:
    """What is stored of a code; None where the text cannot be one.

    A code of two campaigns has two hashes.
    """
    code = read_code(text)
    return None if code is None else hashlib.sha256(f"polyseme-invitation\n{campaign}\n{code}".encode()).digest()


def hash_lines(campaign: str, codes: Iterable[str]) -> str:
    """The hashes of codes as a text file, sorted.

    Their order says nothing about who got which code.
    """
    hashes = (code_hash(campaign, code) for code in codes)
    return "".join(sorted(f"{found.hex()}\n" for found in hashes if found is not None))


def read_hashes(file: Path) -> list[bytes]:
    """The hashes in a file written by `polyseme collect issuer invite`."""
    found = list[bytes]()
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if not _HASH.fullmatch(line.strip()):
            hint = "give the file of hashes here, not the one with the codes"
            raise ChannelError(f"{file}, line {number:,}: expected 64 hexadecimal digits", hint)
        found.append(bytes.fromhex(line))
    return found


def _new_code() -> str:
    numbers = [secrets.randbelow(len(ALPHABET)) for _ in range(_LENGTH - 1)]
    numbers.append(-_weighted(numbers) * _INVERSE % len(ALPHABET))
    code = "".join(ALPHABET[number] for number in numbers)
    return "-".join(code[at : at + _GROUP] for at in range(0, _LENGTH, _GROUP))


def _weighted(numbers: Sequence[int]) -> int:
    """Zero for intact codes: each place has its own weight, none a multiple of the prime."""
    return sum(place * number for place, number in enumerate(numbers, 1)) % len(ALPHABET)


def write_secret(file: Path, text: str) -> None:
    """Write a new file; refuse where there is one."""
    try:
        write_once(file, text)
    except FileExistsError:
        raise ChannelError(
            f"{file}: the file already exists", "a key that is overwritten cannot be recovered"
        ) from None


def replace_secret(file: Path, text: str) -> None:
    """Put another text in place of a secret file, which stays whole until then."""
    beside = file.with_name(file.name + ".new")
    beside.unlink(missing_ok=True)
    write_secret(beside, text)
    beside.replace(file)


def read_secret(file: Path, made_with: str) -> str:
    """The text of a secret file; refuses one that others can read."""
    try:
        mode = file.stat().st_mode
        text = file.read_text(encoding="ascii")
    except FileNotFoundError:
        raise ChannelError(f"{file}: no such file", f"make one with: {made_with} {file}") from None
    except UnicodeDecodeError:
        raise ChannelError(f"{file}: expected a file made with: {made_with}") from None
    if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ChannelError(f"{file}: others can read this secret", f"chmod 600 {file}")
    return text


ROLES = ("designer", "analyst")
"""A designer makes, opens, closes and purges campaigns; an analyst sees counts and releases. A designer may both."""
_TOKEN_BYTES = 32


def new_credential(name: str, role: str) -> tuple[Credential, str]:
    """What the store keeps of a new token, and the token itself, which is shown only this once."""
    if role not in ROLES:
        raise CollectionError(f"no role '{role}'", nearest(role, ROLES))
    if not name.isprintable() or not 0 < len(name.strip()) <= 100:
        raise CollectionError("a token needs a name of at most 100 characters", "such as: anna")
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    return Credential(name, role, _hash(token)), token


def role_of(token: str, credentials: Iterable[Credential]) -> str | None:
    """The role that a token has; None for one that was not issued."""
    given, found = _hash(token), None
    for credential in credentials:
        if hmac.compare_digest(given, credential.hash):
            found = credential.role
    return found


def _hash(token: str) -> bytes:
    return hashlib.sha256(f"polyseme-token\n{token}".encode()).digest()


_BITS = 2_048
"""A token then has 288 bytes, 384 characters in a report."""
_EXPONENT_BITS = 64


@dataclass(frozen=True)
class IssuerKey:
    """An issuer's key pair.

    One campaign each, because an issuer cannot see for which campaign it signs.
    """

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
    """`base` to the private exponent, by the two primes, with a new blinding every time."""
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


_PATH = re.compile(r"/v1/campaigns/([A-Za-z0-9_-]{43})/tokens")
_JSON = "application/json"

Spent = Literal["signed", "used", "unknown"]


class Invited:
    """The invitations of an issuer, in a file of their own (SQLite)."""

    def __init__(self, file: Path) -> None:
        self._lock = threading.Lock()
        # The hashes of invitations are for the issuer alone.
        reserve(file)
        self._database = sqlite3.connect(file, check_same_thread=False, isolation_level=None)
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = FULL")
        # Ordered by the hash of the code, so that the file does not say who came first.
        columns = "code BLOB PRIMARY KEY, message BLOB"
        self._database.execute(f"CREATE TABLE IF NOT EXISTS invitations ({columns}) WITHOUT ROWID")

    def add(self, hashes: Iterable[bytes]) -> int:
        """Invite those whose codes have these hashes; returns how many of them are new."""
        with self._transaction() as database:
            before = database.total_changes
            database.executemany("INSERT OR IGNORE INTO invitations (code) VALUES (?)", [(code,) for code in hashes])
            return database.total_changes - before

    def spend(self, code: bytes, blinded: bytes) -> Spent:
        """Use an invitation for a blinded message. On disk when this returns.

        The same message may be signed again.
        """
        message = hashlib.sha256(blinded).digest()
        with self._transaction() as database:
            found = database.execute("SELECT message FROM invitations WHERE code = ?", (code,)).fetchone()
            if found is None:
                return "unknown"
            if found[0] not in (None, message):
                return "used"
            database.execute("UPDATE invitations SET message = ? WHERE code = ?", (message, code))
        return "signed"

    def counts(self) -> tuple[int, int]:
        """How many were invited, and how many of them have a token."""
        with self._transaction() as database:
            invited, used = database.execute("SELECT count(*), count(message) FROM invitations").fetchone()
        return int(invited), int(used)

    def close(self) -> None:
        self._database.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        # Immediate: two processes at one file take turns instead of both reading an unused invitation.
        with self._lock:
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield self._database
            except BaseException:
                self._database.execute("ROLLBACK")
                raise
            self._database.execute("COMMIT")


@dataclass(frozen=True)
class Issuer:
    """Who signs tokens for one campaign."""

    campaign: str
    key: IssuerKey
    invited: Invited

    def answer(self, method: str, path: str, media_type: str, body: bytes) -> Response:
        """Answer a request for a token."""
        matched = _PATH.fullmatch(path)
        if matched is None or matched[1] != self.campaign:
            return _problem(404, "No tokens are issued here for such a campaign")
        if method != "POST":
            return _problem(405, "Tokens are asked for by POST")
        if media_type.partition(";")[0].strip() != _JSON:
            return _problem(415, f"Expected {_JSON}")
        return self.issued(body)

    def issued(self, body: bytes) -> Response:
        """Answer the body of a request for a token of this campaign."""
        try:
            code, blinded = _request(self.campaign, body)
            # A message that cannot be signed uses up no invitation, and a device without one gets no signature.
            self.key.check(blinded)
        except ChannelError:
            return _problem(400, "Expected an invitation and a blinded message")
        spent = self.invited.spend(code, blinded) if code is not None else "unknown"
        if spent == "unknown":
            return _problem(401, "No such invitation")
        if spent == "used":
            return _problem(409, "This invitation was used for another token")
        return _answer(200, _JSON, {"signature": to_text(self.key.signed(blinded))})


def _request(campaign: str, body: bytes) -> tuple[bytes | None, bytes]:
    """The hash of the code, or None where it cannot be one, and the blinded message."""
    try:
        given = json.loads(body)
        code, blinded = given["invitation"], given["blinded"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ChannelError("not a request for a token") from None
    if not isinstance(code, str) or not isinstance(blinded, str) or len(given) != 2:
        raise ChannelError("not a request for a token")
    return code_hash(campaign, code), from_text(blinded)


def _problem(status: int, title: str) -> Response:
    return _answer(status, "application/problem+json", {"type": "about:blank", "title": title, "status": status})


def _answer(status: int, media_type: str, content: dict[str, object]) -> Response:
    headers = (("content-type", media_type), ("cache-control", "no-store"))
    return Response(status, headers, json.dumps(content).encode())
