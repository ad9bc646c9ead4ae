"""Merging: two classes show the lowest groups that hold the cells of both. Local recoding, so other classes stay."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from polyseme.arrays import Floats, Ints
from polyseme.methods.goal import Goal
from polyseme.methods.microdata import SUPPRESSED, Cells, Ladder, Microdata, Recoding
from polyseme.methods.rules.costs import Costs
from polyseme.methods.rules.matching import Options
from polyseme.methods.rules.state import State

__all__ = ["keeps", "merged", "options_of"]

_NEAREST = 200
"""Partners of each kind that a vulnerable class chooses from: all that can matter with up to 200 vulnerable ones."""


def options_of(state: State, vulnerable: Ints, otherwise: Floats, barred: Collection[tuple[int, int]] = ()) -> Options:
    """The pairs that leave no rule effective, with their costs.

    Of classes that are not vulnerable each vulnerable one needs to know only as many of the cheapest as there are
    vulnerable ones: the others cannot take them all. Where these are very many, `_NEAREST` must do for each.
    """
    costs, told = Costs.of(state.data, state.recoding), state.told
    at_risk = np.zeros(len(state.recoding.shown), dtype=np.bool_)
    at_risk[vulnerable] = True
    pairs: list[Ints] = [np.zeros((0, 2), dtype=np.int64)]
    found: list[Floats] = [np.zeros(0)]
    for one in vulnerable.tolist():
        fits = told.fitting(one)
        # A pair of two vulnerable classes is listed once.
        fits[: one + 1] &= ~at_risk[: one + 1]
        for pair in barred:
            if one in pair:
                fits[list(pair)] = False
        cost = costs.with_each(one)
        most = min(len(vulnerable), _NEAREST)
        safe = _cheapest(np.flatnonzero(fits & ~at_risk), cost, most)
        others = np.sort(np.concatenate((safe, _cheapest(np.flatnonzero(fits & at_risk), cost, most))))
        pairs.append(np.column_stack((np.full(len(others), one), others)))
        found.append(cost[others])
    return Options(vulnerable, np.concatenate(pairs), np.concatenate(found), otherwise)


def _cheapest(classes: Ints, cost: Floats, most: int) -> Ints:
    if len(classes) <= most:
        return classes
    return np.asarray(classes[np.argpartition(cost[classes], most - 1)[:most]])


def merged(data: Microdata, recoding: Recoding, pairs: Sequence[tuple[int, int]]) -> Recoding:
    """The recoding after some pairs of classes were merged; classes that then show the same are one."""
    costs = Costs.of(data, recoding)
    number = np.arange(len(recoding.shown))
    shown = recoding.shown.copy()
    cells = list(recoding.cells)
    for place, ladder in enumerate(data.ladders):
        for one, other in pairs:
            mine, theirs = (int(recoding.shown[index, place]) for index in (one, other))
            if mine != theirs:
                level = costs.covers[place].level_of(mine, theirs)
                group = int(costs.covers[place].groups[level, mine])
                cells[place], shown[one, place] = _with_group(cells[place], ladder, level, group)
    for one, other in pairs:
        number[other] = one
    return _joined(replace(recoding, shown=shown, cells=tuple(cells), levels=()), number)


def _with_group(cells: Cells, ladder: Ladder, level: int, group: int) -> tuple[Cells, int]:
    """The cells with a group of the ladder among them, and its place."""
    label, leaves = ladder.labels[level][group], np.flatnonzero(ladder.groups[level] == group)
    if label in cells.labels:
        # What is read as the same cell is the same cell, whatever it was made from.
        place = cells.labels.index(label)
        both = np.union1d(cells.leaves[place], leaves)
        return Cells(cells.labels, (*cells.leaves[:place], both, *cells.leaves[place + 1 :])), place
    return Cells((*cells.labels, label), (*cells.leaves, leaves)), len(cells.labels)


def _joined(recoding: Recoding, number: Ints) -> Recoding:
    """Records of class i go to class `number[i]`; classes with the same cells become one."""
    left = np.unique(number)
    shown, same = np.unique(recoding.shown[left], axis=0, return_inverse=True)
    place = np.zeros(len(number), dtype=np.int64)
    place[left] = same.ravel()
    final = np.append(place[number], SUPPRESSED)
    return replace(recoding, classes=final[recoding.classes], shown=shown)


def keeps(goal: Goal, recoding: Recoding, pair: tuple[int, int]) -> bool:
    """Whether two classes that are merged reach the goal; a goal that is additive is always kept."""
    goal = goal.unmapped
    if goal.additive:
        return True
    rows = np.flatnonzero(np.isin(recoding.classes, pair))
    if goal.relative:
        inside = np.isin(recoding.classes, pair).astype(np.int64)
        return bool(goal.fine(*goal.counted(inside, 2))[1])
    return bool(goal.fine(*goal.counted(np.zeros(len(rows), dtype=np.int64), 1, rows)).all())
