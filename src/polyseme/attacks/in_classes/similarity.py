"""The similarity adversary in classes: is content to learn the branch of the tree or the range of the number.

    success  =  max over classes E, values v of E, of the share of E that lies nearer than d to v

where
    d  the distance that was promised; without such a promise, for values in a tree, the distance of two values that
       have only the root in common, so that one branch below the root is guessed

Exact, from the release alone. Different values say nothing against it: a class of "flu", "asthma" and "bronchitis" is
3-diverse and tells everything about the lung.
"""

from __future__ import annotations

import numpy as np

from polyseme.attacks.base import above
from polyseme.attacks.scene import Scene
from polyseme.distances.base import Distance
from polyseme.distances.tree import TreeDistance
from polyseme.models.far_apart import heaviest_balls
from polyseme.results.findings import Finding
from polyseme.tables.classes import Counts

__all__ = ["attack_in_classes", "lacks_in_classes"]


def lacks_in_classes(scene: Scene) -> str:
    if scene.within is None:
        return "values in classes"
    if scene.within.distance is None:
        return "a distance between the values"
    return "" if _alike(scene) is not None else "a promise that says which values are alike"


def attack_in_classes(scene: Scene) -> tuple[Finding, ...]:
    """For the person whose class is most alike; the baseline makes the same guess of the whole table."""
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
    everybody = Counts(
        counts.attribute,
        np.array([records]),
        np.array([0]),
        np.array([0, len(there)]),
        there,
        counts.total[there],
        counts.total,
        counts.labels,
    )
    return float(heaviest_balls(everybody, distance, d)[0] / records)
