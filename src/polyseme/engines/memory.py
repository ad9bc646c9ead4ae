"""How much memory the local engine may take, and how much of that rows may have while they wait for their turn."""

from __future__ import annotations

import re

from polyseme.errors import Problem, QuestionError

__all__ = ["bytes_of", "shuffling_memory"]

_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12} | {
    "KIB": 1 << 10,
    "MIB": 1 << 20,
    "GIB": 1 << 30,
    "TIB": 1 << 40,
}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?i?B)\s*", re.IGNORECASE)

FIXED = 448 << 20
"""What is taken whatever the table: Python and its libraries (160 MB), batches in several hands, fingerprints."""
COPIES = 2
"""Rows that wait are copied once when they are put in order."""
LEAST = 16 << 20
"""Less would mean very many small pieces."""


def bytes_of(size: str | int) -> int:
    """A size in bytes, given as such or as people write it.

    >>> bytes_of("2GB"), bytes_of("1.5 GiB"), bytes_of(1 << 30)
    (2000000000, 1610612736, 1073741824)
    """
    if isinstance(size, int) and not isinstance(size, bool):
        return size
    found = _SIZE.fullmatch(size) if isinstance(size, str) else None
    if found is None:
        raise QuestionError(
            Problem("memory", f"expected a size, got '{size}'", "a number with its unit, such as 2GB or 512MB")
        )
    return int(float(found[1]) * _UNITS[found[2].upper()])


def shuffling_memory(size: str | int) -> int:
    """What rows may take while they wait, so that the whole process stays below a size."""
    room = (bytes_of(size) - FIXED) // COPIES
    if room < LEAST:
        least = -(-(FIXED + COPIES * LEAST) // 10**6)
        raise QuestionError(
            Problem("memory", f"{size} is too little: the program itself needs {least} MB", f"--memory {least}MB")
        )
    return room
