"""Columns whose values are recognized: a built-in taxonomy knows them, or they are dates in a form of their own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from polyseme.distances.taxonomies import Coverage, check, taxonomy_names
from polyseme.policy.drafting.looking import Looked

__all__ = ["Recognised", "days_otherwise", "taxonomy_of"]

_NAMES: Mapping[str, re.Pattern[str]] = {
    "countries": re.compile(r"countr|nation|citizen"),
    "education": re.compile(r"educ|isced|school|degree"),
    "icd10": re.compile(r"icd|diagnos|disease|illness|condition"),
    "occupation": re.compile(r"isco|occup|job|profession"),
}
_DAY = re.compile(r"(\d{4}[./-]\d{1,2}[./-]\d{1,2}|\d{1,2}[./-]\d{1,2}[./-](\d{4}|\d{2}))([ T].*)?")
_SURE = 0.95
"""The share of different values that a taxonomy must know where the name of the column says nothing; a judgment."""
_LIKELY = 0.8
"""The same where the name of the column says so."""
_FEW = 4
"""Fewer different values may be in a taxonomy by accident."""


@dataclass(frozen=True)
class Recognised:
    """A taxonomy that knows most values of a column."""

    name: str
    coverage: Coverage

    @property
    def complete(self) -> bool:
        """Whether every value has a place of its own, as a distance needs it."""
        return self.coverage.complete

    @property
    def unknown(self) -> int:
        return len(self.coverage.unknown)


def taxonomy_of(column: Looked) -> Recognised | None:
    """The taxonomy that knows most of the values; None where none knows enough of them."""
    if column.dates or not column.values:
        return None
    values = [str(value).strip() for value in column.values]
    found = [
        Recognised(name, coverage)
        for name in taxonomy_names()
        if (needed := _needed(name, column)) is not None
        and len((coverage := check(name, values)).found) >= needed * len(values)
    ]
    return max(found, key=lambda item: len(item.coverage.found), default=None)


def _needed(name: str, column: Looked) -> float | None:
    """The share of values that must be known; None where it is not worth a look.

    Numbers of four digits are occupations only where the name says so.
    """
    if _NAMES[name].search(column.name.lower()):
        return _LIKELY
    return None if column.numeric or len(column.values) < _FEW else _SURE


def days_otherwise(column: Looked) -> bool:
    """Whether these are dates whose format has to be declared, such as 31.12.2024."""
    return column.text and all(_DAY.fullmatch(str(value).strip()) for value in column.values)
