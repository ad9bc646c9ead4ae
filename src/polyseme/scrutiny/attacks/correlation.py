"""The correlating attacker: uses the set of one protected attribute to narrow down another.

Sets are drawn independently for each attribute, but true values are not independent. With the joint distribution of
both, which anyone can estimate from the release by maximum likelihood, the attacker forms

    P(v | R, S)  ~  P(R | v) * sum_u joint(v, u) P(S | u)

where
    R, S   the published sets of the attribute it wants and of the other one
    joint  the joint distribution of both

Success is the observed share of right guesses, judged by what was promised for those who learn. Nothing is claimed
without the original: an estimated distribution fits the records it was estimated from too well, so the attacker's own
confidence says little. `inference.sets.all_sets` says what can be known without it.
"""

from __future__ import annotations

import numpy as np

from polyseme.inference.likelihood import likelihood_of
from polyseme.inference.solver import expectation_maximization
from polyseme.kernel.arrays import Floats
from polyseme.results.attackers import Finding
from polyseme.scrutiny.attacks.scene import Scene, Shown, hit_rate, largest_share, significantly_above, uniform

__all__ = ["attack", "lacks", "scores"]

_ROUNDS = 30
"""Further ones fit the noise of the reports rather than the people."""


def lacks(scene: Scene) -> str:
    if scene.column is None:
        return "published sets"
    if scene.helper is None:
        return "the sets of another attribute"
    return "" if scene.truth is not None else "the original"


def attack(scene: Scene) -> tuple[Finding, ...]:
    """How often a value is guessed right with the sets of another attribute at hand."""
    shown, helper, truth = scene.shown, scene.helper, scene.truth
    if helper is None or truth is None:
        return ()
    each = np.ones(len(truth), dtype=np.int64)
    likelihood = likelihood_of((shown.sets, helper.sets), each, (shown.mechanism, helper.mechanism))
    shape = (shown.mechanism.size, helper.mechanism.size)
    joint = expectation_maximization(likelihood, limit=_ROUNDS).x.reshape(shape)
    right = shown.sets == truth[:, None]
    alone = shown.mechanism.weights(shown.sets)[0] * joint.sum(axis=1)[shown.sets]
    named = f"'{helper.attribute}'" if helper.attribute else "another protected attribute"
    hits, bound = hit_rate(scores(shown, helper, joint), right), scene.promised.learned
    finding = Finding(
        "correlation",
        shown.attribute,
        float(hits.mean()),
        bound,
        largest_share(truth, uniform(shown.mechanism.size)),
        significantly_above(float(hits.sum()), len(hits), bound),
        knows=f"the set of {named} too, and how the true values of the two are associated",
        gains="the value of one attribute from the candidates of the other",
        helps="protect strongly related attributes as one (joint: in the policy), or raise l for both",
        detail={"without_the_other": float(hit_rate(alone, right).mean())},
    )
    return (finding,)


def scores(shown: Shown, helper: Shown, joint: Floats) -> Floats:
    """`P(v | R, S)` for each member v of R, up to a factor of the record: (n, l)."""
    sets, others = shown.sets, helper.sets
    inside, _ = shown.mechanism.weights(sets)
    again, beyond = helper.mechanism.weights(others)
    said = joint.sum(axis=1)[sets] * beyond[:, None]
    for column in range(others.shape[1]):
        said += joint[sets, others[:, column, None]] * (again[:, column] - beyond)[:, None]
    found: Floats = inside * said
    return found
