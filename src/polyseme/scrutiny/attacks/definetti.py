"""The deFinetti attacker: learns from the release how columns and sensitive values relate.

Anyone can fit a naive Bayes model to a release (Kifer 2009).

With the original, success is the observed share of right best guesses. Without, each third of the records is judged by
what was learned from the other two, and how often that is right is estimated without bias
(`inference.knowledge.held_out`): it exceeds the bound when three standard errors above it. The attacker's own
confidence is never held against a promise: who fits and guesses from the same sets is too sure (0.511 where 0.503 is
right). It is shown as a detail: that of the three fits, each in the two thirds it was learned from. Where valid sets
are too many to go through it is that of a fit to all records, is shown as the success, and judges nothing.

The naive Bayes model of untouched columns and sensitive values is fitted to published sets: start from what each set
says, estimate how frequent each level of a column is among each sensitive value, revise the beliefs, repeat:

    belief(r, v)  ~  P(v) P(R | v) * product over columns j of P_j(q_rj | v) / P_j(q_rj)

where
    r, v          a record and one of the candidates of its set R
    P(v)          estimated from the beliefs
    P_j(q | v)    estimated from the beliefs, with half a record for each level of the column added, spread like P_j
    P_j(q)        the share of the records with this level

A value outside the set, where the mechanism may lie, is taken to have columns like any record's. A column with about as
many levels as there are records teaches nothing and is left out.

A report fits this hundreds of times, so all columns are looked at together, and arrays have a row for each place in a
set and a column for each record: sums over the few candidates of a record are then sums of long rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from polyseme.designs.mechanism import Mechanism
from polyseme.inference.counts import ranked
from polyseme.inference.knowledge.held_out import Judge, Judged, folds, scored
from polyseme.inference.knowledge.learned import combined
from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.work import check_cancelled
from polyseme.results.attackers import Finding
from polyseme.scrutiny.attacks.scene import Everyone, Scene, hit_rate, largest_share, significantly_above, uniform

if TYPE_CHECKING:
    from scipy.sparse import csc_array, csr_array

__all__ = ["Learned", "attack", "beliefs", "beliefs_of", "judged", "lacks", "levels_of"]

_ROUNDS = 20
"""Revisions of the beliefs; 100 change the share of right guesses by less than 0.001 (6,000 records, 4 columns)."""
_SMOOTHING = 0.5
"""Half a record for each level (Jeffreys), so that a level that was never seen is unlikely, not impossible."""
_RECORDS_PER_LEVEL = 2
"""Records that share a level of a column on average; with fewer there is nothing to learn from it."""
_TINY = np.finfo(np.float64).tiny


def levels_of(features: Ints) -> Ints:
    """The columns that teach something, their levels numbered from 0 on: (n, q)."""
    numbered = [ranked(feature)[1] for feature in features.T]
    kept = [level for level in numbered if _RECORDS_PER_LEVEL * (int(level.max(initial=0)) + 1) <= len(level)]
    return np.column_stack(kept) if kept else np.zeros((len(features), 0), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class _Pairs:
    """The pairs of a value and a level that occur in one column.

    number  of the pair of each candidate and the record's level: (l n,)
    value   of each pair
    share   of the records that have the level of each pair
    added   to the records of each value
    """

    number: Ints
    value: Ints
    share: Floats
    added: Floats

    @classmethod
    def beside(cls, candidates: Ints, level: Ints) -> _Pairs | None:
        people = np.bincount(level)
        some = int(np.count_nonzero(people))
        if _RECORDS_PER_LEVEL * some > len(level):
            return None
        pairs, number = ranked((candidates * len(people) + level).ravel())
        share = people[pairs % len(people)] / len(level)
        return cls(number, pairs // len(people), share, np.full(len(pairs), _SMOOTHING * some))


@dataclass(frozen=True, eq=False)
class _Columns:
    """The untouched columns beside the candidates of some records.

    beside  a 1 for each candidate and each of its pairs, one pair a column: (l n, pairs)
    having  the same, for each pair its candidates: (pairs, l n)
    value, share, added  of the pairs of all columns, see `_Pairs`
    """

    beside: csr_array
    having: csc_array
    value: Ints
    share: Floats
    added: Floats

    @classmethod
    def of(cls, candidates: Ints, levels: Ints) -> _Columns | None:
        """None where no column teaches anything."""
        from scipy.sparse import csr_array

        columns = [pairs for level in levels.T if (pairs := _Pairs.beside(candidates, level)) is not None]
        if not columns:
            return None
        starts = np.cumsum([0, *(len(column.value) for column in columns)])
        numbers = np.column_stack([column.number + start for column, start in zip(columns, starts.tolist())])
        rows, shape = np.arange(0, numbers.size + 1, len(columns)), (len(numbers), int(starts[-1]))
        beside = csr_array((np.ones(numbers.size), numbers.ravel(), rows), shape=shape)
        return cls(
            beside,
            beside.T,
            np.concatenate([column.value for column in columns]),
            np.concatenate([column.share for column in columns]),
            np.concatenate([column.added for column in columns]),
        )

    def evidence(self, belief: Floats, held: Floats) -> Floats:
        """The sum of `ln P_j(q | v) / P_j(q)` for each candidate; `held` is the belief in values."""
        together = self.having @ belief.ravel()
        logs = np.log((together / self.share + self.added) / (held[self.value] + self.added))
        return np.asarray(self.beside @ logs, dtype=np.float64).reshape(belief.shape)


def beliefs(sets: Ints, mechanism: Mechanism, levels: Ints) -> Floats:
    """The belief in each candidate: (n, l). A row sums to less than 1 if the set may be a lie.

    levels  of untouched columns, from 0 on: (n, q)
    """
    return beliefs_of(sets, mechanism.weights(sets), mechanism.size, levels)


def beliefs_of(sets: Ints, weights: tuple[Floats, Floats], size: int, levels: Ints) -> Floats:
    """The same for a domain of `size` values, with the weights of each record's own mechanism."""
    return _fitted(np.ascontiguousarray(sets.T), *weights, size, levels).T


