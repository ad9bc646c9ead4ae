"""The success of an attacker who learns a group's distribution from its other records.

To count a record when its own value is guessed is trivial in small groups: ten records of a group "know" themselves.
So each record is guessed at from the others, shrunk toward the whole table:

    b_q(u) = n_qu - t [u = v] + s m_u        guess from R: the u with the largest b_q(u) P(R | u)

where
    n_qu     records of group q with value u, `v` the value of the record at hand
    t        how many records its person has in the group with this value: 1, unless persons have several
    s        the strength of the shrinking, one for all groups: the one with which the attacker is right most often
    m_u      the shares of the whole table; the attacker who shrinks without limit knows nothing else

Nothing is drawn for that where sets can be listed: the chance of a value is a sum over sets, and all records with the
same group and value have the same. Where sets are too many, they are drawn (`_DRAWN`), and what the attacker gains over
the shares of the whole table is added to what follows exactly from these.

Groups by many columns are too small to teach anything. Another attacker takes all columns one by one (naive Bayes):

    b_r(u) = (n_u - t [u = v]) * product over columns j of (n_ju - t_j [u = v] + s p_j) / ((n_u - t [u = v] + s) p_j)

where
    n_ju     records with the level of column j that the record at hand has, and with value u; `n_u` all with value u
    t_j, t   how many of these its person has
    p_j      the share of the records with this level

The record itself is left out everywhere. Were it counted in `n_u` alone, a level that no other record has would favor
its value: 59% where 51% is right. Without limit to s the attacker knows `m_u` and nothing else, as above.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from polyseme.designs.mechanism import Mechanism
from polyseme.kernel.arrays import Bools, Floats, Ints
from polyseme.kernel.randomness import SystemStream
from polyseme.privacy.analysis.learner import success

if TYPE_CHECKING:
    from scipy.sparse import csc_array

__all__ = ["Columns", "LeftOut", "Part", "Served", "composition", "gained", "held", "information", "left_out", "shrunk"]

STRENGTHS = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1_000.0, inf)
"""Records like everybody that may be added to each group: steps of three lose less than 0.005 of the best success."""
_SETS = 50_000
"""Valid sets that are listed at the most."""
_WORK = 300_000_000
"""Groups times sets times candidates times strengths that are gone through: about five seconds."""
_BLOCK = 200_000
"""Cells worked on together: few enough to stay in the cache of a processor."""
_DENSE = 4
"""Cells of a table for each record up to which counting is quicker than sorting."""
_DRAWN = 100_000
"""Sets drawn where they are too many to list: a success is then known to 0.003."""
_GUESSED = 20_000
"""Different records at the most that are guessed at from their columns; of more, evenly spaced ones."""
_BELIEFS = 20_000_000
"""Different records times values at the most (160 MB)."""
_TIED = 1e-9
"""Relative difference of scores up to which the attacker tosses a coin."""


@dataclass(frozen=True, eq=False)
class Part:
    """The groups that one mechanism serves.

    counts  records by group and value of the mechanism: (G, F)
    own     for each number of records that a person has in a group with one value, the records of such persons: (G, F)
    whole   shares of the whole table among the values of the mechanism: (F,)
    """

    mechanism: Mechanism
    counts: Floats
    own: Mapping[int, Floats]
    whole: Floats

    @property
    def records(self) -> float:
        return float(self.counts.sum())


@dataclass(frozen=True)
class LeftOut:
    """What the attacker reaches over all parts.

    before    without the release
    after     with it
    whole     the same two for an attacker who knows the shares of the whole table, and nothing about groups
    high      the same for an attacker who knows the exact composition of each group
    strength  of the shrinking under which records are likeliest that were left out: what groups are, not how to guess
    drawn     whether sets were drawn, so that `after` and `high` are estimates
    """

    before: float
    after: float
    whole: tuple[float, float]
    high: float
    strength: float
    drawn: bool = False


def shrunk(counts: Floats, whole: Floats, strength: float) -> Floats:
    """What is believed of each group, up to a factor: (G, F)."""
    return np.broadcast_to(whole, counts.shape) if strength == inf else counts + strength * whole


def left_out(parts: Sequence[Part]) -> LeftOut:
    """The attacker with the strength that suits him best, one for all parts."""
    records = sum(part.records for part in parts)
    before = {strength: sum(_before(part, strength) for part in parts) / records for strength in STRENGTHS}
    work = [_way(part, len(parts) * (len(STRENGTHS) + 1)) for part in parts]
    reached = {strength: sum(one.reached(strength) for one in work) / records for strength in STRENGTHS}
    guessed = max(before.values())
    after, high = max(*reached.values(), guessed), sum(one.known() for one in work) / records
    strength = max(STRENGTHS, key=lambda strength: sum(_likely(part, strength) for part in parts))
    drawn = any(isinstance(one, _Draws) for one in work)
    return LeftOut(guessed, after, (before[inf], reached[inf]), max(high, after), strength, drawn)


def _likely(part: Part, strength: float) -> float:
    """The logarithm of the chance of all records, each given the others of its group."""
    found, people = 0.0, part.counts.sum(axis=1)
    for taken, own in part.own.items():
        rows, values = np.nonzero(own)
        share = part.whole[values]
        if strength < inf:
            share = part.counts[rows, values] - taken + strength * share
            share /= people[rows] - taken + strength
        found += float(own[rows, values] @ np.log(share))
    return found


def composition(parts: Sequence[Part]) -> float:
    """How often an attacker is right who knows the exact composition of each group."""
    return sum(_way(part, len(parts)).known() for part in parts) / sum(part.records for part in parts)


def _way(part: Part, times: int) -> _Listed | _Draws:
    """All sets where that is not too much work so many times, otherwise drawn ones."""
    return _Listed.of(part, _WORK // times) or _Draws.of(part)


def _before(part: Part, strength: float) -> float:
    """Records that are guessed right without their sets."""
    belief = shrunk(part.counts, part.whole, strength)
    others, found = _best_other(belief), 0.0
    for taken, own in part.own.items():
        mine = _lowered(belief, taken, strength)
        tied = np.abs(mine - others) <= _TIED * mine
        found += float(own[(mine > others) & ~tied].sum()) + _tied_before(belief, mine, own, tied)
    return found


def _tied_before(belief: Floats, mine: Floats, own: Floats, tied: Bools) -> float:
    rows, values = np.nonzero(tied & (own > 0.0))
    if not len(rows):
        return 0.0
    score = mine[rows, values][:, None]
    alike = np.abs(belief[rows] - score) <= _TIED * score
    alike[np.arange(len(rows)), values] = True
    return float((own[rows, values] / alike.sum(axis=1)).sum())


def _lowered(belief: Floats, taken: int, strength: float) -> Floats:
    """The belief in each value when the records of one person who has it are left out: (G, F)."""
    return belief if strength == inf else np.maximum(belief - taken, 0.0)


def _best_other(belief: Floats) -> Floats:
    """For each value the largest belief in any other: (G, F)."""
    if belief.shape[1] == 1:
        return np.zeros(belief.shape)
    rows, mode = np.arange(len(belief)), belief.argmax(axis=1)
    top = np.partition(belief, -2, axis=1)
    others = np.repeat(top[:, -1:], belief.shape[1], axis=1)
    others[rows, mode] = top[:, -2]
    return others


@dataclass(frozen=True, eq=False)
class _Listed:
    """Goes through all sets.

    sets     (S, l)
    inside   `P(R | v)` of their members: (S, l)
    outside  of any other value: (S,)
    """

    part: Part
    sets: Ints
    inside: Floats
    outside: Floats

    @classmethod
    def of(cls, part: Part, most: int) -> _Listed | None:
        """None where that would be more work than `most` for each strength."""
        mechanism, design = part.mechanism, part.mechanism.design
        sets = min(_SETS, most // (mechanism.l * len(part.counts) * max(len(part.own), 1)))
        if sets < 1 or not design.has_at_most(sets):
            return None
        listed = design.sets()
        outside = (1.0 - mechanism.p) * design.blind_likelihood(listed)
        return cls(part, listed, mechanism.p * design.likelihood(listed) + outside[:, None], outside)

    def known(self) -> float:
        """Records guessed right by an attacker who knows the composition of each group."""
        return float(sum(self._best(block).sum() for block in self._blocks(self.part.counts)))

    def reached(self, strength: float) -> float:
        """Records guessed right by an attacker who shrinks so much."""
        part, found = self.part, 0.0
        if strength == inf:
            # Groups are all alike.
            total = part.counts.sum(axis=0, keepdims=True)
            return float((self._chances(part.whole[None, :], part.whole[None, :]) * total).sum())
        step = self._step
        for start in range(0, len(part.counts), step):
            mine = slice(start, start + step)
            belief = shrunk(part.counts[mine], part.whole, strength)
            for taken, own in part.own.items():
                found += float((self._chances(belief, _lowered(belief, taken, strength)) * own[mine]).sum())
        return found

    @property
    def _step(self) -> int:
        return max(_BLOCK // self.sets.size, 1)

    def _blocks(self, rows: Floats) -> Iterator[Floats]:
        return (rows[start : start + self._step] for start in range(0, len(rows), self._step))

    @cached_property
    def _drawing(self) -> list[csc_array]:
        """For each place in a set, `P(R | v)` of the value that stands there: (F, S)."""
        from scipy.sparse import csc_array

        every, shape = np.arange(len(self.sets) + 1), (self.part.mechanism.size, len(self.sets))
        return [
            csc_array((chance, value, every), shape=shape)
            for chance, value in zip(self.inside.T.copy(), self.sets.T.copy())
        ]

    def _members(self, belief: Floats) -> list[Floats]:
        """The scores at each place of each set: (g, S)."""
        return [belief[:, value] * weight for value, weight in zip(self.sets.T, self.inside.T)]

    def _best(self, belief: Floats) -> Floats:
        """`sum over R of max over v of b(v) P(R | v)`: (g,)."""
        best = reduce(np.maximum, self._members(belief))
        found: Floats = np.maximum(best, belief.max(axis=1)[:, None] * self.outside).sum(axis=1)
        return found

    def _chances(self, belief: Floats, lowered: Floats) -> Floats:
        """How often a value with this belief is guessed right, the others unchanged: (g, F)."""
        members, lies = self._members(belief), bool(self.outside.any())
        others = _best_other(belief) if lies else None
        found = np.zeros(belief.shape)
        for place, (value, weight, drawing) in enumerate(zip(self.sets.T, self.inside.T, self._drawing)):
            mine = lowered[:, value] * weight
            rest = [member for number, member in enumerate(members) if number != place]
            if others is not None:
                rest = [*rest, others[:, value] * self.outside]
            found += (drawing @ _won(mine, rest).T).T
        if others is not None:
            found += self._unseen(members, belief, others, lowered)
        return found

    def _unseen(self, members: Sequence[Floats], belief: Floats, others: Floats, lowered: Floats) -> Floats:
        """The success from sets without the value: only the likeliest of all values are guessed."""
        found = np.zeros(lowered.shape)
        rows, values = np.nonzero(lowered >= (1.0 - _TIED) * others)
        own = lowered[rows, values][:, None]
        alike = np.abs(belief[rows] - own) <= _TIED * own
        alike[np.arange(len(rows)), values] = True
        away = ~np.any([value == values[:, None] for value in self.sets.T], axis=0)
        won = _won(own * self.outside, [member[rows] for member in members]) * away
        found[rows, values] = (won * self.outside).sum(axis=1) / alike.sum(axis=1)
        return found


def _won(mine: Floats, others: Sequence[Floats]) -> Floats:
    """1 where a score is above all others, 1/2 for a tie with one, and so on; 0 where below."""
    if not others:
        return np.ones(mine.shape)
    best = reduce(np.maximum, others)
    won = (mine > best).astype(np.float64)
    tied = np.abs(mine - best) <= _TIED * mine
    if tied.any():
        alike = [np.abs(np.broadcast_to(one, mine.shape)[tied] - mine[tied]) <= _TIED * mine[tied] for one in others]
        won[tied] = 1.0 / (1.0 + np.sum(alike, axis=0))
    return won


@dataclass(frozen=True, eq=False)
class _Draws:
    """Draws sets for records of all groups.

    group, value, taken  of the records: (n,)
    sets, inside, outside  drawn for them, as in `_Listed`
    scale                how many records each of them stands for
    """

    part: Part
    group: Ints
    value: Ints
    taken: Ints
    sets: Ints
    inside: Floats
    outside: Floats
    scale: float

    @classmethod
    def of(cls, part: Part) -> _Draws:
        every = part.own or {0: part.counts}
        cells = [
            np.column_stack([*own.nonzero(), np.full(np.count_nonzero(own), taken)]) for taken, own in every.items()
        ]
        group, value, taken = np.concatenate(cells).T
        weight = np.concatenate([own[own.nonzero()] for own in every.values()])
        # Evenly spaced records, each several times where they are few.
        places = (np.arange(_DRAWN) + 0.5) * (weight.sum() / _DRAWN)
        chosen = np.minimum(np.searchsorted(np.cumsum(weight), places, side="right"), len(weight) - 1)
        group, value, taken = group[chosen], value[chosen], taken[chosen]
        sets = part.mechanism.sample(value, SystemStream.seeded(0))
        return cls(part, group, value, taken, sets, *part.mechanism.weights(sets), float(weight.sum()) / _DRAWN)

    def known(self) -> float:
        gained = self._hits(self.part.counts, np.zeros(len(self.value))) - self._hits(*self._alike)
        return self._exact + float(gained.sum()) * self.scale

    def reached(self, strength: float) -> float:
        if strength == inf:
            return self._exact
        belief = shrunk(self.part.counts, self.part.whole, strength)
        gained = self._hits(belief, self.taken.astype(np.float64)) - self._hits(*self._alike)
        return self._exact + float(gained.sum()) * self.scale

    @property
    def _alike(self) -> tuple[Floats, Floats]:
        return np.broadcast_to(self.part.whole, self.part.counts.shape), np.zeros(len(self.value))

    @cached_property
    def _exact(self) -> float:
        """Success of an attacker who knows the distribution, exactly or from draws."""
        shares = self.part.counts.sum(axis=0)
        known = success(self.part.mechanism, shares / shares.sum(), self.part.whole)
        return float(self._hits(*self._alike).sum()) * self.scale if known is None else known * self.part.records

    def _hits(self, belief: Floats, taken: Floats) -> Floats:
        """The chance that each record is guessed right: (n,)."""
        rows = np.arange(len(self.value))
        members = belief[self.group[:, None], self.sets] * self.inside
        here = self.sets == self.value[:, None]
        own = np.maximum(belief[self.group, self.value] - taken, 0.0)
        there = here.any(axis=1)
        weight = np.where(there, self.inside[rows, here.argmax(axis=1)], self.outside)
        others = [np.where(mine, -inf, member) for mine, member in zip(here.T, members.T)]
        if self.outside.any():
            others = [*others, _best_other(belief)[self.group, self.value] * self.outside]
        return _won(own * weight, others)


def held(pairs: Ints, persons: Ints) -> Ints:
    """How many records the person of each record has with the same code: (n,).

    >>> held(np.array([5, 5, 7, 5]), np.array([1, 1, 1, 2])).tolist()
    [2, 2, 1, 1]
    """
    order = np.lexsort((persons, pairs))
    new = np.ones(len(order), dtype=bool)
    new[1:] = (np.diff(pairs[order]) != 0) | (np.diff(persons[order]) != 0)
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.cumsum(new) - 1
    return np.asarray(np.bincount(number)[number], dtype=np.int64) if len(order) else number


def information(group: Ints, values: Ints, size: int, whole: Floats, persons: Ints | None = None) -> float:
    """What groups say about values, in nats: each record is judged by the others of its group.

    With the strength that suits best; 0 where no group is worth telling apart.

    values   of each record, or its candidates: (n, l)
    whole    how often each value occurs among all of them, adding up to 1
    persons  whose records they are, if some have several: a person is judged by others

    >>> told = information(np.array([0, 0, 0, 1, 1, 1]), np.array([[0], [0], [0], [1], [1], [1]]), 2, np.full(2, 0.5))
    >>> round(told, 2)
    3.75
    """
    pairs, width = group[:, None] * size + values, values.shape[1]
    cells, left, many = _alike(pairs.ravel(), None if persons is None else np.repeat(persons, width))
    together = np.bincount(ranked := np.unique(cells, return_inverse=True)[1], many)[ranked] - left
    others = width * (np.bincount(group)[cells // size] - left)
    share = whole[cells % size]
    gains = [
        float(many @ (np.log(together + strength * share) - np.log((others + strength) * share)))
        for strength in STRENGTHS[:-1]
    ]
    return max(*gains, 0.0)


def _counted(codes: Ints) -> tuple[Ints, Ints]:
    """The codes that occur, ascending, and how often each does."""
    if codes.max(initial=0) < _DENSE * len(codes):
        counts = np.bincount(codes)
        return np.flatnonzero(counts), counts[counts > 0]
    return np.unique(codes, return_counts=True)


def _alike(pairs: Ints, persons: Ints | None) -> tuple[Ints, Ints, Ints]:
    """Pairs of group and value that occur, the records left out for one, and their counts.

    Records of the same pair whose persons have as many of them are judged alike.
    """
    if persons is None:
        cells, many = _counted(pairs)
        return cells, np.ones_like(cells), many
    taken = held(pairs, persons)
    most = int(taken.max(initial=1)) + 1
    alike, many = np.unique(pairs * most + taken, return_counts=True)
    return alike // most, alike % most, many


@dataclass(frozen=True, eq=False)
class Columns:
    """Records with the columns that are taken one by one.

    values   of the records: (n,)
    levels   of the columns, from 0 on: (n, q)
    size     F, the number of values
    persons  whose records they are, if some have several
    """

    values: Ints
    levels: Ints
    size: int
    persons: Ints | None = None

    def beliefs(self, rows: Ints, allowed: Ints, strength: float) -> Floats:
        """What all others say about the possible values of some records: (rows, allowed)."""
        if strength == inf:
            return np.broadcast_to(self._people[allowed] / len(self.values), (len(rows), len(allowed)))
        values, every = self.values[rows], np.arange(len(rows))
        own = self._before(self._people[values] - self._left[rows], strength)
        evidence = np.broadcast_to(self._before(self._people, strength), (len(rows), self.size)).copy()
        for level, table, left in zip(self.levels.T, self._tables, self._left_beside):
            here = level[rows]
            share = table.sum(axis=1) / len(self.values)
            added = strength * share
            evidence += np.log(table + added[:, None])[here] - np.log(share)[here, None]
            own += np.log(table[here, values] - left[rows] + added[here]) - np.log(share)[here]
        evidence[every, values] = own
        evidence = evidence[:, allowed]
        top = evidence.max(axis=1, keepdims=True)
        belief: Floats = np.exp(evidence - np.where(np.isfinite(top), top, 0.0))
        return belief

    def _before(self, people: Floats, strength: float) -> Floats:
        """What the number of records with a value says before any column does; the logarithm."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(people) - self.levels.shape[1] * np.log(people + strength))

    def alike(self, rows: Ints) -> tuple[Ints, Floats]:
        """One of each kind of records that are guessed at alike, and how many there are of its kind."""
        known = self._kinds.get(id(rows))
        if known is None or known[0] is not rows:
            known = self._kinds[id(rows)] = (rows, *self._alike(rows))
        return known[1], known[2]

    @cached_property
    def _kinds(self) -> dict[int, tuple[Ints, Ints, Floats]]:
        """What `alike` found, with the rows; it does not depend on a mechanism."""
        return {}

    def _alike(self, rows: Ints) -> tuple[Ints, Floats]:
        kind = self.values[rows]
        for column in [*self.levels.T, self._left, *self._left_beside]:
            kind = np.unique(kind * (int(column.max(initial=0)) + 1) + column[rows], return_inverse=True)[1]
        _, first, many = np.unique(kind, return_index=True, return_counts=True)
        return rows[first], many.astype(np.float64)

    @cached_property
    def _people(self) -> Floats:
        return np.bincount(self.values, minlength=self.size).astype(np.float64)

    @cached_property
    def _tables(self) -> list[Floats]:
        """For each column how many records have each level and value: (levels, F)."""
        counts = [int(level.max(initial=0)) + 1 for level in self.levels.T]
        return [
            np.bincount(level * self.size + self.values, minlength=count * self.size).reshape(count, -1).astype(float)
            for level, count in zip(self.levels.T, counts)
        ]

    @cached_property
    def _left(self) -> Ints:
        return self._held(self.values)

    @cached_property
    def _left_beside(self) -> list[Ints]:
        return [self._held(level * self.size + self.values) for level in self.levels.T]

    def _held(self, codes: Ints) -> Ints:
        return np.ones_like(codes) if self.persons is None else held(codes, self.persons)


