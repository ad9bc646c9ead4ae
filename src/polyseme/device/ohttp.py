"""The device's side of oblivious HTTP (RFC 9458), and HTTP messages as bytes (RFC 9292).

The relay sees who sends, the collector sees what; neither sees both.

A request is sealed for the key configuration of the collector's gateway and posted to the relay. All requests of a
campaign have one length, whatever they are for, so that a relay cannot distinguish a report from a withdrawal.

A campaign that names a relay promises that the collector does not learn who sends. `Relayed` is a transport for
`sending.send` that has only this way: a missing key is an error before anything is sent. Where the relay or the gateway
does not answer, nothing has come back, and the report stays in the queue.

Messages inside an encapsulated request are in the framing of known length:

>>> Request("GET", "https", "example.com", "/").encoded().hex()
'00034745540568747470730b6578616d706c652e636f6d012f000000'

Messages end with zero bytes of any number, so that all can be made of one length.
"""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from email.message import Message
from http.client import HTTPException
from typing import IO, NamedTuple
from urllib.parse import urlsplit

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from polyseme.device import hpke
from polyseme.kernel.errors import ChannelError

__all__ = [
    "ENVELOPE",
    "KEYS_TYPE",
    "REQUEST_TYPE",
    "RESPONSE_NONCE_BYTES",
    "RESPONSE_TYPE",
    "Encapsulated",
    "Headers",
    "KeyConfiguration",
    "Relayed",
    "Reply",
    "Request",
    "Response",
    "encapsulate",
    "padded",
    "posted",
    "read_configurations",
    "request_info",
    "require_address",
    "response_cipher",
    "wrapped",
]

Headers = tuple[tuple[str, str], ...]
"""Names in lower case, each with a value."""

_REQUEST, _RESPONSE = 0, 1


@dataclass(frozen=True)
class Request:
    """A request; its body is kept out of its repr."""

    method: str
    scheme: str
    authority: str
    path: str
    headers: Headers = ()
    body: bytes = field(default=b"", repr=False)

    def encoded(self) -> bytes:
        control = (self.method, self.scheme, self.authority, self.path)
        return _number(_REQUEST) + b"".join(_text(part) for part in control) + _rest(self.headers, self.body)

    @classmethod
    def decoded(cls, message: bytes) -> Request:
        reader = _Reader(message)
        reader.framing(_REQUEST)
        method, scheme, authority, path = (reader.text() for _ in range(4))
        return cls(method, scheme, authority, path, *reader.rest())


@dataclass(frozen=True)
class Response:
    """An answer; its body is kept out of its repr."""

    status: int
    headers: Headers = ()
    body: bytes = field(default=b"", repr=False)

    def encoded(self) -> bytes:
        return _number(_RESPONSE) + _number(self.status) + _rest(self.headers, self.body)

    @classmethod
    def decoded(cls, message: bytes) -> Response:
        reader = _Reader(message)
        reader.framing(_RESPONSE)
        status = reader.number()
        while 100 <= status < 200:
            reader.headers()
            status = reader.number()
        if not 200 <= status <= 599:
            raise _malformed("an impossible status code")
        return cls(status, *reader.rest())

    def header(self, name: str) -> str | None:
        """The first value under a name in lower case."""
        return next((value for key, value in self.headers if key == name), None)


def padded(message: bytes, size: int) -> bytes:
    """The message with zero bytes up to a size: its length does not reveal what is inside."""
    if len(message) > size:
        raise ChannelError(f"a message of {len(message):,} bytes does not fit the {size:,} that all are padded to")
    return message.ljust(size, b"\0")


def _number(value: int) -> bytes:
    """A whole number in 1, 2, 4 or 8 bytes (RFC 9000, section 16)."""
    for power, length in enumerate((1, 2, 4, 8)):
        if value < 1 << (8 * length - 2):
            return (power << (8 * length - 2) | value).to_bytes(length, "big")
    raise ChannelError("a message is too long to be encoded")


def _text(text: str) -> bytes:
    return _with_length(text.encode("latin-1", "strict"))


def _with_length(content: bytes) -> bytes:
    return _number(len(content)) + content


def _rest(headers: Headers, body: bytes) -> bytes:
    """Headers, content and no trailers."""
    return _with_length(b"".join(_text(part) for line in headers for part in line)) + _with_length(body) + _number(0)


