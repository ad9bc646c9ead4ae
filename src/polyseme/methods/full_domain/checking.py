"""Checking one node: is it admissible, how many records does it cost, and does it rule out all that is below it?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyseme.arrays import Bools, Ints
from polyseme.methods.full_domain.grouping import packed
from polyseme.methods.full_domain.rollup import Rollup
from polyseme.methods.goal import Goal
from polyseme.methods.losses import Loss
from polyseme.methods.microdata import Microdata

__all__ = ["Check", "Checker"]


@dataclass(frozen=True)
class Check:
    """What was found at a node.

    suppressed  records in classes that cannot be published
    hopeless    records in classes that no finer partition can save: more of them than may be suppressed rule out
                everything below
    loss        of a loss that follows from classes; 0 for a separable one
    """

    suppressed: int
    hopeless: int
    loss: float


@dataclass(frozen=True, eq=False)
class Checker:
    """Checks nodes of one table for one goal.

    limit  how many records may be suppressed
    """

    data: Microdata
    goal: Goal
    loss: Loss
    limit: int
    rollup: Rollup

    def check(self, levels: tuple[int, ...]) -> Check:
        part = self.rollup.partition(levels)
        fine, promising = self.goal.judged(part.sizes, part.counts, part.population, suppressing=self.limit > 0)
        hopeless = int(part.sizes[~promising].sum())
        if hopeless <= self.limit:
            fine = self.goal.kept(part.sizes, part.counts, part.population, fine)
        loss = 0.0 if self.loss.separable else self.loss.of_sizes(part.sizes)
        return Check(int(part.sizes[~fine].sum()), hopeless, loss)

    def admits(self, check: Check) -> bool:
        """Whether a node may be published: something must be left."""
        return check.suppressed <= self.limit and (check.suppressed < self.data.records or not self.data.records)

    def rules_out(self, check: Check) -> bool:
        """Whether nothing below the node may be published either."""
        return check.hopeless > self.limit or (0 < self.data.records == check.hopeless)

    def suppressed(self, levels: tuple[int, ...]) -> Bools:
        """Which records of the table are in classes of a node that cannot be published."""
        keys, people = (self._keys(codes, levels) for codes in (self.data.codes, self.data.population))
        found, classes = np.unique(keys, return_inverse=True)
        sizes, counts = self.goal.counted(classes, len(found))
        population = None
        if self.goal.mapped:
            population = np.bincount(np.searchsorted(found, people[np.isin(people, found)]), minlength=len(found))
        return np.asarray(~self.goal.kept(sizes, counts, population)[classes])

    def _keys(self, codes: Ints | None, levels: tuple[int, ...]) -> Ints:
        ladders = self.data.ladders
        if codes is None:
            return np.zeros(0, dtype=np.int64)
        columns = [
            (ladder.groups[level][column], ladder.size(level))
            for ladder, level, column in zip(ladders, levels, codes.T, strict=True)
        ]
        return packed(columns, len(codes))[0]
