"""Rating (Liu, Luo and Huang 2011), in two of the ways in which it can be read.

The method publishes a table of value groups for each attribute and a table that points every record to one group for
each attribute. The sensitive quasi-identifier paper, which compares with it, says that it adds values of other records
instead of random ones, and that it flattens a table as much as random values do.

- `rating`: each record's set is filled with values of other records, so frequent values are added often. Drawing
  records one after the other until l - 1 other values have come up is drawing values without replacement in
  proportion to their counts. This keeps some of the distribution, more than the paper reports.
- `value_groups` and `rating_table`: the values of each attribute are parted into fixed groups of at least l, and
  records point to the group of their value. Within a group all values look alike, which flattens as the paper reports.

Comparisons with Rating mean the second; docs/decisions/rating.md says why.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from polyseme.arrays import Floats, Ints
from polyseme.errors import ImpossibleError
from polyseme.randomness import Stream

__all__ = ["rating", "rating_table", "value_groups"]

_CHUNK = 1 << 22
"""Numbers in memory at a time (32 MB)."""


def rating(codes: Ints, size: int, l: int, stream: Stream, counts: Ints | None = None) -> Ints:
    """A set of l values for each record: its own and l - 1 values of other records; (n, l), rows ascending.

    codes   the true values
    size    F, the number of values of the domain
    counts  how often each value occurs in the whole table, when `codes` are only a part of it
    """
    counts = np.bincount(codes, minlength=size) if counts is None else counts
    occurring = np.flatnonzero(counts)
    if l > len(occurring):
        raise ImpossibleError(
            f"Rating adds values of other records: {l} are asked for, {len(occurring)} different ones occur"
        )
    place = np.full(size, -1, dtype=np.int64)
    place[occurring] = np.arange(len(occurring))
    sets = np.empty((len(codes), l), dtype=np.int64)
    step = max(1, _CHUNK // len(occurring))
    for start in range(0, len(codes), step):
        part = codes[start : start + step]
        # The order of exponential waiting times with rates `counts` is the order of draws without replacement.
        waiting = -np.log1p(-stream.uniforms(len(occurring), len(part)).T) / counts[occurring]
        waiting[np.arange(len(part)), place[part]] = -1.0
        sets[start : start + step] = occurring[np.argpartition(waiting, l - 1, axis=1)[:, :l]]
    sets.sort(axis=1)
    return sets


def value_groups(counts: Ints, l: int) -> Ints:
    """The group of each value: l at a time from the most frequent on, so that alike counts stand together.

    Values left over join the last group.

    >>> value_groups(np.array([5, 90, 7, 80, 6]), 2).tolist()
    [1, 0, 1, 0, 1]
    """
    size = len(counts)
    if l > size:
        raise ImpossibleError(f"groups of {l} cannot be made of {size} values")
    labels = np.empty(size, dtype=np.int64)
    labels[np.argsort(-counts, kind="stable")] = np.minimum(np.arange(size) // l, size // l - 1)
    return labels


def rating_table(codes: Sequence[Ints], groups: Sequence[Ints]) -> Floats:
    """The cross-tabulation that group numbers show: the records of a combination of groups, spread evenly over it.

    codes   the true values of each attribute
    groups  the group of each value of each attribute
    """
    shape = tuple(int(group.max()) + 1 for group in groups)
    numbers = tuple(group[code] for group, code in zip(groups, codes, strict=True))
    records = np.bincount(np.ravel_multi_index(numbers, shape), minlength=int(np.prod(shape))).reshape(shape)
    table: Floats = records[np.ix_(*groups)].astype(np.float64)
    for axis, group in enumerate(groups):
        share = 1.0 / np.bincount(group)[group]
        table *= share.reshape([-1 if place == axis else 1 for place in range(len(groups))])
    return table
