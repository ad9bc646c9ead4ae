"""From records to groups: count, compose, draw who takes which place, and leave records out.

Records are put in order of their kind, and within a kind in an order that is drawn. One sort of whole words does both:
the kind, then random bits, then the number of the record. Records of a kind that drew the same bits are put in a fresh
random order, so every order is equally likely, as if all had been shuffled first.

Records are left out so that a record's absence does not reveal its value.

Groups need as many records of other values as of any one, so that it is a frequent value whose records find no place.
Suppressing as few as possible suppresses only those, and a person who was in the table and is not in the release then
has that value for certain. Here other records are left out as well:

    at least l clusters among what is left out,      s(c) <= share * S     for every cluster c

where
    s(c)   suppressed records of cluster c, of n(c) in all
    S      all suppressed records, of N
    share  1 for the first condition alone

A smaller share costs records: with g groups n(c) <= g + s(c) <= (N - S) / l + share * S, so that at most

    (share * N - n(c)) / (share - 1 / l)

records can be placed, and none when the share is n(c) / N, the success of an attacker without any release. A share of 1
/ l, which groups themselves keep, cannot be reached: records of which no cluster has more than 1 / l form groups, and
would not be left out.

Clusters: K records can be placed, in K // l groups, exactly if between the fewest (n(c) - share * S) and the most
(min(n(c), g), one less where a cluster has to be among the l) of each cluster there is room for K. The largest such K
is found by trying from above, so no grouping with both properties suppresses fewer. Otherwise, one record of each value
that is missing among l compatible ones is taken away, and the rest is grouped: `gap` says what that may have cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, TypeAlias, get_args

import numpy as np

from polyseme.kernel.arrays import Bools, Ints
from polyseme.kernel.errors import ImpossibleError, PolicyError, Problem, nearest
from polyseme.kernel.randomness import SystemStream
from polyseme.methods.bucketization.compositions import (
    compatible_pairs,
    largest_set,
    maximal_bucket_first,
    of_clusters,
    of_line,
    of_pairs,
)
from polyseme.methods.bucketization.seats import Places
from polyseme.methods.microdata import SUPPRESSED
from polyseme.semantics.distances.base import MATRIX_LIMIT, Clusters, Line, Structure

__all__ = ["Algorithm", "Grouping", "bucketize", "compose", "left_by_kind", "planned", "shuffled_by_kind", "spread_out"]

_PIECE = 1 << 20
_LEAST_BITS = 20
"""With fewer random bits too many records draw the same; then all are shuffled, and sorted by kind."""


def shuffled_by_kind(kinds: Ints, count: int, stream: SystemStream) -> Ints:
    """The records, kind by kind.

    >>> order = shuffled_by_kind(np.array([1, 0, 1, 0]), 2, SystemStream.seeded(1))
    >>> sorted(order[:2].tolist()), sorted(order[2:].tolist())
    ([1, 3], [0, 2])
    """
    for_kind, for_record = max(count - 1, 0).bit_length(), max(len(kinds) - 1, 0).bit_length()
    if for_kind + for_record + _LEAST_BITS > 64:
        order = stream.permutation(len(kinds))
        return order[np.argsort(kinds[order], kind="stable")]
    # One array of words in all, which becomes the order: the rest is done piece by piece.
    packed = stream.words(len(kinds))
    packed >>= np.uint64(for_kind)
    for piece in _pieces(len(kinds) if for_kind else 0):
        packed[piece] |= kinds[piece].astype(np.uint64) << np.uint64(64 - for_kind)
    packed >>= np.uint64(for_record)
    packed <<= np.uint64(for_record)
    for piece in _pieces(len(kinds)):
        packed[piece] |= np.arange(piece.start, piece.stop, dtype=np.uint64)
    packed.sort()
    as_before = np.empty(max(len(kinds) - 1, 0), dtype=bool)
    for piece in _pieces(len(as_before)):
        bits = packed[piece.start : piece.stop + 1] >> np.uint64(for_record)
        as_before[piece] = bits[1:] == bits[:-1]
    packed &= np.uint64((1 << for_record) - 1)
    return _settled(packed.view(np.int64), as_before, stream)


def _pieces(count: int) -> Iterator[slice]:
    """Parts of an array that are short enough for further arrays as long as they are."""
    return (slice(start, min(start + _PIECE, count)) for start in range(0, count, _PIECE))


def _settled(order: Ints, as_before: np.ndarray, stream: SystemStream) -> Ints:
    """Shuffled runs of records with the same bits. `as_before`: equal to the one in front."""
    if not as_before.any():
        return order
    tied = np.zeros(len(order), dtype=bool)
    tied[1:] |= as_before
    tied[:-1] |= as_before
    places = np.flatnonzero(tied)
    run = np.cumsum(np.concatenate([[True], ~as_before]))[places]
    fresh = stream.permutation(len(places))
    order[places] = order[places[fresh[np.argsort(run[fresh], kind="stable")]]]
    return order


_SLACK = 1e-9
"""Room for rounding in a share of records."""
_ROUNDS = 4
"""Times that records are taken away; a judgment, one is nearly always enough."""


def spread_out(least: Places, counts: Ints, structure: Structure, l: int, share: float, compose: _Compose) -> Places:
    """Places that leave out records of at least l values, none with more than its share.

    Where that is possible.

    least    the places that suppress the fewest records; returned where nothing is suppressed, and for a share of 1
             where no other places exist
    compose  groups from the records of each value
    """
    if not least.suppressed:
        return least
    found = None
    if isinstance(structure, Clusters):
        found = _of_clusters(least, counts, structure, l, share)
    elif share == 1.0:
        found = _of_pairs(least, counts, structure, l, compose)
    else:
        raise PolicyError(
            Problem("left-out", "only 1 is possible for values whose similarity is not transitive", "left-out: 1")
        )
    if found is None and share < 1.0:
        raise _unreachable(counts, structure, share)
    return least if found is None else replace(found, extra=least.total - found.total)


_Compose = Callable[[Ints], Places]


def left_by_kind(places: Places, counts: Ints) -> Ints:
    """How many records of each kind are left out: (kinds,)."""
    return np.bincount(places.kinds, counts, len(places.taken)).astype(np.int64) - places.taken


def _unreachable(counts: Ints, structure: Clusters | Structure, share: float) -> ImpossibleError:
    sizes = np.bincount(structure.labels, counts) if isinstance(structure, Clusters) else counts
    most = float(sizes.max() / max(counts.sum(), 1))
    return ImpossibleError(
        Problem(
            "left-out",
            f"what is left out cannot be so mixed that no value has more than {share:.4g} of it: one value has "
            f"{most:.1%} of all records, and groups are left only for a share above that",
            f"left-out: {min(1.0, (1.0 + most) / 2.0):.2f}, a smaller l, or broader values",
        )
    )


# -- clusters ------------------------------------------------------------------------------------------------------


def _of_clusters(least: Places, counts: Ints, clusters: Clusters, l: int, share: float) -> Places | None:
    sizes = np.bincount(clusters.labels, counts, clusters.count).astype(np.int64)
    for placed in range(_most(sizes, l, share, least.total), l - 1, -1):
        bounds = _bounds(sizes, placed, l, share)
        if bounds is not None:
            taken = _lowered(*bounds, placed)
            return Places.in_turn(clusters.labels, taken, placed // l, int(sizes.sum()))
    return None


def _most(sizes: Ints, l: int, share: float, least: int) -> int:
    """A number of placed records that is not exceeded."""
    if share * l <= 1.0:
        return 0
    return min(least, int(np.floor((share * sizes.sum() - sizes.max()) / (share - 1.0 / l) + _SLACK)))


def _bounds(sizes: Ints, placed: int, l: int, share: float) -> tuple[Ints, Ints] | None:
    """The fewest and the most places of each cluster, if so many in all are possible."""
    suppressed, groups = int(sizes.sum()) - placed, placed // l
    allowed = int(np.floor(share * suppressed + _SLACK))
    fewest, most = np.maximum(sizes - allowed, 0), np.minimum(sizes, groups)
    whole = np.flatnonzero((sizes > 0) & (sizes <= groups))
    missing = max(0, l - int((sizes > groups).sum()))
    if missing > len(whole) or allowed < 1:
        return None
    # The largest ones give a record: their places are most like those of the clusters that are cut.
    most[whole[np.argsort(-sizes[whole], kind="stable")[:missing]]] -= 1
    possible = bool((fewest <= most).all()) and int(fewest.sum()) <= placed <= int(most.sum())
    return (fewest, most) if possible else None


def _lowered(fewest: Ints, most: Ints, placed: int) -> Ints:
    """Places that add up to `placed`: the highest numbers are lowered, evenly."""
    low, high = 0, int(most.max(initial=0))
    while low < high:
        middle = (low + high) // 2
        enough = int(np.clip(middle, fewest, most).sum()) >= placed
        low, high = (low, middle) if enough else (middle + 1, high)
    taken = np.clip(low, fewest, most)
    spare = int(taken.sum()) - placed
    taken[np.flatnonzero((taken == low) & (fewest < low))[:spare]] -= 1
    return np.asarray(taken, dtype=np.int64)


# -- other structures ----------------------------------------------------------------------------------------------


def _of_pairs(least: Places, counts: Ints, structure: Structure, l: int, compose: _Compose) -> Places | None:
    present = np.flatnonzero(counts)
    if len(present) > MATRIX_LIMIT:
        return None
    pairs, extra, places = compatible_pairs(structure, present), np.zeros_like(counts), least
    for _ in range(_ROUNDS):
        left = left_by_kind(places, counts)[places.kinds[present]] > 0
        # A value of which nothing would be left has no kind of its own any more.
        wanted = _company(pairs, left, (counts - extra)[present] > 1, l)
        if wanted is None:
            return None
        fresh = wanted & ~left
        if not fresh.any():
            gap = None if least.gap is None else least.gap + least.total - places.total
            return replace(places, gap=gap)
        extra[present[fresh]] += 1
        places = replace(compose(counts - extra), records=least.records)
        if not places.count:
            return None
    return None


def _company(pairs: Bools, left: Bools, free: Bools, l: int) -> Bools | None:
    """Any l values that may share a group, those most often left out first; None without any."""
    best: Bools | None = None
    for first in np.flatnonzero(left):
        chosen = np.zeros(len(pairs), dtype=np.bool_)
        chosen[first] = True
        for among in (left, free & ~left):
            for value in np.flatnonzero(among & ~chosen):
                if chosen.sum() < l and pairs[value][chosen].all():
                    chosen[value] = True
        if chosen.sum() == l and (best is None or (chosen & left).sum() > (best & left).sum()):
            best = chosen
    return best


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
               least l kinds: see above; None suppresses as few records as possible, of whichever values

    Refuses an l for which no group exists. The number of suppressed records is for the caller to judge.

    >>> made = bucketize(np.array([0, 0, 1, 1, 2, 0]), Clusters(np.arange(3)), 2, SystemStream.seeded(1))
    >>> made.count, made.sizes.tolist(), made.gap
    (3, [2, 2, 2], 0)
    """
    counts = np.bincount(codes, minlength=structure.size).astype(np.int64)
    places = planned(counts, structure, l, algorithm, left_out)
    return Grouping(_drawn(codes, counts, places, stream), places.count, places.gap, places)


