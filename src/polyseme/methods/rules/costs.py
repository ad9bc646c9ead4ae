"""What merging costs, in records.

    cost(v, u) = (|v| + |u|) * loss(v + u) - |v| * loss(v) - |u| * loss(u)
    loss(E)    = mean over quasi-identifiers of (leaves of the cell - 1) / (leaves of the ladder - 1)

where
    |v|    records of class v
    v + u  what both show together: of each quasi-identifier the lowest group that holds both cells

The loss of a class is 0 where single values are shown and 1 where nothing is, so a suppressed record costs 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from polyseme.arrays import Floats, Ints
from polyseme.methods.microdata import Cells, Ladder, Microdata, Recoding

__all__ = ["Costs", "Covers", "class_losses"]

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
