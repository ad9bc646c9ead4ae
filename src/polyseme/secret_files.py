"""Files with secrets: readable by their owner only, written whole or not at all, never written over."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["reserve", "write_once"]


def reserve(file: Path) -> None:
    """Make an empty file for a program that would let everybody read what it makes; one that is there becomes private.

    What SQLite keeps beside a database has the permissions of the database.
    """
    handle = os.open(file, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        if os.name == "posix" and os.fstat(handle).st_mode & 0o077:
            os.fchmod(handle, 0o600)
    finally:
        os.close(handle)


def write_once(file: Path, text: str) -> None:
    """Write a new file; `FileExistsError` where there is one, or a link."""
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "w", encoding="ascii") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
    except BaseException:
        # Half a key would be taken for one, or stand in the way of the next attempt.
        file.unlink(missing_ok=True)
        raise