def planned(
    counts: Ints, structure: Structure, l: int, algorithm: Algorithm = "exact", left_out: float | None = None
) -> Places:
    """The same as places, from the records of each value.

    Refuses an l for which no group exists.
    """
    places = compose(counts, structure, l, algorithm)
    if counts.any() and not places.count:
        raise _no_group(counts, structure, l)
    if left_out is None:
        return places
    return spread_out(places, counts, structure, l, left_out, lambda rest: compose(rest, structure, l, algorithm))


def compose(counts: Ints, structure: Structure, l: int, algorithm: Algorithm = "exact") -> Places:
    """How many records of which kind each group takes, from the records of each value."""
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


def _drawn(codes: Ints, counts: Ints, places: Places, stream: SystemStream) -> Ints:
    """The group of each record: those of a kind take its places in an order that is drawn."""
    kinds = places.kinds.astype(np.min_scalar_type(len(places.taken)))
    order = shuffled_by_kind(kinds[codes], len(places.taken), stream)
    if places.suppressed:
        # Within each kind the first get the places there are, the others none.
        placed = np.column_stack([places.taken, left_by_kind(places, counts)]).ravel()
        order = order[np.repeat(np.arange(len(placed)) % 2 == 0, placed)]
    groups = np.full(len(codes), SUPPRESSED, dtype=np.int64)
    for piece in _pieces(places.total):
        groups[order[piece]] = places.between(piece.start, piece.stop)
    return groups
