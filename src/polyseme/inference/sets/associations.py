"""How the values of protected attributes relate, and what all sets of a record reveal.

Sets are drawn independently for each attribute, but true values are not independent. An attacker who knows how the
values of two attributes go together reads the set S of one as a hint about the other, like one more untouched column:

    guess from R and S in group q:  the x with the largest  share(q, x) K(R | x) * sum over y of P(y | x) L(S | y)

where
    K, L         the mechanisms of the attribute that is guessed and of the other one
    share(q, x)  of the values in the group
    P(y | x)     how the values of the other attribute are distributed among people with the value x

With several others the sums are multiplied, as if their values had nothing to do with each other given x.

Both are learned from records, by counting where true values are at hand, by maximum likelihood from pairs of sets where
they are not, and drawn toward what holds for everybody as far as suits records that were left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from polyseme.inference.counts import distinct, ranked
from polyseme.inference.knowledge.learned import ADDED, combined, learned_shares, repeated
from polyseme.inference.likelihood import RecordLikelihood, likelihood_of
from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.randomness import SystemStream
from polyseme.strata import Strata, by_stratum

__all__ = ["LARGEST_TABLE", "Kinds", "Protected", "Rule", "alike", "association_strengths", "information", "learned"]

LARGEST_TABLE = 4_000_000
"""Most combinations of two values whose shares are estimated."""
_LEFT_OUT = 5
"""Every fifth record is left out to see how many people like everybody else suit it."""
_TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True, eq=False)
class Protected:
    """One protected attribute of some records.

    strata  how its sets are drawn
    codes   the true value of each record (n, 1), or its candidates (n, l)
    places  the stratum of each record: (n,)
    exact   whether codes are the true values
    """

    name: str
    strata: Strata
    codes: Ints
    places: Ints
    exact: bool

    @property
    def size(self) -> int:
        return self.strata.members[0].size

    def of(self, rows: Ints) -> Protected:
        """The same of some of the records."""
        return replace(self, codes=self.codes[rows], places=self.places[rows])

    def sets(self, seed: int) -> Ints:
        """What a reader sees: candidates in codes of the domain.

        Drawn where the true values are at hand.
        """
        if not self.exact:
            return self.codes
        stream = SystemStream.seeded(seed)
        return self.strata.sample(
            self.places,
            lambda member, rows: member.mechanism.sample(member.narrow(self.codes[rows, 0]), stream),
        )


def alike(codes: Ints) -> list[Ints]:
    """The rows of each combination of columns that occurs.

    >>> alike(np.array([[1, 0], [0, 0], [1, 0]]))
    [array([1]), array([0, 2])]
    """
    number = combined(codes)
    order = np.argsort(number, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(number[order])) + 1) if len(order) else []


def information(values: Ints, size: int, others: Ints, other_size: int) -> float:
    """Mutual information of random candidates of two attributes, in nats.

    What pure chance would show in a table of this size is taken off (Miller and Madow).
    """
    table = np.zeros(size * other_size)
    for mine in values.T:
        for column in others.T:
            table += np.bincount(mine * other_size + column, minlength=len(table))
    joint = table.reshape(size, other_size) / max(table.sum(), 1.0)
    own, theirs = joint.sum(axis=1), joint.sum(axis=0)
    seen = joint > 0.0
    shared = float(joint[seen] @ np.log((joint / np.maximum(np.outer(own, theirs), _TINY))[seen]))
    chance = (np.count_nonzero(own) - 1) * (np.count_nonzero(theirs) - 1) / (2.0 * max(len(values), 1))
    return float(shared - chance / max(values.shape[1] * others.shape[1], 1))


@dataclass(frozen=True, eq=False)
class Rule:
    """What was learned: the shares of the groups, and for each helper `P(y | x)`."""

    shares: Floats
    tables: tuple[Floats, ...]

    def belief(self, kinds: Kinds) -> Floats:
        """How likely each value is before its own set is seen, up to a factor a kind: (kinds, F)."""
        found = self.shares[kinds.group]
        for table, sets, places, helper in zip(self.tables, kinds.sets, kinds.places, kinds.helpers):
            found = found * _said(table, sets, places, helper.strata)
        return found


@dataclass(frozen=True, eq=False)
class Kinds:
    """Records that look alike, but for the set of the attribute that is guessed.

    group   of each kind
    sets    of each helper: (kinds, l)
    places  of each helper, the stratum of the kind
    """

    group: Ints
    sets: tuple[Ints, ...]
    places: tuple[Ints, ...]
    helpers: tuple[Protected, ...]

    @classmethod
    def of(cls, group: Ints, helpers: Sequence[Protected], sets: Sequence[Ints]) -> tuple[Kinds, Ints]:
        """The kinds that occur, and the kind of each record."""
        marks = [distinct(own, helper.size)[1] for own, helper in zip(sets, helpers)]
        kind = combined(np.column_stack([group, *(helper.places for helper in helpers), *marks]))
        first = np.unique(kind, return_index=True)[1]
        own = tuple(codes[first] for codes in sets)
        return cls(group[first], own, tuple(helper.places[first] for helper in helpers), tuple(helpers)), kind

    def part(self, chosen: Ints) -> Kinds:
        """Some of them."""
        places, sets = (tuple(each[chosen] for each in several) for several in (self.places, self.sets))
        return replace(self, group=self.group[chosen], sets=sets, places=places)


def _said(table: Floats, sets: Ints, places: Ints, strata: Strata) -> Floats:
    """`sum over y of P(y | x) L(S | y)` for each set, up to a factor of the set: (sets, F)."""
    found = np.empty((len(sets), len(table)))
    for number, rows in by_stratum(places):
        member = strata.members[number]
        inside, outside = member.mechanism.weights(member.narrow(sets[rows]))
        total = outside[:, None] * table[:, member.allowed].sum(axis=1)
        for place in range(sets.shape[1]):
            total += table.T[sets[rows, place]] * (inside[:, place] - outside)[:, None]
        found[rows] = total / np.maximum(total.max(axis=1, keepdims=True), _TINY)
    return found


def learned(
    mine: Protected,
    helpers: Sequence[Protected],
    group: Ints,
    groups: int,
    fit: Ints,
    strengths: Sequence[float] | None = None,
) -> Rule:
    """From some of the records.

    strengths  how many people like everybody else are added for each helper; those that suit the records unless given
    """
    own, strengths = mine.of(fit), association_strengths(mine, helpers) if strengths is None else strengths
    tables = tuple(_association(own, helper.of(fit), added) for helper, added in zip(helpers, strengths))
    return Rule(_group_shares(own, group[fit], groups), tables)


def association_strengths(mine: Protected, helpers: Sequence[Protected]) -> list[float]:
    """How many average people suit each helper: under them, left-out records are likeliest."""
    return [_counted_strength(_table(mine, one)) if mine.exact else _joint_strength(mine, one) for one in helpers]


def _group_shares(mine: Protected, group: Ints, groups: int) -> Floats:
    """The shares of the values in each group, drawn toward those of the stratum: (groups, F)."""
    found = np.full((groups, mine.size), 1.0 / mine.size)
    for number, rows in by_stratum(mine.places):
        member = mine.strata.members[number]
        present, dense = ranked(group[rows])
        codes = member.narrow(mine.codes[rows])
        learned = (
            _counted_shares(codes[:, 0], dense, member.mechanism.size)
            if mine.exact
            else learned_shares(codes, dense, member.mechanism, len(present))
        )
        found[np.ix_(present, member.allowed)] = learned
    return found


def _counted_shares(codes: Ints, group: Ints, size: int) -> Floats:
    """Counted shares of each group with prior counts, as many as predict left-out records best."""
    groups = int(group.max(initial=0)) + 1
    counts = np.bincount(group * size + codes, minlength=groups * size).reshape(groups, size).astype(np.float64)
    return _drawn_together(counts)


def _drawn_together(counts: Floats, added: float | None = None) -> Floats:
    """Rows of counts as shares, with the number of prior counts that predicts each record best."""
    held = counts + (_counted_strength(counts) if added is None else added) * _everyone(counts)
    return np.asarray(held / held.sum(axis=1, keepdims=True))


def _everyone(counts: Floats) -> Floats:
    return np.asarray((counts.sum(axis=0) + 1.0 / counts.shape[1]) / (counts.sum() + 1.0))


def _counted_strength(counts: Floats) -> float:
    """Under so many people like everybody else, every record is likeliest given all others."""
    everyone = _everyone(counts)
    return ADDED[int(np.argmax([_likelihood_of_each(counts, added * everyone) for added in ADDED]))]


def _likelihood_of_each(counts: Floats, added: Floats) -> float:
    """The log-likelihood of every record given all others."""
    rest, total = counts + added, (counts + added).sum(axis=1, keepdims=True)
    seen = counts > 0.0
    shares = np.maximum(rest - 1.0, _TINY) / np.maximum(total - 1.0, _TINY)
    return float((counts[seen] * np.log(shares[seen])).sum())


def _table(mine: Protected, other: Protected) -> Floats:
    """How many records have each pair of true values: (F_x, F_y)."""
    counts = np.bincount(mine.codes[:, 0] * other.size + other.codes[:, 0], minlength=mine.size * other.size)
    return counts.reshape(mine.size, other.size).astype(np.float64)


def _association(mine: Protected, other: Protected, added: float) -> Floats:
    """`P(y | x)`, drawn toward how y is distributed in all: (F_x, F_y)."""
    if mine.exact:
        return _drawn_together(_table(mine, other), added)
    joint = _fitted(_parts(mine, other), (mine.size, other.size), added * mine.size)
    return np.asarray(joint / np.maximum(joint.sum(axis=1, keepdims=True), _TINY))


@dataclass(frozen=True, eq=False)
class _Part:
    """Pairs of sets of two strata, and where their values are in the table of all."""

    rows: Ints
    columns: Ints
    likelihood: RecordLikelihood

    def expected(self, joint: Floats) -> Floats:
        """How many records have each combination, if they are distributed like that."""
        block = joint[np.ix_(self.rows, self.columns)]
        chance = np.maximum(self.likelihood.product(block.ravel()), _TINY)
        return block * self.likelihood.pull(self.likelihood.counts / chance).reshape(block.shape)

    def value(self, joint: Floats) -> float:
        block = joint[np.ix_(self.rows, self.columns)]
        chance = self.likelihood.product(block.ravel()) / max(float(block.sum()), _TINY)
        return float(self.likelihood.counts @ np.log(np.maximum(chance, _TINY)))


def _parts(mine: Protected, other: Protected) -> list[_Part]:
    found = []
    for rows in alike(np.column_stack([mine.places, other.places])):
        first, second = mine.strata.members[mine.places[rows[0]]], other.strata.members[other.places[rows[0]]]
        sets = (first.narrow(mine.codes[rows]), second.narrow(other.codes[rows]))
        pair = combined(np.column_stack([distinct(sets[0], mine.size)[1], distinct(sets[1], other.size)[1]]))
        once, counts = np.unique(pair, return_index=True, return_counts=True)[1:]
        likelihood = likelihood_of(
            (sets[0][once], sets[1][once]), counts.astype(np.int64), (first.mechanism, second.mechanism)
        )
        found.append(_Part(first.allowed, second.allowed, likelihood))
    return found


def _joint_strength(mine: Protected, other: Protected) -> float:
    """The same from pairs of sets."""
    left = np.arange(len(mine.codes)) % _LEFT_OUT == 0
    kept, held = (_parts(mine.of(rows), other.of(rows)) for rows in (np.flatnonzero(~left), np.flatnonzero(left)))
    tried = [_fitted(kept, (mine.size, other.size), added * mine.size) for added in ADDED]
    return ADDED[int(np.argmax([sum(part.value(joint) for part in held) for joint in tried]))]


def _fitted(parts: Sequence[_Part], shape: tuple[int, int], added: float) -> Floats:
    """The likeliest table, with added counts under which the two values are independent."""

    def again(flat: Floats) -> Floats:
        joint = flat.reshape(shape)
        found = added * np.outer(joint.sum(axis=1), joint.sum(axis=0))
        for part in parts:
            found[np.ix_(part.rows, part.columns)] += part.expected(joint)
        return np.asarray((found / found.sum()).reshape(1, -1))

    return repeated(again, np.full((1, shape[0] * shape[1]), 1.0 / (shape[0] * shape[1]))).reshape(shape)
