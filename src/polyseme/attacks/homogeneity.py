"""The homogeneity adversary: knows which set was published for a person, and guesses one of its members.

Success is the chance of that guess for the person whose set is shortest; exact, from the release alone.
"""

from __future__ import annotations

import numpy as np

from polyseme.attacks.base import above
from polyseme.attacks.scene import Scene
from polyseme.mechanism import Mechanism
from polyseme.results.findings import Finding
from polyseme.tables.classes import PublishedSets

__all__ = ["attack", "lacks"]


def lacks(scene: Scene) -> str:
    return "published sets" if scene.column is None else ""


def attack(scene: Scene) -> tuple[Finding, ...]:
    """On published sets: the shortest one."""
    shown, bound = scene.shown, scene.guess_bound
    truthful = _truthful(shown.mechanism)
    # Row by row: what makes sets distinct takes for granted that their candidates are different.
    sets = PublishedSets.from_codes(shown.sets, shown.mechanism.size, shown.attribute)
    share = truthful / np.maximum(sets.distinct, 1)
    success = float(share.max())
    detail = {
        "hit_rate": float((share * sets.counts).sum() / sets.records),
        "records_certain": float(sets.counts[(sets.distinct <= 1) & (truthful == 1.0)].sum() / sets.records),
    }
    finding = Finding(
        "homogeneity",
        shown.attribute,
        success,
        bound,
        1.0 / sets.size,
        above(success, bound),
        knows="the set published for the person",
        gains="a value, where the set has fewer candidates than promised",
        helps="publish every set with l different candidates of the domain",
        detail=detail,
    )
    return (finding,)


def _truthful(mechanism: Mechanism) -> float:
    """How likely a set holds the true value at all: a blind one does with probability l / F on average."""
    return mechanism.p + (1.0 - mechanism.p) * mechanism.l / mechanism.size
