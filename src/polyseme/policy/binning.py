"""Edges of bins that are found in the data. They are published, so none may speak of a single person.

- The outer edges are infinite: the first bin says "below", the last one "from here on", never how far the data reach.
- Every bin holds at least `FEWEST` records; edges that would leave fewer in a bin are left out.
- An inner edge is the roundest number within a stretch of at least that many records, or a multiple of a round step:
  it depends on where many records lie, and has no digits of any one of them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator

import numpy as np

from polyseme.arrays import Floats, Ints

__all__ = ["FEWEST", "equal_width_edges", "quantile_edges"]

FEWEST = 5
"""The fewest records in a bin that was made from them: the usual threshold for publishing a cell of a table."""
_SHIFT = 8
"""A quantile may move by this part of a bin to reach a round number."""
_STEPS = (10, 15, 20, 25, 30, 40, 50, 60, 80)
"""Tenths of a power of ten that are round enough for the width of a bin."""

_LEAST_POWER = -300
"""Smaller numbers have no place on any scale: floats run out of digits there."""


def quantile_edges(values: Floats, count: int) -> tuple[float, ...]:
    """Edges of at most `count` bins with about equally many of the finite `values` in each.

    >>> quantile_edges(np.arange(1000) + 0.123, 4)
    (-inf, 250.0, 500.0, 750.0, inf)
    """
    ordered = np.sort(values)
    total = len(ordered)
    cuts, count = _places_to_cut(ordered), min(count, total // FEWEST)
    if not len(cuts) or count < 2:
        return (-math.inf, math.inf)
    reach = max(FEWEST, total // (_SHIFT * count))
    edges = set()
    for number in range(1, count):
        wanted = number * total / count
        cut = int(cuts[np.argmin(np.abs(cuts - wanted))])
        low, high = max(cut - reach, FEWEST - 1), min(cut + reach - 1, total - FEWEST)
        edges.add(_roundest(float(ordered[low]), float(ordered[high]), float(ordered[cut])))
    return _filled(edges, ordered)


def equal_width_edges(values: Floats, count: int) -> tuple[float, ...]:
    """Edges of at most `count` bins of one round width, where the finite `values` are dense enough for it.

    >>> equal_width_edges(np.arange(1000) / 10.0, 10)
    (-inf, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, inf)
    """
    ordered = np.sort(values)
    count = min(count, len(ordered) // FEWEST)
    if not len(_places_to_cut(ordered)) or count < 2:
        return (-math.inf, math.inf)
    # The few records at either end decide nothing: one far away would make all other bins too wide.
    low, high = float(ordered[FEWEST - 1]), float(ordered[-FEWEST])
    edges = next(found for found in _evenly_cut(low, high, count) if len(found) < count)
    return _filled(edges, ordered)


def _places_to_cut(ordered: Floats) -> Ints:
    """Where a cut leaves enough records on both sides and goes between two different values."""
    places = np.flatnonzero(ordered[1:] > ordered[:-1]) + 1
    return places[(places >= FEWEST) & (places <= len(ordered) - FEWEST)]


def _filled(edges: Iterable[float], ordered: Floats) -> tuple[float, ...]:
    """The edges, from low to high, that leave enough records between each other, with open ends around them."""
    kept, before = [], 0
    for edge in sorted(edges):
        below = int(np.searchsorted(ordered, edge, side="left"))
        if min(below - before, len(ordered) - below) >= FEWEST:
            kept.append(edge)
            before = below
    return (-math.inf, *kept, math.inf)


def _roundest(low: float, high: float, wanted: float) -> float:
    """The number above `low` and up to `high` with the fewest digits; of several, the one nearest to `wanted`.

    >>> _roundest(17.31, 24.8, 21.0), _roundest(-0.00274, -0.00213, -0.0024), _roundest(-3.0, 8.0, 7.0)
    (20.0, -0.0025, 0.0)
    """
    if low < 0.0 <= high:
        return 0.0
    start = math.floor(math.log10(max(abs(low), abs(high)))) + 1
    for power in range(start, max(start - 18, _LEAST_POWER), -1):
        for digit in (5, 2, 1):
            fitting = [edge for edge in _multiples(digit, power, low, high) if low < edge <= high]
            if fitting:
                return min(fitting, key=lambda edge: abs(edge - wanted))
    return high  # as floats the two are neighbors, so that all records from the cut on have this one


def _evenly_cut(low: float, high: float, count: int) -> Iterator[list[float]]:
    """The multiples of rounder and rounder steps between two numbers; the first step makes about `count` bins."""
    width = max((high - low) / count, 10.0**_LEAST_POWER)
    if math.isinf(width):
        width = high / count - low / count
    for power in itertools.count(math.floor(math.log10(width)) - 1):
        for step in _STEPS:
            if float(f"{step}e{power}") >= width * (1 - 1e-9):
                yield sorted({edge for edge in _multiples(step, power, low, high) if low < edge < high})


def _multiples(step: int, power: int, low: float, high: float) -> Iterator[float]:
    """The multiples of `step` times ten to the `power` around an interval, each as the float of its decimal digits."""
    size = float(f"{step}e{power}")
    for number in range(math.floor(low / size), math.ceil(high / size) + 1):
        yield float(f"{number * step}e{power}")
