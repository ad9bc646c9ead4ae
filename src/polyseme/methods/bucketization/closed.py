"""Clusters and lines in closed form.

With g groups, at most g records of a cluster, or of a window of the line narrower than d, can be placed. Let f(g) be
the most records that can be placed under this rule:

    clusters  f(g) = sum over clusters of min(size, g)
    line      f(g) = what is placed when values are taken from one end to the other, as many of each as the rule admits

g groups of at least l records exist exactly if f(g) >= l g. Necessary, since each group takes at most one record of a
cluster or window. Sufficient, since the placed records in order (of clusters, of positions) can be dealt to the groups
in turn: two records of one group are g or more places apart, so they share no cluster and no window, and sizes of
groups differ by one at the most.

f is concave with f(0) = 0 (it is the value of a linear program whose right-hand side grows with g; its matrix of
intervals is totally unimodular, so whole numbers attain it). So f(g) / g falls, the condition holds up to some g* and
never after, and as f grows, g* is both the most groups and the least suppression. f(g*) < l (g* + 1), so that no group
has 2 l records.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from polyseme.arrays import Ints
from polyseme.distances.structure import Clusters, Line
from polyseme.methods.bucketization.places import Places

__all__ = ["of_clusters", "of_line"]


def of_clusters(counts: Ints, clusters: Clusters, l: int) -> Places:
    """From the records of each value."""
    sizes = np.bincount(clusters.labels, weights=counts, minlength=clusters.count).astype(np.int64)
    count = _most_groups(lambda g: int(np.minimum(sizes, g).sum()), int(sizes.sum()), l)
    return Places.in_turn(clusters.labels, np.minimum(sizes, count), count, int(sizes.sum()))


def of_line(counts: Ints, line: Line, l: int) -> Places:
    """From the records of each value."""
    along = counts[line.order]
    places = np.flatnonzero(along)
    sizes = along[places].tolist()
    ahead = np.searchsorted(places, line.ahead[places]).tolist()
    count = _most_groups(lambda g: sum(_placed(sizes, ahead, g)), sum(sizes), l)
    taken = np.zeros(line.size, dtype=np.int64)
    taken[places] = _placed(sizes, ahead, count)
    return Places.in_turn(np.argsort(line.order), taken, count, sum(sizes))


def _placed(sizes: list[int], ahead: list[int], groups: int) -> list[int]:
    """How many records of each value are placed, from one end to the other.

    What stands furthest on meets the most later values, so it is what gives way.
    """
    placed: list[int] = []
    first = within = 0
    for at, size in enumerate(sizes):
        while ahead[first] <= at:
            within -= placed[first]
            first += 1
        placed.append(min(size, groups - within))
        within += placed[-1]
    return placed


def _most_groups(placed: Callable[[int], int], records: int, l: int) -> int:
    low, high = 0, records // l
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if placed(middle) >= l * middle else (low, middle - 1)
    return low
