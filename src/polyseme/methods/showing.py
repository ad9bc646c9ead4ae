"""Showing: what any record shows of its quasi-identifiers, from its own leaves and nothing else.

    showing.cells(leaves)       # (n, q) leaves -> (n, q) cells, -1 throughout for a record of which nothing is shown

A method that works on counts of records that are alike hands back such a rule. A worker with a part of the table, in
whatever order and on whatever machine, can apply it: it knows no row numbers, is small, and can be pickled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from polyseme.arrays import Ints
from polyseme.methods.keys import Known

__all__ = ["Round", "Rounds", "Showing"]

_NOTHING = -1


class Showing(Protocol):
    """What a record shows follows from its leaves."""

    def cells(self, leaves: Ints) -> Ints:
        """The cell of each record in each quasi-identifier; -1 throughout where nothing is shown."""


@dataclass(frozen=True, eq=False)
class Round:
    """Records at the same levels, but for those in some classes.

    groups  for each quasi-identifier, the cell of each leaf
    hidden  the classes, as combinations of cells, that are not shown at these levels
    """

    groups: tuple[Ints, ...] = field(repr=False)
    hidden: Known = field(repr=False)

    @classmethod
    def of(cls, groups: Sequence[Ints], sizes: Sequence[int], hidden: Ints, offsets: Sequence[int] = ()) -> Round:
        """From the group of each leaf, the number of groups, and the groups of records that are not shown.

        offsets  for each quasi-identifier, the cell that its first group has
        """
        moved = offsets or (0,) * len(groups)
        tops = [size + first for size, first in zip(sizes, moved, strict=True)]
        return cls(
            tuple(codes + first for codes, first in zip(groups, moved, strict=True)),
            Known.of(hidden + np.array(moved, dtype=np.int64), tops),
        )

    def cells(self, leaves: Ints) -> Ints:
        """At these levels, whether or not that is shown."""
        found = np.empty(leaves.shape, dtype=np.int64)
        for place, groups in enumerate(self.groups):
            found[:, place] = groups[leaves[:, place]]
        return found


@dataclass(frozen=True)
class Rounds:
    """One choice of levels after the other: a record is shown at the first at which its class is."""

    rounds: tuple[Round, ...]

    def cells(self, leaves: Ints) -> Ints:
        shown = np.full(leaves.shape, _NOTHING, dtype=np.int64)
        left = np.arange(len(leaves))
        for step in self.rounds:
            cells = step.cells(leaves[left])
            hidden = step.hidden.find(cells) >= 0
            shown[left[~hidden]] = cells[~hidden]
            left = left[hidden]
        return shown
