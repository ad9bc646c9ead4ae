"""The linking attackers: find a person's record by quasi-identifiers known from elsewhere.

    prosecutor   knows that the person is in the table; worst risk 1 / (smallest class)
    journalist   does not know it, but has a reference population; worst risk 1 / (fewest matching people)
    marketer     wants as many matches as possible; expected share of right ones = classes / records,
                 or the mean over records of 1 / (matching people) with a reference

What a policy calls insensitive is published all the same, and others may know it: records are found by it too.
A promise of k-anonymity is about quasi-identifiers, and is judged by these alone.

A class that no person of the reference fits counts as if one did: the reference lacks its people. Sample uniqueness
is the share of records that are alone in their class. All of these are exact. The bound is 1/k where k-anonymity was
promised; with a reference that of k-map, where it was, for the journalist and the marketer. Publishing sets of
candidates does not touch quasi-identifiers, so it does nothing against linkage.

Where the publisher says of how many people the records are, a class counts as the fewest people that it can have by
what is claimed: a person with two records in a class is not hidden by them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from polyseme.kernel.arrays import Ints
from polyseme.release import People
from polyseme.results.attackers import Finding
from polyseme.scrutiny.attacks.scene import Scene, above
from polyseme.tables.equivalence_classes import Classes

__all__ = ["Risks", "attack", "lacks", "risks"]


@dataclass(frozen=True)
class Risks:
    """Re-identification risks.

    classes     number of classes
    highest     1 / smallest class
    average     classes / records
    unique      share of records alone in their class
    journalist  1 / fewest matching people of the reference; None without one
    """

    classes: int
    highest: float
    average: float
    unique: float
    journalist: float | None = None


def risks(classes: Classes, matches: Ints | None = None, people: People | None = None) -> Risks:
    """Risks of a table; `matches` are the people of a population that fit each class.

    people  of how many the records are; the average is then the highest that it can be
    """
    records = int(classes.sizes.sum())
    smallest = int(classes.sizes.min())
    if people is not None:
        smallest = min(smallest, people.smallest_class)
        records = min(records, max(people.total, classes.count * smallest))
    return Risks(
        classes.count,
        1.0 / smallest,
        classes.count / records,
        int((classes.sizes == 1).sum()) / records,
        None if matches is None else float(1.0 / np.maximum(matches, 1).min()),
    )


def lacks(scene: Scene) -> str:
    return "" if scene.classes is not None or scene.linked is not None else "quasi-identifiers"


def attack(scene: Scene) -> tuple[Finding, ...]:
    """One finding for each of the three attackers; the journalist only with a reference."""
    found = _by_classes(scene)
    if scene.linked is None:
        return found
    promised = {one.attack: one for one in found}
    everything = _by_classes(replace(scene, classes=scene.linked.classes, matches=None))
    # Where a population says how many people fit, it does so by quasi-identifiers.
    counted = everything if scene.matches is None else everything[:1]
    linked = {one.attack: _judged(one, promised.get(one.attack), scene.linked.names) for one in counted}
    return tuple({**promised, **linked}.values())


def _judged(found: Finding, promised: Finding | None, names: Sequence[str]) -> Finding:
    """The finding with insensitive columns too; the promise covers quasi-identifiers only."""
    called = f"{', '.join(names)} (published as insensitive)"
    knows = called if promised is None else f"{promised.knows}; and {called}"
    alone = {} if promised is None else {"success": promised.success, **promised.detail}
    return replace(
        found,
        bound=None if promised is None else promised.bound,
        exceeded=promised is not None and promised.exceeded,
        knows=knows,
        helps=f"drop {', '.join(names)} (role: identifier); {found.helps}",
        detail={**found.detail, **{f"{name}_by_promise": value for name, value in alone.items()}},
    )


def _by_classes(scene: Scene) -> tuple[Finding, ...]:
    classes, matches, k = scene.classes, scene.matches, scene.promised.k
    if classes is None:
        return ()
    found = risks(classes, matches, scene.people)
    bound = None if k is None else 1.0 / k
    records = int(classes.sizes.sum())
    marketer = found.average
    among = bound if scene.promised.people is None else 1.0 / scene.promised.people
    detail = {"classes": float(found.classes), "average": found.average, "unique": found.unique}
    if matches is not None:
        marketer = float((classes.sizes / np.maximum(matches, 1)).sum() / records)
        detail |= {"fewest_people": float(matches.min()), "nobody_fits": float(classes.sizes[matches == 0].sum())}
    who = [
        ("prosecutor", found.highest, "the person's quasi-identifiers, and that the person is in the table", bound),
        ("marketer", marketer, "the quasi-identifiers of all people", bound if matches is None else among),
    ]
    if found.journalist is not None:
        who.insert(1, ("journalist", found.journalist, "quasi-identifiers of the whole population", among))
    return tuple(
        Finding(
            f"linkage-{name}",
            None,
            success,
            limit,
            1.0 / records,
            above(success, limit),
            knows,
            gains="which record belongs to the person"
            if name != "marketer"
            else "the share of records matched rightly",
            helps="generalize the quasi-identifiers, or publish them as sets of candidates too",
            detail=detail,
        )
        for name, success, knows, limit in who
    )
