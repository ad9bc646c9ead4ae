"""Which values a published label may stand for, read from the label alone: for those who have no hierarchy.

*, (missing)        any value; a missing one
[30, 35)  [18, 24]  from the first to the last, which is in or not; of numbers, or of dates as ISO 8601 writes them
81**                all that begin so
2024-03, 2020s      the days of a period
Norway              what the manifest lists for it, or the value itself
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

import numpy as np
import polars as pl

from polyseme.arrays import Bools
from polyseme.hierarchies.hierarchy import MISSING_LABEL, TOP
from polyseme.hierarchies.rules import PERIODS, Dates

__all__ = ["held_by"]

_RANGE = re.compile(r"\[(.+), (.+)([\])])")
_LEVEL = re.compile(r" \(level \d+\)$")


def held_by(label: str | None, leaves: pl.Series, listed: Mapping[str, Collection[str]]) -> Bools:
    """Whether each leaf, as it is spelled, may be shown with a label; a missing one is null.

    listed  what the manifest says that labels stand for

    >>> held_by("[30, 35)", pl.Series(["30", "34", "35", None]), {}).tolist()
    [True, True, False, False]
    """
    if label == TOP:
        return np.ones(len(leaves), dtype=np.bool_)
    if label is None or label == MISSING_LABEL:
        return leaves.is_null().to_numpy()
    plain = _LEVEL.sub("", label)
    if plain in listed:
        return _filled(leaves.is_in(list(listed[plain])))
    found = _filled(leaves == plain)
    for kind in (_in_range, _in_period, _beginning):
        found |= kind(plain, leaves)
    return found


def _filled(found: pl.Series) -> Bools:
    return found.fill_null(False).to_numpy().astype(np.bool_)


def _in_range(label: str, leaves: pl.Series) -> Bools:
    told = _RANGE.fullmatch(label)
    if told is None:
        return np.zeros(len(leaves), dtype=np.bool_)
    low, high, end = told.groups()
    numbers = leaves.cast(pl.Float64, strict=False)
    first, last = (pl.Series([text]).cast(pl.Float64, strict=False)[0] for text in (low, high))
    if first is None or last is None:
        return _filled((leaves >= low) & ((leaves <= high) if end == "]" else (leaves < high)))
    return _filled((numbers >= first) & ((numbers <= last) if end == "]" else (numbers < last)))


def _in_period(label: str, leaves: pl.Series) -> Bools:
    found = np.zeros(len(leaves), dtype=np.bool_)
    for period in PERIODS:
        found |= _filled(Dates((period,)).labels(leaves)[0] == label)
    return found


def _beginning(label: str, leaves: pl.Series) -> Bools:
    if not label.endswith(TOP):
        return np.zeros(len(leaves), dtype=np.bool_)
    return _filled(leaves.str.starts_with(label.rstrip(TOP)))