@dataclass(frozen=True, eq=False)
class Served:
    """The records that one mechanism serves: their rows, and the values that it has, ascending."""

    mechanism: Mechanism
    rows: Ints
    allowed: Ints


def gained(columns: Columns, served: Sequence[Served]) -> tuple[float, float]:
    """How much more often an attacker with all columns is right than one with the whole table.

    Without the release and with it, each with the strength that suits him best.
    """
    records = sum(len(one.rows) for one in served)
    most = max(min(_GUESSED, _BELIEFS // columns.size) // max(len(served), 1), 1)
    shown = [_Shown.of(columns, one, most, len(served)) for one in served if len(one.rows)]
    right = np.array([np.sum([one.right(columns, strength) for one in shown], axis=0) for strength in STRENGTHS])
    before, after = (right - right[-1]).max(axis=0) / max(records, 1)
    return float(before), float(after)


@dataclass(frozen=True, eq=False)
class _Shown:
    """Records that are guessed at, and the sets that they may be published with.

    allowed  the values of the mechanism, as codes of the domain
    rows     the records: (n,)
    value    of each, as a code of the mechanism
    weight   how many records each stands for
    listed   for each value the sets that it may be published with, see `_by_value`
    drawn    where they are too many: as many drawn sets for each record, one record after the other, see `_weighed`
    """

    allowed: Ints
    rows: Ints
    value: Ints
    weight: Floats
    listed: Sequence[tuple[Ints, Floats]]
    drawn: tuple[Ints, Floats] | None

    @classmethod
    def of(cls, columns: Columns, served: Served, most: int, parts: int) -> _Shown:
        rows, weight = columns.alike(served.rows)
        if len(rows) > most:
            places = (np.arange(most) + 0.5) * (weight.sum() / most)
            rows = rows[np.minimum(np.searchsorted(np.cumsum(weight), places, side="right"), len(rows) - 1)]
            weight = np.full(most, weight.sum() / most)
        mechanism, value = served.mechanism, np.searchsorted(served.allowed, columns.values[rows])
        work = len(rows) * (mechanism.size if mechanism.p < 1.0 else -(-(mechanism.l**2) // mechanism.size))
        sets = min(_SETS, _WORK // (parts * len(STRENGTHS) * work))
        if sets >= 1 and mechanism.design.has_at_most(sets):
            return cls(served.allowed, rows, value, weight, _by_value(mechanism), None)
        named = mechanism.size if mechanism.p < 1.0 else mechanism.l
        times = max(min(_DRAWN // parts, _BELIEFS // named) // len(rows), 1)
        drawn = mechanism.sample(np.repeat(value, times), SystemStream.seeded(0))
        return cls(served.allowed, rows, value, weight, (), _weighed(drawn, *mechanism.weights(drawn), mechanism.size))

    def right(self, columns: Columns, strength: float) -> tuple[float, float]:
        """Records guessed right by an attacker who shrinks so much, without and with their sets."""
        belief = columns.beliefs(self.rows, self.allowed, strength)
        own = belief[np.arange(len(belief)), self.value]
        every = np.arange(belief.shape[1])
        rest = np.where(every == self.value[:, None], -inf, belief)
        before = float(self.weight @ _won(own, list(rest.T)))
        return before, float(self.weight @ self._hits(belief))

    def _hits(self, belief: Floats) -> Floats:
        """The chance that each record is guessed right: (n,)."""
        if self.drawn is not None:
            candidates, chance = self.drawn
            row = np.repeat(np.arange(len(belief)), len(candidates) // len(belief))
            won = _named(belief[row[:, None], candidates] * chance, candidates == self.value[row][:, None])
            return np.asarray(won.reshape(len(belief), -1).mean(axis=1))
        found = np.zeros(len(belief))
        for value in np.unique(self.value).tolist():
            candidates, chance = self.listed[value]
            here, mine = candidates == value, np.flatnonzero(self.value == value)
            step = max(_BLOCK // candidates.size, 1)
            for start in range(0, len(mine), step):
                some = mine[start : start + step]
                scores = belief[some][:, candidates] * chance
                found[some] = _named(scores, np.broadcast_to(here, scores.shape)) @ chance[here]
        return found


def _named(scores: Floats, here: Bools) -> Floats:
    """How often the value at the marked place of each set is guessed: (..., S) from (..., S, l)."""
    own = scores[here].reshape(scores.shape[:-1])
    return _won(own, list(np.moveaxis(np.where(here, -inf, scores), -1, 0)))


def _by_value(mechanism: Mechanism) -> list[tuple[Ints, Floats]]:
    """For each value the sets it may be published with, and `P(R | u)` of possible guesses."""
    sets = mechanism.design.sets()
    outside = (1.0 - mechanism.p) * mechanism.design.blind_likelihood(sets)
    inside = mechanism.p * mechanism.design.likelihood(sets) + outside[:, None]
    candidates, chance = _weighed(sets, inside, outside, mechanism.size)
    if outside.any():
        return [(candidates, chance)] * mechanism.size
    having = [(sets == value).any(axis=1) for value in range(mechanism.size)]
    return [(candidates[some], chance[some]) for some in having]


def _weighed(sets: Ints, inside: Floats, outside: Floats, size: int) -> tuple[Ints, Floats]:
    """Possible guesses for each set with `P(R | u)`: its members, or all where it may lie."""
    if not outside.any():
        return sets, inside
    chance = np.repeat(outside[:, None], size, axis=1)
    np.put_along_axis(chance, sets, inside, axis=1)
    return np.broadcast_to(np.arange(size), chance.shape), chance
