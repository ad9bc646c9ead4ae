"""Which kinds share a group, and how often: closed forms, a linear program, the paper's way.

*Clusters and lines in closed form.* With g groups, at most g records of a cluster, or of a window of the line narrower
than d, can be placed. Let f(g) be the most records that can be placed under this rule:

    clusters  f(g) = sum over clusters of min(size, g)
    line      f(g) = what is placed when values are taken from one end to the other, as many of each as the rule admits

g groups of at least l records exist exactly if f(g) >= l g. Necessary, since each group takes at most one record of a
cluster or window. Sufficient, since the placed records in order (of clusters, of positions) can be assigned to the
groups in turn: two records of one group are g or more places apart, so they share no cluster and no window, and sizes
of groups differ by one at the most.

f is concave with f(0) = 0 (it is the value of a linear program whose right-hand side grows with g; its matrix of
intervals is totally unimodular, so whole numbers attain it). So f(g) / g falls, the condition holds up to some g* and
never after, and as f grows, g* is both the most groups and the least suppression. f(g*) < l (g* + 1), so that no group
has 2 l records.

*Similarity that is not transitive: the configuration linear program.*

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

*Maximal-bucket first*, the algorithm of the (l, e) paper, for comparison. As long as l buckets have records, a group
takes one record of each of the l largest. What remains joins any group that it fits, and is suppressed otherwise. (The
paper joins the nearest in quasi-identifiers; the first that fits is as good for the count, and says nothing about
them.) Where similarity is not transitive there are no buckets: each value is one, and a group takes the largest that
fit those it has. Ties go to the smaller code.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from polyseme.kernel.arrays import Bools, Floats, Ints
from polyseme.kernel.errors import ImpossibleError
from polyseme.methods.bucketization.seats import Places
from polyseme.semantics.distances.base import MATRIX_LIMIT, Circle, Clusters, Distance, Graph, Line, Structure

if TYPE_CHECKING:
    from scipy.sparse import csc_array

__all__ = [
    "SETS_LIMIT",
    "compatible_pairs",
    "dissimilar",
    "distinct",
    "largest_set",
    "maximal_bucket_first",
    "of_clusters",
    "of_line",
    "of_pairs",
]


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


def distinct(size: int) -> Clusters:
    """Anatomy: any two different values."""
    return Clusters(np.arange(size, dtype=np.int64))


def dissimilar(distance: Distance, e: float) -> Structure:
    """(l, e): values more than e apart.

    (l, d) is `distance.structure(d)`: values at least d apart.
    """
    return distance.structure(math.nextafter(e, math.inf))


def compatible_pairs(structure: Structure, values: Ints) -> Bools:
    """Whether any two of some values may share a group."""
    if len(values) > MATRIX_LIMIT:
        raise ImpossibleError(
            f"pairs of {len(values):,} values are too many to look at (limit {MATRIX_LIMIT:,})",
            "use a line, or a tree with the measure 'ancestor', which need no pairs",
        )
    if isinstance(structure, Graph):
        return structure.compatible[np.ix_(values, values)]
    if isinstance(structure, Clusters):
        return np.asarray(np.not_equal.outer(structure.labels[values], structure.labels[values]))
    place = np.argsort(structure.order)[values]
    low, high = np.minimum.outer(place, place), np.maximum.outer(place, place)
    if isinstance(structure, Line):
        return np.asarray(high >= structure.ahead[low])
    return np.asarray(_around(structure, low, high) & (low != high))


def _around(circle: Circle, low: Ints, high: Ints) -> Bools:
    if circle.spacing is not None:
        return np.asarray(np.minimum(high - low, circle.size - (high - low)) >= circle.spacing)
    straight = np.abs(circle.positions[high] - circle.positions[low])
    return np.asarray(np.minimum(straight, circle.length - straight) >= circle.threshold)


def largest_set(counts: Ints, structure: Structure, most: int) -> int:
    """How many of the values that occur may share a group at the most.

    `most` where there are as many.

    It is the largest l for which there is a group at all.
    """
    present = np.flatnonzero(counts)
    if isinstance(structure, Clusters):
        return min(most, len(np.unique(structure.labels[present])))
    if isinstance(structure, Line):
        return min(most, _along(structure, counts))
    return _grown(compatible_pairs(structure, present), most)


def _along(line: Line, counts: Ints) -> int:
    """The leftmost first, then the next that is far enough."""
    places = np.flatnonzero(counts[line.order])
    size, at = 0, 0
    while at < len(places):
        size += 1
        at = int(np.searchsorted(places, line.ahead[places[at]]))
    return size


def _grown(pairs: Bools, most: int) -> int:
    """By depth first, leaving out what cannot become larger than the largest so far."""
    best = 0

    def grow(size: int, open_: list[int]) -> None:
        nonlocal best
        best = max(best, size)
        for at, value in enumerate(open_):
            if best >= most or size + len(open_) - at <= best:
                return
            grow(size + 1, [other for other in open_[at + 1 :] if pairs[value, other]])

    grow(0, list(range(len(pairs))))
    return min(best, most)


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
class _Program:
    """Sets by kinds as columns (kinds, sets); what each counts for; and the records per kind."""

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
    program = _program(sets, records, l)
    times, gap = _solved(program)
    used = np.flatnonzero(times)
    return Places.of_sets(kinds, [sets[column] for column in used], times[used].tolist(), total, gap)


def _merged(pairs: Bools) -> tuple[Bools, Ints]:
    """Pairs of kinds, and the kind of each value.

    Values with equal rows exclude each other, since none is its own neighbor.
    """
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


def _program(sets: list[Ints], records: Ints, l: int) -> _Program:
    from scipy.sparse import csc_array

    sizes = np.array([len(members) for members in sets])
    starts = np.concatenate([[0], np.cumsum(sizes)])
    shape = (len(records), len(sets))
    columns = csc_array((np.ones(starts[-1]), np.concatenate(sets), starts), shape=shape)
    # There are at most records / l groups, so that all of them together count for less than half a record.
    return _Program(columns, sizes + 0.5 * l / (int(records.sum()) + l), records)


def _solved(program: _Program) -> tuple[Ints, int]:
    """How many groups each set makes, and the gap."""
    relaxed, bound = _relaxed(program)
    whole = np.floor(relaxed + _SLACK).astype(np.int64)
    times = _filled_up(program, whole)
    most = int(np.floor(bound + _SLACK))
    if program.placed(times) < most and len(times) <= _FEW:
        kept = np.maximum(whole - _FREE, 0)
        more, limit = _integer(program, program.left(kept))
        times = max(times, kept + more, key=program.placed)
        most = min(most, int(np.floor(limit + _SLACK))) if not kept.any() else most
    return times, max(0, most - program.placed(times))


def _filled_up(program: _Program, times: Ints) -> Ints:
    """More groups of what is left, the largest kinds first; then what fits joins a group."""
    times, left = times.copy(), program.left(times)
    sizes = program.sizes
    while True:
        possible = program.columns.T @ (left == 0).astype(np.float64) == 0
        if not possible.any():
            break
        best = int(np.argmax(np.where(possible, (program.columns.T @ left.astype(np.float64)) / sizes, -1.0)))
        times[best] += 1
        left -= program.columns[:, [best]].toarray()[:, 0].astype(np.int64)
    for kind in np.flatnonzero(left):
        _join(program, times, int(kind), int(left[kind]))
    return times


def _join(program: _Program, times: Ints, kind: int, records: int) -> None:
    """Extend groups of some sets by this kind, as long as records are left."""
    having = np.flatnonzero(program.columns[[kind]].toarray()[0])
    used = np.setdiff1d(np.flatnonzero(times), having)
    # What a set with the kind shares with a used one: all of the latter, and it is one larger.
    shared = (program.columns[:, used].T @ program.columns[:, having]).toarray()
    sizes = program.sizes[used][:, None]
    for one, other in np.argwhere((shared == sizes) & (program.sizes[having] == sizes + 1)):
        moved = min(records, int(times[used[one]]))
        times[used[one]] -= moved
        times[having[other]] += moved
        records -= moved


def _relaxed(program: _Program) -> tuple[Floats, float]:
    """The solution of the linear program, and a bound on its value."""
    from scipy.optimize import linprog

    price = np.zeros(len(program.records))
    gain = program.worth.copy()
    active = np.zeros(len(gain), dtype=bool)
    while True:
        waiting = np.where(active, -np.inf, gain)
        enter = np.argsort(-waiting, kind="stable")[:_AT_A_TIME]
        enter = enter[waiting[enter] > 1e-9]
        if not len(enter):
            break
        active[enter] = True
        columns = np.flatnonzero(active)
        matrix: Any = program.columns[:, columns]
        found = linprog(-program.worth[columns], matrix, program.records, method="highs")
        price = np.maximum(-found.ineqlin.marginals, 0.0)
        gain = program.worth - program.columns.T @ price
    # Weak duality: whatever the prices are, nothing is worth more than all records at them and the largest gain left.
    solution = np.zeros(len(gain))
    solution[columns] = found.x
    most = program.records.sum() * max(0.0, float(gain.max()))
    return solution, float(price @ program.records) + most


def _integer(program: _Program, left: Ints) -> tuple[Ints, float]:
    """Groups for what is left, by an integer program; and a bound on what they are worth."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    found = milp(
        -program.worth,
        constraints=LinearConstraint(program.columns, ub=left),
        integrality=np.ones(len(program.worth), dtype=np.int64),
        bounds=Bounds(0, np.inf),
        # Half a record decides nothing, and to prove more takes long.
        options={"node_limit": _NODES, "mip_rel_gap": 0.5 / max(1, int(left.sum()))},
    )
    bound = np.inf if found.mip_dual_bound is None else -float(found.mip_dual_bound)
    if found.x is None:
        return np.zeros(len(program.worth), dtype=np.int64), bound
    return np.rint(found.x).astype(np.int64), bound
