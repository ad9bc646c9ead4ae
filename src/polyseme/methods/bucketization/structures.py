"""What may share a group, as the structures that distances have; and sets of values that may."""

from __future__ import annotations

import math

import numpy as np

from polyseme.arrays import Bools, Ints
from polyseme.distances.base import MATRIX_LIMIT, Distance
from polyseme.distances.structure import Circle, Clusters, Graph, Line, Structure
from polyseme.errors import ImpossibleError

__all__ = ["compatible_pairs", "dissimilar", "distinct", "largest_set"]


def distinct(size: int) -> Clusters:
    """Anatomy: any two different values."""
    return Clusters(np.arange(size, dtype=np.int64))


def dissimilar(distance: Distance, e: float) -> Structure:
    """(l, e): values more than e apart. (l, d) is `distance.structure(d)`: values at least d apart."""
    return distance.structure(math.nextafter(e, math.inf))


def compatible_pairs(structure: Structure, values: Ints) -> Bools:
    """Whether any two of some values may share a group."""
    if len(values) > MATRIX_LIMIT:
        raise ImpossibleError(
            f"pairs of {len(values):,} values are too many to look at (limit {MATRIX_LIMIT:,})",
            "use a line, or a tree with the measure 'ancestor', which need no pairs",
        )
    if isinstance(structure, Graph):
        return structure.compatible[np.ix_(values, values)]
    if isinstance(structure, Clusters):
        return np.asarray(np.not_equal.outer(structure.labels[values], structure.labels[values]))
    place = np.argsort(structure.order)[values]
    low, high = np.minimum.outer(place, place), np.maximum.outer(place, place)
    if isinstance(structure, Line):
        return np.asarray(high >= structure.ahead[low])
    return np.asarray(_around(structure, low, high) & (low != high))


def _around(circle: Circle, low: Ints, high: Ints) -> Bools:
    if circle.spacing is not None:
        return np.asarray(np.minimum(high - low, circle.size - (high - low)) >= circle.spacing)
    straight = np.abs(circle.positions[high] - circle.positions[low])
    return np.asarray(np.minimum(straight, circle.length - straight) >= circle.threshold)


def largest_set(counts: Ints, structure: Structure, most: int) -> int:
    """How many of the values that occur may share a group at the most; `most` where there are as many.

    It is the largest l for which there is a group at all.
    """
    present = np.flatnonzero(counts)
    if isinstance(structure, Clusters):
        return min(most, len(np.unique(structure.labels[present])))
    if isinstance(structure, Line):
        return min(most, _along(structure, counts))
    return _grown(compatible_pairs(structure, present), most)


def _along(line: Line, counts: Ints) -> int:
    """The leftmost first, then the next that is far enough."""
    places = np.flatnonzero(counts[line.order])
    size, at = 0, 0
    while at < len(places):
        size += 1
        at = int(np.searchsorted(places, line.ahead[places[at]]))
    return size


def _grown(pairs: Bools, most: int) -> int:
    """By depth first, leaving out what cannot become larger than the largest so far."""
    best = 0

    def grow(size: int, open_: list[int]) -> None:
        nonlocal best
        best = max(best, size)
        for at, value in enumerate(open_):
            if best >= most or size + len(open_) - at <= best:
                return
            grow(size + 1, [other for other in open_[at + 1 :] if pairs[value, other]])

    grow(0, list(range(len(pairs))))
    return min(best, most)
