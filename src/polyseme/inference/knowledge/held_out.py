"""How often an attacker who knows the distribution in each group guesses right.

The number is estimated from a release, without bias and with its standard error. A rule names a value from a published
set R and a kind q of record. Its own certainty proves nothing: an attacker who picks the highest estimate picks its
error too. But its chance for a person with the value v is known,

    s(q, v) = sum over R of P(R | v) [the rule names v]

and what it gets right is the mean of that over people, whose values are not known but for whom their sets stand in:

    w(R) = A^-1 h(R)        h_v(R) = P(R | v) / P(R)        A_uv = sum over R of P(R | u) P(R | v) / P(R)

has the mean of an indicator, `E[w_u(R) | v] = [u = v]`, for every distribution P(R) > 0 of sets. With the true one no
other choice has a smaller error. So the mean of `s(q, .) . w(R)` over records is unbiased, as long as neither the rule
nor P(R) was learned from these very records: each fold of a release is judged by a rule from the other folds.

Folds that judge each other are not independent: what one has by chance, the rule of the other does not know, and the
other way round, so the same product of two chances is counted twice. Where nothing but chance decides between
candidates that doubles the variance, elsewhere it does nothing. The standard error reckons with the former (measured,
with three folds and all candidates alike: 1.35 times that of independent records, and 1.41 are reckoned with).

To put estimated shares in place of the true ones misleads either way: where they are drawn toward the shares of all
people they are too much alike (income at (3, 4), 20,000 records in 20 groups: 71.4% instead of 75.4%), and where they
are not, chance makes them differ. So what was learned from some records is judged by others, which says without bias
how often *that* is right. An attacker who knows the truth is right a little more often, by

    regret = V(pi) - V(pi, guessing by shares learned from so many records)

which is computed for releases drawn from the estimated shares, as if these were the true ones.

    between success - z error and success + regret + z error

Informative columns may seem to say nothing where records are few. So the upper limit is not below that of an attacker
who takes as many columns as groups can have, whether they seem informative or not, nor below that of one who combines
all columns (`polyseme.scrutiny.attacks.definetti`). Where records say next to nothing, no upper limit is below one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, reduce
from math import sqrt
from typing import TYPE_CHECKING, Self

import numpy as np

from polyseme.designs.mechanism import Mechanism
from polyseme.inference.counts import distinct, ranked
from polyseme.inference.knowledge.learned import learned_shares, like_everyone
from polyseme.kernel.arrays import Bools, Floats, Ints
from polyseme.kernel.randomness import SystemStream, experiment
from polyseme.kernel.work import check_cancelled
from polyseme.strata import Strata, by_stratum

if TYPE_CHECKING:
    from scipy.sparse import csc_array

__all__ = ["Judge", "Judged", "Reached", "folds", "judged_groups", "judged_strata", "likeliest", "reached", "scored"]

FOLDS = 5
"""Each rule is learned from four fifths of the records."""
_SETS = 50_000
"""Valid sets that are gone through at the most."""
_CELLS = 10_000_000
"""Values times sets, and kinds of records times values, that are held at a time at the most (80 MB)."""
_KEPT, _JUDGES = 200_000, 64
"""Values times sets of a judge that is kept for the next question about its mechanism (1.6 MB), and how many are kept.
Groups, folds and attributes ask for the same ones again and again."""
_WORK = 100_000_000
"""Kinds of records times sets times candidates that are gone through at the most: about three seconds."""
_BLOCK = 200_000
"""Cells worked on together: few enough to stay in the cache of a processor."""
_EVEN = 0.05
"""Part of P(R) in which all values are alike, so that no set is taken to be impossible by mistake."""
_TWICE = 2.0
"""By how much folds that judge each other raise the variance at worst."""
_SINGULAR = 1e-9
"""Relative error of a solution above which published sets cannot answer."""


@dataclass(frozen=True)
class Judged:
    """How often a rule is right, and the standard error of that."""

    success: float
    error: float

    def surely_above(self, bound: float) -> bool:
        """By three standard errors: chance alone does that to one in 700."""
        return self.success - 3.0 * self.error > bound

    def of_draws(self, repeats: float) -> Judged:
        """The same where so many records share a draw: they say as much as one."""
        return Judged(self.success, self.error * sqrt(repeats))

    @classmethod
    def of(cls, scores: Sequence[Floats]) -> Judged | None:
        """From what each record says; None of too few."""
        every = np.concatenate(scores) if scores else np.zeros(0)
        if len(every) < 2:
            return None
        return cls(float(every.mean()), float(every.std(ddof=1) * sqrt(_TWICE / len(every))))


def folds(records: int, count: int = FOLDS) -> Iterator[tuple[Ints, Ints]]:
    """The records that a rule is learned from, and those it is judged by.

    Rows of a release are in random order.
    """
    fold = np.arange(records) % count
    for number in range(count):
        check_cancelled()
        yield np.flatnonzero(fold != number), np.flatnonzero(fold == number)


@dataclass(frozen=True, eq=False)
class Judge:
    """Goes through the valid sets of a mechanism.

    sets     all of them: (S, l)
    channel  `P(R | v)`: (F, S)
    """

    mechanism: Mechanism
    sets: Ints
    channel: Floats

    @classmethod
    def of(cls, mechanism: Mechanism) -> Judge | None:
        """None where there are too many sets to go through."""
        return _kept(mechanism) or (cls.listing(mechanism) if cls.lists(mechanism) else None)

    @classmethod
    def listing(cls, mechanism: Mechanism) -> Judge:
        return cls(mechanism, *mechanism.channel())

    @staticmethod
    def lists(mechanism: Mechanism) -> bool:
        """Whether there are few enough sets to go through."""
        return mechanism.design.has_at_most(min(_SETS, _CELLS // mechanism.size))

    @cached_property
    def tells_apart(self) -> bool:
        """Whether sets tell all values apart: the shares of no two differ that have the same sets."""
        expected = self.channel.sum(axis=0)
        scaled = self.channel[:, expected > 0.0] / np.sqrt(expected[expected > 0.0])
        values = np.linalg.eigvalsh(scaled @ scaled.T)
        return bool(values[0] > _SINGULAR * values[-1])

    @property
    def most_kinds(self) -> int:
        """Kinds of records that can be judged in reasonable time."""
        return max(min(_WORK // self.sets.size, _CELLS // self.mechanism.size), 1)

    def scores(self, belief: Floats, shares: Floats, sets: Ints, kinds: Ints) -> Floats | None:
        """What each record says about the success of a guesser: (n,), each unbiased.

        None where sets cannot tell.

        belief  how likely he takes each value to be for each kind of record, up to a factor: (kinds, F)
        shares  of the values among everybody, about; decides nothing but the error
        sets    candidates of each record: (n, l)
        kinds   the kind of each record, from 0 on
        """
        places = self._places(sets)
        if (places < 0).any():
            # Not drawn as the manifest says: `verify` finds that, and nothing follows from them.
            return None
        chances = self.chances(belief)
        speaking = self._speaking(shares)
        solved = np.linalg.lstsq(self.channel @ speaking, chances.T, rcond=1e-12)[0]
        if np.abs(self.channel @ speaking @ solved - chances.T).max(initial=0.0) > _SINGULAR * len(self.sets):
            return None
        scores: Floats = np.einsum("nv,vn->n", speaking[places], solved[:, kinds])
        return scores

    def _speaking(self, shares: Floats) -> Floats:
        """`h_v(R)`: (S, F)."""
        even = 1.0 / self.mechanism.size
        expected = ((1.0 - _EVEN) * shares + _EVEN * even) @ self.channel
        return np.divide(self.channel, expected, out=np.zeros_like(self.channel), where=expected > 0.0).T

    def chances(self, belief: Floats) -> Floats:
        """`s(q, v)`, how often a guess about a person of kind q with value v is right: (kinds, F)."""
        found, step = np.zeros(belief.shape), max(_BLOCK // self.sets.size, 1)
        inside, outside = self.mechanism.weights(self.sets)
        for start in range(0, len(belief), step):
            mine = slice(start, start + step)
            named, beyond = likeliest(belief[mine], self.sets, inside, outside)
            for drawing, right in zip(self._drawing, named):
                found[mine] += (drawing @ right.astype(np.float64)).T
            if beyond is not None:
                mode = belief[mine].argmax(axis=1)
                found[np.arange(len(belief))[mine], mode] += (self.channel[mode] * beyond.T).sum(axis=1)
        return found

    @cached_property
    def _drawing(self) -> list[csc_array]:
        """For each place in a set, `P(R | v)` of the values that stand there: (F, S)."""
        from scipy.sparse import csc_array

        every, shape = np.arange(len(self.sets) + 1), self.channel.shape
        return [csc_array((self.channel[value, every[:-1]], value, every), shape=shape) for value in self.sets.T]

    def _places(self, sets: Ints) -> Ints:
        """Which of all sets each record has; -1 for one that the mechanism never draws."""
        _, which = distinct(np.concatenate([self.sets, sets]), self.mechanism.size)
        place = np.full(int(which.max(initial=0)) + 1, -1, dtype=np.int64)
        place[which[: len(self.sets)]] = np.arange(len(self.sets))
        return place[which[len(self.sets) :]]


@lru_cache(maxsize=_JUDGES)
def _kept(mechanism: Mechanism) -> Judge | None:
    """A judge that is small enough to be kept."""
    return Judge.listing(mechanism) if mechanism.lists(_KEPT) else None


def likeliest(score: Floats, sets: Ints, inside: Floats, outside: Floats) -> tuple[list[Bools], Bools | None]:
    """Whether each place of a set holds its likeliest value, by kind of record: (S, kinds).

    And whether it is none of them but the likeliest of all values; None where that cannot be.

    score    how likely each value is before, up to a factor: (kinds, F)
    inside   `P(R | v)` up to a factor of the set, for its members: (S, l)
    outside  the same for any other value: (S,)
    """
    rows = np.ascontiguousarray(score.T)
    members = [rows[value] * weight[:, None] for value, weight in zip(sets.T, inside.T)]
    best = reduce(np.maximum, members)
    # If the likeliest of all values is a member, then it is likelier still inside than outside: no other value
    # matters.
    beyond = outside[:, None] * rows.max(axis=0) > best if outside.any() else None
    left, named = np.ones(best.shape, dtype=bool) if beyond is None else ~beyond, []
    for member in members:
        # Of several that are alike, the first one.
        named.append((member == best) & left)
        left &= ~named[-1]
    return named, beyond


def judged_groups(
    sets: Ints, group: Ints, mechanism: Mechanism, count: int = FOLDS, added: float | None = None
) -> Judged | None:
    """How often an attacker who estimates the shares of each group is right.

    None where sets cannot tell.

    sets   candidates of each record: (n, l)
    group  of each record, from 0 on
    count  folds
    added  see `learned_shares`
    """
    return judged_strata(sets, group, Strata.alone(mechanism), np.zeros(len(sets), dtype=np.int64), count, added)


def judged_strata(
    sets: Ints, group: Ints, strata: Strata, places: Ints, count: int = FOLDS, added: float | None = None
) -> Judged | None:
    """The same where records have mechanisms of their own; sets are in codes of the domain."""
    groups, scores = int(group.max(initial=0)) + 1, list[Floats]()
    for fit, rest in folds(len(sets), count):
        shares = learned_shares(sets[fit], group[fit], strata, groups, added, places[fit])
        score = scored(shares, shares.mean(axis=0), sets[rest], group[rest], strata, places[rest])
        if score is None:
            return None
        scores.append(score)
    return Judged.of(scores)


def scored(belief: Floats, shares: Floats, sets: Ints, kinds: Ints, strata: Strata, places: Ints) -> Floats | None:
    """What each record says about the success of a guesser, over all strata; see `Judge.scores`."""
    found = np.empty(len(sets))
    for number, rows in by_stratum(places):
        member = strata.members[number]
        judge, allowed = Judge.of(member.mechanism), member.allowed
        present, dense = ranked(kinds[rows])
        if judge is None or len(present) > judge.most_kinds:
            return None
        own = shares[allowed] / max(float(shares[allowed].sum()), np.finfo(np.float64).tiny)
        score = judge.scores(belief[np.ix_(present, allowed)], own, member.narrow(sets[rows]), dense)
        if score is None:
            return None
        found[rows] = score
    return found


_RELEASES = 3
"""Releases drawn to see what is lost by learning: their mean is known to a tenth or so, of something small."""
_NORMAL = 1.959964
"""Standard errors on both sides of 95%."""
_VAGUE = 0.08
"""Standard error from which on records say next to nothing: what learning loses is then not known either."""


@dataclass(frozen=True)
class Reached:
    """How often an attacker is right.

    success  with what he learned from most of the records
    regret   how much more often with the true distribution
    error    the standard error of `success`
    finer    the highest upper limit for attackers who learn in other ways; 0 where there are none
    unknown  the share of the records of which nothing is known: between none and all of them are guessed right
    """

    success: float
    regret: float
    error: float
    finer: float = 0.0
    unknown: float = 0.0

    @property
    def estimate(self) -> float:
        """With the true distribution."""
        return min(max(self.success + self.regret, 0.0), 1.0)

    @property
    def low(self) -> float:
        return min(max(self.success - _NORMAL * self.error, 0.0), self.estimate)

    @property
    def high(self) -> float:
        known = min(self.estimate + _NORMAL * self.error, 1.0) if self.error < _VAGUE else 1.0
        return min(max((1.0 - self.unknown) * known + self.unknown, self.finer), 1.0)

    def of_draws(self, repeats: float) -> Self:
        """The same where so many records share a draw: they say as much as one.

        With 20 records a person, limits without this hold the truth in two of three cases.
        """
        return replace(self, error=self.error * sqrt(repeats))

    @classmethod
    def largest(cls, ways: Sequence[Self]) -> Self | None:
        """The way of learning that gets furthest, with an upper limit for all of them.

        None where there is none.
        """
        best = max(ways, key=lambda way: way.estimate, default=None)
        return None if best is None else replace(best, finer=max(way.high for way in ways))

    @classmethod
    def over(cls, parts: Sequence[Self | None], weights: Sequence[float]) -> Self | None:
        """Over strata, which have nothing to do with each other; a share of the people in each.

        None where nothing is known of any of them.
        """
        known = [(part, weight) for part, weight in zip(parts, weights, strict=True) if part is not None]
        if not known:
            return None
        shares = np.array([weight for _, weight in known]) / sum(weight for _, weight in known)
        errors = shares * [part.error for part, _ in known]
        return cls(
            float(shares @ [part.success for part, _ in known]),
            float(shares @ [part.regret for part, _ in known]),
            sqrt(float(errors @ errors)),
            unknown=1.0 - sum((1.0 - part.unknown) * weight for part, weight in known) / sum(weights),
        )


def reached(sets: Ints, group: Ints, mechanism: Mechanism) -> Reached | None:
    """For an attacker who knows the distribution in each group; None where sets cannot tell.

    sets   candidates of each record: (n, l)
    group  of each record, from 0 on
    """
    # One number from all records is no knowledge about any of them.
    added = like_everyone(sets, group, mechanism) if group.any() else None
    judged = judged_groups(sets, group, mechanism, added=added)
    judge = Judge.of(mechanism)
    if judged is None or judge is None:
        return None
    shares = learned_shares(sets, group, mechanism, added=added)
    # Values that no set tells apart may be known from elsewhere.
    unknown = 0.0 if judge.tells_apart else 1.0
    return Reached(judged.success, _regret(shares, group, judge, added), judged.error, unknown=unknown)


def _regret(shares: Floats, group: Ints, judge: Judge, added: float | None) -> float:
    """What is lost by learning, if these were the true shares of the groups."""
    mechanism, weights = judge.mechanism, np.bincount(group, minlength=len(shares)) / len(group)
    best = _value(judge, weights, shares, shares)
    lost = []
    for number in range(_RELEASES):
        check_cancelled()
        mine = group[np.arange(len(group)) % FOLDS != number % FOLDS]
        drawn = mechanism.sample(_drawn(shares, mine, number), SystemStream.seeded(number))
        learned = learned_shares(drawn, mine, mechanism, len(shares), added)
        lost.append(best - _value(judge, weights, shares, learned))
    return max(float(np.mean(lost)), 0.0)


def _drawn(shares: Floats, group: Ints, seed: int) -> Ints:
    """A value for each record of a group."""
    uniform, steps = experiment(seed).random(len(group)), np.cumsum(shares, axis=1)
    # All groups one after the other on one line: the steps of group q lie between q and q + 1.
    steps /= steps[:, -1:]
    flat = (steps + np.arange(len(steps))[:, None]).ravel()
    values = np.searchsorted(flat, group + uniform, side="right") - group * shares.shape[1]
    return np.asarray(np.clip(values, 0, shares.shape[1] - 1), dtype=np.int64)


def _value(judge: Judge, weights: Floats, shares: Floats, belief: Floats) -> float:
    """The success of beliefs about groups."""
    return float(weights @ (shares * judge.chances(belief)).sum(axis=1))
