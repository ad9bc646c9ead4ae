"""Whether parts of classes fulfill a goal, which may compare them with the whole table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from polyseme.arrays import Bools, Ints
from polyseme.methods.goal import Goal
from polyseme.methods.mondrian.cutting import Parts
from polyseme.tables.classes import Counts, people_in

__all__ = ["Judge"]


@dataclass(frozen=True, eq=False)
class Judge:
    """A goal for a table of which nothing is suppressed.

    least   records, or people, that a class must have in any case, so that smaller ones need not be counted
    totals  the whole table as one class for each sensitive attribute

    fitting  how many people of a population fit what each part would show, where people are counted in one

    Parts are of rows, which may stand for several records each.
    """

    goal: Goal
    least: int
    totals: Mapping[str, Counts] = field(repr=False)
    fitting: Callable[[Parts], Ints] | None = field(default=None, repr=False)

    @classmethod
    def of(cls, goal: Goal, records: int, totals: Mapping[str, Counts] | None = None) -> Judge:
        asked = [d.spec.parameters["k"] for d in goal.demands if d.spec.model.name == "k-anonymity"]
        least = min(max([1, *asked]), records)
        return cls(goal, least, goal.totals() if totals is None else totals)

    def sizes(self, parts: Parts) -> Ints:
        """Records of each part, or people where these are counted."""
        if self.goal.people is None:
            return self.records(parts)
        return people_in(parts.numbers(), self.goal.people[parts.records], len(parts.starts))

    def records(self, parts: Parts) -> Ints:
        """Records of each part."""
        weights = self.goal.weights
        if weights is None or not len(parts.starts):
            return parts.sizes
        return np.asarray(np.add.reduceat(weights[parts.records], parts.starts))

    def failing(self, parts: Parts) -> tuple[str, ...]:
        """The models that some part violates."""
        sizes, counts = self._tallied(parts)
        people = self._people(parts)
        return tuple(d.name for d in self.goal.demands if not d.score(sizes, counts, people).fine.all())

    def each(self, parts: Parts) -> Bools:
        """Whether each part fulfills the goal."""
        fine = self.sizes(parts) >= self.least
        return fine & self._counted(parts) if self._counts else fine

    def all_of(self, parts: Parts) -> Bools:
        """Whether all parts of each class do. Where one is too small, values need not be counted."""
        fine = np.logical_and.reduceat(self.sizes(parts) >= self.least, parts.firsts)
        if self._counts and fine.any():
            counted = parts.of(fine)
            fine[fine] = np.logical_and.reduceat(self._counted(counted), counted.firsts)
        return fine

    def fine(self, classes: Ints, number: int) -> Bools:
        """Whether each class does, from the class of each row, numbered from 0 without gaps."""
        return self.goal.fine(*self._compared(*self.goal.counted(classes, number)))

    @property
    def _counts(self) -> bool:
        """Whether more than records has to be counted."""
        return bool(self.goal.sensitive) or self.goal.mapped

    def _counted(self, parts: Parts) -> Bools:
        return self.goal.fine(*self._tallied(parts), self._people(parts))

    def _people(self, parts: Parts) -> Ints | None:
        return None if self.fitting is None else self.fitting(parts)

    def _tallied(self, parts: Parts) -> tuple[Ints, dict[str, Counts]]:
        return self._compared(*self.goal.counted(parts.numbers(), len(parts.starts), parts.records))

    def _compared(self, sizes: Ints, counts: Mapping[str, Counts]) -> tuple[Ints, dict[str, Counts]]:
        """With the whole table for those who compare classes with it."""
        return sizes, {name: held.compared(self.totals[name]) for name, held in counts.items()}
