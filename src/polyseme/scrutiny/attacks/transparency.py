"""The transparency attacker (minimality): some members of a set draw it more readily.

It guesses the member v of R with the largest `P(R | v)`. With the original, success is the observed share of right
guesses; without, the expected share under the prior of the promise (uniform unless given), which is exact.

Under the balanced design with a uniform prior all members are equally ready, and the guess is no better than 1/l;
under the papers' sequential algorithm they are not.

The promise is made for its prior. Where it holds for that one but the truth is distributed otherwise, the mechanism may
let more guesses be right; observed success is then held against what the mechanism allows for the true distribution.
"""

from __future__ import annotations

import numpy as np

from polyseme.kernel.arrays import Floats, Ints
from polyseme.results.attackers import Finding
from polyseme.scrutiny.attacks.scene import (
    Posterior,
    Scene,
    Shown,
    above,
    hit_rate,
    largest_share,
    posterior_of,
    significantly_above,
    uniform,
)

__all__ = ["attack", "lacks"]


def lacks(scene: Scene) -> str:
    return "published sets" if scene.column is None else ""


def attack(scene: Scene) -> tuple[Finding, ...]:
    """How often the likeliest member of the set is the true one."""
    shown, bound = scene.shown, scene.guess_bound
    expected = (shown.readiness.best if shown.prior is None else _readiest(shown, shown.posterior))[shown.inverse]
    detail = {"worst_person": float(expected.max())}
    success = float(expected.mean())
    exceeded = above(success, bound)
    if scene.truth is not None:
        detail["expected"] = success
        hits = hit_rate(shown.readiness.inside[shown.inverse], shown.sets == scene.truth[:, None])
        success = float(hits.mean())
        if not exceeded:
            bound = max(bound, _allowed(shown, scene.truth))
            exceeded = significantly_above(float(hits.sum()), len(hits), bound)
    finding = Finding(
        "transparency",
        shown.attribute,
        success,
        bound,
        largest_share(scene.truth, uniform(shown.mechanism.size)),
        exceeded,
        knows="the published set and the algorithm that drew it",
        gains="the member of the set that was most likely to produce it",
        helps="the balanced mechanism, under which all members are equally likely to have produced it",
        detail=detail,
    )
    return (finding,)


def _allowed(shown: Shown, truth: Ints) -> float:
    """How many guesses the mechanism lets be right where the truth is distributed as it is."""
    met = np.bincount(truth, minlength=shown.mechanism.size) / len(truth)
    return float(_readiest(shown, posterior_of(shown.unique, shown.mechanism, met))[shown.inverse].mean())


def _readiest(shown: Shown, posterior: Posterior) -> Floats:
    """The posterior of the most likely member of each distinct set; ties are split."""
    readiness = shown.readiness.inside
    chosen = readiness >= readiness.max(axis=1, keepdims=True) * (1.0 - 1e-9)
    return np.asarray((posterior.inside * chosen).sum(axis=1) / chosen.sum(axis=1))
