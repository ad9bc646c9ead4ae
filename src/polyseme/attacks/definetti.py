"""The deFinetti adversary: learns from the release itself how untouched columns and sensitive values go together.

Anyone can fit a naive Bayes model to a release: start from what each set says, estimate how frequent each value of a
column is among each sensitive value, revise the beliefs, repeat (Kifer 2009).

    belief(r, v)  ~  P(v) P(R | v) * product over columns j of P_j(q_rj | v) / P_j(q_rj)

where
    r, v          a record and one of the candidates of its set R
    P(v)          estimated from the beliefs
    P_j(q | v)    estimated from the beliefs, with half a record for each level of the column added, spread like P_j
    P_j(q)        the share of the records with this level

A value outside the set, where the mechanism may lie, is taken to have columns like anybody's. A column with about as
many levels as there are records teaches nothing and is left out.

With the original, success is the observed share of right best guesses. Without, each third of the records is judged by
what was learnt from the other two, and how often that is right is estimated without bias (`estimators/judging.py`): it
exceeds the bound when three standard errors above it. The adversary's own confidence is never held against a promise:
who fits and guesses from the same sets is too sure (0.511 where 0.503 is right). Where valid sets are too many to go
through it is shown as the success, and judges nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from polyseme.arrays import Floats, Ints
from polyseme.attacks.base import hit_rate, largest_share, significantly_above
from polyseme.attacks.posterior import uniform
from polyseme.attacks.scene import Scene, Shown
from polyseme.estimators.judging import Judge, Judged, folds
from polyseme.estimators.learnt import combined
from polyseme.mechanism import Mechanism
from polyseme.results.findings import Finding

__all__ = ["attack", "lacks"]

_ROUNDS = 20
"""Revisions of the beliefs; 100 change the share of right guesses by less than 0.001 (6,000 records, 4 columns)."""

_SMOOTHING = 0.5
"""Half a record for each level (Jeffreys), so that a level that was never seen is unlikely, not impossible."""
_FEWEST = 2
"""Records that share a level of a column on average; with fewer there is nothing to learn from it."""
_FOLDS = 3
"""Each third of the records is judged by what was learnt from the others: more of them take longer to fit."""
_TABLE = 4_000_000
"""Levels of all columns times values up to which what they say of other records is written down."""
_DENSE = 4
"""Up to so many times as many possible codes as records are numbered in an array instead of by sorting."""


@dataclass(frozen=True, eq=False)
class _Column:
    """An untouched column beside the candidates. Only pairs of a value and a level that occur are looked at.

    levels  how many different values the column has
    pair    the number of the pair of each candidate and the record's level: (n, l)
    value   the value of each pair
    share   the share of the records that have the level of each pair
    """

    levels: int
    pair: Ints
    value: Ints
    share: Floats

    @classmethod
    def beside(cls, sets: Ints, feature: Ints) -> _Column | None:
        found, level = _numbered(feature)
        if _FEWEST * len(found) > len(feature):
            return None
        pairs, pair = _numbered((sets * len(found) + level[:, None]).ravel())
        share = np.bincount(level) / len(feature)
        return cls(len(found), pair.reshape(sets.shape), pairs // len(found), share[pairs % len(found)])

    def evidence(self, belief: Floats, held: Floats) -> Floats:
        """`ln P_j(q | v) / P_j(q)` for each candidate; `held` is the belief in each value in all records."""
        together = np.bincount(self.pair.ravel(), weights=belief.ravel(), minlength=len(self.value))
        added = _SMOOTHING * self.levels
        told: Floats = np.log((together / self.share + added) / (held[self.value] + added))
        return told[self.pair]


def _numbered(codes: Ints) -> tuple[Ints, Ints]:
    """The different codes, ascending, and the number of each code among them; sorted only where they are sparse."""
    if len(codes) and codes.min() >= 0 and codes.max() < _DENSE * len(codes):
        there = np.zeros(int(codes.max()) + 1, dtype=np.int64)
        there[codes] = 1
        return np.flatnonzero(there), (np.cumsum(there) - 1)[codes]
    found, number = np.unique(codes, return_inverse=True)
    return found, number


def lacks(scene: Scene) -> str:
    if scene.column is None:
        return "published sets"
    return "" if scene.features is not None and scene.features.shape[1] else "untouched columns"


def attack(scene: Scene) -> tuple[Finding, ...]:
    """On published sets, with the untouched columns of their records.

    The promise about a guess holds for those who share the prior. Nobody can be kept from learning more about people in
    general, so this adversary is shown beside its baseline, and has no bound unless one was promised for it.
    """
    if scene.features is None:
        return ()
    shown, bound = scene.shown, scene.promised.learned
    belief = _beliefs(shown.sets, shown.mechanism, _columns(shown.sets, scene.features))
    success = confidence = float(belief.max(axis=1).mean())
    detail, exceeded = {"confidence": confidence}, False
    if scene.truth is not None:
        hits = hit_rate(belief, shown.sets == scene.truth[:, None])
        success = float(hits.mean())
        exceeded = significantly_above(float(hits.sum()), len(hits), bound)
    elif (judged := _judged(shown, scene.features)) is not None:
        judged = judged.of_draws(shown.repeats)
        success = judged.success
        exceeded = bound is not None and judged.surely_above(bound)
        detail |= {"error": judged.error}
    finding = Finding(
        "definetti",
        shown.attribute,
        success,
        bound,
        largest_share(scene.truth, uniform(shown.mechanism.size)),
        exceeded,
        knows="the whole release, and everybody's quasi-identifiers",
        gains="the value, where quasi-identifiers and sensitive values are associated",
        helps="a larger l, coarser quasi-identifiers, or protecting them as well",
        detail=detail,
    )
    return (finding,)


def _columns(sets: Ints, features: Ints) -> list[_Column]:
    """Those that teach something."""
    return [column for feature in features.T if (column := _Column.beside(sets, feature)) is not None]


def _judged(shown: Shown, features: Ints) -> Judged | None:
    """How often what was learnt from most records is right about the others; None where that cannot be told."""
    judge, size = Judge.of(shown.mechanism), shown.mechanism.size
    coded = [_numbered(feature)[1] for feature in features.T]
    coded = [code for code in coded if _FEWEST * (int(code.max(initial=0)) + 1) <= len(code)]
    if judge is None or sum(int(code.max(initial=0)) + 1 for code in coded) * size > _TABLE:
        return None
    levels, scores = np.column_stack([np.zeros(len(shown.sets), dtype=np.int64), *coded]), []
    for fit, rest in folds(len(levels), _FOLDS):
        kinds = combined(levels[rest])
        # Too many kinds of records: some of them are judged, of all places of the release.
        spaced = slice(None, None, -(-(int(kinds.max(initial=0)) + 1) // judge.most_kinds))
        mine, kinds = rest[spaced], np.unique(kinds[spaced], return_inverse=True)[1]
        learnt = _Learnt.from_records(shown.sets[fit], shown.mechanism, levels[fit], levels.max(axis=0) + 1)
        first = mine[np.unique(kinds, return_index=True)[1]]
        score = judge.scores(learnt.shares_of(levels[first]), learnt.share, shown.sets[mine], kinds)
        if score is None:
            return None
        scores.append(score)
    return Judged.of(scores)


@dataclass(frozen=True, eq=False)
class _Learnt:
    """A fitted model, to be used on other records.

    share     `P(v)`
    evidence  for each column `ln P_j(q | v) / P_j(q)`, a row for each level: (levels, F)
    """

    share: Floats
    evidence: Sequence[Floats]

    @classmethod
    def from_records(cls, sets: Ints, mechanism: Mechanism, codes: Ints, levels: Ints) -> _Learnt:
        belief = _beliefs(sets, mechanism, _columns(sets, codes))
        held: Floats = np.bincount(sets.ravel(), belief.ravel(), mechanism.size).astype(np.float64)
        tables = [_evidence(sets, belief, held, code, count) for code, count in zip(codes.T, levels.tolist())]
        return cls(_shares(sets, belief, held / held.sum()), tables)

    def shares_of(self, codes: Ints) -> Floats:
        """How likely each value is for records with these levels, up to a factor of the record: (n, F)."""
        told = np.zeros((len(codes), len(self.share)))
        for table, code in zip(self.evidence, codes.T):
            told += table[code]
        shares: Floats = self.share * np.exp(told - told.max(axis=1, keepdims=True))
        return shares


def _evidence(sets: Ints, belief: Floats, held: Floats, code: Ints, levels: int) -> Floats:
    """Like `_Column.evidence`, for every level and value; nothing is said of a level that was not seen."""
    size, share = len(held), np.bincount(code, minlength=levels) / max(len(code), 1)
    together = np.bincount((code[:, None] * size + sets).ravel(), belief.ravel(), levels * size).reshape(levels, size)
    seen, added = share > 0.0, _SMOOTHING * int(np.count_nonzero(share))
    told = np.zeros((levels, size))
    told[seen] = np.log((together[seen] / share[seen, None] + added) / (held + added))
    return told


def _beliefs(sets: Ints, mechanism: Mechanism, columns: Sequence[_Column]) -> Floats:
    """How much each candidate is believed in: (n, l). A row adds up to less than 1 where the set may be a lie."""
    inside, outside = mechanism.weights(sets)
    share = uniform(mechanism.size)
    belief = np.zeros(sets.shape)
    for step in range(_ROUNDS + 1):
        evidence = np.zeros(sets.shape)
        if step:
            share = _shares(sets, belief, share)
            held = np.asarray(np.bincount(sets.ravel(), belief.ravel(), mechanism.size), dtype=np.float64)
            for column in columns:
                evidence += column.evidence(belief, held)
        # Scaled by the largest of the record, so that nothing overflows.
        top = np.maximum(evidence.max(axis=1), 0.0)
        belief = inside * share[sets] * np.exp(evidence - top[:, None])
        lie = outside * np.maximum(1.0 - share[sets].sum(axis=1), 0.0) * np.exp(-top)
        belief /= np.maximum(belief.sum(axis=1) + lie, np.finfo(np.float64).tiny)[:, None]
    return belief


def _shares(sets: Ints, belief: Floats, share: Floats) -> Floats:
    """`P(v)` from the beliefs; what is not believed of a set is spread over the values outside it like before."""
    beyond = np.maximum(1.0 - share[sets].sum(axis=1), np.finfo(np.float64).tiny)
    lie = np.maximum(1.0 - belief.sum(axis=1), 0.0) / beyond
    members = np.bincount(sets.ravel(), weights=belief.ravel(), minlength=len(share))
    lies = lie.sum() - np.bincount(sets.ravel(), weights=np.repeat(lie, sets.shape[1]), minlength=len(share))
    shares: Floats = (members + share * np.maximum(lies, 0.0)) / len(sets)
    return shares
