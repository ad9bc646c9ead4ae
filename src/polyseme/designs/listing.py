"""Counting and listing valid sets, whatever the structure."""

from __future__ import annotations

from math import comb

import numpy as np

from polyseme.arrays import Bools, Ints
from polyseme.designs.base import SET_LIMIT
from polyseme.designs.ring import Ring, as_line, ring_of
from polyseme.distances.structure import Circle, Graph, Structure
from polyseme.errors import ImpossibleError

__all__ = ["compatibility", "compatible_sets", "count_sets", "list_sets"]


def count_sets(structure: Structure, l: int) -> int:
    """How many sets of `l` pairwise compatible values there are, exactly."""
    if isinstance(structure, Graph):
        return len(_cliques(structure, l))
    if isinstance(structure, Circle):
        return _count_circle(structure, l)
    line = as_line(structure)
    if np.array_equal(line.ahead, np.arange(1, line.size + 1)):
        return comb(line.size, l)
    # ways[k]: sets of r members that all stand at place k or later; Python integers, so nothing overflows
    ways = [1] * (line.size + 1)
    for _ in range(l):
        more = [0] * (line.size + 1)
        for place in range(line.size - 1, -1, -1):
            more[place] = more[place + 1] + ways[line.ahead[place]]
        ways = more
    return ways[0]


def _count_circle(circle: Circle, l: int) -> int:
    size = circle.size
    if circle.spacing is not None:
        room = size - l * (circle.spacing - 1)
        return size * comb(room, l) // room if room >= max(l, 1) else 0
    if l == 1:
        return size
    ring = ring_of(circle)
    total = 0
    for first in range(size):
        last = int(ring.behind[first + size])
        ways = [0] * (2 * size + 1)
        for place in range(last, first, -1):
            ways[place] = ways[place + 1] + 1
        for _ in range(l - 2):
            more = [0] * (2 * size + 1)
            for place in range(last, first, -1):
                more[place] = more[place + 1] + ways[min(int(ring.ahead[place]), 2 * size)]
            ways = more
        total += ways[min(int(ring.ahead[first]), 2 * size)]
    # Every set was counted once for each of its members.
    return total // l


def list_sets(structure: Structure, l: int) -> Ints:
    """All valid sets, rows ascending and in lexicographic order; refuses beyond `SET_LIMIT`."""
    if isinstance(structure, Graph):
        return _cliques(structure, l)
    count = count_sets(structure, l)
    if count > SET_LIMIT:
        raise ImpossibleError(
            f"{count:,} valid sets are too many to list (limit {SET_LIMIT:,})",
            "a smaller l or a larger d leaves fewer; sampling and the likelihoods of given sets need no list",
        )
    places = _walk(ring_of(structure), l)
    sets = np.sort(ring_of(structure).order[places], axis=1)
    return sets[np.lexsort(sets.T[::-1])]


def _walk(ring: Ring, l: int) -> Ints:
    """All valid sets as rows of places, by extending every partial set to the right."""
    count = len(ring.order)
    rows = np.arange(count, dtype=np.int64)[:, None]
    # Members stay within one turn, and the last one must be compatible with the first one a turn later.
    last = np.full(count, count - 1) if ring.anchored else np.minimum(ring.behind[np.arange(count) + count], count - 1)
    for _ in range(l - 1):
        start = ring.ahead[rows[:, -1]]
        choices = np.maximum(last[rows[:, 0]] + 1 - start, 0)
        parent = np.repeat(np.arange(len(rows)), choices)
        offset = np.arange(len(parent)) - np.repeat(np.cumsum(choices) - choices, choices)
        rows = np.concatenate([rows[parent], (start[parent] + offset)[:, None]], axis=1)
    return rows


def _cliques(graph: Graph, l: int) -> Ints:
    """All sets of `l` mutually compatible values, by extending each partial set with larger values."""
    rows = np.arange(graph.size, dtype=np.int64)[:, None]
    for _ in range(l - 1):
        pieces, total = [], 0
        for start in range(0, len(rows), 4096):
            block = rows[start : start + 4096]
            fits = np.arange(graph.size) > block[:, -1:]
            for column in range(block.shape[1]):
                fits &= graph.compatible[block[:, column]]
            parent, member = np.nonzero(fits)
            total += len(parent)
            if total > SET_LIMIT:
                raise ImpossibleError(
                    f"more than {SET_LIMIT:,} sets of compatible values: too many to list",
                    "a larger d or a smaller l leaves fewer; a line, a circle or a tree needs no list",
                )
            pieces.append(np.concatenate([block[parent], member[:, None]], axis=1))
        rows = np.concatenate(pieces) if pieces else np.empty((0, rows.shape[1] + 1), dtype=np.int64)
    return rows


def compatible_sets(structure: Structure, sets: Ints) -> Bools:
    """Whether each row holds distinct, mutually compatible values."""
    valid = np.ones(len(sets), dtype=bool)
    if isinstance(structure, Graph):
        for first in range(sets.shape[1]):
            for second in range(first):
                valid &= structure.compatible[sets[:, first], sets[:, second]]
        return valid
    ring = ring_of(structure)
    places = np.sort(ring.places(sets), axis=1)
    valid &= np.all(ring.ahead[places[:, :-1]] <= places[:, 1:], axis=1)
    if not ring.anchored:
        valid &= ring.ahead[places[:, -1]] <= places[:, 0] + ring.size
    return valid


def compatibility(structure: Structure) -> Bools:
    """Which pairs of values are compatible, as a matrix: for small domains."""
    if isinstance(structure, Graph):
        return structure.compatible
    ring = ring_of(structure)
    place = ring.places(np.arange(structure.size))
    low, high = np.minimum(place[:, None], place), np.maximum(place[:, None], place)
    together = ring.ahead[low] <= high
    if not ring.anchored:
        together &= ring.ahead[high] <= low + ring.size
    np.fill_diagonal(together, False)
    return together
