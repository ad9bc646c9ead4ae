"""The adversary with background knowledge in classes: can rule out m values that the person does not have.

    success  =  max over classes E of  r_1 / (|E| - r_2 - ... - r_(m+1))

where
    r_1 >= r_2 >= ...  how often the values of E occur

The person worst off has the most frequent value, and the next m are struck out. Exact, from the release alone.
Bounds: where no value has more than b of a class, b / (1 - m b); with recursive (c, l)-diversity and m <= l - 2,
c / (1 + c), since what remains beside r_1 is at least r_l + r_(l+1) + ... > r_1 / c.
"""

from __future__ import annotations

import numpy as np

from polyseme.attacks.background_knowledge import after_striking
from polyseme.attacks.base import above
from polyseme.attacks.scene import Promised, Scene
from polyseme.results.findings import Finding
from polyseme.tables.classes import Counts

__all__ = ["attack_in_classes", "lacks_in_classes"]


def lacks_in_classes(scene: Scene) -> str:
    return "values in classes" if scene.within is None else ""


def attack_in_classes(scene: Scene) -> tuple[Finding, ...]:
    """For the person worst off."""
    within, m = scene.classed, scene.struck
    bound = _bound(scene.promised, m)
    success = float(_after(within.counts, m).max())
    finding = Finding(
        "background-knowledge",
        within.attribute,
        success,
        bound,
        float(within.whole.max()),
        above(success, bound),
        knows=f"the {within.unit} of the person, and {m} {'value' if m == 1 else 'values'} the person does not have",
        gains="the value, by elimination",
        helps="a larger l, or recursive (c, l)-diversity with an l above the values that may be ruled out",
        detail={"m": float(m)},
    )
    return (finding,)


def _after(counts: Counts, m: int) -> np.ndarray:
    """What the most frequent value of each class is worth once the next m are struck out."""
    descending = counts.count[np.lexsort((-counts.count, counts.owner))]
    place = np.arange(len(descending)) - counts.starts[:-1][counts.owner]
    struck = np.add.reduceat(np.where((place >= 1) & (place <= m), descending, 0), counts.starts[:-1])
    share: np.ndarray = descending[counts.starts[:-1]] / (counts.sizes - struck)
    return share


def _bound(promised: Promised, m: int) -> float | None:
    bounds = [] if promised.guess is None else [after_striking(promised.guess, m)]
    if promised.struck is not None and m <= promised.struck[1] - 2:
        bounds.append(promised.struck[0] / (1.0 + promised.struck[0]))
    return min(bounds, default=None)
