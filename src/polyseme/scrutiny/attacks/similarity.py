"""The similarity attacker: guesses the branch of the tree or the range of the number.

Against sets, it guesses a neighborhood, all values nearer than d to some value v, and is right when the true value lies
in it. Success is the largest posterior probability of a set's members that one such neighborhood holds; exact, from the
release alone. Diversity does not bound it; semantic diversity does.

In classes,

    success  =  max over classes E, values v of E, of the share of E that lies nearer than d to v

where
    d  the distance that was promised; without such a promise, for values in a tree, the distance of two values that
       have only the root in common, so that one branch below the root is guessed

Exact, from the release alone. Different values do not protect against it: a class of "flu", "asthma" and "bronchitis"
is 3-diverse and tells everything about the lung.
"""

from __future__ import annotations

import numpy as np

from polyseme.kernel.arrays import Floats
from polyseme.models.far_apart import heaviest_balls
from polyseme.results.attackers import Finding
from polyseme.scrutiny.attacks.scene import Scene, Shown, above
from polyseme.semantics.distances.base import Distance
from polyseme.semantics.distances.tree import TreeDistance
from polyseme.tables.equivalence_classes import Counts

__all__ = ["attack", "attack_in_classes", "lacks", "lacks_in_classes"]


def lacks_in_classes(scene: Scene) -> str:
    if scene.within is None:
        return "values in classes"
    if scene.within.distance is None:
        return "a distance between the values"
    return "" if _alike(scene) is not None else "a promise that says which values are alike"


def attack_in_classes(scene: Scene) -> tuple[Finding, ...]:
    """For the person in the most uniform class; the baseline guesses alike of the whole table."""
    within, bound, d = scene.classed, scene.promised.alike, _alike(scene)
    if within.distance is None or d is None:
        return ()
    counts = within.counts
    held = heaviest_balls(counts, within.distance, d)
    success = float((held / counts.sizes).max())
    finding = Finding(
        "similarity",
        within.attribute,
        success,
        bound,
        _whole(counts, within.distance, d),
        above(success, bound),
        knows=f"the {within.unit} of the person, and which values are alike",
        gains="the branch of the tree or the range of the number, though not the exact value",
        helps="semantic diversity by frequency: values nearer than d have at most 1/l of a class together",
        detail={"hit_rate": float(held.sum() / counts.sizes.sum()), "d": float(d)},
    )
    return (finding,)


def _alike(scene: Scene) -> float | None:
    """The distance below which values count as alike."""
    if scene.promised.apart is not None:
        return scene.promised.apart
    distance = scene.classed.distance
    branches = isinstance(distance, TreeDistance) and distance.measure == "ancestor" and distance.height > 1
    return float(distance.height) if branches and isinstance(distance, TreeDistance) else None


def _whole(counts: Counts, distance: Distance, d: float) -> float:
    """The same guess about a person whose class is not known."""
    there = np.flatnonzero(counts.total)
    records = int(counts.total.sum())
    everyone = Counts(
        counts.attribute,
        np.array([records]),
        np.array([0]),
        np.array([0, len(there)]),
        there,
        counts.total[there],
        counts.total,
        counts.labels,
    )
    return float(heaviest_balls(everyone, distance, d)[0] / records)


def lacks(scene: Scene) -> str:
    if scene.column is None:
        return "published sets"
    if scene.column.distance is None:
        return "a distance between the values"
    return "" if scene.promised.apart is not None else "a promise that candidates are far apart"


def attack(scene: Scene) -> tuple[Finding, ...]:
    """On published sets, with the posterior of each candidate; values outside a set add nothing."""
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
