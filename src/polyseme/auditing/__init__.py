"""Attacking a release as an outsider would, with the original as the judge where it is at hand.

Releases are shuffled, so nobody knows which row is whose. Rows are matched by their untouched columns, where a
combination stands exactly once on both sides: that is also how an attacker would do it. When hardly anyone can be
matched, success against the truth is measured on fresh sets that the release's own mechanism draws for the original.

Where some values are impossible for some records, an attribute has several mechanisms. Adversaries against its sets
are then shown for the largest stratum, and say so; those who need no original also try the others, and are shown where
they get further than was promised.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from polyseme.attacks import correlation, linkage, repetition
from polyseme.attacks.base import Finding
from polyseme.attacks.battery import attack_sets
from polyseme.auditing.promised import given, guess_bound, promised_for, promises_of
from polyseme.auditing.scenes import (
    Truth,
    features_of,
    largest_part,
    make_scene,
    narrowed,
    sample,
    sets_of,
)
from polyseme.auditing.seen import Part, Reading, Seen, prints_of, remember, untouched
from polyseme.auditing.twice import counterpart, join
from polyseme.distances.structure import Ints
from polyseme.errors import QuestionError
from polyseme.randomness import SystemStream
from polyseme.release import Release
from polyseme.schema import Role
from polyseme.tables.classes import Classes
from polyseme.tables.matching import class_sizes, matched
from polyseme.tables.source import Source

__all__ = ["attack_release", "finding_dict"]

_SHARED_BY = 10
"""A tenth of the people who are attacked is enough to find out which attributes are related."""


def attack_release(
    release: Release, original: Source | None = None, other: Release | None = None
) -> tuple[Finding, ...]:
    """Every adversary that applies.

    original  the truth to measure success against
    other     a second release of the same people, for the intersection attack
    """
    if release.manifest.form != "set":
        raise QuestionError("attacks need the set form", "publish with --form set, which carries the same risk")
    seen = remember(release)
    findings = [*_seed(release), *_linkage(release, seen)]
    truth = Truth(release, original, seen) if original is not None else None
    twice = _in_both(release, seen, other) if other is not None else None
    parts = [largest_part(item, seen) for item in release.manifest.protected]
    related = _correlation(release, parts, seen, truth) if truth is not None else {}
    for part in parts:
        findings += _attack_part(release, part, seen, truth)
        findings += _attack_other_strata(release, part, seen)
        if part.item.name in related:
            findings.append(related[part.item.name])
        if other is not None and twice is not None:
            findings += _repetition(release, part, seen, other, twice)
    return tuple(findings)


def _in_both(release: Release, seen: Seen, other: Release) -> tuple[Ints, Ints]:
    """The rows of people who can be recognised in both releases; refuses to attack when there is nobody."""
    if other.manifest.form != "set":
        raise QuestionError("the other release has no sets", "publish it with --form set, which carries the same risk")
    rows = matched(seen.prints, prints_of(other, release)) if untouched(release) else ()
    if not rows or not len(rows[0]):
        raise QuestionError(
            "nobody can be recognised in both releases: no values of the untouched columns stand once in each",
            "without --other the rest is tried; an attacker who knows more about people may still intersect",
        )
    return rows


def finding_dict(finding: Finding) -> dict[str, Any]:
    """A finding as JSON objects."""
    return {
        "attack": finding.attack,
        "attribute": finding.attribute,
        "success": finding.success,
        "bound": finding.bound,
        "baseline": finding.baseline,
        "exceeded": finding.exceeded,
        "knows": finding.knows,
        "gains": finding.gains,
        "helps": finding.helps,
        "detail": dict(finding.detail),
    }


def _seed(release: Release) -> tuple[Finding, ...]:
    """Whoever guesses the seed of an experiment; nothing was promised against that."""
    if not release.manifest.seeded:
        return ()
    finding = Finding(
        "seed",
        None,
        success=1.0,
        bound=None,
        baseline=0.0,
        exceeded=False,
        knows="the seed, or guesses it",
        gains="which candidates are decoys",
        helps="publish a run without a seed",
    )
    return (finding,)


def _linkage(release: Release, seen: Seen) -> tuple[Finding, ...]:
    if not any(item.attribute.role is Role.QUASI_IDENTIFIER for item in release.manifest.attributes):
        return ()
    bounds = [next(iter(model.values())).get("k") for model in release.manifest.models if "k-anonymity" in model]
    # A table of which everything is suppressed is one class.
    sizes = class_sizes(seen.quasi) if len(seen.quasi) else np.array([seen.suppressed])
    classes = Classes(sizes, np.zeros_like(sizes), int(sizes.sum()), seen.suppressed)
    return linkage.attack(classes, bounds[0] if bounds else None)


def _attack_part(release: Release, part: Part, seen: Seen, truth: Truth | None) -> list[Finding]:
    scene = make_scene(release, [part], seen, truth)
    codes = truth.values(part, scene.people) if truth is not None and scene.people is not None else None
    if scene.rows is not None:
        features = features_of(Reading.of(release), release.batches(untouched(release)), scene.rows)
    else:
        features = truth.features(scene.people) if truth is not None and scene.people is not None else None
    found = attack_sets(
        scene.sets[0],
        part.stratum.mechanism,
        attribute=part.item.name,
        truth=codes,
        features=features,
        **promised_for(part),
    )
    where = "; shown for the largest stratum" if part.item.restricted else ""
    return [_marked(finding, where, scene.measured) for finding in found]


def _marked(finding: Finding, where: str, measured: Mapping[str, float]) -> Finding:
    return replace(finding, knows=finding.knows + where, detail={**finding.detail, **measured})


def _attack_other_strata(release: Release, largest: Part, seen: Seen) -> list[Finding]:
    """Whoever gets further than was promised in a stratum that is not the largest; exactly, without the original."""
    item = largest.item
    parts = [Part(item, number) for number in range(len(item.strata.members)) if number != largest.number]
    chosen = {part.number: sample(np.flatnonzero(seen.inside(part)), len(parts)) for part in parts}
    rows = np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *chosen.values()]))
    if not len(rows):
        return []
    sets = sets_of(release, item, rows)
    findings = []
    for part in parts:
        mine = narrowed(part, sets[np.searchsorted(rows, chosen[part.number])])
        if len(mine):
            found = attack_sets(mine, part.stratum.mechanism, attribute=item.name, **promised_for(part))
            measured = {"stratum_records": float(seen.inside(part).sum())}
            findings += [_marked(entry, "; shown for another stratum", measured) for entry in found if entry.exceeded]
    return findings


def _correlation(release: Release, parts: Sequence[Part], seen: Seen, truth: Truth) -> dict[str, Finding]:
    """Each attribute guessed with the help of the other one whose sets say most about it."""
    found = {}
    for mine, other in _helpers(parts, truth):
        scene = make_scene(release, (mine, other), seen, truth)
        if scene.people is None:
            continue
        finding = correlation.attack(
            scene.sets[0],
            mine.stratum.mechanism,
            scene.sets[1],
            other.stratum.mechanism,
            truth.values(mine, scene.people),
            attribute=mine.item.name,
            helper=f"'{other.item.name}'",
        )
        where = "; shown for the largest strata" if mine.item.restricted or other.item.restricted else ""
        found[mine.item.name] = _marked(finding, where, scene.measured)
    return found


def _helpers(parts: Sequence[Part], truth: Truth) -> list[tuple[Part, Part]]:
    """Every attribute with the one that helps it most, as some people show; to attack with all would take too long."""
    people = sample(np.flatnonzero(np.all([truth.possible(part) for part in parts], axis=0)), _SHARED_BY)
    values = [truth.values(part, people) for part in parts]
    sets = [part.stratum.mechanism.sample(codes, SystemStream()) for part, codes in zip(parts, values)]
    sizes = [part.stratum.mechanism.size for part in parts]
    pairs = []
    for mine, part in enumerate(parts):
        told = {
            other: correlation.information(values[mine], sizes[mine], sets[other], sizes[other])
            for other in range(len(parts))
            if other != mine and sizes[mine] * sizes[other] <= correlation.LARGEST_TABLE
        }
        if told:
            pairs.append((part, parts[max(told, key=told.__getitem__)]))
    return pairs


def _repetition(release: Release, part: Part, seen: Seen, other: Release, twice: tuple[Ints, Ints]) -> list[Finding]:
    """What two releases say together, about people who stand in both.

    twice  their rows in either release
    """
    item = part.item
    again = counterpart(part, other.manifest[item.name])
    shown = sample(np.flatnonzero(seen.inside(part)[twice[0]]))
    prior = given(item.domain.prior, part.stratum)
    joint = join(part, again, prior) if again is not None else None
    if again is None or joint is None or not len(shown):
        return []
    rows, others = twice[0][shown], twice[1][shown]
    order = np.argsort(others)
    second = np.empty((len(rows), again.stratum.mechanism.l), dtype=np.int64)
    second[order] = np.sort(joint.codes[narrowed(again, sets_of(other, again.item, others[order]))], axis=1)
    finding = repetition.attack(
        narrowed(part, sets_of(release, item, rows)),
        second,
        part.stratum.mechanism,
        joint.mechanism,
        attribute=item.name,
        prior=joint.prior,
        bound=guess_bound(promises_of(item), part.stratum.mechanism, prior),
        # Sticky decoys change with the list of values: over another one, equal sets need not be one draw.
        sticky=release.manifest.sticky and other.manifest.sticky and joint.same,
    )
    where = "; shown for the largest stratum" if item.restricted else ""
    return [_marked(finding, where, {"matched_records": float(len(rows))})]
