"""t-closeness: in every class the sensitive values are distributed nearly as in the whole table.

    EMD(p, q) <= t   for every class

where
    p    distribution of the sensitive values in the class
    q    distribution in the whole table (suppressed rows set aside)
    EMD  earth mover's distance; the cost of moving mass is given by a ground distance between values, at most 1:

    equal         1 between any two values:  EMD = sum of positive (p - q)
    ordered       |i - j| / (F - 1) between the i-th and j-th value:
                  EMD = sum_i |(p_1 - q_1) + .. + (p_i - q_i)| / (F - 1)
    hierarchical  height of the closest common ancestor / height of the tree:
                  EMD = sum over inner nodes of (height / H) * min(positive extra, negative extra)

`F` counts the values of the declared domain; without one, those that occur. With equal ground distances everything is
an exact ratio of integers; the other two are compared with a tolerance of 1e-12. All three take time proportional to
the number of different values per class, not to the domain.

Li, Li and Venkatasubramanian (2007).
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from polyseme.distances.structure import Floats, Ints
from polyseme.errors import PolicyError
from polyseme.models.base import TOLERANCE, Score, Verdict, judge, unchecked
from polyseme.tables.classes import Counts

__all__ = ["Ground", "check", "equal_distances", "hierarchical_distances", "ordered_distances"]

Ground = Literal["equal", "ordered", "hierarchical"]


def equal_distances(counts: Counts) -> Floats:
    """Total variation of each class from the whole, from an integer numerator and denominator."""
    sizes = counts.sizes[counts.owner]
    extra = np.maximum(counts.count * counts.records - counts.total[counts.value] * sizes, 0)
    return np.add.reduceat(extra, counts.starts[:-1]) / (counts.sizes * counts.records)


def ordered_distances(counts: Counts) -> Floats:
    """Sum of absolute differences of the cumulative distributions, over F - 1.

    The cumulative distribution of a class is constant between two of its values while that of the table rises, so each
    such stretch is one crossing point (binary search) and two differences of prefix sums.
    """
    F, classes = counts.domain_size, len(counts.sizes)
    if F == 1:
        return np.zeros(classes)
    whole = np.cumsum(counts.total) / counts.records
    prefix = np.concatenate(([0.0], np.cumsum(whole)))
    running = np.cumsum(counts.count)
    before = np.concatenate(([0], running))[counts.starts[:-1]]
    level = (running - before[counts.owner]) / counts.sizes[counts.owner]
    # A class has one stretch from 0 to its first value, at level 0, and one from each value to the next.
    last = counts.starts[1:] - 1
    stop = np.append(counts.value[1:], F)
    stop[last] = F
    stretches = _stretch(whole, prefix, level, counts.value, stop)
    leading = prefix[counts.value[counts.starts[:-1]]]
    return (np.add.reduceat(stretches, counts.starts[:-1]) + leading) / (F - 1)


def _stretch(whole: Floats, prefix: Floats, level: Floats, start: Ints, stop: Ints) -> Floats:
    """`sum |level - whole[i]|` for i from `start` to `stop - 1`, `whole` being non-decreasing with sums `prefix`."""
    cross = np.clip(np.searchsorted(whole, level), start, stop)
    below = level * (cross - start) - (prefix[cross] - prefix[start])
    above = (prefix[stop] - prefix[cross]) - level * (stop - cross)
    return below + above


def hierarchical_distances(counts: Counts, ancestors: Ints) -> Floats:
    """Cost of moving mass through the closest common ancestors.

    `ancestors[v, h]` is the node above value v at height h + 1; the last column is the root.

    A subtree without any record of the class only lacks mass, so the positive extra of a node comes from those of its
    children that the class has, and its negative extra follows from that and the node's own extra.
    """
    paths = np.column_stack([np.arange(counts.domain_size), _checked(ancestors, counts.domain_size)])
    height = paths.shape[1] - 1
    cost = np.zeros(len(counts.sizes))
    owner, node, mass = counts.owner, counts.value, counts.count / counts.sizes[counts.owner]
    whole = counts.total / counts.records
    for level in range(1, height + 1):
        child, parent = paths[:, level - 1], paths[:, level]
        size = int(parent.max()) + 1
        above = np.zeros(len(whole), dtype=np.int64)
        above[child] = parent
        positive = np.maximum(mass - whole[node], 0.0)
        keys, inverse = np.unique(owner * size + above[node], return_inverse=True)
        owner, node, mass = keys // size, keys % size, np.bincount(inverse, weights=mass).astype(np.float64)
        whole = np.bincount(parent, weights=counts.total, minlength=size) / counts.records
        gained = np.bincount(inverse, weights=positive)
        moved = np.minimum(gained, gained - (mass - whole[node]))
        cost += level / height * np.bincount(owner, weights=moved, minlength=len(cost))
    return cost


def _checked(ancestors: Ints, size: int) -> Ints:
    ancestors = np.asarray(ancestors, dtype=np.int64)
    if ancestors.ndim != 2 or len(ancestors) != size or ancestors.shape[1] == 0 or len(np.unique(ancestors[:, -1])) > 1:
        raise PolicyError(
            f"a hierarchy needs one path for each of the {size} values, all ending in one root",
            "write leaf first, root last, every path equally long",
        )
    for lower, upper in zip(ancestors.T[:-1], ancestors.T[1:], strict=True):
        if len(np.unique(np.stack([lower, upper]), axis=1).T) != len(np.unique(lower)):
            raise PolicyError("a node of the hierarchy has two parents", "give the node a different name on each path")
    return ancestors


def check(counts: Counts, t: float, ground: Ground = "equal", ancestors: Ints | None = None) -> Verdict:
    """Is every class within t of the whole table? The worst value is the largest distance."""
    parameters = {"t": t, "ground": ground}
    if ground == "hierarchical" and ancestors is None:
        return unchecked("closeness", counts.attribute, parameters, "no hierarchy of the values was given")

    def score() -> Score:
        if ground == "equal":
            value = equal_distances(counts)
            return Score(value, value <= t, t, at_least=False)
        if ground == "ordered":
            value = ordered_distances(counts)
        else:
            assert ancestors is not None  # noqa: S101 - for the type checker; seen to above
            value = hierarchical_distances(counts, ancestors)
        return Score(value, value <= t + TOLERANCE, t, at_least=False)

    return judge("closeness", counts.attribute, parameters, counts, counts.sizes, score)
