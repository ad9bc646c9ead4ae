"""How a quasi-identifier may be generalized: a hierarchy, and what to change about it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import floor, log10

import numpy as np

from polyseme.kernel.errors import numbered
from polyseme.policy.drafting.observation import Looked
from polyseme.policy.drafting.roles import days_otherwise, taxonomy_of
from polyseme.semantics.distances.taxonomy import load_taxonomy

__all__ = ["Proposal", "propose", "weight_line"]

_STEPS = 16
"""Intervals that the finest level has, about, for nine tenths of the records; a judgment."""
_FEW = 6
"""Numbers of which there are so few are codes, and intervals would make no difference; a judgment."""
_LONGEST_CODE = 12
_EVERY_CHARACTER = 5
"""Codes up to this length lose one character at each level; longer ones would have too many levels."""
_MOST_STEPS = 1e15
_POSTCODE = re.compile(r"zip|post(al)?[ _-]?code|plz|postal", re.IGNORECASE)
_CODE = re.compile(r"(?=.*\d)[A-Za-z0-9.-]+")


@dataclass(frozen=True)
class Proposal:
    """What stands under `hierarchy`, why, and the number of levels, values and `*` included."""

    hierarchy: str
    why: str
    levels: int


def propose(column: Looked) -> Proposal:
    """A hierarchy that has a place for every value of the column."""
    for rule in (_taxonomy, _dates, _codes, _intervals):
        found = rule(column)
        if found is not None:
            return found
    return Proposal("suppress", _why_suppressed(column), 2)


def _taxonomy(column: Looked) -> Proposal | None:
    known = taxonomy_of(column)
    if known is None:
        return None
    levels = load_taxonomy(known.name).levels
    if not known.unknown and not column.many:
        return Proposal(f"{{taxonomy: {known.name}}}", f"it knows every value: {', '.join(levels)}", len(levels) + 1)
    some = numbered(known.unknown, "values") if known.unknown else "some values"
    why = f"{some} may be unknown to it, and count as other; see which: polyseme taxonomy check --show-values"
    return Proposal(f"{{taxonomy: {known.name}, unknown: other}}", why, len(levels) + 1)


def _dates(column: Looked) -> Proposal | None:
    if not column.dates:
        return None
    return Proposal("{dates: [month, year]}", "or more: quarter, decade", 4)


def _codes(column: Looked) -> Proposal | None:
    """Codes of one length, and postcodes, even where they were read as numbers."""
    post = _POSTCODE.search(column.name) is not None
    whole = column.numeric and column.integer
    length = max(len(str(int(column.high))), 1) if post and whole and column.finite else column.longest
    fixed = column.shortest == column.longest and not whole
    if not (post or fixed) or not 2 <= length <= _LONGEST_CODE or (column.numeric and not column.finite):
        return None
    if column.distinct <= _FEW or not _coded(column) or days_otherwise(column):
        return None
    lost = "; leading zeros may be lost: read the column as text" if post and whole else ""
    why = f"codes of {length} characters, masked from the end{lost}"
    if length <= _EVERY_CHARACTER:
        return Proposal(f"{{prefix: {length}}}", why, length + 1)
    lengths = [length * 3 // 4, length // 2, length // 4]
    return Proposal(f"{{prefix: {lengths}}}", why, len(lengths) + 2)


def _coded(column: Looked) -> bool:
    texts = [str(value).strip().replace(" ", "") for value in column.values]
    if column.numeric:
        return all(text.isdigit() for text in texts)
    return all(map(_CODE.fullmatch, texts))


def _intervals(column: Looked) -> Proposal | None:
    if not column.numeric or not column.finite or column.distinct <= _FEW:
        return None
    width = _width(column)
    if max(abs(column.low), abs(column.high)) > _MOST_STEPS * width:
        return None
    widths = [_plain(width * times) for times in (1, 2, 4)]
    why = "widths from the range of most values; if these are codes, not quantities: {prefix: 3}, or a file"
    return Proposal(f"{{intervals: [{', '.join(widths)}]}}", why, 5)


def _width(column: Looked) -> float:
    """A round width of which nine tenths of the numbers span about sixteen."""
    low, high = np.quantile(column.numbers, [0.05, 0.95])
    spread = float(high - low) or column.high - column.low
    raw = spread / _STEPS
    scale = 10.0 ** floor(log10(raw))
    whole = bool((column.numbers == np.floor(column.numbers)).all())
    marks = (2, 5, 10) if whole and scale <= 1 else (1, 2.5, 5, 10)
    return max(next(mark * scale for mark in marks if mark * scale >= raw), 2.0 if whole else 0.0)


def weight_line(column: Looked) -> str:
    """How a survey weight is made coarser, so that it tells fewer records apart."""
    step = _plain(_width(column)) if column.distinct > 1 else "1"
    return f"    round: {step}   # about {_STEPS} steps for nine tenths of the records; trim: LARGEST cuts outliers"


def _plain(width: float) -> str:
    """A width as a policy reads it as a number.

    >>> _plain(5.0), _plain(0.05), _plain(25000000.0)
    ('5', '0.05', '25000000')
    """
    if width >= 1:
        return f"{width:.12g}" if width < 1e12 else str(int(width))
    return f"{width:.{2 - floor(log10(width))}f}".rstrip("0")


def _why_suppressed(column: Looked) -> str:
    if days_otherwise(column):
        return "dates, not written as 2024-03-31: rewrite them so for {dates: [month, year]}"
    if column.numeric and not column.finite:
        return "numbers, some of them infinite or none at all: correct them for {intervals: [5, 10]}"
    if column.distinct <= _FEW:
        return "the value or nothing"
    return "the value or nothing; a file with groups of values keeps more: docs/hierarchies.md"
