"""Similarity that is not transitive: the configuration linear program.

    maximize   sum over S of |S| y(S)     subject to     sum over S with v in S of y(S) <= n(v)   for every v,   y >= 0

where
    S     a set of l to 2 l - 1 kinds that may share a group; larger ones can be split
    y(S)  how many groups have just these kinds
    n(v)  records of kind v

Whole numbers y are groupings, so the value of the program bounds how many records can be placed. Columns enter as
their price says. Of the solution the whole parts stay; what is left over forms groups, largest kinds first, or joins
groups that it fits. If that misses the bound, and the sets are few, an integer program with a limit on its search
forms the last groups of each set again. `gap` is the bound, rounded down, minus what was placed.

Values with the same neighbors that may not share a group are one kind. Each set also counts for a little less than any
record, so that of equally good solutions the one with more groups is preferred.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csc_array

from polyseme.arrays import Bools, Floats, Ints
from polyseme.distances.structure import Structure
from polyseme.errors import ImpossibleError
from polyseme.methods.bucketization.places import Places
from polyseme.methods.bucketization.structures import compatible_pairs

__all__ = ["SETS_LIMIT", "of_pairs"]

SETS_LIMIT = 200_000
"""Most sets that are looked at, by judgment: some seconds."""
_AT_A_TIME = 200
"""Columns that enter the linear program in one go."""
_FREE = 2
"""Groups of each set that the integer program may form otherwise."""
_NODES = 200
"""Nodes that the integer program may look at; a limit in seconds would not give the same groups everywhere."""
_FEW = 2_000
"""Most sets for the integer program, whose time has no other limit than its nodes."""
_SLACK = 1e-6


@dataclass(frozen=True, eq=False)
class _Programme:
    """The sets by kinds, one column each: (kinds, sets); what each counts for; and the records of each kind."""

    columns: csc_array
    worth: Floats
    records: Ints

    @cached_property
    def sizes(self) -> Ints:
        """Kinds of each set."""
        return np.diff(self.columns.indptr).astype(np.int64)

    def placed(self, times: Ints) -> int:
        """Records in groups, if each set makes so many."""
        return int(self.sizes @ times)

    def left(self, times: Ints) -> Ints:
        """Records of each kind that are in none."""
        taken: Ints = np.rint(self.columns @ times).astype(np.int64)
        return self.records - taken


def of_pairs(counts: Ints, structure: Structure, l: int) -> Places:
    """From the records of each value."""
    present = np.flatnonzero(counts)
    pairs, kind = _merged(compatible_pairs(structure, present))
    kinds = np.zeros(len(counts), dtype=np.int64)
    kinds[present] = kind
    records = np.bincount(kind, weights=counts[present], minlength=len(pairs)).astype(np.int64)
    sets = _sets(pairs, l)
    total = int(counts.sum())
    if not sets:
        return Places.of_sets(kinds, [], [], total, 0)
    programme = _programme(sets, records, l)
    times, gap = _solved(programme)
    used = np.flatnonzero(times)
    return Places.of_sets(kinds, [sets[column] for column in used], times[used].tolist(), total, gap)


def _merged(pairs: Bools) -> tuple[Bools, Ints]:
    """Pairs of kinds, and the kind of each value. Equal rows exclude each other: none has itself for a neighbor."""
    _, first, kind = np.unique(pairs, axis=0, return_index=True, return_inverse=True)
    return pairs[np.ix_(first, first)], kind.astype(np.int64)


def _sets(pairs: Bools, l: int) -> list[Ints]:
    """All sets of l to 2 l - 1 kinds that may share a group, grown by one kind at a time."""
    later = np.triu(pairs)
    sets, open_ = np.arange(len(pairs))[:, None], later
    found: list[Ints] = [*sets] if l == 1 else []
    seen = len(sets)
    for size in range(2, 2 * l):
        seen += int(open_.sum())
        if seen > SETS_LIMIT or seen * len(pairs) > 500 * SETS_LIMIT:
            raise ImpossibleError(
                f"more than {SETS_LIMIT:,} sets of {l} to {2 * l - 1} of the {len(pairs):,} kinds of values "
                "may share a group: too many for the exact algorithm",
                "use the algorithm 'mbf', a distance that is a line or a tree with the measure 'ancestor', or broader "
                "values",
            )
        owner, kind = np.nonzero(open_)
        sets, open_ = np.column_stack([sets[owner], kind]), open_[owner] & later[kind]
        found += [*sets] if size >= l else []
    return found


def _programme(sets: list[Ints], records: Ints, l: int) -> _Programme:
    sizes = np.array([len(members) for members in sets])
    starts = np.concatenate([[0], np.cumsum(sizes)])
    shape = (len(records), len(sets))
    columns = csc_array((np.ones(starts[-1]), np.concatenate(sets), starts), shape=shape)
    # There are at most records / l groups, so that all of them together count for less than half a record.
    return _Programme(columns, sizes + 0.5 * l / (int(records.sum()) + l), records)


def _solved(programme: _Programme) -> tuple[Ints, int]:
    """How many groups each set makes, and the gap."""
    relaxed, bound = _relaxed(programme)
    whole = np.floor(relaxed + _SLACK).astype(np.int64)
    times = _filled_up(programme, whole)
    most = int(np.floor(bound + _SLACK))
    if programme.placed(times) < most and len(times) <= _FEW:
        kept = np.maximum(whole - _FREE, 0)
        more, limit = _integer(programme, programme.left(kept))
        times = max(times, kept + more, key=programme.placed)
        most = min(most, int(np.floor(limit + _SLACK))) if not kept.any() else most
    return times, max(0, most - programme.placed(times))


def _filled_up(programme: _Programme, times: Ints) -> Ints:
    """More groups of what is left, the largest kinds first; then what fits joins a group."""
    times, left = times.copy(), programme.left(times)
    sizes = programme.sizes
    while True:
        possible = programme.columns.T @ (left == 0).astype(np.float64) == 0
        if not possible.any():
            break
        best = int(np.argmax(np.where(possible, (programme.columns.T @ left.astype(np.float64)) / sizes, -1.0)))
        times[best] += 1
        left -= programme.columns[:, [best]].toarray()[:, 0].astype(np.int64)
    for kind in np.flatnonzero(left):
        _join(programme, times, int(kind), int(left[kind]))
    return times


def _join(programme: _Programme, times: Ints, kind: int, records: int) -> None:
    """Groups of some sets become groups of sets that have this kind in addition, as long as records are left."""
    having = np.flatnonzero(programme.columns[[kind]].toarray()[0])
    used = np.setdiff1d(np.flatnonzero(times), having)
    # What a set with the kind shares with a used one: all of the latter, and it is one larger.
    shared = (programme.columns[:, used].T @ programme.columns[:, having]).toarray()
    sizes = programme.sizes[used][:, None]
    for one, other in np.argwhere((shared == sizes) & (programme.sizes[having] == sizes + 1)):
        moved = min(records, int(times[used[one]]))
        times[used[one]] -= moved
        times[having[other]] += moved
        records -= moved


def _relaxed(programme: _Programme) -> tuple[Floats, float]:
    """The solution of the linear program, and a bound on its value."""
    from scipy.optimize import linprog

    price = np.zeros(len(programme.records))
    gain = programme.worth.copy()
    active = np.zeros(len(gain), dtype=bool)
    while True:
        waiting = np.where(active, -np.inf, gain)
        enter = np.argsort(-waiting, kind="stable")[:_AT_A_TIME]
        enter = enter[waiting[enter] > 1e-9]
        if not len(enter):
            break
        active[enter] = True
        columns = np.flatnonzero(active)
        matrix: Any = programme.columns[:, columns]
        found = linprog(-programme.worth[columns], matrix, programme.records, method="highs")
        price = np.maximum(-found.ineqlin.marginals, 0.0)
        gain = programme.worth - programme.columns.T @ price
    # Weak duality: whatever the prices are, nothing is worth more than all records at them and the largest gain left.
    solution = np.zeros(len(gain))
    solution[columns] = found.x
    most = programme.records.sum() * max(0.0, float(gain.max()))
    return solution, float(price @ programme.records) + most


def _integer(programme: _Programme, left: Ints) -> tuple[Ints, float]:
    """Groups for what is left, by an integer program; and a bound on what they are worth."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    found = milp(
        -programme.worth,
        constraints=LinearConstraint(programme.columns, ub=left),
        integrality=np.ones(len(programme.worth), dtype=np.int64),
        bounds=Bounds(0, np.inf),
        # Half a record decides nothing, and to prove more takes long.
        options={"node_limit": _NODES, "mip_rel_gap": 0.5 / max(1, int(left.sum()))},
    )
    bound = np.inf if found.mip_dual_bound is None else -float(found.mip_dual_bound)
    if found.x is None:
        return np.zeros(len(programme.worth), dtype=np.int64), bound
    return np.rint(found.x).astype(np.int64), bound
