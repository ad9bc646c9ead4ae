"""What the set of a record says about its value, given the record's other columns.

The unbiased contribution of a set (see `intervals.unbiased`) is most precise where its working distribution is near
the truth. Here every record has a working distribution of its own: a multinomial logit of the value given the open
columns, fitted on the sets by maximum likelihood,

    sum_i c_i ln sum_v P(R_i | v) p(v | x_i; b) - ridge |b|^2 / 2

A wrong one costs precision and never validity: the contributions are unbiased whatever it is. It follows the open
columns only. A working distribution that followed the published sets themselves would make the contributions depend on
their own noise; drawing its records by distinct sets gave intervals that covered 7% to 68%.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from polyseme.designs.mechanism import Mechanism
from polyseme.inference.axes import inverted
from polyseme.inference.intervals.unbiased import UnbiasedMap, inverse_map
from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.randomness import experiment
from polyseme.strata import Strata

__all__ = ["FLOOR", "SetScores", "fitted_shares", "folds_of", "given_shares"]

FLOOR = 0.02
"""Uniform share of a working distribution: it bounds what a rare set can add. A judgment."""
_LEAST = 1e-12
"""Of a share, so that some candidate of every set has one."""
_RIDGE = 0.1
"""Penalty on the coefficients of standardized columns."""
_ROWS, _CELLS = 20_000, 2_000_000
"""Most records, and records times values, that the working distribution is fitted on: a second or two. A judgment."""
_FOLDED, _FEW, _FOLDS = 10_000, 2_000, 5
"""Records up to which working distributions are fitted to the records of other folds, and up to which there are five
folds; beyond, two."""
_STEPS = 60
"""Most steps of the fit: what is missing to the maximum then costs precision only."""
_GROUPS = 512
"""Most working distributions of one attribute: records with similar ones share their mean."""
_BINS = (16, 8, 4)
"""Bins along the first directions in which working distributions differ."""
_LISTED = 4_000_000
"""Values times sets up to which a channel is listed once for all groups."""
_WORK = 2e10
"""Multiplications up to which the groups have distributions of their own: some 10 s. A judgment."""
_SEED = 20_261_118
"""Any number: the same question has the same answer each time it is asked."""


@dataclass(frozen=True, eq=False)
class SetScores:
    """The sets of one protected attribute, and what they contribute.

    sets     in codes of the domain: (n, l)
    place    the stratum of each record: (n,)
    group    the working distribution of each record: (n,)
    maps     of each working distribution, with the stratum that it belongs to
    """

    strata: Strata
    sets: Ints
    place: Ints
    group: Ints
    maps: tuple[tuple[int, UnbiasedMap], ...]

    @property
    def size(self) -> int:
        """The number of values."""
        return self.strata.size

    @cached_property
    def identifiable(self) -> bool:
        """Whether the values leave different traces in the sets of all strata."""
        return all(each.identifiable for _, each in self.maps)

    def contributions(self, rows: slice) -> Floats:
        """`u_v(R)` of some records: (n, F).

        Its expectation given the true value is 1 there and 0 elsewhere.
        """
        return self._by_group(rows, lambda each, sets: each.contributions(sets))

    def posterior(self, rows: slice) -> Floats:
        """The distribution of the value given the set and the working distribution: (n, F)."""
        return self._by_group(rows, _posterior)

    def _by_group(self, rows: slice, found: Callable[[UnbiasedMap, Ints], Floats]) -> Floats:
        group, sets = self.group[rows], self.sets[rows]
        out = np.zeros((len(group), self.size))
        order = np.argsort(group, kind="stable")
        starts = np.flatnonzero(np.diff(group[order], prepend=-1) > 0)
        for start, end in zip(starts, np.append(starts[1:], len(order))):
            mine = order[start:end]
            number, each = self.maps[group[mine[0]]]
            stratum = self.strata.members[number]
            out[np.ix_(mine, stratum.allowed)] = found(each, stratum.narrow(sets[mine]))
        return out


def _posterior(each: UnbiasedMap, sets: Ints) -> Floats:
    inside, outside = each.mechanism.weights(sets)
    rows = np.repeat(outside[:, None], each.mechanism.size, axis=1)
    np.put_along_axis(rows, sets, inside, axis=1)
    if each.assumed is not None:
        rows = rows * np.maximum(each.assumed, _LEAST)
    return np.asarray(rows / rows.sum(axis=1, keepdims=True), dtype=np.float64)


def folds_of(counts: Ints, people: Ints | None = None) -> Ints | None:
    """A fold for each row, where every row is one record; None where there are many.

    Each fold has working distributions that are fitted to the others. From their own sets they would follow the noise
    of these, and intervals would be too short: with 300 records, variances were 0.7 to 0.9 of what they should be.
    Folds are drawn by records, or people, and never by sets.
    """
    records = len(counts)
    if records > _FOLDED or (counts != 1).any():
        return None
    units = np.arange(records) if people is None else people
    order = experiment(_SEED).permutation(int(units.max(initial=0)) + 1)
    return np.asarray(order[units] % (_FOLDS if records <= _FEW else 2), dtype=np.int64)


def fitted_shares(
    strata: Strata, sets: Ints, place: Ints, features: Floats, counts: Ints, folds: Ints | None = None
) -> SetScores:
    """Contributions with working distributions that are fitted given other columns.

    features  the open columns as numbers: (n, d)
    folds     see `folds_of`
    """
    shifted = _standardized(features, counts)
    folds = np.zeros(len(sets), dtype=np.int64) if folds is None else folds
    group, maps = np.zeros(len(sets), dtype=np.int64), list[tuple[int, UnbiasedMap]]()
    kinds = np.unique(np.column_stack([folds, place]), axis=0)
    several = len(np.unique(folds)) > 1
    for fold in np.unique(folds):
        used = np.where(folds == fold, 0, counts) if several else counts
        coefficients = _fit(strata, sets, place, shifted, used)
        for number in kinds[kinds[:, 0] == fold, 1]:
            stratum, rows = strata.members[number], np.flatnonzero((place == number) & (folds == fold))
            mechanism = stratum.mechanism
            linear = shifted[rows] @ coefficients[:, stratum.allowed]
            member, means = _grouped(linear, _softmax(linear), counts[rows], _most_groups(mechanism, len(kinds)))
            group[rows] = len(maps) + member
            maps += [(int(number), each) for each in _maps(mechanism, means, FLOOR)]
    return SetScores(strata, sets, place, group, tuple(maps))


def given_shares(strata: Strata, sets: Ints, place: Ints, shares: Floats) -> SetScores:
    """Contributions with one working distribution for all records: (F,)."""
    maps = list[tuple[int, UnbiasedMap]]()
    for number, stratum in enumerate(strata.members):
        mine = shares[stratum.allowed]
        maps.append((number, _maps(stratum.mechanism, mine[None] / mine.sum())[0]))
    return SetScores(strata, sets, place, place.copy(), tuple(maps))


def _most_groups(mechanism: Mechanism, strata: int) -> int:
    size = mechanism.size
    listed = mechanism.lists(_LISTED)
    sets = len(mechanism.design.sets()) if listed else size * 50
    return int(max(1, min(_GROUPS // strata, _WORK / max(size**2 * sets, 1))))


def _standardized(features: Floats, counts: Ints) -> Floats:
    """The columns with mean 0 and variance 1, after one of ones; constant columns are left out."""
    weights = counts / max(counts.sum(), 1)
    centered = features - weights @ features
    spread = np.sqrt(weights @ centered**2)
    kept = spread > 1e-12 * (1.0 + np.abs(weights @ features))
    return np.column_stack([np.ones(len(features)), centered[:, kept] / spread[kept]])


def _likelihood(strata: Strata, sets: Ints, place: Ints) -> Floats:
    """`P(R | v)` up to a factor of the set: (n, F)."""
    inside, outside = strata.weights(sets, place)
    rows = np.repeat(outside[:, None], strata.size, axis=1)
    for number in np.unique(place):
        forbidden = strata.members[number].forbids
        if forbidden.any():
            rows[np.ix_(place == number, forbidden)] = 0.0
    np.put_along_axis(rows, sets, inside, axis=1)
    return np.asarray(rows / rows.max(axis=1, keepdims=True), dtype=np.float64)


def _fit(strata: Strata, sets: Ints, place: Ints, features: Floats, counts: Ints) -> Floats:
    """Coefficients of the multinomial logit: (d, F)."""
    from scipy import optimize

    most = max(1, min(_ROWS, _CELLS // strata.size))
    if counts.sum() > most:
        # Records are drawn, and not distinct sets: see above.
        counts = experiment(_SEED).binomial(counts, most / counts.sum())
    rows = np.flatnonzero(counts)
    held, x = counts[rows].astype(np.float64), features[rows]
    likelihood = _likelihood(strata, sets[rows], place[rows])
    shape, records = (x.shape[1], strata.size), max(float(held.sum()), 1.0)
    penalty = np.full(shape, _RIDGE)

    def objective(flat: Floats) -> tuple[float, Floats]:
        b = flat.reshape(shape)
        shares = _softmax(x @ b)
        joint = shares * likelihood
        total = np.maximum(joint.sum(axis=1, keepdims=True), 1e-300)
        gain = held @ np.log(total[:, 0]) - 0.5 * float((penalty * b**2).sum())
        slope = x.T @ ((joint / total - shares) * held[:, None]) - penalty * b
        return -gain / records, -slope.ravel() / records

    start = np.zeros(shape[0] * shape[1])
    found = optimize.minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": _STEPS})
    return np.asarray(found.x.reshape(shape), dtype=np.float64)


def _softmax(linear: Floats) -> Floats:
    shares = np.exp(linear - linear.max(axis=1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True), dtype=np.float64)


def _grouped(linear: Floats, shares: Floats, counts: Ints, most: int) -> tuple[Ints, Floats]:
    """Groups of records with similar working distributions, and their means."""
    member = _similar(linear, shares, most) if most > 1 else np.zeros(len(shares), dtype=np.int64)
    _, member = np.unique(member, return_inverse=True)
    totals = np.bincount(member, weights=counts)
    means = np.column_stack([np.bincount(member, weights=counts * column) for column in shares.T])
    return member.astype(np.int64), means / totals[:, None]


def _similar(linear: Floats, shares: Floats, most: int) -> Ints:
    """Bins along the directions in which the linear predictors of the values differ most."""
    centered = linear - linear.mean(axis=1, keepdims=True)
    centered = (centered - centered.mean(axis=0)) * np.sqrt(shares.mean(axis=0))
    spread, directions = np.linalg.eigh(centered.T @ centered)
    member, groups = np.zeros(len(linear), dtype=np.int64), 1
    for axis, bins in enumerate(_BINS[: len(spread)], start=1):
        bins = int(min(bins, most // groups))
        if bins < 2 or spread[-axis] <= 1e-9 * spread[-1]:
            break
        score = centered @ directions[:, -axis]
        edges = np.unique(np.quantile(score, np.linspace(0.0, 1.0, bins + 1)[1:-1]))
        member = member * (len(edges) + 1) + np.searchsorted(edges, score, side="right")
        groups *= len(edges) + 1
    return member


def _maps(mechanism: Mechanism, shares: Floats, floor: float = 0.0) -> list[UnbiasedMap]:
    """The map of each distribution, with a uniform share mixed into it: (groups, F) -> groups."""
    if mechanism.l == 1 and mechanism.p == 1.0:
        return [inverse_map(mechanism, one) for one in shares]
    mixed = (1.0 - floor) * shares + floor / mechanism.size
    if not mechanism.lists(_LISTED):
        return [_structured(mechanism, one, assumed) for one, assumed in zip(mixed, shares)]
    _, channel = mechanism.channel()
    maps = []
    for one, assumed in zip(mixed, shares):
        expected = one @ channel
        scaled = np.divide(channel, expected, out=np.zeros_like(channel), where=expected > 0.0)
        maps.append(UnbiasedMap(mechanism, *_solved(scaled @ channel.T, one), assumed))
    return maps


def _solved(information: Floats, working: Floats) -> tuple[bool, Floats, Floats]:
    inverse, identifiable = inverted(information)
    return identifiable, working, inverse


def _structured(mechanism: Mechanism, working: Floats, assumed: Floats) -> UnbiasedMap:
    """By the structure of the design, or else by `inverse`."""
    information = mechanism.information(working)
    if information is None:
        return replace(inverse_map(mechanism, assumed), assumed=assumed)
    return UnbiasedMap(mechanism, *_solved(information, working), assumed)
