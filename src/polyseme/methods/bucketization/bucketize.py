"""From records to groups: count, compose, and draw who takes which place."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias, get_args

import numpy as np

from polyseme.arrays import Bools, Ints
from polyseme.distances.structure import Clusters, Line, Structure
from polyseme.errors import ImpossibleError, PolicyError, nearest
from polyseme.methods.bucketization.closed import of_clusters, of_line
from polyseme.methods.bucketization.left_out import spread_out
from polyseme.methods.bucketization.mbf import maximal_bucket_first
from polyseme.methods.bucketization.places import Places
from polyseme.methods.bucketization.programme import of_pairs
from polyseme.methods.bucketization.shuffling import shuffled_by_kind
from polyseme.methods.bucketization.structures import largest_set
from polyseme.methods.microdata import SUPPRESSED
from polyseme.randomness import SystemStream

__all__ = ["Algorithm", "Grouping", "bucketize", "compose", "planned"]

Algorithm: TypeAlias = Literal["exact", "mbf"]


@dataclass(frozen=True, eq=False)
class Grouping:
    """Which records share a group.

    groups  the group of each record, numbered from 0; `SUPPRESSED` without one: (n,)
    count   how many groups there are
    gap     how many records fewer could be suppressed at the most: 0 for an optimum, None where nothing is proved
    places  that the records took
    """

    groups: Ints = field(repr=False)
    count: int
    gap: int | None
    places: Places | None = field(default=None, repr=False)

    @cached_property
    def suppressed(self) -> Bools:
        """Whether each record is without a group."""
        return np.asarray(self.groups == SUPPRESSED)

    @cached_property
    def sizes(self) -> Ints:
        """Records of each group."""
        return np.bincount(self.groups[~self.suppressed], minlength=self.count).astype(np.int64)


def bucketize(
    codes: Ints,
    structure: Structure,
    l: int,
    stream: SystemStream,
    algorithm: Algorithm = "exact",
    left_out: float | None = None,
) -> Grouping:
    """Group records by the codes of their values.

    codes      the value of each record, 0 ... F-1: (n,)
    structure  which values may share a group: `distinct(F)` for Anatomy, `distance.structure(d)` for (l, d),
               `dissimilar(distance, e)` for (l, e)
    stream     decides who takes which place; seeded for experiments only
    left_out   the largest share that a kind of values may have of the suppressed records, of which there are then at
               least l kinds: see `left_out.py`; None suppresses as few records as possible, of whichever values

    Refuses an l for which no group exists. The number of suppressed records is for the caller to judge.

    >>> made = bucketize(np.array([0, 0, 1, 1, 2, 0]), Clusters(np.arange(3)), 2, SystemStream.seeded(1))
    >>> made.count, made.sizes.tolist(), made.gap
    (3, [2, 2, 2], 0)
    """
    counts = np.bincount(codes, minlength=structure.size).astype(np.int64)
    places = planned(counts, structure, l, algorithm, left_out)
    return Grouping(_drawn(codes, places, stream), places.count, places.gap, places)


def planned(
    counts: Ints, structure: Structure, l: int, algorithm: Algorithm = "exact", left_out: float | None = None
) -> Places:
    """The same as places, from the records of each value; refuses an l for which no group exists."""
    places = compose(counts, structure, l, algorithm)
    if counts.any() and not places.count:
        raise _no_group(counts, structure, l)
    if left_out is None:
        return places
    return spread_out(places, counts, structure, l, left_out, lambda rest: compose(rest, structure, l, algorithm))


def compose(counts: Ints, structure: Structure, l: int, algorithm: Algorithm = "exact") -> Places:
    """How many records of which kind each group takes, from the records of each value: all that a plan needs."""
    if algorithm not in get_args(Algorithm):
        raise PolicyError(f"unknown algorithm '{algorithm}'", nearest(str(algorithm), get_args(Algorithm)))
    if l < 1:
        raise PolicyError(f"a group has at least one record, not {l}")
    if algorithm == "mbf":
        return maximal_bucket_first(counts, structure, l)
    if isinstance(structure, Clusters):
        return of_clusters(counts, structure, l)
    return of_line(counts, structure, l) if isinstance(structure, Line) else of_pairs(counts, structure, l)


def _no_group(counts: Ints, structure: Structure, l: int) -> ImpossibleError:
    largest = largest_set(counts, structure, l)
    if largest == l:
        return ImpossibleError("maximal-bucket-first finds no group, though there is one", "use the algorithm 'exact'")
    return ImpossibleError(
        f"no group of {l} records can be made: of the {np.count_nonzero(counts):,} values that occur, "
        f"at most {largest} are far enough apart to share a group",
        f"l = {largest} is the largest possible" + ("" if largest > 1 else ": records cannot be grouped at all"),
    )


def _drawn(codes: Ints, places: Places, stream: SystemStream) -> Ints:
    """The group of each record: those of a kind take its places in an order that is drawn."""
    kinds = places.kinds[codes]
    order = shuffled_by_kind(kinds, len(places.taken), stream)
    sizes = np.bincount(kinds, minlength=len(places.taken))
    groups = np.full(len(codes), SUPPRESSED, dtype=np.int64)
    if places.suppressed:
        # Within each kind the first get the places there are, the others none.
        placed = np.column_stack([places.taken, sizes - places.taken]).ravel()
        order = order[np.repeat(np.arange(len(placed)) % 2 == 0, placed)]
    groups[order] = places.groups
    return groups
