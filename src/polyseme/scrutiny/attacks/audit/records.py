"""Which records the attackers on each attribute see, and how many people fit each class.

Records are chosen before any set is read. The people who fit what a class shows are counted in a reference population.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from polyseme.inference.sets.associations import LARGEST_TABLE, information
from polyseme.kernel.arrays import Ints
from polyseme.kernel.errors import Problem, QuestionError
from polyseme.release import Generalized, Release
from polyseme.schema import Role
from polyseme.scrutiny.attacks.audit.scenes import Chosen, Truth, choose, choose_all, largest_part, sample
from polyseme.scrutiny.attacks.audit.seen import (
    Joined,
    Part,
    Seen,
    as_original,
    counterpart,
    join,
    prints_of,
    quasi_identifiers,
)
from polyseme.tables.distinct import frame_of, matched
from polyseme.tables.equivalence_classes import SUPPRESSED, Classes
from polyseme.tables.io.source import Source
from polyseme.tables.people import people_fitting

__all__ = ["Again", "Target", "all_targets", "matched_classes", "population_of_release", "united"]

_COUNT = "\0count"


def matched_classes(release: Release, population: Source) -> tuple[Classes, Ints]:
    """The classes of a release, and how many people of the population fit each.

    Records of which nothing is shown are a class that everybody fits where a method suppressed them; otherwise they are
    set aside, as everywhere.
    """
    keys = quasi_identifiers(release)
    reference = population_of_release(release, population)
    known = list(reference.columns)
    frame, counts = frame_of(release.counted(keys), keys, release.manifest.missing_values)
    each = np.ones(frame.height, dtype=np.int64) if counts is None else counts
    classes = frame.with_columns(pl.Series(_COUNT, each)).group_by(keys).agg(pl.col(_COUNT).sum())
    nothing = pl.all_horizontal((pl.col(name).cast(pl.String) == SUPPRESSED).fill_null(False) for name in keys)
    hidden = int(classes.filter(nothing)[_COUNT].sum())
    if release.manifest.applied is None and hidden < classes[_COUNT].sum():
        classes = classes.filter(~nothing)
    sizes = classes[_COUNT].to_numpy().astype(np.int64)
    meanings = {name: column.stands_for for name in known if isinstance(column := release.manifest[name], Generalized)}
    matches = people_fitting(classes.select(known), reference, meanings)
    return Classes(sizes, np.zeros_like(sizes), int(sizes.sum()), hidden), matches


def population_of_release(release: Release, population: Source) -> pl.DataFrame:
    """The quasi-identifiers of a population, one row a person; refuses one that lacks some."""
    manifest = release.manifest
    wanted = [name for name in quasi_identifiers(release) if manifest[name].attribute.role is Role.QUASI_IDENTIFIER]
    absent = [name for name in wanted if name not in population.schema.names]
    if absent or not wanted:
        problems = [
            Problem("population", f"{population.name}: no column '{name}'", "it needs every quasi-identifier")
            for name in absent
        ]
        raise QuestionError(problems or [Problem("population", "the release has no quasi-identifiers", "leave it out")])
    rows = ((batch, None) for batch in population.batches(wanted))
    return frame_of(rows, wanted, manifest.missing_values)[0]


_SHARED_BY = 10
"""A tenth of the people who are attacked is enough to find out which attributes are related."""


@dataclass(frozen=True, eq=False)
class Again:
    """The same people in another release.

    rows, others  their rows in either release
    part          the stratum of the other release
    joined        its values in the numbering of the first
    sticky        whether equal sets are one draw
    """

    rows: Ints
    others: Ints
    part: Part
    joined: Joined
    sticky: bool


@dataclass(frozen=True, eq=False)
class Target:
    """Who is shown to the attackers of one attribute.

    part    the attribute and its largest stratum
    chosen  the records of that stratum
    whole   records of all strata, for those who learn from everybody; None where there is one stratum
    strata  rows of the other strata that have records, by number
    helper  the attribute that helps most to guess this one, and the records that are in both largest strata
    again   people of another release
    """

    part: Part
    chosen: Chosen
    whole: Chosen | None
    strata: Mapping[int, Ints]
    helper: tuple[Part, Chosen] | None
    again: Again | None

    def rows(self) -> Iterator[tuple[str, Ints]]:
        """Every attribute whose sets are shown, with the rows of the release."""
        name = self.part.item.name
        whole, again = (None if one is None else one.rows for one in (self.whole, self.again))
        several = [self.chosen.rows, whole, *self.strata.values(), again]
        yield from ((name, rows) for rows in several if rows is not None)
        if self.helper is not None and self.helper[1].rows is not None:
            yield name, self.helper[1].rows
            yield self.helper[0].item.name, self.helper[1].rows


def all_targets(release: Release, seen: Seen, truth: Truth | None, other: Release | None) -> list[Target]:
    """The records of the attacks on each protected attribute."""
    twice = _in_both(release, seen, other) if other is not None else None
    parts = [largest_part(item, seen) for item in release.manifest.sets]
    helpers = _helpers(parts, truth) if truth is not None else {}
    targets = []
    for part in parts:
        helper = helpers.get(part.item.name)
        both = choose((part, helper), seen, truth) if helper is not None else None
        targets.append(
            Target(
                part,
                choose([part], seen, truth),
                choose_all(part.item, seen, truth),
                _other_strata(part, seen),
                (helper, both) if helper is not None and both is not None and both.people is not None else None,
                _again(release, part, seen, other, twice) if other is not None and twice is not None else None,
            )
        )
    return targets


def united(rows: Iterable[tuple[str, Ints]]) -> dict[str, Ints]:
    """All rows of each attribute, ascending and without repeats."""
    found: dict[str, Ints] = {}
    latest = np.zeros(0, dtype=np.int64)
    for name, more in rows:
        known = found.get(name)
        if known is None:
            latest = _once(np.unique(more), latest)
        elif not np.array_equal(known, more):
            latest = _once(np.union1d(known, more), latest)
        else:
            latest = known
        found[name] = latest
    return found


def _once(rows: Ints, latest: Ints) -> Ints:
    """Rows that many attributes have in common are held once."""
    return latest if np.array_equal(rows, latest) else rows


def _other_strata(largest: Part, seen: Seen) -> dict[int, Ints]:
    item = largest.item
    parts = [Part(item, number) for number in range(len(item.strata.members)) if number != largest.number]
    chosen = {part.number: sample(np.flatnonzero(seen.inside(part)), len(parts)) for part in parts}
    return {number: rows for number, rows in chosen.items() if len(rows)}


def _in_both(release: Release, seen: Seen, other: Release) -> tuple[Ints, Ints]:
    """The rows of people who can be recognized in both releases; raises when there are none."""
    if other.manifest.form != "set":
        raise QuestionError("the other release has no sets", "publish it with --form set, which carries the same risk")
    rows = matched(seen.prints, prints_of(other, release)) if as_original(release) else ()
    if not rows or not len(rows[0]):
        raise QuestionError(
            "no person can be recognized in both releases: no combination of untouched values is unique in each",
            "without --other the remaining attacks run; an attacker who knows more may still intersect the sets",
        )
    return rows


def _again(release: Release, part: Part, seen: Seen, other: Release, twice: tuple[Ints, Ints]) -> Again | None:
    """Some of the people who are in both releases; `twice` are their rows in either."""
    again = counterpart(part, other.manifest[part.item.name])
    shown = sample(np.flatnonzero(seen.inside(part)[twice[0]]))
    joint = join(part, again) if again is not None else None
    if again is None or joint is None or not len(shown):
        return None
    # Sticky decoys change with the list of values: over another one, equal sets need not be one draw.
    sticky = release.manifest.sticky and other.manifest.sticky and joint.same
    return Again(twice[0][shown], twice[1][shown], again, joint, sticky)


def _helpers(parts: Sequence[Part], truth: Truth) -> dict[str, Part]:
    """For each attribute the one that helps it most in some records; all would take too long."""
    people = sample(np.flatnonzero(np.all([truth.possible(part) for part in parts], axis=0)), _SHARED_BY)
    values = [truth.values(part, people) for part in parts]
    sets = [part.stratum.mechanism.sample(codes, truth.stream()) for part, codes in zip(parts, values)]
    sizes = [part.stratum.mechanism.size for part in parts]
    found = {}
    for mine, part in enumerate(parts):
        bits = {
            other: information(values[mine][:, None], sizes[mine], sets[other], sizes[other])
            for other in range(len(parts))
            if other != mine and sizes[mine] * sizes[other] <= LARGEST_TABLE
        }
        if bits:
            found[part.item.name] = parts[max(bits, key=bits.__getitem__)]
    return found
