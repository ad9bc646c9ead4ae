"""Which classes are merged with which, at the least cost in records.

Every vulnerable class is in one pair, or has another action:

    minimize    sum of cost over the pairs and other actions that are taken
    subject to  every vulnerable class in exactly one of them, every other class in at most one pair

    cost(v, u) = (|v| + |u|) * loss(v + u) - |v| * loss(v) - |u| * loss(u)
    loss(E)    = mean over quasi-identifiers of (leaves of the cell - 1) / (leaves of the ladder - 1)

where
    |v|    records of class v
    v + u  what both show together: of each quasi-identifier the lowest group that holds both cells

The loss of a class is 0 where single values are shown and 1 where nothing is, so a suppressed record costs 1.

`exact` solves the integer program, `greedy` takes the cheapest that still fits, again and again. Greedy is not exact:
a class may take the partner that another one needs more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from polyseme.kernel.arrays import Floats, Ints
from polyseme.methods.microdata import Cells, Ladder, Microdata, Recoding

__all__ = ["Costs", "Covers", "Matching", "Options", "class_losses", "exact", "greedy", "match"]

_NOWHERE = -1


@dataclass(frozen=True, eq=False)
class Covers:
    """The groups of one ladder that hold the cells of a recoding.

    groups   at each level, the group that holds the whole cell; -1 where none does: (levels, cells)
    own      the loss of each cell
    widened  at each level, the loss of each group
    """

    groups: Ints = field(repr=False)
    own: Floats = field(repr=False)
    widened: tuple[Floats, ...] = field(repr=False)

    @classmethod
    def of(cls, ladder: Ladder, cells: Cells) -> Covers:
        groups = np.full((ladder.height + 1, len(cells.leaves)), _NOWHERE, dtype=np.int64)
        for place, leaves in enumerate(cells.leaves):
            for level, group in enumerate(ladder.groups):
                if len(leaves) and np.all(group[leaves] == group[leaves[0]]):
                    groups[level:, place] = [above[leaves[0]] for above in ladder.groups[level:]]
                    break
        scale = max(ladder.leaves - 1, 1)
        own = np.array([max(len(leaves) - 1, 0) / scale for leaves in cells.leaves])
        widened = tuple(
            (np.bincount(group, minlength=ladder.size(level)) - 1) / scale for level, group in enumerate(ladder.groups)
        )
        return cls(groups, own, widened)

    def with_each(self, one: int) -> Floats:
        """The loss of what a cell shows together with each cell."""
        loss = np.ones(len(self.own))
        for level in range(len(self.groups) - 1, -1, -1):
            group = self.groups[level, one]
            if group == _NOWHERE:
                break
            loss[self.groups[level] == group] = self.widened[level][group]
        loss[one] = self.own[one]
        return loss

    def level_of(self, one: int, other: int) -> int:
        """The lowest level at which one group holds both cells."""
        here, there = self.groups[:, one], self.groups[:, other]
        return int(np.argmax((here == there) & (here != _NOWHERE)))


def covers_of(data: Microdata, recoding: Recoding) -> tuple[Covers, ...]:
    return tuple(Covers.of(ladder, cells) for ladder, cells in zip(data.ladders, recoding.cells, strict=True))


def class_losses(data: Microdata, recoding: Recoding) -> Floats:
    """The loss of each class."""
    total = np.zeros(len(recoding.shown))
    for place, (ladder, cells) in enumerate(zip(data.ladders, recoding.cells, strict=True)):
        each = np.array([max(len(leaves) - 1, 0) for leaves in cells.leaves], dtype=np.float64)
        total += each[recoding.shown[:, place]] / max(ladder.leaves - 1, 1)
    return total / max(len(data.ladders), 1)


@dataclass(frozen=True, eq=False)
class Costs:
    """What merging any two classes of a recoding costs."""

    recoding: Recoding
    covers: tuple[Covers, ...]
    losses: Floats = field(repr=False)

    @classmethod
    def of(cls, data: Microdata, recoding: Recoding) -> Costs:
        return cls(recoding, covers_of(data, recoding), class_losses(data, recoding))

    def with_each(self, one: int) -> Floats:
        """Of merging a class with each class; nothing is known of itself."""
        shown, sizes = self.recoding.shown, self.recoding.sizes
        together = np.zeros(len(shown))
        for place, cover in enumerate(self.covers):
            together += cover.with_each(int(shown[one, place]))[shown[:, place]]
        together /= max(len(self.covers), 1)
        lost = sizes * self.losses
        cost = (sizes + sizes[one]) * together - lost - lost[one]
        return np.asarray(np.maximum(cost, 0.0))


_LARGEST = 50_000
"""Pairs up to which the program is solved: seconds at the most, usually milliseconds."""


@dataclass(frozen=True, eq=False)
class Options:
    """What can be chosen from.

    vulnerable  the classes that need an action
    pairs       of classes, the first of each vulnerable: (p, 2)
    costs       of the pairs: (p,)
    otherwise   what another action costs for each vulnerable class; infinite where there is none
    """

    vulnerable: Ints
    pairs: Ints = field(repr=False)
    costs: Floats = field(repr=False)
    otherwise: Floats = field(repr=False)

    @property
    def unaffordable(self) -> float:
        """More than everything else together: what it costs to leave a class as it is."""
        finite = self.otherwise[np.isfinite(self.otherwise)]
        dearest = max(self.costs.max(initial=0.0), finite.max(initial=0.0))
        return 1.0 + len(self.vulnerable) * float(dearest)

    @property
    def fallback(self) -> Floats:
        """What each vulnerable class costs without a partner."""
        return np.where(np.isfinite(self.otherwise), self.otherwise, self.unaffordable)


@dataclass(frozen=True, eq=False)
class Matching:
    """What was chosen.

    pairs  places in `Options.pairs`
    alone  places in `Options.vulnerable` of the classes without a partner
    cost   of everything; those that are left as they are cost `unaffordable`
    """

    pairs: Ints
    alone: Ints
    cost: float


def match(options: Options) -> Matching:
    """The least cost where the program is small enough, greedy where it is not."""
    found = greedy(options)
    if not len(options.pairs) or len(options.pairs) > _LARGEST or _uncontested(options, found):
        return found
    best = exact(options)
    return best if best is not None and best.cost < found.cost else found


def _uncontested(options: Options, found: Matching) -> bool:
    """Whether every class has its own cheapest action and none is shared: then it is optimal."""
    cheapest = options.fallback.copy()
    place = {int(index): number for number, index in enumerate(options.vulnerable)}
    for (one, other), cost in zip(options.pairs.tolist(), options.costs.tolist(), strict=True):
        for index in (one, other):
            if index in place:
                # A pair of two vulnerable classes may serve each of them for half.
                share = cost / 2 if one in place and other in place else cost
                cheapest[place[index]] = min(cheapest[place[index]], share)
    return bool(found.cost <= cheapest.sum() * (1 + 1e-12))


def greedy(options: Options) -> Matching:
    """The cheapest pair or action that still fits, until every vulnerable class has one."""
    place = {int(index): number for number, index in enumerate(options.vulnerable)}
    costs = np.concatenate((options.costs, options.fallback))
    used: set[int] = set()
    waiting = set(place)
    taken: list[int] = []
    alone: list[int] = []
    for option in np.argsort(costs, kind="stable").tolist():
        if not waiting:
            break
        if option >= len(options.pairs):
            index = int(options.vulnerable[option - len(options.pairs)])
            if index in waiting:
                alone.append(place[index])
                waiting.discard(index)
            continue
        one, other = options.pairs[option].tolist()
        fits = one in waiting and (other in waiting if other in place else other not in used)
        if fits:
            taken.append(option)
            used.add(other)
            waiting -= {one, other}
    return _matching(options, taken, alone)


def exact(options: Options) -> Matching | None:
    """The integer program's optimum; None where the solver gave up."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array

    count, number = len(options.pairs), len(options.vulnerable)
    if not number:
        return _matching(options, (), ())
    rows, row_of = np.unique(np.concatenate((options.pairs.ravel(), options.vulnerable)), return_inverse=True)
    columns = np.concatenate((np.repeat(np.arange(count), 2), count + np.arange(number)))
    matrix = csr_array((np.ones(len(columns)), (row_of.ravel(), columns)), shape=(len(rows), count + number))
    least = np.isin(rows, options.vulnerable).astype(np.float64)
    solved = milp(
        np.concatenate((options.costs, options.fallback)),
        constraints=LinearConstraint(matrix, least, np.ones(len(rows))),
        integrality=np.ones(count + number, dtype=np.int64),
        bounds=Bounds(0, 1),
        options={"mip_rel_gap": 0.0, "time_limit": 60.0},
    )
    if solved.status != 0 or solved.x is None:
        return None
    chosen = np.flatnonzero(solved.x > 0.5)
    return _matching(options, chosen[chosen < count].tolist(), (chosen[chosen >= count] - count).tolist())


def _matching(options: Options, taken: Sequence[int], alone: Sequence[int]) -> Matching:
    pairs, left = np.array(sorted(taken), dtype=np.int64), np.array(sorted(alone), dtype=np.int64)
    return Matching(pairs, left, float(options.costs[pairs].sum() + options.fallback[left].sum()))
