"""The deFinetti attacker: learns from the release how columns and sensitive values relate.

Anyone can fit a naive Bayes model to a release (Kifer 2009): `naive_bayes.py`.

With the original, success is the observed share of right best guesses. Without, each third of the records is judged by
what was learned from the other two, and how often that is right is estimated without bias
(`inference.knowledge.held_out`): it exceeds the bound when three standard errors above it. The attacker's own
confidence is never held against a promise: who fits and guesses from the same sets is too sure (0.511 where 0.503 is
right). It is shown as a detail: that of the three fits, each in the two thirds it was learned from. Where valid sets
are too many to go through it is that of a fit to all records, is shown as the success, and judges nothing.
"""

from __future__ import annotations

import numpy as np

from polyseme.inference.counts import ranked
from polyseme.inference.knowledge.held_out import Judge, Judged, folds, scored
from polyseme.inference.knowledge.learned import combined
from polyseme.kernel.arrays import Ints
from polyseme.results.attackers import Finding
from polyseme.scrutiny.attacks.naive_bayes import Learnt, beliefs_of, levels_of
from polyseme.scrutiny.attacks.scene import Everyone, Scene, hit_rate, largest_share, significantly_above, uniform

__all__ = ["attack", "judged", "lacks"]

_FOLDS = 3
"""Each third of the records is judged by what was learned from the others: more of them take longer to fit."""
_FEWEST = 2
"""Records of which one can be judged by another."""
_TABLE = 4_000_000
"""Levels of all columns times values up to which what they say of other records is written down."""


def lacks(scene: Scene) -> str:
    if scene.column is None and scene.strata is None:
        return "published sets"
    return "" if scene.features is not None and scene.features.shape[1] else "untouched columns"


def attack(scene: Scene) -> tuple[Finding, ...]:
    """On published sets, with the untouched columns of their records.

    The promise about a guess holds for attackers with the prior. No method keeps an attacker from learning about people
    in general, so this attack is shown beside its baseline, and has no bound unless one was promised for it.
    """
    if scene.features is None:
        return ()
    shown, bound, levels = scene.everyone, scene.promised.learned, levels_of(scene.features)
    if scene.truth is None and (found := judged(shown, levels)) is not None:
        reached, confidence = found
        success, exceeded = reached.success, bound is not None and reached.surely_above(bound)
        detail = {"confidence": confidence, "error": reached.error}
    else:
        belief, exceeded = beliefs_of(shown.sets, shown.weights(), shown.size, levels), False
        success = confidence = float(belief.max(axis=1).mean())
        detail = {"confidence": confidence}
        if scene.truth is not None:
            hits = hit_rate(belief, shown.sets == scene.truth[:, None])
            success = float(hits.mean())
            exceeded = significantly_above(float(hits.sum()), len(hits), bound)
    finding = Finding(
        "definetti",
        shown.attribute,
        success,
        bound,
        largest_share(scene.truth, uniform(shown.size)),
        exceeded,
        knows="the whole release, and everybody's quasi-identifiers",
        gains="the value, where quasi-identifiers and sensitive values are associated",
        helps="a larger l, coarser quasi-identifiers, or protecting them as well",
        detail=detail,
    )
    return (finding,)


def judged(shown: Everyone, levels: Ints) -> tuple[Judged, float] | None:
    """How often what was learned from most records is right about the others; None if unknown.

    And how sure those are who learned it, of the records they learned it from.
    """
    judges = [Judge.of(member.mechanism) for member in shown.strata.members]
    most = min((0 if judge is None else judge.most_kinds for judge in judges), default=0)
    counts = (levels.max(axis=0, initial=0) + 1).tolist()
    if not most or len(levels) < _FEWEST or sum(counts) * shown.size > _TABLE:
        return None
    scores, sure = [], []
    for fit, rest in folds(len(levels), _FOLDS):
        kinds = combined(levels[rest])
        # Too many kinds of records: some of them are judged, of all places of the release.
        spaced = slice(None, None, -(-(int(kinds.max(initial=0)) + 1) // most))
        mine, kinds = rest[spaced], ranked(kinds[spaced])[1]
        teaching, others = shown.part(fit), shown.part(mine)
        learnt = Learnt.of(teaching.sets, teaching.weights(), shown.size, levels[fit], counts)
        first = mine[np.unique(kinds, return_index=True)[1]]
        belief = learnt.shares_of(levels[first])
        score = scored(belief, learnt.share, others.sets, kinds, others.strata, others.places)
        if score is None:
            return None
        scores.append(score)
        sure.append(learnt.sure)
    found = Judged.of(scores)
    return None if found is None else (found.of_draws(shown.repeats), float(np.mean(sure)))
