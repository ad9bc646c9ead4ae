"""Rating (Liu, Jia and Han): each record's set is filled with values of other records.

The method publishes, for each attribute apart, a table of value sets and a table that points records to them. As the
sensitive quasi-identifier paper describes it, what matters is where the added values come from: not from the domain at
random but from other records, so frequent values are added often. Drawing records one after the other until l - 1 other
values have come up is drawing values without replacement in proportion to their counts.
"""

from __future__ import annotations

import numpy as np

from polyseme.distances.structure import Ints
from polyseme.errors import ImpossibleError
from polyseme.randomness import Stream

__all__ = ["rating"]

_CHUNK = 1 << 22


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
