"""Numbers of a report with their units."""

from __future__ import annotations

import math
from datetime import date, datetime

from polyseme.results.views.formats import NOTHING, count, quantity

__all__ = ["chance", "counted", "day", "moment"]

_ROUNDED = 0.0005
"""Shares nearer to nothing or to everything than this would be written as 0.0% or 100.0%."""


def chance(share: float | None) -> str:
    """How often something happens; never rounded to nothing or to certainty.

    >>> chance(1 / 3), chance(2.64e-4), chance(0.99999), chance(1.0), chance(None)
    ('33.3%', '0.026%', 'over 99.9%', '100%', '–')
    """
    if share is None or math.isnan(share):
        return NOTHING
    if 0.0 < share < _ROUNDED:
        return f"{quantity(100 * share, 2)}%"
    if 1.0 - _ROUNDED < share < 1.0 - 1e-9:
        return "over 99.9%"
    return "100%" if share >= 1.0 - 1e-9 else f"{share:.1%}"


def counted(number: float, thing: str, things: str = "") -> str:
    """How many there are of something.

    >>> counted(1, "record"), counted(1200, "record"), counted(2, "class", "classes")
    ('1 record', '1,200 records', '2 classes')
    """
    return f"{count(number)} {thing if round(number) == 1 else things or f'{thing}s'}"


def moment(text: str) -> str:
    """A moment as people write it, in the zone in which it was announced.

    >>> moment("2026-12-01T08:00:00+00:00"), moment("2026-12-01T08:00:00+01:00")
    ('1 December 2026, 08:00 UTC', '1 December 2026, 08:00 UTC+01:00')
    """
    found = datetime.fromisoformat(text)
    return f"{found.day} {found:%B %Y, %H:%M} {found.tzname()}"


def day(text: str) -> str:
    """A date as people write it.

    >>> day("2026-11-07"), day("")
    ('7 November 2026', '')
    """
    if not text:
        return ""
    found = date.fromisoformat(text)
    return f"{found.day} {found:%B %Y}"
