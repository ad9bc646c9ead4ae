"""Files with the secret keys of a channel: written, replaced and read; others must not be able to read them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from polyseme.errors import ChannelError
from polyseme.secret_files import write_once

__all__ = ["read_secret", "replace_secret", "write_secret"]


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
