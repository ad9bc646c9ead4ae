"""Tables from groups whose values are known, but not who has which: Anatomy and buckets.

    L(x) = prod_g per( [x(c_i, v_j)] for i, j in g ),      x(c, v) <- sum_g sum_{i, j in g: c_i = c, v_j = v} q_g[i, j]

where
    x(c, v)  records of cell c with value v
    c_i      the cell of record i of group g, which is known
    v_j      the values of group g, which are known too
    q_g      which record has which value, given x: see below

The step on the right is expectation maximization; it starts from the even spread, q = 1/|g|. Each step keeps both
margins: the records of each cell, and the records of each value in the table, as they were published. The likelihood is
that of the cells given the values, each record's cell being drawn given its value: groups are made
from values only, so which records share a group says nothing else.

There are no errors. The inverse of the observed information is one, and so are repeats drawn from the fitted table, but
intervals made of them held the truth in 81% to 93% of cases at a level of 95%, because the fitted table is surer of who
has which value than the truth is. See the page on groups.

The probabilities q are over all ways to assign s values to s records:

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

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from polyseme.inference.classes.mixture import Trial, best_weight, folds_of, mixed, weight_of
from polyseme.inference.solver import fixed_point
from polyseme.kernel.arrays import Bools, Floats, Ints
from polyseme.kernel.work import check_cancelled

__all__ = [
    "EXACT",
    "Assigned",
    "Hand",
    "Permuted",
    "exact_marginals",
    "log_permanents",
    "marginals",
    "scaled_marginals",
]

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
    """Forward sums over value sets of the first records, backward sums over those of the last."""
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
    """The logarithm of the sum over all permutations: (groups,).

    In large groups up to a constant, by scaling.
    """
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
    """The sum of logarithms on the diagonal; scaling rows and columns adds the factors' logs."""
    return np.asarray(np.log(np.diagonal(weights, axis1=1, axis2=2)).sum(axis=1), dtype=np.float64)


