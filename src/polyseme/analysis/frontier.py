"""Risk against precision over the settings (l, d), and the settings nearest to one that does not work."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np

from polyseme.analysis.identifiability import spectrum
from polyseme.analysis.summary import Facts, facts
from polyseme.arrays import Floats
from polyseme.designs import make_design
from polyseme.distances.base import Distance
from polyseme.errors import ImpossibleError
from polyseme.kernel.work import tracked
from polyseme.mechanism import Mechanism

__all__ = ["Setting", "frontier", "nearest_settings", "thresholds"]

_PAIRS = 400
"""Values whose distances are looked at, and distances that are tried, in a large domain: chosen by judgment."""


@dataclass(frozen=True)
class Setting:
    """One pair (l, d): what it does, or why it cannot be had."""

    l: int
    d: float
    status: Literal["feasible", "infeasible", "unestimable"]
    facts: Facts | None = None
    reason: str = ""


def frontier(
    make: Callable[[int, float], Mechanism],
    ls: Iterable[int],
    ds: Iterable[float],
    records: int | None = None,
    prior: Floats | None = None,
) -> list[Setting]:
    """The facts of every setting of the grid.

    make  the mechanism of a setting; `ImpossibleError` when there is none
    """
    grid = list(product(ls, list(ds)))
    return [_setting(make, l, d, records, prior) for l, d in tracked(grid, "settings", "Trying settings")]


def _setting(
    make: Callable[[int, float], Mechanism], l: int, d: float, records: int | None, prior: Floats | None
) -> Setting:
    try:
        mechanism = make(l, d)
    except ImpossibleError as error:
        return Setting(l, d, "infeasible", reason=error.problems[0].what)
    found = facts(mechanism, prior, records)
    if found.identifiable is False:
        return Setting(l, d, "unestimable", found, "some values cannot be distinguished")
    return Setting(l, d, "feasible", found)


def thresholds(distance: Distance) -> list[float]:
    """The distances that occur, ascending; in a large domain those among some evenly chosen values."""
    codes = np.unique(np.linspace(0, distance.size - 1, min(distance.size, _PAIRS)).astype(np.int64))
    between = distance.between(codes[:, None], codes[None, :])
    found = np.unique(between[between > 0]).tolist()
    return [float(value) for value in found]


def nearest_settings(
    distance: Distance,
    l: int,
    d: float,
    name: str = "balanced",
    prior: Floats | None = None,
    sizes: Iterable[int] | None = None,
) -> list[tuple[int, float]]:
    """Settings that work, nearest first: for each l the largest d up to the asked one.

    sizes  the l to look at: from 2 to one more than asked

    A setting works when the design exists and no two values are confounded.
    """
    below = [value for value in thresholds(distance) if value < d]
    candidates = [d, *below[::-1]]
    if len(candidates) > 2 * _PAIRS:
        candidates = candidates[:: len(candidates) // _PAIRS]
    found: dict[tuple[int, float], float] = {}
    for size in range(2, l + 2) if sizes is None else sizes:
        if size > distance.size:
            continue
        reached = _largest(distance, size, candidates, name, prior)
        if reached is not None and (size, reached) != (l, d):
            found[size, reached] = abs(size - l) / l + (abs(reached - d) / d if d else 0.0)
    return sorted(found, key=lambda pair: (found[pair], -pair[0]))


def _largest(distance: Distance, l: int, candidates: list[float], name: str, prior: Floats | None) -> float | None:
    """The largest of the descending candidates at which a design of `l` exists and can be estimated from."""
    low, high = 0, len(candidates)
    # Fewer values are compatible at a larger d, so existence is monotone and found by bisection.
    while low < high:
        middle = (low + high) // 2
        if _make(distance, l, candidates[middle], name, prior) is None:
            low = middle + 1
        else:
            high = middle
    for candidate in candidates[low:]:
        mechanism = _make(distance, l, candidate, name, prior)
        if mechanism is not None and spectrum(mechanism).identifiable is not False:
            return candidate
    return None


def _make(distance: Distance, l: int, d: float, name: str, prior: Floats | None) -> Mechanism | None:
    try:
        return Mechanism(make_design(name, distance.structure(d), l, prior))
    except ImpossibleError:
        return None
