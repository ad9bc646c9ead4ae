"""Invitations: codes that are handed to people, each good for one report or for one blind token.

A code has 19 random characters (94 bits) and one that catches every mistyped character and every two that changed
places. The collector keeps a hash of each; at 94 bits a hash does not reveal its code, so a plain one will do. Codes
are looked up by their hash: how long that takes says something about hashes, and nothing about codes.

What a store needs: one table, apart from the reports, with no column that leads to one:

    invitations (campaign, code, spent)   key (campaign, code); `code` is the 32 bytes of `code_hash`

Its rows are there before the first report and are never inserted with one, so their order says nothing. Spending is
`UPDATE ... SET spent = 1 WHERE campaign = ? AND code = ? AND spent = 0` in the transaction that stores the report, and
counts when it changed one row; a report that is there already under its id is answered before that. A withdrawn
report does not give its code back: nothing leads from one to the other.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterable, Sequence
from pathlib import Path

from polyseme.errors import ChannelError

__all__ = ["ALPHABET", "code_hash", "hash_lines", "new_codes", "read_code", "read_hashes"]

ALPHABET = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"
"""No 0 and O, no 1, I and L. A prime number of characters, which is what the last one of a code needs to be sure."""

_LENGTH, _GROUP = 20, 5
_HASH = re.compile(r"[0-9a-f]{64}")
_INVERSE = pow(_LENGTH, -1, len(ALPHABET))


def new_codes(count: int) -> list[str]:
    """Fresh codes, as they are handed out: four groups of five characters."""
    return [_new_code() for _ in range(count)]


def read_code(text: str) -> str | None:
    """A code as a respondent typed it, without the dashes between groups; None where it cannot be one.

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
    """What is stored of a code; None where the text cannot be one. A code of two campaigns has two hashes."""
    code = read_code(text)
    return None if code is None else hashlib.sha256(f"polyseme-invitation\n{campaign}\n{code}".encode()).digest()


def hash_lines(campaign: str, codes: Iterable[str]) -> str:
    """The hashes of codes as a text file, sorted: their order says nothing about who got which code."""
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
    """Zero for whole codes: each place has a weight of its own, none of them a multiple of the prime."""
    return sum(place * number for place, number in enumerate(numbers, 1)) % len(ALPHABET)
