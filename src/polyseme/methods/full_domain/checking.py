"""Checking one node: is it admissible, how many records does it cost, and does it rule out all that is below it?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from polyseme.arrays import Bools
from polyseme.methods.full_domain.rollup import Partition, Rollup
from polyseme.methods.goal import Goal
from polyseme.methods.keys import packed
from polyseme.methods.losses import Loss
from polyseme.methods.microdata import Microdata
from polyseme.tables.classes import Counts

__all__ = ["Check", "Checker"]


@dataclass(frozen=True)
class Check:
    """What was found at a node.

    suppressed  records in classes that cannot be published, or the people who have one there
    hopeless    the same in classes that no finer partition can save: more of them than may be suppressed rule out
                everything below
    loss        of a loss that follows from classes; 0 for a separable one
    """

    suppressed: int
    hopeless: int
    loss: float


class Checker:
    """Checks nodes of one table for one goal.

    limit   how many records may be suppressed; where people are counted, how many of them may lose a record
    totals  a table that these records are part of, as one class for each attribute; without them, the table is what is
            not suppressed
    """

    def __init__(
        self, data: Microdata, goal: Goal, loss: Loss, limit: int, totals: Mapping[str, Counts] | None = None
    ) -> None:
        self.data, self.goal, self.loss, self.limit, self.totals = data, goal, loss, limit, totals

    @cached_property
    def _rollup(self) -> Rollup:
        return Rollup(self.data, self.goal)

    @property
    def prunes(self) -> bool:
        """Whether every node that is not admissible rules out what is below it."""
        return self.goal.absorbing or (self.goal.additive and not self.limit)

    def check(self, levels: Sequence[int]) -> Check:
        part = self.partition(levels)
        fine, promising = self.goal.judged(part.sizes, part.counts, part.population, suppressing=self.limit > 0)
        hopeless = part.units(~promising)
        if hopeless <= self.limit:
            fine = self._kept(part, fine)
        loss = 0.0 if self.loss.separable else self.loss.of_sizes(part.rows)
        return Check(part.units(~fine), hopeless, loss)

    def partition(self, levels: Sequence[int]) -> Partition:
        """The classes of a node, as the goal is to see them."""
        part = self._rollup.partition(levels)
        if self.totals is None:
            return part
        counts = {name: held.compared(self.totals[name]) for name, held in part.counts.items()}
        return replace(part, counts=counts)

    def admits(self, check: Check) -> bool:
        """Whether a node may be published: something must be left."""
        return check.suppressed <= self.limit and (check.suppressed < self.data.units or not self.data.units)

    def rules_out(self, check: Check) -> bool:
        """Whether nothing below the node may be published either."""
        return check.hopeless > self.limit or 0 < self.data.units == check.hopeless

    def suppressed(self, levels: Sequence[int]) -> Bools:
        """Which rows are in classes of a node that cannot be published."""
        codes, rows = self.data.codes, self.data.rows
        if self.goal.mapped and self.data.population is not None:
            codes = np.concatenate([codes, self.data.population])
        keys = packed(self.data.at(levels, codes), len(codes))[0]
        found, classes = np.unique(keys[:rows], return_inverse=True)
        sizes, counts = self.goal.counted(classes, len(found))
        if self.totals is not None:
            counts = {name: held.compared(self.totals[name]) for name, held in counts.items()}
        people = keys[rows:]
        population = np.bincount(np.searchsorted(found, people[np.isin(people, found)]), minlength=len(found))
        part = Partition(sizes, counts, population if self.goal.mapped else None)
        return np.asarray(~self._kept(part, self.goal.fine(sizes, counts, part.population))[classes])

    def _kept(self, part: Partition, fine: Bools) -> Bools:
        if self.totals is not None:
            return fine
        return self.goal.kept(part.sizes, part.counts, part.population, fine)
