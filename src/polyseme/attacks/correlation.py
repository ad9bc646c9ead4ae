"""The correlating adversary: uses the set of one protected attribute to narrow down another.

Sets are drawn independently for each attribute, but true values are not independent. With the joint distribution of
both, which anyone can estimate from the release by maximum likelihood, the adversary forms

    P(v | R, S)  ~  P(R | v) * sum_u joint(v, u) P(S | u)

where
    R, S   the published sets of the attribute it wants and of the other one
    joint  the joint distribution of both

Success is the observed share of right guesses. Nothing is claimed without the original: an estimated distribution fits
the records it was estimated from too well, so the adversary's own confidence says little.
"""

from __future__ import annotations

import numpy as np

from polyseme.arrays import Floats, Ints
from polyseme.attacks.base import hit_rate, largest_share
from polyseme.attacks.posterior import uniform
from polyseme.attacks.scene import Scene, Shown
from polyseme.estimators.likelihood import likelihood_of
from polyseme.estimators.solver import expectation_maximisation
from polyseme.results.findings import Finding

__all__ = ["LARGEST_TABLE", "attack", "information", "lacks", "scores"]

LARGEST_TABLE = 4_000_000
"""Most combinations of two values whose shares are estimated."""

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
    joint = expectation_maximisation(likelihood, limit=_ROUNDS).x.reshape(shape)
    right = shown.sets == truth[:, None]
    alone = shown.mechanism.weights(shown.sets)[0] * joint.sum(axis=1)[shown.sets]
    named = f"'{helper.attribute}'" if helper.attribute else "another protected attribute"
    finding = Finding(
        "correlation",
        shown.attribute,
        float(hit_rate(scores(shown, helper, joint), right).mean()),
        None,
        largest_share(truth, uniform(shown.mechanism.size)),
        False,
        knows=f"the set of {named} too, and how the true values of the two are associated",
        gains="the value of one attribute from the candidates of the other",
        helps="protect strongly related attributes as one (joint: in the policy), or raise l for both",
        detail={"without_the_other": float(hit_rate(alone, right).mean())},
    )
    return (finding,)


def information(values: Ints, size: int, others: Ints, other_size: int) -> float:
    """How much a random candidate of another attribute's set says about a value: mutual information, in nats.

    What pure chance would show in a table of this size is taken off (Miller and Madow).
    """
    table = np.zeros(size * other_size)
    for column in others.T:
        table += np.bincount(values * other_size + column, minlength=len(table))
    joint = table.reshape(size, other_size) / max(table.sum(), 1.0)
    mine, theirs = joint.sum(axis=1), joint.sum(axis=0)
    seen = joint > 0.0
    told = float(joint[seen] @ np.log((joint / np.maximum(np.outer(mine, theirs), np.finfo(float).tiny))[seen]))
    chance = (np.count_nonzero(mine) - 1) * (np.count_nonzero(theirs) - 1) / (2.0 * max(len(values), 1))
    return float(told - chance / max(others.shape[1], 1))


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
