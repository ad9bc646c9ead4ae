"""The homogeneity adversary in classes: finds a person's class or group, and guesses its most frequent value.

    success  =  max over classes E of  max over values s of  n(E, s) / |E|

where
    n(E, s)  records of E with value s

Exact, from the release alone: the values of a class are published, only their owners are not. Machanavajjhala, Gehrke,
Kifer and Venkitasubramaniam (2006).
"""

from __future__ import annotations

from polyseme.attacks.base import above
from polyseme.attacks.scene import Scene
from polyseme.models.frequency_diversity import largest_count
from polyseme.results.findings import Finding

__all__ = ["attack_in_classes", "lacks_in_classes"]


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
