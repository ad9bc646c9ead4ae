"""Containment counts: how many reports contain each value, or each combination of values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from polyseme.distances.structure import Floats, Ints
from polyseme.estimators.base import Reports
from polyseme.mechanism import Mechanism

__all__ = ["containment", "distinct", "members", "shape_of"]

_CHUNK, _SPAN = 4_000_000, 1 << 18


def shape_of(mechanisms: Sequence[Mechanism]) -> tuple[int, ...]:
    """The shape of the table of the target attributes."""
    return tuple(mechanism.size for mechanism in mechanisms)


def members(sets: Sequence[Ints], shape: Sequence[int]) -> Ints:
    """Flat indices of all combinations of members of each row's sets: (n, l_1 * .. * l_q)."""
    flat = sets[0].astype(np.int64)
    for codes, size in zip(sets[1:], shape[1:]):
        width = flat.shape[1] * codes.shape[1]
        flat = (flat[:, :, None] * size + codes[:, None, :]).reshape(len(flat), width)
    return flat


def distinct(sets: Ints, size: int) -> tuple[Ints, Ints]:
    """The distinct rows of sets of codes below `size`, ascending, and which of them each row is."""
    if sets.shape[1] * np.log2(max(size, 2)) >= 62:
        rows, inverse = np.unique(sets, axis=0, return_inverse=True)
        return rows, inverse.ravel()
    key = np.zeros(len(sets), dtype=np.int64)
    for column in sets.T:
        key *= size
        key += column
    if np.all(key[1:] > key[:-1]):
        return sets, np.arange(len(sets))
    if size ** sets.shape[1] <= max(_SPAN, len(sets)):
        # Few enough sets are possible to look each of them up.
        seen = np.zeros(size ** sets.shape[1], dtype=bool)
        seen[key] = True
        first = np.empty(len(seen), dtype=np.int64)
        first[key] = np.arange(len(key))
        return sets[first[seen]], (np.cumsum(seen) - 1)[key]
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    return sets[first], inverse.ravel()


def containment(reports: Reports, mechanisms: Sequence[Mechanism]) -> Floats:
    """`w`: for each cell, how many reports contain each combination of values: (cells, F_1, .., F_q).

    where
        w[c, v_1, .., v_q]  = number of reports in cell c whose j-th set contains v_j for every j
    """
    shape = shape_of(mechanisms)
    table = int(np.prod(shape))
    out = np.zeros(reports.cells * table)
    width = int(np.prod([sets.shape[1] for sets in reports.sets]))
    step = max(1, _CHUNK // width)
    for start in range(0, len(reports.counts), step):
        rows = slice(start, start + step)
        flat = members([sets[rows] for sets in reports.sets], shape) + reports.cell[rows, None] * table
        weights = np.broadcast_to(reports.counts[rows, None], flat.shape).ravel()
        out += np.bincount(flat.ravel(), weights=weights, minlength=len(out))
    return out.reshape(reports.cells, *shape)