class _Reader:
    """Takes a message apart from its beginning; whatever is missing at its end was empty."""

    def __init__(self, message: bytes) -> None:
        self._message, self._at = message, 0

    def framing(self, expected: int) -> None:
        if self.number() != expected:
            raise _malformed("not in the framing of known length")

    def number(self) -> int:
        first = self._take(1)
        value = int.from_bytes(first + self._take((1 << (first[0] >> 6)) - 1), "big")
        length = 1 << (first[0] >> 6)
        return value & ((1 << (8 * length - 2)) - 1)

    def text(self) -> str:
        return self._take(self.number()).decode("latin-1")

    def headers(self) -> Headers:
        lines = _Reader(self._take(self.number()))
        found = list[tuple[str, str]]()
        while not lines._ended():
            found.append((lines.text().lower(), lines.text()))
        return tuple(found)

    def rest(self) -> tuple[Headers, bytes]:
        headers = () if self._ended() else self.headers()
        body = b"" if self._ended() else self._take(self.number())
        if not self._ended():
            # Trailers: nothing here reads any.
            self.headers()
        if self._message[self._at :].strip(b"\0"):
            raise _malformed("something follows its end that is no padding")
        return headers, body

    def _ended(self) -> bool:
        return self._at == len(self._message)

    def _take(self, count: int) -> bytes:
        taken = self._message[self._at : self._at + count]
        if len(taken) < count:
            raise _malformed("cut short")
        self._at += count
        return taken


def _malformed(what: str) -> ChannelError:
    return ChannelError(f"a binary HTTP message cannot be read: {what}")


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
    """The configurations in an `application/ohttp-keys` document that we can use, in its order.

    At least one.
    """
    found = tuple(filter(None, map(_configuration, _counted(keys))))
    if not found:
        expected = "DHKEM(X25519, HKDF-SHA256), HKDF-SHA256 and AES-128-GCM"
        raise ChannelError(f"the gateway has no key for {expected}", "ask those who run the campaign for its keys")
    return found


def encapsulate(configuration: KeyConfiguration, message: bytes, once: X25519PrivateKey | None = None) -> Encapsulated:
    """Seal a binary HTTP request.

    `once` is a key pair from a test vector, otherwise a fresh one.
    """
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


_LONGEST_ANSWER = 1 << 20
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class Reply:
    """What the collector answered; header names in lower case."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Relayed:
    """Sealed for the collector, handed to the relay.

    relay  its address, from the campaign's document
    keys   the gateway's key configurations, from the campaign's document
    size   bytes of a padded report in this campaign: all requests have the same length
    """

    relay: str
    keys: bytes = field(repr=False)
    size: int
    timeout: float = 30.0

    def __post_init__(self) -> None:
        require_address(self.relay)
        if not self.keys:
            raise ChannelError(
                "the campaign names a relay but no key of the gateway behind it, so nothing can be sent",
                "those who run it put the gateway's key into the campaign's document",
            )
        read_configurations(self.keys)

    def post(self, url: str, body: bytes, media_type: str) -> Reply:
        """Post to the collector through the relay; raise `OSError` where nothing came back."""
        place = urlsplit(url)
        request = Request("POST", place.scheme, place.netloc, place.path, (("content-type", media_type),), body)
        sealed, opened = wrapped(self.keys, request, self.size)
        answer = posted(self.relay, REQUEST_TYPE, sealed, self.timeout)
        if answer.status != 200 or answer.header("content-type") != RESPONSE_TYPE:
            raise ConnectionError(f"the relay answered {answer.status} and brought nothing back from the gateway")
        try:
            inner = opened(answer.body)
        except ChannelError as error:
            raise ConnectionError(str(error)) from None
        return Reply(inner.status, dict(inner.headers))


def require_address(address: str) -> None:
    """Only encrypted connections, except on this machine."""
    place = urlsplit(address)
    if place.scheme == "https" and place.hostname:
        return
    if place.scheme == "http" and place.hostname in _LOOPBACK:
        return
    raise ChannelError("expected an address that begins with https://", "http:// is for tests on this machine only")


def posted(address: str, media_type: str, body: bytes, timeout: float) -> Response:
    """Post a body with no header that tells about the sender.

    Raise `OSError` where there is no answer.
    """
    headers = {"Content-Type": media_type, "User-Agent": "polyseme-device", "Accept": "*/*"}
    request = urllib.request.Request(address, body, headers, method="POST")  # noqa: S310 - see `require_address`
    try:
        with _opener.open(request, timeout=timeout) as answer:
            return _read(answer.status, answer.headers, answer)
    except urllib.error.HTTPError as refusal:
        with refusal:
            return _read(refusal.code, refusal.headers, refusal)
    except HTTPException as error:
        raise ConnectionError(f"the answer broke off: {type(error).__name__}") from None


def _read(status: int, headers: Message, content: IO[bytes]) -> Response:
    kept = tuple((name.lower(), value) for name, value in headers.items())
    return Response(status, kept, content.read(_LONGEST_ANSWER))


class _Stay(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: a relay could name the collector, which would then see the sender."""

    def redirect_request(self, *_: object) -> None:
        return None


_opener = urllib.request.build_opener(_Stay)
