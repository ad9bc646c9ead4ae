"""The learner: knows the exact channel and the values' distribution among similar people.

From each set he names the value that is likeliest under that distribution. How often he is right is known before any
record is touched,

    V = sum over sets R of max_v pi_v P(R | v)

and that is his success here, against what the release promises. With the original, the share of his guesses that are
right is counted too: it exceeds the bound only beyond chance, and then the declared distribution is not the true one.
"""

from __future__ import annotations

import numpy as np

from polyseme.kernel.arrays import Floats, Ints
from polyseme.privacy.analysis.learner import success as success_of
from polyseme.results.attackers import Finding
from polyseme.scrutiny.attacks.scene import Posterior, Scene, above, largest_share, posterior_of, significantly_above

__all__ = ["attack", "lacks"]


def lacks(scene: Scene) -> str:
    if scene.column is None:
        return "published sets"
    return "a distribution that the attacker knows" if scene.column.learner_prior is None else ""


def attack(scene: Scene) -> tuple[Finding, ...]:
    """The average success of an attacker who knows the distribution; bound only where promised."""
    shown, bound = scene.shown, scene.promised.learned
    if shown.learner_prior is None:
        return ()
    shares = shown.learner_prior / shown.learner_prior.sum()
    posterior = posterior_of(shown.unique, shown.mechanism, shares)
    mean = float(posterior.best[shown.inverse].mean())
    computed = success_of(shown.mechanism, shares)
    success, detail = mean if computed is None else computed, {"mean_posterior": mean}
    exceeded = above(success, bound)
    if scene.truth is not None:
        hits = _guesses(posterior, shares)[shown.inverse] == scene.truth
        detail["hit_rate"] = float(hits.mean())
        exceeded = exceeded or significantly_above(float(hits.sum()), len(hits), bound)
    finding = Finding(
        "learner",
        shown.attribute,
        success,
        bound,
        largest_share(scene.truth, shares),
        exceeded,
        knows="the published set, the exact mechanism and the declared distribution of the values",
        gains="the likeliest value of any person, right this often on average",
        helps="learner: {success: ...}, with a distribution by the columns that tell most",
        detail=detail,
    )
    return (finding,)


def _guesses(posterior: Posterior, shares: Floats) -> Ints:
    """The likeliest value given each set: one of its candidates, or the likeliest of all others."""
    sets, inside = posterior.sets, posterior.inside
    guess: Ints = sets[np.arange(len(sets)), inside.argmax(axis=1)]
    elsewhere = posterior.outside > inside.max(axis=1)
    # Among one more values than a set has, one is not in it.
    heaviest = np.argsort(-shares, kind="stable")[: sets.shape[1] + 1]
    for value in heaviest[::-1].tolist():
        guess[elsewhere & ~(sets == value).any(axis=1)] = value
    return guess
