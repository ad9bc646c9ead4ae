"""Attacks on a release as an outsider, judged by the original where it is at hand.

Releases are shuffled, so rows have no owners. Rows are matched by their untouched columns, where a
combination stands exactly once on both sides: that is also how an attacker would do it. When hardly anyone can be
matched, success against the truth is measured on fresh sets that the release's own mechanism draws for the original.

Where some values are impossible for some records, an attribute has several mechanisms. Attackers who learn from the
release learn from all records and guess at all of them. The others are shown for the largest stratum, and say so; those
who need no original also try the other strata, and are shown where they get further than was promised.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property

import numpy as np

from polyseme.kernel.arrays import Ints
from polyseme.kernel.errors import QuestionError
from polyseme.kernel.work import tracked
from polyseme.release import Release
from polyseme.results.attackers import Finding
from polyseme.scrutiny.attacks.audit.classes import attack_classes
from polyseme.scrutiny.attacks.audit.records import Again, Target, all_targets, matched_classes, united
from polyseme.scrutiny.attacks.audit.scenes import (
    Chosen,
    Sample,
    Truth,
    narrowed,
    promised_for,
    published,
    published_to_all,
)
from polyseme.scrutiny.attacks.audit.seen import (
    Memory,
    Part,
    Prints,
    Seen,
    counted_classes,
    counted_links,
    insensitive,
    quasi_identifiers,
)
from polyseme.scrutiny.attacks.audit.shared_values import SharedValues
from polyseme.scrutiny.attacks.registry import ADVERSARIES, attack
from polyseme.scrutiny.attacks.scene import Linked, Promised, Scene, Shown
from polyseme.tables.distinct import class_sizes
from polyseme.tables.equivalence_classes import Classes
from polyseme.tables.io.source import Source

__all__ = ["attack_release", "attack_sample", "require_attackable"]

_LEARNING = ("published-estimate", "definetti")
"""Attackers who learn from all records, whatever stratum they are in."""


def attack_release(
    release: Release,
    original: Source | None = None,
    other: Release | None = None,
    seed: int | None = None,
    population: Source | None = None,
) -> tuple[Finding, ...]:
    """Every attacker that applies.

    original  the truth to measure success against
    other     a second release of the same people, for the intersection attack
    seed      of fresh sets, for experiments
    population  people with the same quasi-identifiers, among whom the journalist looks for a record
    """
    require_attackable(release)
    memory = Memory.of(release)
    seen, shown = memory.seen(), memory.columns()
    whole = _whole_scene(release, class_sizes(seen.quasi), seen.suppressed, class_sizes(seen.linked))
    if population is not None:
        classes, matches = matched_classes(release, population)
        whole = replace(whole, classes=classes, matches=matches)
    return (*attack(whole), *_attack_records(release, seen, shown, original, other, seed))


def attack_sample(release: Release, some: Release) -> tuple[Finding, ...]:
    """Every attacker that applies to a release of which only some records were brought here.

    release  the whole of it, whose rows are only counted: who is alike is known of everybody
    some     a random sample of its records, which those see who look at sets
    """
    require_attackable(release)
    require_attackable(some)
    part = f"a random sample of {some.manifest.records:,} of {release.manifest.records:,} records"
    measured = {"sampled": float(some.manifest.records), "records": float(release.manifest.records)}
    found = attack(_whole_scene(release, *counted_classes(release), counted_links(release)))
    memory = Memory.of(some)
    for one in _attack_records(some, memory.seen(), memory.columns(), None, None):
        where = f" in {part}" if "; shown for " in one.knows else f"; shown for {part}"
        found = (*found, *_marked([one], where, measured))
    return tuple(found)


def require_attackable(release: Release) -> None:
    """Raise for a release without sets of records, or without records."""
    if release.manifest.form != "set":
        raise QuestionError("attacks need the set form", "publish with --form set, which carries the same risk")
    release.require_rows()


def _attack_records(
    release: Release,
    seen: Seen,
    shown: Prints,
    original: Source | None,
    other: Release | None,
    seed: int | None = None,
) -> tuple[Finding, ...]:
    """Attackers who look at single records, and at those of a class or a group."""
    hidden = release.manifest.sets or release.manifest.grouped
    # In classes the release itself tells how often a guess is right; the original adds nothing.
    truth = Truth(release, original, seen, seed) if original is not None and hidden else None
    targets = all_targets(release, seen, truth, other)
    shared = SharedValues(release, seen, shown, truth)
    stage = _Stage(release, seen, truth, targets, other, shared)
    findings, grouped = list[Finding](), list[Finding]()
    for target in tracked(targets, "attributes", "Attacking attributes"):
        findings += [
            *sorted([*stage.attack_part(target), *stage.attack_everyone(target)], key=_order),
            *stage.attack_other_strata(target),
            *stage.attack_with_helper(target),
            *stage.attack_twice(target),
        ]
        grouped += stage.attack_together(target)
    return (*findings, *grouped, *attack_classes(release, truth, original))


def _whole_scene(release: Release, sizes: Ints, suppressed: int, together: Ints) -> Scene:
    """What a release as a whole shows: whose records look alike, and whether it has a seed.

    together  how many records share all untouched columns, where some of these are insensitive
    """
    seeded = bool(release.manifest.seeded)
    linked = Linked(Classes(together, np.zeros_like(together), int(together.sum()), 0), insensitive(release))
    if not quasi_identifiers(release):
        return Scene(seeded=seeded, linked=linked if len(together) else None)
    k, people = (_largest(release, name) for name in ("k-anonymity", "k-map"))
    # A table of which everything is suppressed is one class; and so are the records that a method suppressed, for
    # an attacker who finds that no other class fits.
    if suppressed and (release.manifest.applied is not None or not len(sizes)):
        sizes = np.append(sizes, suppressed)
    classes = Classes(sizes, np.zeros_like(sizes), int(sizes.sum()), suppressed)
    promised = Promised(k=k, people=people)
    known = linked if len(together) else None
    return Scene(classes=classes, linked=known, people=release.manifest.people, promised=promised, seeded=seeded)


def _largest(release: Release, model: str) -> int | None:
    """The largest k that a model promises."""
    return max((listed[model]["k"] for listed in release.manifest.models if model in listed), default=None)


class _Stage:
    """The records of all casts, and the scenes that are made of them."""

    def __init__(
        self,
        release: Release,
        seen: Seen,
        truth: Truth | None,
        targets: list[Target],
        other: Release | None,
        shared: SharedValues,
    ) -> None:
        self._seen, self._truth, self._shared = seen, truth, shared
        chosen = [one for target in targets for one in (target.chosen, target.whole) if one is not None]
        described = united(("", one.rows) for one in chosen if one.rows is not None)
        rows = united((*(pair for target in targets for pair in target.rows()), *shared.rows()))
        self._drawn = Sample(release, rows, described.get(""))
        self._fresh = united(("", one.people) for one in chosen if one.rows is None and one.people is not None).get("")
        twice = [target.again for target in targets if target.again is not None]
        again = united((one.part.item.name, one.others) for one in twice)
        self._again = Sample(other, again) if other is not None else None

    def attack_part(self, target: Target) -> list[Finding]:
        """All attacks on the sets of the attribute, in its largest stratum where it has several."""
        part, chosen = target.part, target.chosen
        who = ADVERSARIES if target.whole is None else [name for name in ADVERSARIES if name not in _LEARNING]
        scene = Scene(
            self._shown(part, chosen),
            promised_for(part),
            truth=self._true(part, chosen),
            features=self._features(chosen),
        )
        where = "; shown for the largest stratum" if part.item.stratified else ""
        return _marked(attack(scene, who), where, chosen.measured)

    def attack_everyone(self, target: Target) -> list[Finding]:
        """Attackers who learn from all records, where the attribute has several strata."""
        item, chosen = target.part.item, target.whole
        if chosen is None:
            return []
        scene = Scene(
            promised=promised_for(target.part),
            truth=None if self._truth is None or chosen.people is None else self._truth.codes[item.name][chosen.people],
            features=self._features(chosen),
            strata=published_to_all(item, chosen, self._drawn, self._seen, self._truth),
        )
        return _marked(attack(scene, _LEARNING), "", chosen.measured)

    def attack_other_strata(self, target: Target) -> list[Finding]:
        """Attackers who exceed the promise in another stratum; exactly, without the original."""
        findings = []
        for number, rows in target.strata.items():
            part = Part(target.part.item, number)
            found = attack(Scene(self._shown(part, Chosen(rows, None, {})), promised_for(part)))
            measured = {"stratum_records": float(self._seen.inside(part).sum())}
            findings += _marked((one for one in found if one.exceeded), "; shown for another stratum", measured)
        return findings

    def attack_with_helper(self, target: Target) -> list[Finding]:
        """The attribute guessed with the help of the one whose sets say most about it."""
        if target.helper is None:
            return []
        helper, chosen = target.helper
        scene = Scene(
            self._shown(target.part, chosen),
            promised_for(target.part),
            truth=self._true(target.part, chosen),
            helper=self._shown(helper, chosen),
        )
        where = "; shown for the largest strata" if target.part.item.stratified or helper.item.stratified else ""
        return _marked(attack(scene, ["correlation"]), where, chosen.measured)

    def attack_twice(self, target: Target) -> list[Finding]:
        """What two releases say together, about people who are in both."""
        part, again = target.part, target.again
        if again is None:
            return []
        scene = Scene(
            replace(self._shown(part, Chosen(again.rows, None, {})), prior=again.joined.prior),
            promised_for(part),
            again=self._shown_again(again),
            sticky=again.sticky,
        )
        where = "; shown for the largest stratum" if part.item.stratified else ""
        return _marked(attack(scene, ["repetition"]), where, {"matched_records": float(len(again.rows))})

    def attack_together(self, target: Target) -> list[Finding]:
        """What the sets of groups say together about a value that their members share."""
        found = self._shared.worst(target.part.item, self._drawn.sets)
        return [] if found is None else [found]

    def _shown(self, part: Part, chosen: Chosen) -> Shown:
        return published(part, chosen, self._drawn, self._truth)

    def _shown_again(self, again: Again) -> Shown | None:
        if self._again is None:
            return None
        sets = narrowed(again.part, self._again.sets(again.part.item, again.others))
        return Shown(np.sort(again.joined.codes[sets], axis=1), again.joined.mechanism)

    def _true(self, part: Part, chosen: Chosen) -> Ints | None:
        if self._truth is None or chosen.people is None:
            return None
        return self._truth.values(part, chosen.people)

    def _features(self, chosen: Chosen) -> Ints | None:
        if chosen.rows is not None:
            return self._drawn.features(chosen.rows)
        if self._fresh is None or self._levels is None or chosen.people is None:
            return None
        return self._levels[np.searchsorted(self._fresh, chosen.people)]

    @cached_property
    def _levels(self) -> Ints | None:
        """Untouched columns of everybody who is given fresh sets."""
        return self._truth.features(self._fresh) if self._truth is not None and self._fresh is not None else None


def _order(finding: Finding) -> int:
    return list(ADVERSARIES).index(finding.attack)


def _marked(findings: Iterable[Finding], where: str, measured: Mapping[str, float]) -> list[Finding]:
    """Findings that say where they were made, and on how many records."""
    return [replace(one, knows=one.knows + where, detail={**one.detail, **measured}) for one in findings]
