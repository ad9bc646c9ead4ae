"""Every attacker by name. A new one is a file beside this one, its line here and its page.

An attacker is a module with two functions:

    lacks(scene)   what it would need and the scene does not show, in words; nothing when it can attack
    attack(scene)  its findings
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Protocol

from polyseme.kernel.work import tracked
from polyseme.results.attackers import Finding
from polyseme.scrutiny.attacks import (
    any_prior,
    background_knowledge,
    bayes,
    correlation,
    definetti,
    definetti_in_groups,
    homogeneity,
    learner,
    left_out,
    linkage,
    published_estimate,
    repetition,
    seed,
    shared_value,
    similarity,
    skewness,
    transparency,
)
from polyseme.scrutiny.attacks.scene import Scene

__all__ = ["ADVERSARIES", "IN_CLASSES", "Adversary", "attack"]


class Adversary(Protocol):
    """An attacker who looks at a scene and guesses."""

    def lacks(self, scene: Scene, /) -> str:
        """What is needed and not shown, in words; empty when the attack is possible."""
        ...

    def attack(self, scene: Scene, /) -> tuple[Finding, ...]:
        """What was found in a scene that lacks nothing."""
        ...


ADVERSARIES: Mapping[str, Adversary] = {
    "seed": seed,
    "linkage": linkage,
    "homogeneity": homogeneity,
    "similarity": similarity,
    "skewness": skewness,
    "any-prior": any_prior,
    "background-knowledge": background_knowledge,
    "bayes": bayes,
    "transparency": transparency,
    "learner": learner,
    "published-estimate": published_estimate,
    "definetti": definetti,
    "correlation": correlation,
    "repetition": repetition,
    "shared-value": shared_value,
}
"""On published sets and on records, in the order in which findings are shown."""


class _InClasses(NamedTuple):
    """The variant of an attacker for values in classes."""

    lacks: Callable[[Scene], str]
    attack: Callable[[Scene], tuple[Finding, ...]]


IN_CLASSES: Mapping[str, Adversary] = {
    "homogeneity": _InClasses(homogeneity.lacks_in_classes, homogeneity.attack_in_classes),
    "similarity": _InClasses(similarity.lacks_in_classes, similarity.attack_in_classes),
    "skewness": _InClasses(skewness.lacks_in_classes, skewness.attack_in_classes),
    "background-knowledge": _InClasses(background_knowledge.lacks_in_classes, background_knowledge.attack_in_classes),
    "definetti": definetti_in_groups,
    "left-out": left_out,
}
"""The same people, where sensitive values are published with their class or group."""


ALL: tuple[str, ...] = tuple(dict.fromkeys((*ADVERSARIES, *IN_CLASSES)))
"""Every name, in the order in which findings are shown."""


def attack(scene: Scene, names: Iterable[str] = ALL) -> tuple[Finding, ...]:
    """What the named attacks find, by default all; an attack that lacks something finds nothing."""
    who = [known[name] for name in names for known in (ADVERSARIES, IN_CLASSES) if name in known]
    able = [one for one in who if not one.lacks(scene)]
    return tuple(finding for one in tracked(able, "adversaries", "Running attacks") for finding in one.attack(scene))
