"""The similarity adversary: is content to learn the branch of the tree or the range of the number.

It guesses a neighborhood, all values nearer than d to some value v, and is right when the true value lies in it.
Success is the largest posterior probability of a set's members that one such neighborhood holds; exact, from the
release alone. Diversity does not bound it; semantic diversity does.
"""

from __future__ import annotations

import numpy as np

from polyseme.arrays import Floats
from polyseme.attacks.base import above
from polyseme.attacks.scene import Scene, Shown
from polyseme.distances.base import Distance
from polyseme.results.findings import Finding

__all__ = ["attack", "lacks"]


def lacks(scene: Scene) -> str:
    if scene.column is None:
        return "published sets"
    if scene.column.distance is None:
        return "a distance between the values"
    return "" if scene.promised.apart is not None else "a promise that candidates are far apart"


def attack(scene: Scene) -> tuple[Finding, ...]:
    """On published sets, with the posterior of each candidate. Values outside the set are not added to a guess."""
    shown, bound = scene.shown, scene.guess_bound
    distance, d = shown.distance, scene.promised.apart
    if distance is None or d is None:
        return ()
    held = _held(shown, distance, d)
    success = float(held.max())
    finding = Finding(
        "similarity",
        shown.attribute,
        success,
        bound,
        float(shown.expected.max()),
        above(success, bound),
        "the published set, the mechanism, and which values are alike",
        "the branch of the tree or the range of the number, though not the exact value",
        "semantic diversity: candidates at least d apart",
        {"hit_rate": float(held[shown.inverse].mean())},
    )
    return (finding,)


def _held(shown: Shown, distance: Distance, d: float) -> Floats:
    """The most that a neighborhood holds of each distinct set."""
    unique, posterior = shown.unique, shown.posterior.inside
    held = np.zeros(len(unique))
    for center in range(unique.shape[1]):
        near = distance.between(unique[:, center : center + 1], unique) < d
        near[:, center] = True
        held = np.maximum(held, (posterior * near).sum(axis=1))
    return held
