"""The attacker who reads the estimates, and guesses the likeliest candidate by them.

A release is published so that distributions can be estimated from it, of everybody and of groups that untouched columns
tell apart. An attacker who has estimated them has a better prior than the reference prior of the promise:

    guess from R in group q:  the v with the largest  share(q, v) P(R | v)

where
    share(q, v)  estimated from the published sets of the group, with a few people like everybody else added

The groups are those of the columns that tell most about the candidates (`scrutiny.knowledge`), as long as a group has
enough records. With the original, success is the observed share of right guesses. Without, each third of the records is
judged by shares estimated from the other two, and how often that is right is estimated without bias
(`inference.knowledge.held_out`): it exceeds the bound when three standard errors above it. Where valid sets are too
many to go through, the attacker's own mean confidence is shown, and judges nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyseme.inference.counts import distinct, ranked
from polyseme.inference.knowledge.held_out import Judged, judged_strata
from polyseme.inference.knowledge.learned import combined, learned_shares, most_groups, telling
from polyseme.kernel.arrays import Floats, Ints
from polyseme.results.attackers import Finding
from polyseme.scrutiny.attacks.scene import Everyone, Scene, largest_share, significantly_above

__all__ = ["attack", "lacks"]

_FOLDS = 3
"""Without the original, each third of the records is judged by what was learned from the others."""


@dataclass(frozen=True, eq=False)
class _Guess:
    """What is guessed of each record, and with which confidence: (n,)."""

    value: Ints
    sure: Floats

    def success(self, truth: Ints | None) -> float:
        return float(self.sure.mean()) if truth is None else float((self.value == truth).mean())


def lacks(scene: Scene) -> str:
    return "published sets" if scene.column is None and scene.strata is None else ""


def attack(scene: Scene) -> tuple[Finding, ...]:
    """On published sets, by margin and, where untouched columns tell something, by group.

    It has no bound unless one was promised for those who learn: the promise about a guess is made for the prior.
    """
    shown, bound, truth = scene.everyone, scene.promised.learned, scene.truth
    all_people = np.zeros(len(shown.sets), dtype=np.int64)
    margin = learned_shares(shown.sets, all_people, shown.strata, places=shown.places)
    best = marginal = _guessed(shown, margin, all_people)
    group = _groups(shown, scene.features)
    if group is not None:
        best = _guessed(shown, learned_shares(shown.sets, group, shown.strata, places=shown.places), group)
    success = best.success(truth)
    detail = {"marginal": marginal.success(truth), "groups": float(1 if group is None else group.max() + 1)}
    exceeded = False
    if truth is not None:
        exceeded = significantly_above(float((best.value == truth).sum()), len(truth), bound)
    elif (judged := _judged(shown, all_people)) is not None:
        detail |= {"marginal": judged.success, "confidence": best.success(None)}
        if group is not None:
            judged = _judged(shown, group) or judged
        judged = judged.of_draws(shown.repeats)
        success, exceeded = judged.success, bound is not None and judged.surely_above(bound)
        detail |= {"error": judged.error}
    detail |= {} if group is None else {"conditional": success}
    finding = Finding(
        "published-estimate",
        shown.attribute,
        success,
        bound,
        largest_share(truth, margin[0]),
        exceeded,
        knows="the distribution of the values, also in groups of people, as estimated from the release",
        gains="the value, where most people of a kind have one of few values",
        helps="a promise about learners, decoys that are believable for the person (a prior by group), or p < 1",
        detail=detail,
    )
    return (finding,)


def _judged(shown: Everyone, group: Ints) -> Judged | None:
    return judged_strata(shown.sets, group, shown.strata, shown.places, _FOLDS)


def _groups(shown: Everyone, features: Ints | None) -> Ints | None:
    """The group of each record, at least by stratum; None where no column is informative."""
    several = bool(shown.places.any())
    if features is None:
        return combined(shown.places[:, None]) if several else None
    most = most_groups(len(shown.sets), shown.size)
    if not several:
        chosen = telling(features, shown.sets, shown.size, most)
        return combined(features[:, chosen]) if chosen else None
    marked = np.column_stack([shown.places, features])
    return combined(marked[:, telling(marked, shown.sets, shown.size, most + int(shown.places.max()), [0])])


def _guessed(shown: Everyone, shares: Floats, group: Ints) -> _Guess:
    """The likeliest value of each record, also outside its set where the mechanism may lie."""
    cells, cell = ranked(group * len(shown.strata.members) + shown.places)
    group, place = cells // len(shown.strata.members), cells % len(shown.strata.members)
    possible = shares[group] * np.array([~member.forbids for member in shown.strata.members])[place]
    different, number = distinct(shown.sets, shown.size)
    pairs, which = np.unique(cell * len(different) + number, return_inverse=True)
    cell, sets = pairs // max(len(different), 1), different[pairs % max(len(different), 1)]
    inside, outside = shown.strata.weights(sets, place[cell])
    members = np.take_along_axis(possible[cell], sets, axis=1)
    joint = members * inside
    total = joint.sum(axis=1) + np.maximum(possible.sum(axis=1)[cell] - members.sum(axis=1), 0.0) * outside
    rows, top = np.arange(len(sets)), joint.argmax(axis=1)
    value, likely = sets[rows, top], joint[rows, top]
    other, share = _likeliest_outside(possible, cell, sets)
    value, likely = np.where(likely >= share * outside, value, other), np.maximum(likely, share * outside)
    sure = np.divide(likely, total, out=np.full(len(sets), 1.0 / sets.shape[1]), where=total > 0.0)
    return _Guess(value[which], sure[which])


def _likeliest_outside(shares: Floats, group: Ints, sets: Ints) -> tuple[Ints, Floats]:
    """For each set, the likeliest value of its group outside it, and its share; 0 if none."""
    heaviest = np.argsort(-shares, axis=1, kind="stable")[:, : sets.shape[1] + 1]
    value, share = np.zeros(len(sets), dtype=np.int64), np.zeros(len(sets))
    for candidate in heaviest.T[::-1]:
        mine = candidate[group]
        there = (sets == mine[:, None]).any(axis=1)
        value, share = np.where(there, value, mine), np.where(there, share, shares[group, mine])
    return value, share
