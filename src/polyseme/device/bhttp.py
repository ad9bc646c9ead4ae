"""HTTP messages as bytes (RFC 9292), in the framing of known length: what travels inside an encapsulated request.

>>> Request("GET", "https", "example.com", "/").encoded().hex()
'00034745540568747470730b6578616d706c652e636f6d012f000000'

Messages end with zero bytes of any number, so that all can be made of one length.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from polyseme.errors import ChannelError

__all__ = ["Headers", "Request", "Response", "padded"]

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
    """The message with zero bytes up to a size: what is inside cannot be told from its length."""
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
    return _counted(text.encode("latin-1", "strict"))


def _counted(content: bytes) -> bytes:
    return _number(len(content)) + content


def _rest(headers: Headers, body: bytes) -> bytes:
    """Headers, content and no trailers."""
    return _counted(b"".join(_text(part) for line in headers for part in line)) + _counted(body) + _number(0)


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
