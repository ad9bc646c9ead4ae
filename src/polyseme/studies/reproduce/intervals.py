"""Means and shares of repeated runs, with 95% intervals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import norm, t

from polyseme.arrays import Floats
from polyseme.studies.reproduce.study import Row

__all__ = ["mean_row", "ratio_row", "share_row", "wilson"]

_LEVEL = 0.975
"""Two-sided 95%."""


def mean_row(
    panel: str, measure: str, series: str, x: float | str, found: Sequence[float] | Floats, least: float | None = 0.0
) -> Row:
    """The mean over runs, with the interval of Student's t.

    least  what no value can be below: the lower limit is not either

    >>> row = mean_row("", "", "", 1, [1.0, 2.0, 3.0])
    >>> row.value, round(row.low, 3), round(row.high, 3)
    (2.0, 0.0, 4.484)
    """
    numbers = np.asarray(found, dtype=np.float64)
    middle, runs = float(numbers.mean()), len(numbers)
    if runs < 2:
        raise ValueError("an interval needs at least two runs")
    half = float(t.ppf(_LEVEL, runs - 1) * numbers.std(ddof=1) / np.sqrt(runs))
    low = middle - half if least is None else max(middle - half, least)
    return Row(panel, measure, series, x, middle, low, middle + half, runs)


def ratio_row(
    panel: str,
    measure: str,
    series: str,
    x: float | str,
    found: Sequence[float] | Floats,
    beside: Sequence[float] | Floats,
) -> Row:
    """The mean of one method over that of another on the same runs, with an interval that knows they are the same.

    It is the ratio estimate of survey sampling: its error is the mean of what each run is off the ratio.

    >>> row = ratio_row("", "", "", 1, [1.0, 2.0, 3.0], [2.0, 4.0, 6.0])
    >>> row.value, row.low, row.high
    (0.5, 0.5, 0.5)
    """
    ones, others = np.asarray(found, dtype=np.float64), np.asarray(beside, dtype=np.float64)
    middle = float(others.mean())
    ratio = float(ones.mean()) / middle
    off = mean_row(panel, measure, series, x, (ones - ratio * others) / middle, least=None)
    return Row(panel, measure, series, x, ratio, max(ratio + off.low, 0.0), ratio + off.high, off.repeats)


def wilson(hits: int, tries: int) -> tuple[float, float]:
    """The interval of Wilson for a share.

    >>> [round(limit, 4) for limit in wilson(0, 100)]
    [0.0, 0.037]
    """
    z = float(norm.ppf(_LEVEL))
    share, room = hits / tries, z * z / tries
    middle = (share + room / 2) / (1 + room)
    half = z * np.sqrt(share * (1 - share) / tries + room / (4 * tries)) / (1 + room)
    return max(float(middle - half), 0.0), min(float(middle + half), 1.0)


def share_row(panel: str, measure: str, series: str, x: float | str, hits: int, tries: int) -> Row:
    """A share of so many tries."""
    low, high = wilson(hits, tries)
    return Row(panel, measure, series, x, hits / tries, low, high, tries)
