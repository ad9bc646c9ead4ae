"""The skewness adversary in classes: compares the values of a person's class with those of the whole table.

    success  =  max over classes E of  EMD(distribution in E, distribution in the whole table)

where
    EMD  earth mover's distance on the ground of the promise, the equal one where closeness was not promised: there it
         is the most by which the probability of any statement about a person changes

Exact, from the release alone. The bound is the t of closeness; the diversities promise nothing here.
"""

from __future__ import annotations

from polyseme.attacks.base import above
from polyseme.attacks.scene import Scene
from polyseme.distances.ground import Equal
from polyseme.results.findings import Finding

__all__ = ["attack_in_classes", "lacks_in_classes"]


def lacks_in_classes(scene: Scene) -> str:
    return "values in classes" if scene.within is None else ""


def attack_in_classes(scene: Scene) -> tuple[Finding, ...]:
    """For the class that is furthest from the whole table; on average over records as `mean`."""
    within, bound = scene.classed, scene.promised.moved
    work = (scene.promised.ground or Equal()).of_classes(within.counts)
    success = float(work.max())
    finding = Finding(
        "skewness",
        within.attribute,
        success,
        bound,
        0.0,
        above(success, bound),
        knows=f"the {within.unit} of the person, and how values are distributed in the whole table",
        gains="that some values are much more likely for the person than for others",
        helps="closeness, with a t that is acceptable to the people concerned",
        detail={"mean": float((work * within.counts.sizes).sum() / within.counts.sizes.sum())},
    )
    return (finding,)
