"""Local recoding: what would be suppressed is generalized by itself, further than the rest, again and again.

Every round looks for the levels of least loss at which at least half of the records that are left can be shown; then
for those at which any can. It looks at a limited number of nodes: nothing is proved of a table that is recoded locally.
A round counts only if all that is then published fulfills the goal, compared with itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from polyseme.arrays import Bools, Ints
from polyseme.methods.full_domain.checking import Checker
from polyseme.methods.full_domain.lattice import Lattice
from polyseme.methods.full_domain.search import Found, Search
from polyseme.methods.goal import Goal
from polyseme.methods.keys import packed
from polyseme.methods.losses import Loss
from polyseme.methods.microdata import SUPPRESSED, Cells, Microdata, Recoding
from polyseme.methods.showing import Round, Rounds

__all__ = ["MOST_CHECKS", "recoded_locally"]

Finder: TypeAlias = Callable[[Search], Found | None]

MOST_CHECKS = 200
"""Nodes looked at in each round; eight times as many save less than one part in a hundred of the loss on Adult."""


def recoded_locally(
    data: Microdata, goal: Goal, loss: Loss, first: Recoding, lattice: Lattice, find: Finder
) -> Recoding:
    """A recoding in which some of the records that `first` suppresses are shown at higher levels."""
    rounds = [(first.levels, np.flatnonzero(~first.suppressed))]
    left = np.flatnonzero(first.suppressed)
    made = first
    while len(left):
        found = _round(data, goal, loss, left, lattice, find)
        if found is None:
            break
        levels, suppressed = found
        rounds.append((levels, left[~suppressed]))
        tried = _together(data, rounds)
        if not _fulfils(goal, tried):
            break
        made, left = tried, left[suppressed]
    if made is first:
        return first
    return replace(made, loss=loss.of_recoding(data, made))


def _round(
    data: Microdata, goal: Goal, loss: Loss, left: Ints, lattice: Lattice, find: Finder
) -> tuple[tuple[int, ...], Bools] | None:
    """The levels for some of the rows that are left, and which of these stay suppressed."""
    part = data.among(left)
    top = tuple(ladder.height for ladder in data.ladders)
    for limit in dict.fromkeys((part.units // 2, part.units - 1)):
        checker = Checker(part, goal.among(left), loss, limit, goal.totals())
        found = find(Search(checker, lattice))
        # Records that are shown as nothing are suppressed.
        if found is not None and found.levels != top:
            return found.levels, checker.suppressed(found.levels)
    return None


def _together(data: Microdata, rounds: Sequence[tuple[tuple[int, ...], Ints]]) -> Recoding:
    """All rounds as one recoding; each has its own classes and cells."""
    classes = np.full(data.rows, SUPPRESSED, dtype=np.int64)
    shown: list[Ints] = []
    steps: list[Round] = []
    cells = [Cells((), ()) for _ in data.ladders]
    number, hidden = 0, np.ones(data.rows, dtype=bool)
    for levels, rows in rounds:
        part = Recoding.of_levels(data, levels, ~_among(rows, data.rows), None, None)
        classes[rows] = part.classes[rows] + number
        number += len(part.shown)
        offsets = [len(column.labels) for column in cells]
        shown.append(part.shown + np.array(offsets, dtype=np.int64))
        cells = [_joined(before, after) for before, after in zip(cells, part.cells, strict=True)]
        hidden[rows] = False
        steps.append(data.round(levels, hidden, offsets))
    return Recoding(classes, np.concatenate(shown), tuple(cells), counts=data.counts, showing=Rounds(tuple(steps)))


def _among(rows: Ints, count: int) -> Bools:
    found = np.zeros(count, dtype=bool)
    found[rows] = True
    return found


def _joined(before: Cells, after: Cells) -> Cells:
    return Cells((*before.labels, *after.labels), (*before.leaves, *after.leaves))


def _fulfils(goal: Goal, made: Recoding) -> bool:
    """Whether everything that is shown meets the goal; records that look the same are one class."""
    # Each round has seen to k-map.
    goal = goal.unmapped
    rows = np.flatnonzero(~made.suppressed)
    columns = [
        (
            np.unique([str(label) for label in cells.labels], return_inverse=True)[1][made.shown[:, place]],
            len(cells.labels),
        )
        for place, cells in enumerate(made.cells)
    ]
    keys = packed(columns, len(made.shown))[0]
    found, looks = np.unique(keys, return_inverse=True)
    sizes, counts = goal.counted(looks[made.classes[rows]], len(found), rows)
    return bool(goal.fine(sizes, counts).all())
