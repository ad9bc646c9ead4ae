"""Records in order of their kind, and within a kind in an order that is drawn.

One sort of whole words does both: the kind, then random bits, then the number of the record. Records of a kind that
drew the same bits are put in a fresh random order, so every order is equally likely, as if all had been shuffled first.
"""

from __future__ import annotations

import numpy as np

from polyseme.arrays import Ints
from polyseme.randomness import SystemStream

__all__ = ["shuffled_by_kind"]

_LEAST_BITS = 20
"""With fewer random bits too many records draw the same; then all are shuffled, and sorted by kind."""


def shuffled_by_kind(kinds: Ints, count: int, stream: SystemStream) -> Ints:
    """The records, kind by kind.

    >>> order = shuffled_by_kind(np.array([1, 0, 1, 0]), 2, SystemStream.seeded(1))
    >>> sorted(order[:2].tolist()), sorted(order[2:].tolist())
    ([1, 3], [0, 2])
    """
    for_kind, for_record = max(count - 1, 0).bit_length(), max(len(kinds) - 1, 0).bit_length()
    if for_kind + for_record + _LEAST_BITS > 64:
        order = stream.permutation(len(kinds))
        return order[np.argsort(kinds[order], kind="stable")]
    packed = stream.words(len(kinds))
    packed >>= np.uint64(for_kind)
    if for_kind:
        packed |= kinds.astype(np.uint64) << np.uint64(64 - for_kind)
    packed >>= np.uint64(for_record)
    packed <<= np.uint64(for_record)
    packed |= np.arange(len(kinds), dtype=np.uint64)
    packed.sort()
    order = (packed & np.uint64((1 << for_record) - 1)).astype(np.int64)
    packed >>= np.uint64(for_record)
    return _settled(order, packed[1:] == packed[:-1], stream)


def _settled(order: Ints, as_before: np.ndarray, stream: SystemStream) -> Ints:
    """Runs of records that drew the same bits, each in a random order. `as_before`: the same as the one in front."""
    if not as_before.any():
        return order
    tied = np.zeros(len(order), dtype=bool)
    tied[1:] |= as_before
    tied[:-1] |= as_before
    places = np.flatnonzero(tied)
    run = np.cumsum(np.concatenate([[True], ~as_before]))[places]
    fresh = stream.permutation(len(places))
    order[places] = order[places[fresh[np.argsort(run[fresh], kind="stable")]]]
    return order
