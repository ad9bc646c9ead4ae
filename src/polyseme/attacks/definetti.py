"""The deFinetti adversary: learns from the release itself how quasi-identifiers and sensitive values go together.

Anyone can fit a naive Bayes model to a release: start from what each class or set says, estimate how frequent each
quasi-identifier value is among each sensitive value, revise the beliefs, repeat (Kifer 2009). In a class the beliefs
are also scaled so that they add up to the published counts.

    belief(r, v)  ~  weight(r, v) * product over quasi-identifiers j of P_j(q_rj | v)

where
    r, v          a record and one of its candidate values
    weight        for a set, P(v) P(R | v); for a class, whatever makes beliefs add up to its counts
    P_j(q | v)    estimated from the beliefs, with half a record added to every cell

With the original, success is the observed share of right best guesses. Without, it is the adversary's own mean
confidence, an estimate: it then counts as exceeding the bound only when three standard errors above it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyseme.attacks.base import Finding, significantly_above
from polyseme.attacks.posterior import uniform
from polyseme.distances.structure import Floats, Ints
from polyseme.mechanism import Mechanism
from polyseme.tables.classes import Counts

__all__ = ["attack", "attack_sets"]

_SMOOTHING = 0.5
_SCALINGS = 5


@dataclass(frozen=True, eq=False)
class _Candidates:
    """Every record with each of its candidate values, sorted by record: where each record starts, and the pairs."""

    starts: Ints
    record: Ints
    value: Ints

    def normalized(self, weight: Floats) -> Floats:
        totals = np.add.reduceat(weight, self.starts)
        return weight / np.maximum(totals, np.finfo(np.float64).tiny)[self.record]

    def likelihood(self, belief: Floats, features: Ints, size: int) -> Floats:
        """Product over features of their estimated probability given the value, up to a factor of the record."""
        logarithm = np.zeros(len(belief))
        for feature in features.T:
            levels = int(feature.max()) + 1
            cell = self.value * levels + feature[self.record]
            table = np.bincount(cell, weights=belief, minlength=size * levels).reshape(size, levels) + _SMOOTHING
            logarithm += np.log(table / table.sum(axis=1, keepdims=True)).ravel()[cell]
        logarithm -= np.maximum.reduceat(logarithm, self.starts)[self.record]
        return np.exp(logarithm)

    def hits(self, belief: Floats, truth: Ints) -> Floats:
        """The chance, for each record, that a guess among its likeliest candidates is right."""
        best = belief >= np.maximum.reduceat(belief, self.starts)[self.record] * (1.0 - 1e-9)
        right = best & (self.value == truth[self.record])
        hits: Floats = np.add.reduceat(right, self.starts, dtype=np.int64) / np.add.reduceat(
            best, self.starts, dtype=np.int64
        )
        return hits


def _finding(
    attribute: str,
    candidates: _Candidates,
    belief: Floats,
    truth: Ints | None,
    bound: float | None,
    baseline: float,
    detail: dict[str, float],
) -> Finding:
    sure = np.maximum.reduceat(belief, candidates.starts)
    if truth is None:
        success, error = float(sure.mean()), float(sure.std() / np.sqrt(len(sure)))
        exceeded = bound is not None and success - 3.0 * error > bound + 1e-9
    else:
        hits = candidates.hits(belief, truth)
        success = float(hits.mean())
        exceeded = significantly_above(float(hits.sum()), len(hits), bound)
    return Finding(
        "definetti",
        attribute,
        success,
        bound,
        baseline,
        exceeded,
        knows="the whole release, and everybody's quasi-identifiers",
        gains="the value, where quasi-identifiers and sensitive values go together",
        helps="a larger l, coarser quasi-identifiers, or protecting them as well",
        detail={**detail, "confidence": float(sure.mean())},
    )


def attack(
    classes: Ints,
    counts: Counts,
    features: Ints,
    *,
    truth: Ints | None = None,
    bound: float | None = None,
    rounds: int = 20,
) -> Finding:
    """On a table published in classes.

    where
        classes   the class of each record, (n,), numbered as in `counts`
        counts    the published counts of the sensitive values
        features  codes of the quasi-identifiers that are published record by record, (n, q)
    """
    lengths = counts.distinct[classes]
    starts = np.cumsum(lengths) - lengths
    record = np.repeat(np.arange(len(classes)), lengths)
    entry = counts.starts[classes][record] + np.arange(len(record)) - starts[record]
    candidates = _Candidates(starts, record, counts.value[entry])
    belief = counts.count[entry] / counts.sizes[classes][record]
    for _ in range(rounds):
        weight = candidates.likelihood(belief, features, counts.domain_size)
        for _ in range(_SCALINGS):
            held = np.bincount(entry, weights=weight, minlength=len(counts.count))
            weight = weight * (counts.count / np.maximum(held, np.finfo(np.float64).tiny))[entry]
            weight = candidates.normalized(weight)
        belief = weight
    guess = float(np.maximum.reduceat(counts.count, counts.starts[:-1]).sum() / counts.sizes.sum())
    baseline = float(counts.total.max() / counts.records)
    return _finding(counts.attribute, candidates, belief, truth, bound, baseline, {"class_guess": guess})


def attack_sets(
    sets: Ints,
    mechanism: Mechanism,
    features: Ints,
    *,
    attribute: str = "",
    truth: Ints | None = None,
    bound: float | None = None,
    rounds: int = 20,
) -> Finding:
    """On published sets; `features` are the codes of the quasi-identifiers, (n, q)."""
    bound = 1.0 / mechanism.l if bound is None else bound
    count, width = sets.shape
    candidates = _Candidates(np.arange(count) * width, np.repeat(np.arange(count), width), sets.ravel())
    said = mechanism.weights(sets)[0].ravel()
    belief = candidates.normalized(said)
    for _ in range(rounds):
        share = np.bincount(candidates.value, weights=belief, minlength=mechanism.size) / count
        likelihood = candidates.likelihood(belief, features, mechanism.size)
        belief = candidates.normalized(said * share[candidates.value] * likelihood)
    baseline = float(uniform(mechanism.size)[0] if truth is None else np.bincount(truth).max() / count)
    return _finding(attribute, candidates, belief, truth, bound, baseline, {})
