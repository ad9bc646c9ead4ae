"""All adversaries that apply to the published sets of one attribute."""

from __future__ import annotations

from collections.abc import Sequence

from polyseme.attacks import (
    any_prior,
    background_knowledge,
    bayes,
    definetti,
    homogeneity,
    similarity,
    skewness,
    transparency,
)
from polyseme.attacks.base import Finding
from polyseme.distances.base import Distance
from polyseme.distances.structure import Floats, Ints
from polyseme.mechanism import Mechanism
from polyseme.recipes.ground import Ground
from polyseme.tables.classes import PublishedSets

__all__ = ["ATTACKS", "attack_sets"]

ATTACKS: Sequence[str] = (
    "homogeneity",
    "similarity",
    "skewness",
    "any-prior",
    "background-knowledge",
    "bayes",
    "transparency",
    "definetti",
    "repetition",
    "linkage",
    "correlation",
)
"""Every adversary by name; the last three look at two releases, at quasi-identifiers and at two attributes."""


def attack_sets(
    sets: Ints,
    mechanism: Mechanism,
    *,
    attribute: str = "",
    truth: Ints | None = None,
    prior: Floats | None = None,
    bound: float | None = None,
    distance: Distance | None = None,
    d: float | None = None,
    t: float | None = None,
    reference: Floats | None = None,
    ground: Ground | None = None,
    t_any: float | None = None,
    features: Ints | None = None,
) -> tuple[Finding, ...]:
    """Every adversary that applies to the published sets of one attribute.

    where
        truth     true codes, when the original is at hand
        prior     the prior of the promise; uniform unless given
        bound     promised largest probability of a guess, for this prior; 1/l unless given
        d         what semantic diversity was promised
        t         what closeness was promised, for which reference (the prior unless given) and on which ground
        t_any     the most that any prior may be moved, where that was promised
        features  codes of the untouched columns, (n, q)
    """
    bound = 1.0 / mechanism.l if bound is None else bound
    # A blind set holds the true value with probability l / F on average.
    truthful = mechanism.p + (1.0 - mechanism.p) * mechanism.l / mechanism.size
    found = [homogeneity.attack(PublishedSets.from_codes(sets, mechanism.size, attribute), bound, truthful)]
    if distance is not None and d is not None:
        found.append(similarity.attack(sets, mechanism, distance, d, attribute=attribute, prior=prior, bound=bound))
    known = prior if reference is None else reference
    found.append(skewness.attack(sets, mechanism, attribute=attribute, prior=known, ground=ground, bound=t))
    if t_any is not None:
        found.append(any_prior.attack(sets, mechanism, attribute=attribute, bound=t_any))
    found += [
        background_knowledge.attack(sets, mechanism, 1, attribute=attribute, prior=prior, bound=bound),
        bayes.attack(sets, mechanism, attribute=attribute, prior=prior, bound=bound, truth=truth),
        transparency.attack(sets, mechanism, attribute=attribute, prior=prior, bound=bound, truth=truth),
    ]
    if features is not None and features.shape[1]:
        # The bound holds for those who share the prior. Nobody can be kept from learning more about people in general,
        # so this one is shown beside its baseline, without a bound.
        found.append(definetti.attack(sets, mechanism, features, attribute=attribute, truth=truth))
    return tuple(found)
