"""How often an attacker who knows the distribution in each group guesses right, estimated from a release.

To put estimated shares in place of the true ones misleads either way: where they are drawn towards everybody's they are
too much alike (income at (3, 4), 20,000 records in 20 groups: 71.4% instead of 75.4%), and where they are not, chance
makes them differ. So what was learned from some records is judged by others (`estimators/judging.py`), which tells
without bias how often *that* is right. An attacker who knows the truth is right a little more often, by

    regret = V(pi) - V(pi, guessing by shares learned from so many records)

which is computed for releases drawn from the estimated shares, as if these were the true ones.

    between success - z error and success + regret + z error

Columns that tell something may seem to tell nothing where records are few. So the upper limit is not below that of an
attacker who takes as many columns as groups can have, whether they seem to tell something or not, nor below that of one
who combines all columns (`attacks/definetti.py`). Where records say next to nothing, no upper limit is below one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Self

import numpy as np

from polyseme.arrays import Floats, Ints
from polyseme.estimators.judging import FOLDS, Judge, judged_groups
from polyseme.estimators.learnt import learnt_shares, like_everybody
from polyseme.kernel.work import check_cancelled
from polyseme.mechanism import Mechanism
from polyseme.randomness import SystemStream, experiment

__all__ = ["Reached", "reached"]

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
        """The way of learning that gets furthest, with an upper limit for all of them; None where there is none."""
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
    added = like_everybody(sets, group, mechanism) if group.any() else None
    judged = judged_groups(sets, group, mechanism, added=added)
    judge = Judge.of(mechanism)
    if judged is None or judge is None:
        return None
    shares = learnt_shares(sets, group, mechanism, added=added)
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
        learnt = learnt_shares(drawn, mine, mechanism, len(shares), added)
        lost.append(best - _value(judge, weights, shares, learnt))
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
