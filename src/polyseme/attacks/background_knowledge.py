"""The adversary with background knowledge: can rule out m values for the person it is after.

Success is what its best guess is worth once the m most troublesome other candidates are struck out, for the person
worst off; exact. Where no guess is worth more than b, none of those struck out was, so the bound is b / (1 - m b): with
b = 1/l that is 1 / (l - m), and 1 when nothing remains.
"""

from __future__ import annotations

import numpy as np

from polyseme.attacks.base import above
from polyseme.attacks.scene import Scene
from polyseme.results.findings import Finding

__all__ = ["after_striking", "attack", "lacks"]


def lacks(scene: Scene) -> str:
    return "published sets" if scene.column is None else ""


def attack(scene: Scene) -> tuple[Finding, ...]:
    """On published sets; what was promised about a guess was promised before anything is struck out."""
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
