"""Maximal-bucket first: the algorithm of the (l, e) paper, for comparison.

As long as l buckets have records, a group takes one record of each of the l largest. What remains joins any group that
it fits, and is suppressed otherwise. (The paper joins the nearest in quasi-identifiers; the first that fits is as good
for the count, and says nothing about them.)

Where similarity is not transitive there are no buckets: each value is one, and a group takes the largest that fit those
it has. Ties go to the smaller code.
"""

from __future__ import annotations

import heapq

import numpy as np

from polyseme.arrays import Bools, Ints
from polyseme.distances.structure import Clusters, Structure
from polyseme.methods.bucketization.places import Places
from polyseme.methods.bucketization.structures import compatible_pairs

__all__ = ["maximal_bucket_first"]


def maximal_bucket_first(counts: Ints, structure: Structure, l: int) -> Places:
    """From the records of each value."""
    kinds = structure.labels if isinstance(structure, Clusters) else np.arange(structure.size, dtype=np.int64)
    sizes = np.bincount(kinds, weights=counts, minlength=int(kinds.max(initial=-1)) + 1).astype(np.int64)
    present = np.flatnonzero(sizes)
    pairs = None if isinstance(structure, Clusters) else compatible_pairs(structure, present)
    groups, rest = _groups(sizes[present].tolist(), pairs, l)
    chosen = np.array(groups, dtype=np.int64).reshape(-1, l)
    members, owner = _joined(chosen, rest, pairs)
    return Places.of_members(kinds, present[members], owner, len(chosen), int(sizes.sum()), gap=None)


def _groups(sizes: list[int], pairs: Bools | None, l: int) -> tuple[list[list[int]], list[int]]:
    """The kinds of each group, and what is left of each kind."""
    heap = [(-size, kind) for kind, size in enumerate(sizes)]
    heapq.heapify(heap)
    groups: list[list[int]] = []
    left = [0] * len(sizes)
    while len(heap) >= l:
        chosen, aside = _next_group(heap, pairs, l)
        if len(chosen) == l:
            groups.append([kind for _, kind in chosen])
            back = [(size + 1, kind) for size, kind in chosen if size < -1]
        else:  # the largest finds no company, so it is the next one's turn
            size, kind = chosen[0]
            left[kind] = -size
            back = chosen[1:]
        for entry in (*back, *aside):
            heapq.heappush(heap, entry)
    for size, kind in heap:
        left[kind] = -size
    return groups, left


def _next_group(
    heap: list[tuple[int, int]], pairs: Bools | None, l: int
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    chosen: list[tuple[int, int]] = []
    aside: list[tuple[int, int]] = []
    while heap and len(chosen) < l:
        entry = heapq.heappop(heap)
        fits = pairs is None or all(pairs[entry[1], kind] for _, kind in chosen)
        (chosen if fits else aside).append(entry)
    return chosen, aside


def _joined(chosen: Ints, rest: list[int], pairs: Bools | None) -> tuple[Ints, Ints]:
    """The kind and the group of each place, with those that joined."""
    members, owner = [chosen.ravel()], [np.repeat(np.arange(len(chosen)), chosen.shape[1])]
    left = np.array(rest, dtype=np.int64)
    for kind in np.flatnonzero(left) if len(chosen) else ():
        # All groups at once: whether every place that a group has given so far fits this kind.
        given, groups = np.concatenate(members), np.concatenate(owner)
        against = given == kind if pairs is None else ~pairs[kind, given]
        joins = np.flatnonzero(np.bincount(groups[against], minlength=len(chosen)) == 0)[: left[kind]]
        members.append(np.full(len(joins), kind, dtype=np.int64))
        owner.append(joins)
    return np.concatenate(members), np.concatenate(owner)
