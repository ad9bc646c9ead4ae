"""The patient attacker: combines two releases of the same people.

    P(v | R, S)  ~  pi_v P(R | v) P(S | v)

where
    R, S   the sets of a person in the two releases, drawn independently of each other
    pi     the attacker's prior over the values

With fresh decoys the true value is the only one sure to be in both sets; with sticky decoys (keyed randomness) both
sets are one draw and nothing is gained. Success is the probability of the best guess, on average over the records;
exact, and 1 / (number of common candidates) when every set holds its true value.
"""

from __future__ import annotations

import numpy as np

from polyseme.designs.base import heaviest_outside
from polyseme.designs.mechanism import Mechanism
from polyseme.kernel.arrays import Bools, Floats, Ints
from polyseme.kernel.errors import TableError
from polyseme.results.attackers import Finding
from polyseme.scrutiny.attacks.scene import Scene, Shown, above

__all__ = ["attack", "lacks"]

_CHUNK = 4_000_000
"""Pairs of candidates that are compared at a time."""


def lacks(scene: Scene) -> str:
    if scene.column is None:
        return "published sets"
    return "" if scene.again is not None else "another release of the same people"


def attack(scene: Scene) -> tuple[Finding, ...]:
    """On the sets of two releases, whose rows belong to the same people."""
    again, bound = scene.again, scene.guess_bound
    if again is None:
        return ()
    shown = scene.shown
    first, second = shown.sets, again.sets
    if len(first) != len(second) or len(first) == 0:
        raise TableError(
            f"the releases have {len(first):,} and {len(second):,} records", "match the people first, one row each"
        )
    sure = _sure(scene, shown, again)
    success = float(sure.mean())
    finding = Finding(
        "repetition",
        shown.attribute,
        success,
        bound,
        float(shown.expected.max()),
        above(success, bound),
        knows="two releases about the same people",
        gains="the value, when it is the only one both sets have in common",
        helps="sticky decoys: anonymize with the same key file and record keys",
        detail={
            "records_certain": float((sure > 1.0 - 1e-9).mean()),
            "same_set": float(_same(first, second).mean()),
        },
    )
    return (finding,)


def _sure(scene: Scene, shown: Shown, again: Shown) -> Floats:
    """The probability of the best guess for each record."""
    first, second = shown.sets, again.sets
    step = max(1, _CHUNK // (first.shape[1] * second.shape[1]))
    parts = [slice(start, start + step) for start in range(0, len(first), step)]
    prior, one, two = shown.expected, shown.mechanism, again.mechanism
    sure = np.concatenate([_surest(first[part], second[part], one, two, prior) for part in parts])
    return np.where(_same(first, second), shown.posterior.best[shown.inverse], sure) if scene.sticky else sure


def _same(first: Ints, second: Ints) -> Bools:
    """Whether both sets are equal; rows are ascending."""
    if first.shape != second.shape:
        return np.zeros(len(first), dtype=np.bool_)
    return np.asarray((first == second).all(axis=1))


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