def _pieces(groups: int, each: int) -> Iterator[slice]:
    step = max(1, _ROOM // each)
    for start in range(0, groups, step):
        yield slice(start, start + step)


_FLOOR = 1e-9
"""Records that a cell keeps, so that no permutation becomes impossible by rounding."""
_SLACK = 1.0
"""Log-likelihood of left-out groups that a weaker pull to the even spread may lose and still be preferred; a judgment,
the same as that of `shrink` for sets."""
_RANKED = 2_000
"""Values up to which it is checked whether the groups determine their numbers."""


@dataclass(frozen=True, eq=False)
class Hand:
    """Groups of equal size, identical ones together.

    cells   of the records of each group, ascending: (groups, s)
    values  of each group, ascending: (groups, s)
    counts  how many groups are alike: (groups,)
    """

    cells: Ints
    values: Ints
    counts: Ints

    @property
    def size(self) -> int:
        """Records of each group."""
        return int(self.cells.shape[1])

    @property
    def settled(self) -> Bools:
        """Whether nothing is open in each group: all cells are the same, or all values."""
        return np.asarray(_one(self.cells) | _one(self.values))

    def places(self, width: int) -> Ints:
        """Where each record with each value stands in the flattened table: (groups, s, s)."""
        return np.asarray(self.cells[:, :, None] * width + self.values[:, None, :], dtype=np.int64)

    def where(self, rows: Bools) -> Hand:
        """Some of the groups."""
        return Hand(self.cells[rows], self.values[rows], self.counts[rows])

    def times(self, counts: Ints) -> Hand:
        """Another number of each of the groups."""
        return Hand(self.cells, self.values, counts).where(counts > 0)


@dataclass(frozen=True, eq=False)
class Assigned:
    """Groups of all sizes, and tables of the records that they hold: (cells, width)."""

    hands: tuple[Hand, ...]
    cells: int
    width: int

    @cached_property
    def open_hands(self) -> tuple[Hand, ...]:
        """The groups in which it matters who has which value."""
        return tuple(hand.where(~hand.settled) for hand in self.hands)

    @property
    def is_open(self) -> bool:
        """Whether there are such groups."""
        return any(len(hand.counts) for hand in self.open_hands)

    @cached_property
    def _settled(self) -> Floats:
        """The table of the others, which is known."""
        return self._handed([hand.where(hand.settled) for hand in self.hands], _even_shares)

    @property
    def open(self) -> Bools:
        return np.asarray(self._handed(self.open_hands, _even_shares) > 0)

    def spread_evenly(self) -> Floats:
        return self._handed(self.hands, _even_shares)

    def step(self, table: Floats) -> Floats:
        """The table to expect when who has which value goes by another one."""
        flat = np.maximum(table, _FLOOR).ravel()
        return self._settled + self._handed(self.open_hands, lambda hand: marginals(flat[hand.places(self.width)]))

    def log_likelihood(self, table: Floats) -> float:
        """Of the cells given the values, when these go together as in a table of other groups."""
        # One more record of each value, which may be in any cell: what has not been seen is not impossible.
        anywhere = table.sum(axis=1, keepdims=True) / max(float(table.sum()), 1.0)
        likely = (table + anywhere) / (table.sum(axis=0) + 1.0)
        flat = np.maximum(likely, _FLOOR).ravel()
        # Also of groups of one cell: nothing is open in them, but that all their values came from it is news.
        found = [hand.counts @ log_permanents(flat[hand.places(self.width)]) for hand in self.hands]
        return float(sum(found))

    def _handed(self, hands: Sequence[Hand], shares: Callable[[Hand], Floats]) -> Floats:
        """The table when each record has each value of its group with these probabilities."""
        table = np.zeros(self.cells * self.width)
        for hand in hands:
            weights = shares(hand) * hand.counts[:, None, None]
            table += np.bincount(hand.places(self.width).ravel(), weights.ravel(), minlength=len(table))
        return table.reshape(self.cells, self.width)


@dataclass(frozen=True, eq=False)
class Permuted:
    """Records in groups.

    cell    of each record: (n,), 0 ... cells-1
    group   of each record: (n,)
    values  those of the groups, group by group in the order of their numbers: (n,), 0 ... width-1
    """

    cell: Ints
    group: Ints
    values: Ints
    cells: int
    width: int

    @cached_property
    def hands(self) -> tuple[Hand, ...]:
        """The groups, size by size."""
        sizes = np.bincount(self.group)
        starts = np.cumsum(sizes) - sizes
        cell = self.cell[np.lexsort((self.cell, self.group))]
        values = self.values[np.lexsort((self.values, np.repeat(np.arange(len(sizes)), sizes)))]
        found = []
        for size in np.unique(sizes[sizes > 0]):
            rows = starts[sizes == size][:, None] + np.arange(size)
            both, counts = _distinct(np.hstack([cell[rows], values[rows]]))
            found.append(Hand(both[:, :size], both[:, size:], counts))
        return tuple(found)

    @cached_property
    def assigned(self) -> Assigned:
        """The groups with the table that they make."""
        return Assigned(self.hands, self.cells, self.width)

    @property
    def open(self) -> Bools:
        """Whether some record may or may not belong to each place of the table: (cells, width)."""
        return self.assigned.open

    def spread_evenly(self) -> Floats:
        """Every record gets an equal part of every value of its group: (cells, width)."""
        return self.assigned.spread_evenly()

    def most_likely(self) -> tuple[Floats, bool]:
        """The table of the largest likelihood, and whether the steps converged."""
        even = self.spread_evenly()
        return fixed_point(self.assigned.step, even) if self.assigned.is_open else (even, True)

    def shrunk(self, strength: float | None = None) -> tuple[Floats, float, bool]:
        """The table between even spread and largest likelihood, its weight, and convergence.

        strength  in records; None takes the weight under which groups that were left out are most likely
        """
        even = self.spread_evenly()
        if not self.assigned.is_open:
            return even, 1.0, True
        weight = self._best_weight() if strength is None else weight_of(strength, float(even.sum()))
        table, converged = mixed(self.assigned.step, even, weight)
        return table, weight, converged

    def _best_weight(self) -> float:
        trials = []
        for held in zip(*(folds_of(hand.counts) for hand in self.hands)):
            rest = self._with([hand.counts - out for hand, out in zip(self.hands, held)])
            trials.append(Trial(rest.step, rest.spread_evenly(), self._with(held).log_likelihood))
        return best_weight(trials, _SLACK)

    def _with(self, counts: Sequence[Ints]) -> Assigned:
        """Other numbers of each of the groups."""
        hands = tuple(hand.times(times) for hand, times in zip(self.hands, counts))
        return Assigned(hands, self.cells, self.width)

    def remarks(self) -> list[str]:
        """What is approximate, and what the groups leave open."""
        found = []
        large = sum(int(hand.counts.sum()) for hand in self.assigned.open_hands if hand.size > EXACT)
        if large:
            found.append(
                f"{large:,} groups have more than {EXACT} records: who has which value is approximated there by scaling"
            )
        if 0 < self._occurring < _RANKED and self._rank < self._occurring:
            found.append(
                "which values share a group varies too little to tell all of them apart: what is left open is near the "
                "even spread"
            )
        return found

    @property
    def _occurring(self) -> int:
        return len(np.unique(self.values))

    @property
    def _rank(self) -> int:
        """The rank of the groups' lists of values; below their number, cell sums fix no table."""
        together = np.zeros((self.width, self.width))
        for hand in self.hands:
            pairs = hand.values[:, :, None] * self.width + hand.values[:, None, :]
            weights = np.broadcast_to(hand.counts[:, None, None], pairs.shape)
            counted = np.bincount(pairs.ravel(), weights.ravel(), minlength=self.width**2)
            together += counted.reshape(self.width, self.width)
        scale = np.sqrt(np.maximum(np.diag(together), 1.0))
        return int(np.linalg.matrix_rank(together / scale[:, None] / scale, tol=_FLOOR, hermitian=True))


def _even_shares(hand: Hand) -> Floats:
    return np.full((len(hand.counts), hand.size, hand.size), 1.0 / hand.size)


def _one(codes: Ints) -> Bools:
    """Whether all codes of a row are the same; rows ascend."""
    return np.asarray(codes[:, 0] == codes[:, -1])


def _distinct(rows: Ints) -> tuple[Ints, Ints]:
    """Distinct rows and how often each occurs."""
    order = np.lexsort(rows.T[::-1])
    ordered = rows[order]
    new = np.append(True, (ordered[1:] != ordered[:-1]).any(axis=1))
    starts = np.flatnonzero(new)
    return ordered[starts], np.diff(np.append(starts, len(rows)))
