"""The skewness attacker: compares what is known about a person before and after a release.

Against sets, success is the largest earth mover's distance between the two distributions over all published sets. On
the equal ground that is the total variation distance: the most by which the probability of any statement about a person
can change. Exact; on other grounds, where a large domain has very many different sets, from some of them. The bound is
the t of closeness, where that was promised, on its ground and for its reference distribution; diversity promises
nothing here.

In classes, the attacker compares the values of a person's class with those of the whole table:

    success  =  max over classes E of  EMD(distribution in E, distribution in the whole table)

where
    EMD  earth mover's distance on the ground of the promise, the equal one where closeness was not promised: there it
         is the most by which the probability of any statement about a person changes

Exact, from the release alone. The bound is the t of closeness; the diversities promise nothing here.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from polyseme.designs.mechanism import Mechanism
from polyseme.kernel.arrays import Floats, Ints
from polyseme.results.attackers import Finding
from polyseme.scrutiny.attacks.scene import Scene, above, posterior_of
from polyseme.semantics.distances.ground import Equal, Ground

__all__ = ["attack", "attack_in_classes", "lacks", "lacks_in_classes"]


def lacks_in_classes(scene: Scene) -> str:
    return "values in classes" if scene.within is None else ""


def attack_in_classes(scene: Scene) -> tuple[Finding, ...]:
    """For the class that is furthest from the whole table; on average over records as `mean`."""
    within, bound = scene.classed, scene.promised.moved
    work = (scene.promised.ground or Equal()).of_classes(within.counts)
    success = float(work.max())
    finding = Finding(
        "skewness",
        within.attribute,
        success,
        bound,
        0.0,
        above(success, bound),
        knows=f"the {within.unit} of the person, and how values are distributed in the whole table",
        gains="that some values are much more likely for the person than for others",
        helps="closeness, with a t that is acceptable to the people concerned",
        detail={"mean": float((work * within.counts.sizes).sum() / within.counts.sizes.sum())},
    )
    return (finding,)


_CHUNK, _MOST = 4_000_000, 400_000_000
"""Probabilities that are moved at a time, and in all; beyond that only some of the sets are looked at."""


def lacks(scene: Scene) -> str:
    return "published sets" if scene.column is None else ""


def attack(scene: Scene) -> tuple[Finding, ...]:
    """On published sets: the posterior against the reference, moved on the promised ground."""
    shown, promised = scene.shown, scene.promised
    # Closeness may be promised for another distribution than guesses are.
    seen = shown if promised.reference is None else replace(shown, prior=promised.reference)
    prior, unique = seen.expected, seen.unique
    if promised.ground is None or isinstance(promised.ground, Equal):
        # No value outside the set gains: the channel favors members, and outsiders all change by one factor.
        work = np.maximum(seen.posterior.inside - prior[unique], 0.0).sum(axis=1)
    else:
        some = unique[:: 1 + len(unique) * shown.mechanism.size // _MOST]
        work = _work(some, shown.mechanism, prior, promised.ground)
    whole = len(work) == len(unique)
    detail = {"mean": float(work[seen.inverse].mean())} if whole else {"sets_looked_at": float(len(work))}
    success = float(work.max())
    finding = Finding(
        "skewness",
        shown.attribute,
        success,
        promised.moved,
        0.0,
        above(success, promised.moved),
        "the published set, the mechanism and the public distribution",
        "that some values are much more likely for the person than for others",
        "closeness, with a t that is acceptable to the people concerned",
        detail,
    )
    return (finding,)


def _work(sets: Ints, mechanism: Mechanism, prior: Floats, ground: Ground) -> Floats:
    """The earth mover's distance from the prior to the posterior of each set."""
    out = np.empty(len(sets))
    step = max(1, _CHUNK // len(prior))
    for start in range(0, len(sets), step):
        part = sets[start : start + step]
        posterior = posterior_of(part, mechanism, prior).inside
        kept = 1.0 - posterior.sum(axis=1)
        # All values outside keep their proportions.
        beyond = np.maximum(1.0 - prior[part].sum(axis=1), np.finfo(np.float64).tiny)
        shift = (kept / beyond - 1.0)[:, None] * prior
        np.put_along_axis(shift, part, posterior - prior[part], axis=1)
        out[start : start + step] = ground.work(shift)
    return out
