"""Who has which of a group's values: probabilities over all ways to hand s values out to s records.

    P(pi) = prod_i w[i, pi(i)] / per(w),      q[i, j] = P(pi(i) = j)

where
    w   for each group how likely each record (row) has each value (column): (groups, s, s), positive
    pi  a permutation: record i has value pi(i)
    q   doubly stochastic: every record has one value, every value belongs to one record

Rows and columns of w may be scaled: the factors are the same for all permutations. `exact_marginals` is a sum over
subsets, s 2^s steps a group. `scaled_marginals` scales rows and columns of w until it is doubly stochastic itself
(Sinkhorn and Knopp, 1967), a mean-field approximation for any s.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from polyseme.arrays import Bools, Floats, Ints
from polyseme.kernel.work import check_cancelled

__all__ = ["EXACT", "exact_marginals", "log_permanents", "marginals", "scaled_marginals"]

EXACT = 10
"""Records of a group up to which all permutations are summed: 10 need some 10,000 steps a group, each further one twice
as many. Scaling is no match: with it the error of tables was 4 to 7 times as large, half that of the even spread."""

_ROOM = 1_000_000
"""Numbers in memory at a time: 8 MB, which stays in the processor's cache."""
_SWEEPS, _BALANCED = 500, 1e-10
"""When scaling stops: after so many sweeps, or when no row's sum is further from 1 than that."""


def marginals(weights: Floats) -> Floats:
    """Which record has which value, exactly for small groups: (groups, s, s)."""
    return exact_marginals(weights) if weights.shape[1] <= EXACT else scaled_marginals(weights)


def exact_marginals(weights: Floats) -> Floats:
    """The same by summing over all permutations.

    >>> exact_marginals(np.array([[[3.0, 1.0], [1.0, 1.0]]]))[0].tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    found = [_summed(weights[rows]) for rows in _pieces(len(weights), 2 ** (weights.shape[1] + 1))]
    return np.concatenate(found) if found else weights


def _summed(weights: Floats) -> Floats:
    """Forwards over the sets of values that the first records can have, and backwards over those of the last."""
    # Groups come last, so that each step is over long rows.
    even = np.ascontiguousarray(np.moveaxis(_even(weights), 0, -1))
    size, groups = even.shape[1:]
    members = (np.arange(2**size)[:, None] >> np.arange(size)) & 1
    taken = members.sum(axis=1)
    first, last = np.zeros((2, 2**size, groups))
    first[0] = last[-1] = 1.0
    for record in range(size):
        for value, before, after in _steps(members, taken == record):
            first[after] += first[before] * even[record, value]
    found = np.empty_like(even)
    for record in reversed(range(size)):
        for value, before, after in _steps(members, taken == record):
            gained = last[after] * even[record, value]
            last[before] += gained
            found[record, value] = (first[before] * gained).sum(axis=0)
    return np.asarray(np.moveaxis(found / last[0], -1, 0), dtype=np.float64)


def _steps(members: Ints, now: Bools) -> Iterator[tuple[int, Ints, Ints]]:
    """For each value, the sets that are held now and lack it, and the same sets with it."""
    for value in range(members.shape[1]):
        before = np.flatnonzero(now & (members[:, value] == 0))
        if before.size:
            yield value, before, before | (1 << value)


def _even(weights: Floats) -> Floats:
    """Rows and columns divided by their largest entries, so that products stay in range."""
    weights = weights / weights.max(axis=2, keepdims=True)
    return np.asarray(weights / weights.max(axis=1, keepdims=True), dtype=np.float64)


def scaled_marginals(weights: Floats) -> Floats:
    """The same approximately: rows and columns scaled in turn until all of them add up to 1."""
    found = _even(weights)
    rows = np.arange(len(found))
    for _ in range(_SWEEPS):
        check_cancelled()
        part = found[rows]
        part /= part.sum(axis=2, keepdims=True)
        columns = part.sum(axis=1, keepdims=True)
        found[rows] = part / columns
        rows = rows[np.abs(columns - 1.0).max(axis=(1, 2)) > _BALANCED]
        if not len(rows):
            break
    return found


def log_permanents(weights: Floats) -> Floats:
    """The logarithm of the sum over all permutations: (groups,). In large groups up to a constant, by scaling."""
    if weights.shape[1] > EXACT:
        # Scaling multiplies rows and columns, and the permanent of what is doubly stochastic hardly varies.
        return _along_the_diagonal(weights) - _along_the_diagonal(scaled_marginals(weights))
    pieces = (weights[rows] for rows in _pieces(len(weights), 2 ** (weights.shape[1] + 1)))
    return np.concatenate([np.zeros(0), *(_log_permanents(piece) for piece in pieces)])


def _log_permanents(weights: Floats) -> Floats:
    even = _even(weights)
    size = even.shape[1]
    members = (np.arange(2**size)[:, None] >> np.arange(size)) & 1
    sums = np.zeros((2**size, len(even)))
    sums[0] = 1.0
    for record in range(size):
        for value, before, after in _steps(members, members.sum(axis=1) == record):
            sums[after] += sums[before] * even[:, record, value]
    return np.asarray(np.log(sums[-1]) + _along_the_diagonal(weights) - _along_the_diagonal(even), dtype=np.float64)


def _along_the_diagonal(weights: Floats) -> Floats:
    """Where rows and columns are multiplied by factors, this grows by the logarithm of all of them."""
    return np.asarray(np.log(np.diagonal(weights, axis1=1, axis2=2)).sum(axis=1), dtype=np.float64)


def _pieces(groups: int, each: int) -> Iterator[slice]:
    step = max(1, _ROOM // each)
    for start in range(0, groups, step):
        yield slice(start, start + step)
