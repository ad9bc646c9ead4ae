"""The Bayes attacker: knows the exact channel and a prior, and takes every set at its word.

Success is the largest posterior probability of any value for any published record: the person worst off. The promise
of 1/l is made for the reference prior of the mechanism (uniform unless the policy says otherwise); with another prior
the posterior may rise for reasons that have nothing to do with the release, which the baseline shows.
"""

from __future__ import annotations

from polyseme.results.attackers import Finding
from polyseme.scrutiny.attacks.scene import Scene, above, hit_rate, largest_share

__all__ = ["attack", "lacks"]


def lacks(scene: Scene) -> str:
    return "published sets" if scene.column is None else ""


def attack(scene: Scene) -> tuple[Finding, ...]:
    """The highest posterior over all published sets, against the promise about a guess. Exact."""
    shown, bound = scene.shown, scene.guess_bound
    best = shown.posterior.best
    success = float(best.max())
    detail = {"mean_posterior": float(best[shown.inverse].mean())}
    if scene.truth is not None:
        hits = hit_rate(shown.posterior.inside[shown.inverse], shown.sets == scene.truth[:, None])
        detail["hit_rate"] = float(hits.mean())
    finding = Finding(
        "bayes",
        shown.attribute,
        success,
        bound,
        largest_share(scene.truth, shown.expected),
        above(success, bound),
        knows="the published set, the exact mechanism and a prior over the values",
        gains="the value of the person whose set reveals most",
        helps="the balanced mechanism, with a reference prior near the truth; a larger l",
        detail=detail,
    )
    return (finding,)