def _fitted(candidates: Ints, inside: Floats, outside: Floats, size: int, levels: Ints) -> Floats:
    """The beliefs after all rounds: (l, n)."""
    inside, columns = np.ascontiguousarray(inside.T), _Columns.of(candidates, levels)
    lies, share, evidence = bool(outside.any()), uniform(size), np.zeros(candidates.shape)
    belief = _revised(share[candidates], inside, outside, evidence, lies)
    for _ in range(_ROUNDS):
        check_cancelled()
        held = _held(candidates, belief, size)
        share = _shares(candidates, belief, held, share, lies)
        if columns is not None:
            evidence = columns.evidence(belief, held)
        belief = _revised(share[candidates], inside, outside, evidence, lies)
    return belief


def _held(candidates: Ints, belief: Floats, size: int) -> Floats:
    """The belief in each value, in all records together."""
    return np.asarray(np.bincount(candidates.ravel(), belief.ravel(), size), dtype=np.float64)


def _revised(share: Floats, inside: Floats, outside: Floats, evidence: Floats, lies: bool) -> Floats:
    """The beliefs in candidates with these shares: (l, n)."""
    # Scaled by the largest of the record, so that nothing overflows.
    top = np.maximum(evidence.max(axis=0), 0.0)
    belief: Floats = inside * share * np.exp(evidence - top)
    total = belief.sum(axis=0)
    if lies:
        total += outside * np.maximum(1.0 - share.sum(axis=0), 0.0) * np.exp(-top)
    belief /= np.maximum(total, _TINY)
    return belief


def _shares(candidates: Ints, belief: Floats, held: Floats, share: Floats, lies: bool) -> Floats:
    """`P(v)` from the beliefs; the remaining belief is spread over other values as before."""
    records = belief.shape[1]
    if not lies:
        return np.asarray(held / records)
    beyond = np.maximum(1.0 - share[candidates].sum(axis=0), _TINY)
    lie = np.maximum(1.0 - belief.sum(axis=0), 0.0) / beyond
    spread = lie.sum() - np.bincount(candidates.ravel(), np.tile(lie, len(candidates)), len(share))
    shares: Floats = (held + share * np.maximum(spread, 0.0)) / records
    return shares


@dataclass(frozen=True, eq=False)
class Learned:
    """A fitted model, to be used on other records.

    share     `P(v)`
    evidence  for each column `ln P_j(q | v) / P_j(q)`, a row for each level: (levels, F)
    sure      how sure it is on average of its best guesses at the records it was learned from
    """

    share: Floats
    evidence: Sequence[Floats]
    sure: float

    @classmethod
    def from_records(cls, sets: Ints, mechanism: Mechanism, levels: Ints, counts: Sequence[int]) -> Learned:
        """From candidates (n, l) and levels (n, q) of untouched columns.

        `counts` is how many levels.
        """
        return cls.of(sets, mechanism.weights(sets), mechanism.size, levels, counts)

    @classmethod
    def of(cls, sets: Ints, weights: tuple[Floats, Floats], size: int, levels: Ints, counts: Sequence[int]) -> Learned:
        """The same for a domain of `size` values, with the weights of each record's own mechanism."""
        candidates, (inside, outside) = np.ascontiguousarray(sets.T), weights
        belief = _fitted(candidates, inside, outside, size, levels)
        held = _held(candidates, belief, size)
        tables = [_evidence(candidates, belief, held, level, count) for level, count in zip(levels.T, counts)]
        share = _shares(candidates, belief, held, held / held.sum(), bool(outside.any()))
        return cls(share, tables, float(belief.max(axis=0).mean()))

    def shares_of(self, levels: Ints) -> Floats:
        """How likely each value is for records with these levels, up to a factor a record: (n, F)."""
        logs = np.zeros((len(levels), len(self.share)))
        for table, level in zip(self.evidence, levels.T):
            logs += table[level]
        shares: Floats = self.share * np.exp(logs - logs.max(axis=1, keepdims=True))
        return shares


def _evidence(candidates: Ints, belief: Floats, held: Floats, level: Ints, count: int) -> Floats:
    """`_Columns.evidence` of one column for every level and value; zero for unseen levels."""
    size, share = len(held), np.bincount(level, minlength=count) / max(len(level), 1)
    together = np.bincount((level * size + candidates).ravel(), belief.ravel(), count * size).reshape(count, size)
    seen, added = share > 0.0, _SMOOTHING * int(np.count_nonzero(share))
    logs = np.zeros((count, size))
    logs[seen] = np.log((together[seen] / share[seen, None] + added) / (held + added))
    return logs


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
        knows="the whole release, and the quasi-identifiers of all people",
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
        learned = Learned.of(teaching.sets, teaching.weights(), shown.size, levels[fit], counts)
        first = mine[np.unique(kinds, return_index=True)[1]]
        belief = learned.shares_of(levels[first])
        score = scored(belief, learned.share, others.sets, kinds, others.strata, others.places)
        if score is None:
            return None
        scores.append(score)
        sure.append(learned.sure)
    found = Judged.of(scores)
    return None if found is None else (found.of_draws(shown.repeats), float(np.mean(sure)))
