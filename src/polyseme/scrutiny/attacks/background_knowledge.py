"""The attacker with background knowledge: can rule out m values for one person.

Against sets, success is the value of the best guess once the m most troublesome other candidates are struck out, for
the person at highest risk; exact. Where no guess is worth more than b, none of those struck out was, so the bound is b
/ (1 - m b): with b = 1/l that is 1 / (l - m), and 1 when nothing remains.

In classes, the attacker rules out m values that the person does not have:

    success  =  max over classes E of  r_1 / (|E| - r_2 - ... - r_(m+1))

where
    r_1 >= r_2 >= ...  how often the values of E occur

The person at highest risk has the most frequent value, and the next m are struck out. Exact, from the release alone.
Bounds: where no value has more than b of a class, b / (1 - m b); with recursive (c, l)-diversity and m <= l - 2, c / (1
+ c), since what remains beside r_1 is at least r_l + r_(l+1) + ... > r_1 / c.
"""

from __future__ import annotations

import numpy as np

from polyseme.results.attackers import Finding
from polyseme.scrutiny.attacks.scene import Promised, Scene, above
from polyseme.tables.equivalence_classes import Counts

__all__ = ["after_striking", "attack", "attack_in_classes", "lacks", "lacks_in_classes"]


def lacks(scene: Scene) -> str:
    return "published sets" if scene.column is None else ""


def attack(scene: Scene) -> tuple[Finding, ...]:
    """On published sets; the promise about a guess is made before anything is struck out."""
    shown, m = scene.shown, scene.struck
    bound = after_striking(scene.guess_bound, m)
    inside = np.sort(shown.posterior.inside, axis=1)[:, ::-1]
    left = 1.0 - inside[:, 1 : m + 1].sum(axis=1)
    success = float(np.minimum(inside[:, 0] / np.maximum(left, inside[:, 0]), 1.0).max())
    finding = Finding(
        "background-knowledge",
        shown.attribute,
        success,
        bound,
        float(shown.expected.max()),
        above(success, bound),
        f"the set of the person, and {m} {'value' if m == 1 else 'values'} the person does not have",
        "the value, by elimination",
        "a larger l",
        {"m": float(m)},
    )
    return (finding,)


def after_striking(bound: float, m: int) -> float:
    """The bound on a guess, after m values have been struck out that are worth as much each."""
    left = 1.0 - m * bound
    return bound / left if left > bound else 1.0


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
