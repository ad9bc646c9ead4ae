"""The places of groups: how many records of which kind each takes, before any is chosen.

    places = compose(counts, structure, l)
    places.group_of(codes, ranks)       # the group of records with these values that have these ranks in their kind

Places are numbered kind by kind. They come in runs of neighboring groups, of which there are few however many records
there are: a plan is as small as the domain, and can be pickled and sent to workers that have some of the records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from polyseme.kernel.arrays import Ints
from polyseme.methods.microdata import SUPPRESSED

__all__ = ["Places", "Ranks", "first_ranks"]


@dataclass(frozen=True, eq=False)
class Places:
    """The places that groups have to give.

    kinds    the kind of each value of the domain; values of one kind are the same to the algorithm: (F,)
    taken    how many places there are for each kind, at most its records: (kinds,)
    firsts   the place with which each run begins; its groups follow each other: (runs,)
    starts   the group of that place: (runs,)
    count    how many groups there are
    records  how many records ask for a place
    gap      how many places more there could be at the most; None where nothing is proved
    extra    records that have no place only because what is left out would be all alike otherwise
    """

    kinds: Ints = field(repr=False)
    taken: Ints = field(repr=False)
    firsts: Ints = field(repr=False)
    starts: Ints = field(repr=False)
    count: int
    records: int
    gap: int | None = 0
    extra: int = 0

    @property
    def total(self) -> int:
        """How many places there are."""
        return int(self.taken.sum())

    @property
    def suppressed(self) -> int:
        """Records without a place."""
        return self.records - self.total

    @property
    def groups(self) -> Ints:
        """The group of each place, kind by kind: (sum of taken,)."""
        return self.between(0, self.total)

    def between(self, first: int, end: int) -> Ints:
        """The group of each place from the first to the last before the end."""
        return self._of(np.arange(first, end))

    def _of(self, places: Ints) -> Ints:
        runs = np.searchsorted(self.firsts, places, side="right") - 1
        return np.asarray(self.starts[runs] + places - self.firsts[runs])

    @property
    def sizes(self) -> Ints:
        """Places of each group."""
        return np.bincount(self.groups, minlength=self.count).astype(np.int64)

    @cached_property
    def _offsets(self) -> Ints:
        """The first place of each kind."""
        return np.cumsum(self.taken) - self.taken

    def group_of(self, codes: Ints, ranks: Ints) -> Ints:
        """The group of each record, from its value and its rank (from 0) within its kind.

        Ranks must only come once each in a kind, in an order that was drawn: then every record is
        as likely to have a place, and each place, as any other of its kind. `SUPPRESSED` for one without a place.
        """
        kinds = self.kinds[codes]
        placed = np.flatnonzero(ranks < self.taken[kinds])
        groups = np.full(len(codes), SUPPRESSED, dtype=np.int64)
        groups[placed] = self._of(self._offsets[kinds[placed]] + ranks[placed])
        return groups

    @classmethod
    def in_turn(cls, kinds: Ints, taken: Ints, count: int, records: int) -> Places:
        """Kind by kind, groups take a record each in turn.

        Records at least `count` apart are never neighbors.
        """
        firsts = np.arange(0, int(taken.sum()), max(count, 1))
        return cls(kinds, taken, firsts, np.zeros_like(firsts), count, records)

    @classmethod
    def of_members(
        cls, kinds: Ints, members: Ints, owner: Ints, count: int, records: int, gap: int | None = 0
    ) -> Places:
        """From the kind and the group of each place, in any order."""
        groups = owner[np.argsort(members, kind="stable")]
        firsts = np.flatnonzero(np.diff(groups, prepend=-2) != 1)
        return cls(kinds, _summed(kinds, members), firsts, groups[firsts], count, records, gap)

    @classmethod
    def of_sets(cls, kinds: Ints, sets: Sequence[Ints], times: Sequence[int], records: int, gap: int) -> Places:
        """From different sets of kinds, and how many groups each makes."""
        sizes, each = [len(members) for members in sets], np.array(times, dtype=np.int64)
        members = np.concatenate([np.zeros(0, np.int64), *sets])
        lengths, starts = np.repeat(each, sizes), np.repeat(np.cumsum(each) - each, sizes)
        order = np.argsort(members, kind="stable")
        lengths, starts = lengths[order], starts[order]
        firsts = np.cumsum(lengths) - lengths
        taken = _summed(kinds, members[order], lengths)
        return cls(kinds, taken, firsts, starts, int(each.sum()), records, gap)


def _summed(kinds: Ints, members: Ints, weights: Ints | None = None) -> Ints:
    """How many places there are for each kind."""
    return np.bincount(members, weights, int(kinds.max(initial=-1)) + 1).astype(np.int64)


class Ranks:
    """Ranks among the records of a kind, in a drawn order, for records that come in batches.

    following  the next rank of each kind; zeros for the first of all records

    >>> ranks = Ranks(np.array([0, 5]))
    >>> ranks.of(np.array([1, 0, 1])), ranks.of(np.array([0, 1]))
    (array([5, 0, 6]), array([1, 7]))
    """

    def __init__(self, following: Ints) -> None:
        self._following = following.astype(np.int64, copy=True)

    def of(self, kinds: Ints) -> Ints:
        """The rank of each record of a batch."""
        order = np.argsort(kinds, kind="stable")
        counts = np.bincount(kinds, minlength=len(self._following))
        within = np.arange(len(kinds)) - np.repeat(np.cumsum(counts) - counts, counts)
        ranks = np.empty(len(kinds), dtype=np.int64)
        ranks[order] = within + self._following[kinds[order]]
        self._following += counts
        return ranks


def first_ranks(counts: Ints) -> Ints:
    """Where the ranks of each task begin, from its records of each kind: (tasks, kinds).

    >>> first_ranks(np.array([[2, 1], [0, 3], [4, 4]])).tolist()
    [[0, 0], [2, 1], [2, 4]]
    """
    return np.asarray(np.cumsum(counts, axis=0) - counts, dtype=np.int64)
