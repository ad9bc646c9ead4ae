"""All adversaries that apply, against one attribute or one table."""

from __future__ import annotations

from collections.abc import Sequence

from polyseme.attacks import (
    background_knowledge,
    bayes,
    correlation,
    definetti,
    homogeneity,
    linkage,
    repetition,
    similarity,
    skewness,
    transparency,
)
from polyseme.attacks.base import Finding
from polyseme.distances.base import Distance
from polyseme.distances.structure import Floats, Ints
from polyseme.mechanism import Mechanism
from polyseme.tables.classes import Classes, PublishedSets

__all__ = ["ATTACKS", "attack_classes", "attack_sets"]

ATTACKS: Sequence[str] = (
    "homogeneity",
    "similarity",
    "skewness",
    "background-knowledge",
    "bayes",
    "transparency",
    "definetti",
    "repetition",
    "linkage",
    "correlation",
)
"""Every adversary by name."""


def attack_sets(
    sets: Ints,
    mechanism: Mechanism,
    *,
    attribute: str = "",
    truth: Ints | None = None,
    prior: Floats | None = None,
    distance: Distance | None = None,
    d: float | None = None,
    t: float | None = None,
    bound: float | None = None,
    features: Ints | None = None,
    again: Ints | None = None,
    others: tuple[Ints, Mechanism] | None = None,
    joint: Floats | None = None,
) -> tuple[Finding, ...]:
    """Every adversary that applies to the published sets of one attribute.

    where
        truth     true codes, when the original is at hand
        prior     the reference prior of the promise; uniform unless given
        d, t      what semantic diversity or closeness was promised
        bound     promised largest probability; 1/l unless given
        features  codes of the untouched quasi-identifiers, (n, q)
        again     sets of a second release about the same people, row by row
        others    sets and mechanism of another protected attribute
        joint     joint distribution of both, where it is known
    """
    bound = 1.0 / mechanism.l if bound is None else bound
    # A blind set holds the true value with probability l / F on average.
    truthful = mechanism.p + (1.0 - mechanism.p) * mechanism.l / mechanism.size
    found = [homogeneity.attack_sets(PublishedSets.from_codes(sets, mechanism.size, attribute), bound, truthful)]
    if distance is not None and d is not None:
        found.append(
            similarity.attack_sets(sets, mechanism, distance, d, attribute=attribute, prior=prior, bound=bound)
        )
    found += [
        skewness.attack_sets(sets, mechanism, attribute=attribute, prior=prior, bound=t),
        background_knowledge.attack_sets(sets, mechanism, 1, attribute=attribute, prior=prior),
        bayes.attack(sets, mechanism, attribute=attribute, prior=prior, bound=bound, truth=truth),
        transparency.attack(sets, mechanism, attribute=attribute, prior=prior, bound=bound, truth=truth),
    ]
    if features is not None and features.shape[1]:
        found.append(definetti.attack_sets(sets, mechanism, features, attribute=attribute, truth=truth, bound=bound))
    if again is not None:
        found.append(repetition.attack(sets, again, size=mechanism.size, attribute=attribute, truth=truth, bound=bound))
    if others is not None:
        found.append(
            correlation.attack(sets, mechanism, *others, attribute=attribute, truth=truth, joint=joint, bound=bound)
        )
    return tuple(found)


def attack_classes(
    classes: Classes,
    *,
    k: int | None = None,
    l: int | None = None,
    t: float | None = None,
    distances: dict[str, Distance] | None = None,
    d: float | None = None,
    matches: Ints | None = None,
) -> tuple[Finding, ...]:
    """Every adversary that applies to a table published in classes; k, l, t, d are what was promised."""
    found = list(linkage.attack(classes, k, matches))
    bound = None if l is None else 1.0 / l
    for name, counts in classes.attributes.items():
        if counts.flaw:
            continue
        found += [homogeneity.attack(counts, bound), skewness.attack(counts, t)]
        found.append(background_knowledge.attack(counts, 1, l))
        distance = (distances or {}).get(name)
        if distance is not None and d is not None:
            found.append(similarity.attack(counts, distance, d, bound))
    return tuple(found)
