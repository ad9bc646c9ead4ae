"""Files with secret keys: readable by their owner only, written whole or not at all, never overwritten unasked."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from polyseme.errors import ChannelError

__all__ = ["read_secret", "replace_secret", "write_secret"]


def write_secret(file: Path, text: str) -> None:
    """Write a new file; refuse where there is one."""
    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise ChannelError(
            f"{file}: the file already exists", "a key that is overwritten cannot be recovered"
        ) from None
    try:
        with os.fdopen(handle, "w", encoding="ascii") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
    except BaseException:
        # Half a key would be taken for one, or stand in the way of the next attempt.
        file.unlink(missing_ok=True)
        raise


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
