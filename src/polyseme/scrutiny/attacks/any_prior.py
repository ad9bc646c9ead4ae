"""The attacker with any prior: how far can a set move any belief?

A set R changes the odds between two values by at most the ratio

    r = max_v P(R | v) / min_v P(R | v)

and the probability of any statement by at most (sqrt r - 1) / (sqrt r + 1), which some prior reaches. Success is the
largest of these over all published sets; exact. Closeness that was promised without a reference distribution bounds it
by t, local differential privacy by tanh(epsilon / 4).
"""

from __future__ import annotations

import numpy as np

from polyseme.results.attackers import Finding
from polyseme.scrutiny.attacks.scene import Scene, above

__all__ = ["attack", "lacks"]


def lacks(scene: Scene) -> str:
    if scene.column is None:
        return "published sets"
    return "" if scene.promised.any_prior is not None else "a promise for every prior"


def attack(scene: Scene) -> tuple[Finding, ...]:
    """On published sets, for the prior and the person that are worst off."""
    shown, bound = scene.shown, scene.promised.any_prior
    mechanism = shown.mechanism
    inside, outside = mechanism.weights(shown.unique)
    least = inside.min(axis=1) if mechanism.l == mechanism.size else np.minimum(inside.min(axis=1), outside)
    # (sqrt r - 1) / (sqrt r + 1), written so that a ratio without limit gives 1.
    high, low = np.sqrt(inside.max(axis=1)), np.sqrt(least)
    moved = np.divide(high - low, high + low, out=np.zeros(len(high)), where=high > 0)
    success = float(moved.max())
    finding = Finding(
        "any-prior",
        shown.attribute,
        success,
        bound,
        0.0,
        above(success, bound),
        "the published set, the mechanism, and anything at all about the person",
        "that some values are more likely for the person than was believed before",
        "a smaller epsilon, or closeness without a reference distribution",
        {"mean": float(moved[shown.inverse].mean())},
    )
    return (finding,)
