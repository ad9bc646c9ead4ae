"""The homogeneity attacker: finds a person's set, class or group, and guesses a value of it.

Against sets, success is the chance of that guess for the person whose set is shortest; exact, from the release alone.

In classes, the attacker guesses the most frequent value of the person's class or group:

    success  =  max over classes E of  max over values s of  n(E, s) / |E|

where
    n(E, s)  records of E with value s

Exact, from the release alone: the values of a class are published, only their owners are not. Machanavajjhala, Gehrke,
Kifer and Venkitasubramaniam (2006).
"""

from __future__ import annotations

import numpy as np

from polyseme.designs.mechanism import Mechanism
from polyseme.models.diversity import largest_count
from polyseme.results.attackers import Finding
from polyseme.scrutiny.attacks.scene import Scene, above
from polyseme.tables.equivalence_classes import PublishedSets

__all__ = ["attack", "attack_in_classes", "lacks", "lacks_in_classes"]


def lacks_in_classes(scene: Scene) -> str:
    return "values in classes" if scene.within is None else ""


def attack_in_classes(scene: Scene) -> tuple[Finding, ...]:
    """For the person whose class is most uniform; on average as `hit_rate`."""
    within, bound = scene.classed, scene.promised.guess
    counts = within.counts
    largest = largest_count(counts)
    success = float((largest / counts.sizes).max())
    detail = {
        "hit_rate": float(largest.sum() / counts.sizes.sum()),
        "records_certain": float(counts.sizes[counts.distinct == 1].sum() / counts.sizes.sum()),
    }
    finding = Finding(
        "homogeneity",
        within.attribute,
        success,
        bound,
        float(within.whole.max()),
        above(success, bound),
        knows=f"the {within.unit} of the person",
        gains=f"the value, where one is frequent in the {within.unit}; for certain, where all have the same",
        helps="frequency l-diversity: no value has more than 1/l of a class",
        detail=detail,
    )
    return (finding,)


def lacks(scene: Scene) -> str:
    return "published sets" if scene.column is None else ""


def attack(scene: Scene) -> tuple[Finding, ...]:
    """On published sets: the shortest one."""
    shown, bound = scene.shown, scene.guess_bound
    truthful = _truthful(shown.mechanism)
    # Row by row: what makes sets distinct takes for granted that their candidates are different.
    sets = PublishedSets.from_codes(shown.sets, shown.mechanism.size, shown.attribute)
    share = truthful / np.maximum(sets.distinct, 1)
    success = float(share.max())
    detail = {
        "hit_rate": float((share * sets.counts).sum() / sets.records),
        "records_certain": float(sets.counts[(sets.distinct <= 1) & (truthful == 1.0)].sum() / sets.records),
    }
    finding = Finding(
        "homogeneity",
        shown.attribute,
        success,
        bound,
        1.0 / sets.size,
        above(success, bound),
        knows="the set published for the person",
        gains="a value, where the set has fewer candidates than promised",
        helps="publish every set with l different candidates of the domain",
        detail=detail,
    )
    return (finding,)


def _truthful(mechanism: Mechanism) -> float:
    """The probability that a set has the true value: l / F on average for a blind one."""
    return mechanism.p + (1.0 - mechanism.p) * mechanism.l / mechanism.size
