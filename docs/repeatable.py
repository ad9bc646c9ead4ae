"""The command `polyseme` with random numbers that are the same in every run: for pages and pictures, never for data."""

from __future__ import annotations

import hashlib
import os
import sys
from itertools import count
from types import SimpleNamespace

from polyseme import randomness
from polyseme.cli import main

_asked = count()


def _drawn(size: int) -> bytes:
    """Depends on the command line, so that two releases have different decoys."""
    return hashlib.shake_256(f"{sys.argv[1:]} {next(_asked)}".encode()).digest(size)


if __name__ == "__main__":
    randomness.os = SimpleNamespace(**{**vars(os), "urandom": _drawn})
    randomness.secrets = SimpleNamespace(token_hex=lambda size: _drawn(size).hex())
    sys.exit(main())
