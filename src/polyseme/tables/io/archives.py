"""Text tables that are compressed: known by their first bytes, read as streams and never unpacked onto the disk."""

from __future__ import annotations

import io
import os
from typing import BinaryIO, TextIO, cast

import pyarrow as pa

from polyseme.tables.io.places import Place, first_bytes, open_file, size_of

__all__ = ["compression_of", "is_damaged", "last_bytes", "likely_encoding", "open_bytes", "open_text"]

_FIRST_BYTES = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bz2"}
_CHUNK = 1 << 20


def compression_of(path: Place) -> str | None:
    """What a file is compressed with, whatever its name says; None where it is not."""
    first = first_bytes(path, 4)
    return next((name for mark, name in _FIRST_BYTES.items() if first.startswith(mark)), None)


def open_bytes(path: Place, compression: str | None) -> BinaryIO:
    """The content of a file, as a stream."""
    file = open_file(path)
    return cast("BinaryIO", file if compression is None else pa.CompressedInputStream(file, compression))


def open_text(path: Place, compression: str | None, encoding: str, errors: str = "strict") -> TextIO:
    """The content of a file as text; line ends stay as they are."""
    return io.TextIOWrapper(open_bytes(path, compression), encoding, errors, newline="")


def last_bytes(path: Place, compression: str | None, count: int) -> bytes:
    """The end of the content of a file; one that is compressed is read as a whole for it."""
    with open_bytes(path, compression) as file:
        if compression is None:
            file.seek(-min(count, size_of(path)), os.SEEK_END)
            return file.read()
        end = b""
        while chunk := file.read(_CHUNK):
            end = (end + chunk)[-count:]
    return end


def is_damaged(path: Place, compression: str | None) -> bool:
    """Whether a compressed file ends early, or does not have the content that its checksum speaks of."""
    if compression is None:
        return False
    try:
        with open_bytes(path, compression) as file:
            while file.read(_CHUNK):
                pass
    except (OSError, pa.ArrowException):
        return True
    return False


def likely_encoding(path: Place, compression: str | None) -> str | None:
    """The encoding in which a text that is not UTF-8 can be read as a whole, of those that most such texts have."""
    with open_bytes(path, compression) as file:
        marked = file.read(2) in (b"\xff\xfe", b"\xfe\xff")
    encoding = "utf-16" if marked else "cp1252"
    try:
        with open_text(path, compression, encoding) as text:
            while text.read(_CHUNK):
                pass
    except UnicodeError:
        return None
    return encoding
