"""The places of groups: how many records of which kind each group takes, before anybody knows which records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from polyseme.arrays import Ints

__all__ = ["Places"]


@dataclass(frozen=True, eq=False)
class Places:
    """The places that groups have to give.

    kinds    the kind of each value of the domain; values of one kind are the same to the algorithm: (F,)
    taken    how many places there are for each kind, at most its records: (kinds,)
    groups   the group of each place, kind by kind: (sum of taken,)
    count    how many groups there are
    records  how many records ask for a place
    gap      how many places more there could be at the most; None where nothing is proved
    """

    kinds: Ints = field(repr=False)
    taken: Ints = field(repr=False)
    groups: Ints = field(repr=False)
    count: int
    records: int
    gap: int | None = 0

    @property
    def suppressed(self) -> int:
        """Records without a place."""
        return self.records - len(self.groups)

    @property
    def sizes(self) -> Ints:
        """Places of each group."""
        return np.bincount(self.groups, minlength=self.count).astype(np.int64)

    @classmethod
    def in_turn(cls, kinds: Ints, taken: Ints, count: int, records: int) -> Places:
        """Kind by kind, groups take one record each in turn: records at least `count` apart are never neighbours."""
        return cls(kinds, taken, np.arange(int(taken.sum())) % max(count, 1), count, records)

    @classmethod
    def of_members(
        cls, kinds: Ints, members: Ints, owner: Ints, count: int, records: int, gap: int | None = 0
    ) -> Places:
        """From the kind and the group of each place, in any order."""
        order = np.argsort(members, kind="stable")
        taken = np.bincount(members, minlength=int(kinds.max(initial=-1)) + 1).astype(np.int64)
        return cls(kinds, taken, owner[order], count, records, gap)

    @classmethod
    def of_sets(cls, kinds: Ints, sets: Sequence[Ints], times: Sequence[int], records: int, gap: int) -> Places:
        """From different sets of kinds, and how many groups each makes."""
        ends = np.cumsum([0, *times])
        pairs = [
            (np.tile(kinds_of, n), np.repeat(np.arange(n) + start, len(kinds_of)))
            for kinds_of, n, start in zip(sets, times, ends)
        ]
        members = np.concatenate([np.zeros(0, np.int64), *(pair[0] for pair in pairs)])
        owner = np.concatenate([np.zeros(0, np.int64), *(pair[1] for pair in pairs)])
        return cls.of_members(kinds, members, owner, int(ends[-1]), records, gap)
