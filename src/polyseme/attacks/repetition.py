"""The patient adversary: has two releases of the same people and puts together what they say.

    P(v | R, S)  ~  pi_v P(R | v) P(S | v)

where
    R, S   the sets of a person in the two releases, drawn independently of each other
    pi     the adversary's prior over the values

With fresh decoys the true value is the only one sure to be in both sets; with sticky decoys (keyed randomness) both
sets are one draw and nothing is gained. Success is the probability of the best guess, on average over the records;
exact, and 1 / (number of common candidates) when every set holds its true value.
"""

from __future__ import annotations

import numpy as np

from polyseme.attacks.base import Finding, above
from polyseme.attacks.posterior import posterior_of, uniform
from polyseme.designs.sequential import heaviest_outside
from polyseme.distances.structure import Floats, Ints
from polyseme.errors import TableError
from polyseme.mechanism import Mechanism

__all__ = ["attack"]

_CHUNK = 4_000_000
"""Pairs of candidates that are compared at a time."""


def attack(
    first: Ints,
    second: Ints,
    mechanism: Mechanism,
    other: Mechanism | None = None,
    *,
    attribute: str = "",
    prior: Floats | None = None,
    bound: float | None = None,
    sticky: bool = False,
) -> Finding:
    """Rows of `first` and `second` belong to the same people.

    other   the mechanism of the second release; that of the first unless given
    sticky  whether decoys were keyed in both releases, so that equal sets are one draw
    """
    if len(first) != len(second) or len(first) == 0:
        raise TableError(
            f"the releases have {len(first):,} and {len(second):,} records", "match the people first, one row each"
        )
    bound = 1.0 / mechanism.l if bound is None else bound
    prior = uniform(mechanism.size) if prior is None else np.asarray(prior, dtype=np.float64)
    step = max(1, _CHUNK // (first.shape[1] * second.shape[1]))
    parts = [slice(start, start + step) for start in range(0, len(first), step)]
    sure = np.concatenate([_surest(first[part], second[part], mechanism, other or mechanism, prior) for part in parts])
    # Rows are ascending.
    same = (first == second).all(axis=1) if first.shape == second.shape else np.zeros(len(first), dtype=np.bool_)
    if sticky:
        sure = np.where(same, posterior_of(first, mechanism, prior).best, sure)
    success = float(sure.mean())
    return Finding(
        "repetition",
        attribute,
        success,
        bound,
        float(prior.max()),
        above(success, bound),
        knows="two releases about the same people",
        gains="the value, when it is the only one both sets have in common",
        helps="sticky decoys: anonymize with the same key file and record keys",
        detail={"records_certain": float((sure > 1.0 - 1e-9).mean()), "same_set": float(same.mean())},
    )


def _surest(first: Ints, second: Ints, mechanism: Mechanism, other: Mechanism, prior: Floats) -> Floats:
    """The largest probability of any value for each record, given both sets."""
    common = np.asarray(first[:, :, None] == second[:, None, :], dtype=np.bool_)
    (inside, outside), (again, beyond) = mechanism.weights(first), other.weights(second)
    fresh = ~common.any(axis=1)
    said = np.where(common.any(axis=2), (common * again[:, None, :]).sum(axis=2), beyond[:, None])
    known = prior[first] * inside * said
    added = prior[second] * again * outside[:, None] * fresh
    neither = outside * beyond
    mass = prior[first].sum(axis=1) + (prior[second] * fresh).sum(axis=1)
    total = known.sum(axis=1) + added.sum(axis=1) + np.maximum(1.0 - mass, 0.0) * neither
    best = np.maximum(known.max(axis=1), added.max(axis=1))
    best = np.maximum(best, neither * heaviest_outside(prior, np.hstack([first, second])))
    # Sets that no value can have drawn belong to different people.
    sure: Floats = np.divide(best, total, out=np.zeros(len(total)), where=total > 0)
    return sure
