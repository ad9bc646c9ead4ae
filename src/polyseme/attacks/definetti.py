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

With the original, success is the observed share of right best guesses. Without, it is the adversary's own mean
confidence, an estimate: it then counts as exceeding the bound only when three standard errors above it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from polyseme.attacks.base import TOLERANCE, Finding, hit_rate, largest_share, significantly_above
from polyseme.attacks.posterior import uniform
from polyseme.distances.structure import Floats, Ints
from polyseme.mechanism import Mechanism

__all__ = ["attack"]

_SMOOTHING = 0.5
_FEWEST = 2
"""Records that share a level of a column on average; with fewer there is nothing to learn from it."""


@dataclass(frozen=True, eq=False)
class _Column:
    """An untouched column beside the candidates. Only pairs of a value and a level that occur are looked at.

    levels  how many different values the column has
    share   the share of the records that have the record's level: (n,)
    pair    the number of the pair of each candidate and the record's level: (n, l)
    """

    levels: int
    share: Floats
    pair: Ints

    @classmethod
    def beside(cls, sets: Ints, feature: Ints) -> _Column | None:
        found, level, counts = np.unique(feature, return_inverse=True, return_counts=True)
        if _FEWEST * len(found) > len(feature):
            return None
        pair = np.unique(sets * len(found) + level[:, None], return_inverse=True)[1].reshape(sets.shape)
        return cls(len(found), counts[level] / len(feature), pair.astype(np.int32))

    def evidence(self, belief: Floats, held: Floats) -> Floats:
        """`ln P_j(q | v) / P_j(q)` for each candidate; `held` is the belief in its value in all records."""
        together = np.bincount(self.pair.ravel(), weights=belief.ravel())[self.pair]
        added = _SMOOTHING * self.levels
        return np.log((together / self.share[:, None] + added) / (held + added))


def attack(
    sets: Ints,
    mechanism: Mechanism,
    features: Ints,
    *,
    attribute: str = "",
    truth: Ints | None = None,
    bound: float | None = None,
    rounds: int = 20,
) -> Finding:
    """On published sets; `features` are the codes of untouched columns, (n, q)."""
    columns = [column for feature in features.T if (column := _Column.beside(sets, feature)) is not None]
    belief = _beliefs(sets, mechanism, columns, rounds)
    sure = belief.max(axis=1)
    if truth is None:
        success, error = float(sure.mean()), float(sure.std() / np.sqrt(len(sure)))
        exceeded = bound is not None and success - 3.0 * error > bound + TOLERANCE
    else:
        hits = hit_rate(belief, sets == truth[:, None])
        success = float(hits.mean())
        exceeded = significantly_above(float(hits.sum()), len(hits), bound)
    return Finding(
        "definetti",
        attribute,
        success,
        bound,
        largest_share(truth, uniform(mechanism.size)),
        exceeded,
        knows="the whole release, and everybody's quasi-identifiers",
        gains="the value, where quasi-identifiers and sensitive values go together",
        helps="a larger l, coarser quasi-identifiers, or protecting them as well",
        detail={"confidence": float(sure.mean())},
    )


def _beliefs(sets: Ints, mechanism: Mechanism, columns: Sequence[_Column], rounds: int) -> Floats:
    """How much each candidate is believed in: (n, l). A row adds up to less than 1 where the set may be a lie."""
    inside, outside = mechanism.weights(sets)
    share = uniform(mechanism.size)
    belief = np.zeros(sets.shape)
    for step in range(rounds + 1):
        evidence = np.zeros(sets.shape)
        if step:
            share = _shares(sets, belief, share)
            held = np.asarray(np.bincount(sets.ravel(), belief.ravel(), mechanism.size)[sets], dtype=np.float64)
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
