"""How far apart a class's values are: closest pair, most distant values, heaviest ball.

All three are exact. They use the structure of the distance at the threshold where it helps (sorted neighbors on a
line or circle, labels of clusters) and look at pairs otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from polyseme.kernel.arrays import Bools, Floats, Ints
from polyseme.kernel.work import check_cancelled
from polyseme.semantics.distances.base import Circle, Clusters, Distance, Graph, Line
from polyseme.semantics.distances.circle import CircleDistance
from polyseme.semantics.distances.line import LineDistance
from polyseme.semantics.distances.tree import TreeDistance
from polyseme.tables.equivalence_classes import Counts, PublishedSets

__all__ = ["closest_pairs", "heaviest_balls", "largest_subsets"]

_CHUNK = 2_000_000
"""Pairs looked at in one go."""


def closest_pairs(subject: Counts | PublishedSets, distance: Distance) -> Floats:
    """The smallest distance between two different values of each class.

    Infinite for a single value.
    """
    closest = np.full(len(subject.first), np.inf)
    positions = _positions(distance)
    for rows, values, _ in subject.blocks():
        if values.shape[1] < 2:
            continue
        if positions is not None:
            # On a circle the last is the first one's neighbor too; elsewhere that pair does no harm.
            ordered = np.take_along_axis(values, np.argsort(positions[values], axis=1), axis=1)
            closest[rows] = distance.between(ordered, np.roll(ordered, -1, axis=1)).min(axis=1)
            continue
        for part in _parts(len(rows), values.shape[1]):
            block = values[part]
            for step in range(1, values.shape[1]):
                apart = distance.between(block[:, :-step], block[:, step:])
                closest[rows[part]] = np.minimum(closest[rows[part]], apart.min(axis=1))
    return closest


def _positions(distance: Distance) -> Floats | Ints | None:
    """An order in which no value is nearer than a neighbor, if there is one."""
    if isinstance(distance, LineDistance | CircleDistance):
        return distance.positions
    return distance.places if isinstance(distance, TreeDistance) and distance.measure == "ancestor" else None


def largest_subsets(subject: Counts, distance: Distance, l: int, d: float) -> Ints:
    """The size of the largest subset of each class's values that are pairwise at least d apart.

    At most l on graphs.
    """
    structure = distance.structure(d)
    largest = np.zeros(len(subject.first), dtype=np.int64)
    if isinstance(structure, Clusters):
        keys = np.unique(subject.owner * structure.count + structure.labels[subject.value])
        return np.bincount(keys // structure.count, minlength=len(largest))
    for rows, values, _ in subject.blocks():
        if isinstance(structure, Line):
            largest[rows] = _greedy_on_line(structure, values)
        elif isinstance(structure, Circle):
            largest[rows] = _greedy_on_circle(distance, d, _along(structure, values))
        else:
            largest[rows] = _cliques(structure, values, l)
    return largest


def heaviest_balls(counts: Counts, distance: Distance, d: float) -> Ints:
    """The most records of a class that lie nearer than d to one of its values."""
    structure = distance.structure(d)
    if isinstance(structure, Clusters):
        keys, inverse = np.unique(counts.owner * structure.count + structure.labels[counts.value], return_inverse=True)
        held = np.bincount(inverse, weights=counts.count).astype(np.int64)
        return np.maximum.reduceat(held, np.searchsorted(keys // structure.count, np.arange(len(counts.sizes))))
    if isinstance(structure, Line):
        return _windows(structure, counts)
    heaviest = np.zeros(len(counts.sizes), dtype=np.int64)
    for rows, values, count in counts.blocks():
        for part in _parts(len(rows), values.shape[1] ** 2):
            block = values[part]
            near = ~distance.compatible(block[:, :, None], block[:, None, :], d)
            near |= block[:, :, None] == block[:, None, :]
            heaviest[rows[part]] = (near * count[part][:, None, :]).sum(axis=2).max(axis=1)
    return heaviest


def _parts(rows: int, each: int) -> Iterator[slice]:
    step = max(1, _CHUNK // max(each, 1))
    return (slice(start, start + step) for start in range(0, rows, step))


def _along(structure: Line | Circle, values: Ints) -> Ints:
    """Each row of values in the order of the line or circle."""
    return structure.order[np.sort(_places(structure)[values], axis=1)]


def _places(structure: Line | Circle) -> Ints:
    places = np.empty(structure.size, dtype=np.int64)
    places[structure.order] = np.arange(structure.size)
    return places


def _greedy_on_line(structure: Line, values: Ints) -> Ints:
    """Taking the first value that is far enough, again and again, is optimal on a line."""
    places = np.sort(_places(structure)[values], axis=1)
    taken = np.zeros(len(places), dtype=np.int64)
    free = np.zeros(len(places), dtype=np.int64)
    for column in places.T:
        take = column >= free
        taken += take
        free = np.where(take, structure.ahead[column], free)
    return taken


def _greedy_on_circle(distance: Distance, d: float, values: Ints) -> Ints:
    """Greedy sets from each cut of the circle, whose end must stay clear of its start."""
    best = np.minimum(values.shape[1], np.ones(len(values), dtype=np.int64))
    for cut in range(values.shape[1]):
        start = values[:, cut]
        last, taken = start, np.ones(len(values), dtype=np.int64)
        for step in range(1, values.shape[1]):
            here = values[:, (cut + step) % values.shape[1]]
            take = distance.compatible(last, here, d) & distance.compatible(start, here, d)
            taken += take
            last = np.where(take, here, last)
        best = np.maximum(best, taken)
    return best


def _windows(structure: Line, counts: Counts) -> Ints:
    """Around each value, the records from the first place that is too close to the last one."""
    size, places = structure.size, _places(structure)
    order = np.lexsort((places[counts.value], counts.owner))
    place, owner = places[counts.value][order], counts.owner
    keys = owner * size + place
    running = np.concatenate(([0], np.cumsum(counts.count[order])))
    behind = np.searchsorted(structure.ahead, np.arange(size), side="right")
    high = running[np.searchsorted(keys, owner * size + structure.ahead[place])]
    low = running[np.searchsorted(keys, owner * size + behind[place])]
    return np.maximum.reduceat(high - low, counts.starts[:-1])


def _cliques(structure: Graph, values: Ints, l: int) -> Ints:
    """The largest clique in each row of values, at most l; equal rows are searched once."""
    unique, inverse = np.unique(values, axis=0, return_inverse=True)
    found = [_clique(structure.compatible[np.ix_(row, row)], l) for row in unique]
    return np.array(found, dtype=np.int64)[inverse.ravel()]


def _clique(adjacent: Bools, goal: int) -> int:
    """The size of the largest clique, or `goal` as soon as one of that size is found.

    Branch and bound: candidates are colored greedily, a clique takes at most one of each color, so a branch with too
    few colors cannot improve on the best clique so far.
    """
    neighbors = [sum(1 << int(v) for v in np.flatnonzero(row)) for row in adjacent]
    best = 0

    def grow(size: int, candidates: int) -> None:
        nonlocal best
        best = max(best, size)
        for vertex, colors in reversed(_colored(candidates, neighbors)):
            if best >= goal or size + colors <= best:
                return
            grow(size + 1, candidates & neighbors[vertex])
            candidates &= ~(1 << vertex)

    grow(0, (1 << len(neighbors)) - 1)
    return best


def _colored(candidates: int, neighbors: Sequence[int]) -> list[tuple[int, int]]:
    """The candidates with the number of colors used up to each of them."""
    ordered = []
    color = 0
    while candidates:
        check_cancelled()
        color += 1
        free = candidates
        while free:
            vertex = (free & -free).bit_length() - 1
            free &= ~(neighbors[vertex] | (1 << vertex))
            candidates &= ~(1 << vertex)
            ordered.append((vertex, color))
    return ordered
