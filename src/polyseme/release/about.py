"""What a release is called, and who answers for it: facts that its owner states, for people and not for programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import date as day
from typing import Any

__all__ = ["LONGEST", "About", "flaw_of"]

LONGEST = 200
"""Letters that a fact may have: it stands at the head of a page."""


@dataclass(frozen=True)
class About:
    """What the owner of a table says of it; empty where nothing was said.

    title      the name of the data set
    publisher  who answers for the release: a person or an office
    version    of the policy, in the owner's own counting
    date       of the release, as 2026-11-17
    """

    title: str = ""
    publisher: str = ""
    version: str = ""
    date: str = ""

    def __bool__(self) -> bool:
        return bool(self.to_dict())

    def to_dict(self) -> dict[str, str]:
        """The entry `about` of a manifest: what was said."""
        return {field.name: value for field in fields(self) if (value := getattr(self, field.name))}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> About:
        return cls(**document)


def flaw_of(name: str, text: str) -> str:
    """Why a text cannot be this fact, in words; empty when it can.

    >>> flaw_of("date", "17.11.2026"), flaw_of("title", "Incomes")
    ('expected a date such as 2026-11-17', '')
    """
    if not text.strip():
        return "expected some text"
    if len(text) > LONGEST:
        return f"longer than {LONGEST} letters"
    if not text.isprintable():
        return "expected one line of printable text"
    return "expected a date such as 2026-11-17" if name == "date" and not _is_day(text) else ""


def _is_day(text: str) -> bool:
    try:
        return day.fromisoformat(text).isoformat() == text
    except ValueError:
        return False
