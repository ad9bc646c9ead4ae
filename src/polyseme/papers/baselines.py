"""Methods the papers compare with: Random, Rating, and an algorithm by exhaustive search.

*Algorithm 1 of the sensitive quasi-identifier paper*, as it stands: list every set, search p by halving.

Kept as a reference for small domains; `closeness` gives the same answer in closed form. One reading is settled here:
the paper's line 10 stores a p for every single set and line 13 takes the best of them, but Theorem 4 needs the p that
is small enough for all sets of a size, so that is what is taken.

*Random*: a cross-tabulation made without looking at the data, the lower end of every comparison.

*Rating* (Liu, Luo and Huang 2011), in two of the ways in which it can be read.

The method publishes a table of value groups for each attribute and a table that points every record to one group for
each attribute. The sensitive quasi-identifier paper, which compares with it, says that it adds values of other records
instead of random ones, and that it flattens a table as much as random values do.

- `rating`: each record's set is filled with values of other records, so frequent values are added often. Drawing
  records one after the other until l - 1 other values have come up is drawing values without replacement in
  proportion to their counts. This keeps some of the distribution, more than the paper reports.
- `value_groups` and `rating_table`: the values of each attribute are parted into fixed groups of at least l, and
  records point to the group of their value. Within a group all values look alike, which flattens as the paper reports.

Comparisons with Rating mean the second; docs/decisions/rating.md says why.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.errors import ImpossibleError
from polyseme.kernel.randomness import Stream
from polyseme.privacy.analysis.closeness import subsets
from polyseme.privacy.calibration import expected_l2
from polyseme.semantics.distances.ground import Ground

__all__ = [
    "algorithm_one",
    "algorithm_one_as_printed",
    "largest_p",
    "posteriors",
    "random_table",
    "rating",
    "rating_table",
    "value_groups",
]

_HALVINGS = 60
"""The precision of a double: p lies between 0 and 1."""


def posteriors(prior: Floats, eta: int, p: float) -> Floats:
    """`B_j` of Equation 12 for every set of eta values: (sets, F)."""
    size = len(prior)
    sets = subsets(size, eta)
    # kappa_c and kappa_d up to the factor C(F, eta) they share.
    inside, outside = p * size / eta + 1.0 - p, 1.0 - p
    weight = np.full((len(sets), size), outside)
    weight[np.arange(len(sets))[:, None], sets] = inside
    joint = weight * prior
    total = joint.sum(axis=1, keepdims=True)
    # A set of values that no person has is never published at p = 1; it teaches nothing.
    return np.where(total > 0.0, joint / np.where(total > 0.0, total, 1.0), prior)


def largest_p(prior: Floats, eta: int, t: float, ground: Ground) -> float:
    """The largest p for which no set moves the prior by more than t, by halving."""

    def worst(p: float) -> float:
        return float(ground.work(posteriors(prior, eta, p) - prior).max())

    if worst(1.0) <= t:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if worst(middle) <= t else (low, middle)
    return low


def algorithm_one(
    prior: Floats, t: float, ground: Ground, smallest: int = 1, largest: int | None = None
) -> tuple[float, int]:
    """The pair (p, eta) with the least expected L2 distance among those that keep t-closeness."""
    size = len(prior)
    etas = range(smallest, (size - 1 if largest is None else largest) + 1)
    pairs = [(largest_p(prior, eta, t, ground), eta) for eta in etas]
    return min(pairs, key=lambda pair: float(expected_l2(1.0, size, pair[1], pair[0])))


def algorithm_one_as_printed(prior: Floats, t: float, ground: Ground) -> tuple[float, int]:
    """Algorithm 1 as printed.

    Lines 8 to 10 keep the p of every single set, line 13 the best of all of them.
    """
    size, pairs = len(prior), []
    for eta in range(1, size):
        for place in range(len(subsets(size, eta))):
            low, high = 0.0, 1.0
            for _ in range(_HALVINGS):
                middle = (low + high) / 2.0
                far = float(ground.work(posteriors(prior, eta, middle)[place] - prior))
                low, high = (middle, high) if far <= t else (low, middle)
            pairs.append((low, eta))
    return min(pairs, key=lambda pair: float(expected_l2(1.0, size, pair[1], pair[0])))


def random_table(records: int, shape: Sequence[int], generator: np.random.Generator) -> Floats:
    """Records thrown into cells at random.

    >>> float(random_table(100, (2, 3), np.random.default_rng(0)).sum())
    100.0
    """
    cells = int(np.prod(shape))
    thrown = generator.multinomial(records, np.full(cells, 1.0 / cells))
    return thrown.reshape(tuple(shape)).astype(np.float64)


_CHUNK = 1 << 22
"""Numbers in memory at a time (32 MB)."""


def rating(codes: Ints, size: int, l: int, stream: Stream, counts: Ints | None = None) -> Ints:
    """A set of l values for each record: its own and l - 1 values of other records.

    (n, l), rows ascending.

    codes   the true values
    size    F, the number of values of the domain
    counts  how often each value occurs in the whole table, when `codes` are only a part of it
    """
    counts = np.bincount(codes, minlength=size) if counts is None else counts
    occurring = np.flatnonzero(counts)
    if l > len(occurring):
        raise ImpossibleError(
            f"Rating adds values of other records: {l} are asked for, {len(occurring)} different ones occur"
        )
    place = np.full(size, -1, dtype=np.int64)
    place[occurring] = np.arange(len(occurring))
    sets = np.empty((len(codes), l), dtype=np.int64)
    step = max(1, _CHUNK // len(occurring))
    for start in range(0, len(codes), step):
        part = codes[start : start + step]
        # The order of exponential waiting times with rates `counts` is the order of draws without replacement.
        waiting = -np.log1p(-stream.uniforms(len(occurring), len(part)).T) / counts[occurring]
        waiting[np.arange(len(part)), place[part]] = -1.0
        sets[start : start + step] = occurring[np.argpartition(waiting, l - 1, axis=1)[:, :l]]
    sets.sort(axis=1)
    return sets


def value_groups(counts: Ints, l: int) -> Ints:
    """The group of each value: l at a time from the most frequent on.

    Values left over join the last group.

    >>> value_groups(np.array([5, 90, 7, 80, 6]), 2).tolist()
    [1, 0, 1, 0, 1]
    """
    size = len(counts)
    if l > size:
        raise ImpossibleError(f"groups of {l} cannot be made of {size} values")
    labels = np.empty(size, dtype=np.int64)
    labels[np.argsort(-counts, kind="stable")] = np.minimum(np.arange(size) // l, size // l - 1)
    return labels


def rating_table(codes: Sequence[Ints], groups: Sequence[Ints]) -> Floats:
    """The cross-tabulation that group numbers show, records spread evenly over combinations.

    codes   the true values of each attribute
    groups  the group of each value of each attribute
    """
    shape = tuple(int(group.max()) + 1 for group in groups)
    numbers = tuple(group[code] for group, code in zip(groups, codes, strict=True))
    records = np.bincount(np.ravel_multi_index(numbers, shape), minlength=int(np.prod(shape))).reshape(shape)
    table: Floats = records[np.ix_(*groups)].astype(np.float64)
    for axis, group in enumerate(groups):
        share = 1.0 / np.bincount(group)[group]
        table *= share.reshape([-1 if place == axis else 1 for place in range(len(groups))])
    return table
