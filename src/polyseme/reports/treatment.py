"""What was done to the table as a whole: what the manifest says, and what the rows show.

Every reader of the release can see everything here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from polyseme.kernel.arrays import Ints
from polyseme.kernel.errors import people_words
from polyseme.release import Applied, Generalized, Manifest, People, Release
from polyseme.reports.contents import ClassSizes, RecodedLine, Treatment
from polyseme.results.views.formats import count, quantity
from polyseme.schema import Role
from polyseme.tables.codes import as_series
from polyseme.tables.distinct import all_counts, class_sizes, distinct_rows, fingerprints, merged_rows
from polyseme.tables.equivalence_classes import SUPPRESSED
from polyseme.tables.readings import plain_text

__all__ = ["class_size_table", "treatment_of"]

_EXAMPLES = 3
"""Labels of a quasi-identifier that are shown."""
_SIZES = 20
"""Up to so many different sizes of classes are listed; more are put into ranges."""
_HUGE = 4
"""Times as large as half of the classes: where the largest is larger, ranges double."""

_GROUPED = (
    "Quasi-identifiers are published as they are. The records were put into groups, and each record shows the "
    "sensitive values of its whole group, without saying which is its own."
)
_METHODS: Mapping[str, str] = {
    "full-domain": "Each quasi-identifier is shown at one level of its hierarchy, the same for all records.",
    "mondrian": "The records were cut in two again and again, as long as every part kept the promises. Each class "
    "shows what its records have in common.",
    "anatomy": f"{_GROUPED} No value is twice in a group.",
    "buckets": f"{_GROUPED} No two values of a group are alike.",
    "rules": "Classes that would have given something away by the rules were merged, generalized or suppressed.",
}


_LOSS_UNITS: Mapping[str, str] = {
    "entropy": " bits",
    "loss": " of 1",
    "precision": " of 1",
    "discernibility": " pairs of records",
    "average-class-size": " records",
}


def treatment_of(release: Release) -> Treatment | None:
    """What a method that looks at the whole table did; None where none was used."""
    manifest = release.manifest
    applied = manifest.applied
    if applied is None:
        return None
    unit = "group" if manifest.grouped else "class"
    keys = [manifest.grouped[0].group] if manifest.grouped else list(manifest.links)
    sizes = _sizes(release, keys)
    return Treatment(
        applied.name,
        _METHODS.get(applied.name, "The records were put into classes before they were published."),
        unit,
        (
            *_size_facts(sizes, unit),
            *_people_facts(manifest.people, unit),
            ("Suppressed", _suppressed(applied, manifest.records)),
            *_actions(applied),
            *_loss(applied),
        ),
        tuple(_line(release, name) for name in _quasi_identifiers(manifest)),
        class_size_table(sizes) if len(np.unique(sizes)) > 1 else None,
    )


def _quasi_identifiers(manifest: Manifest) -> list[str]:
    return [name for name in manifest.shown if manifest[name].attribute.role is Role.QUASI_IDENTIFIER]


def _sizes(release: Release, keys: Sequence[str]) -> Ints:
    """Records of each class, without those that show nothing; where all are like that, they are one class."""
    parts, words = [np.zeros(0, dtype=np.uint64)], release.manifest.missing_values
    numbers: list[tuple[int, Ints | None]] = []
    for batch, number in release.counted(keys) if keys else ():
        texts = pl.DataFrame([plain_text(as_series(batch.column(name)).alias(name), words) for name in keys])
        nothing = pl.all_horizontal((pl.col(key) == SUPPRESSED).fill_null(False) for key in keys)
        shown = texts.select(pl.repeat(True, pl.len()) & ~nothing).to_series()
        parts.append(fingerprints(texts.filter(shown)))
        numbers.append((len(parts[-1]), None if number is None else number[shown.to_numpy()]))
    prints = np.concatenate(parts)
    if keys and not len(prints):
        return np.array([release.manifest.records])
    return class_sizes(prints, all_counts(numbers))


def _size_facts(sizes: Ints, unit: str) -> list[tuple[str, str]]:
    if not len(sizes):
        return []
    name = "Groups" if unit == "group" else "Classes"
    low, middle, high = (quantity(float(value)) for value in (sizes.min(), np.median(sizes), sizes.max()))
    told = low if low == high else f"{low} to {high}, half of them at most {middle}"
    return [(name, count(len(sizes))), (f"Records in a {unit}", told)]


def _people_facts(people: People | None, unit: str) -> list[tuple[str, str]]:
    """What the publisher claims of people; nothing where records were counted."""
    if people is None:
        return []
    claimed = f"{count(people.total)} in all, at least {count(people.smallest_class)} in a {unit}"
    return [("People", f"{claimed}: claimed by the publisher, and no row shows it")]


def _suppressed(applied: Applied, records: int) -> str:
    if not applied.suppressed:
        return "none"
    everybody = records + (applied.suppressed if applied.withheld else 0)
    share = f"{applied.suppressed / everybody:.1%}"
    shown = (
        "left out of the release: its numbers are about the others"
        if applied.withheld
        else "shown with * in every quasi-identifier"
    )
    lost = "1 record" if applied.suppressed == 1 else f"{count(applied.suppressed)} records"
    whose = "" if applied.people is None else f" of {people_words(applied.people)}"
    return f"{lost} ({share}){whose}, {shown}"


def _actions(applied: Applied) -> list[tuple[str, str]]:
    """What was done about classes that a rule gave away; changed values are said loudly."""
    change = applied.parameters.get("change-values")
    told = [(f"Classes with {action}", count(number)) for action, number in applied.actions.items()]
    if "change-values" in applied.actions and change:
        false = f"{quantity(float(change['by']))} was added to '{change['attribute']}' in these classes"
        told.append(("False values", f"{false}, as the owner asked: they are not the values of the records"))
    return told


def _loss(applied: Applied) -> list[tuple[str, str]]:
    """What was minimised, and whether it is proved to be the least."""
    if applied.loss is None:
        return []
    proved = "whether less is possible is not proved"
    if applied.gap is not None:
        least = "proved to be the least possible"
        proved = least if applied.gap == 0 else f"the least possible is smaller by {quantity(applied.gap)} at the most"
    if "loss" in applied.parameters:
        name = applied.parameters["loss"]
        return [(f"Loss ({name})", f"{quantity(applied.loss)}{_LOSS_UNITS.get(name, '')}, {proved}")]
    if "left-out" in applied.parameters and applied.gap == 0:
        proved = "no grouping that leaves out several values suppresses fewer"
    what = "as if so many were suppressed" if applied.name == "rules" else "suppressed"
    return [(f"Loss ({what})", f"{quantity(applied.loss)} records, {proved}")]


def _line(release: Release, name: str) -> RecodedLine:
    """What was done to one quasi-identifier, with its most frequent labels."""
    words, column = release.manifest.missing_values, release.manifest[name]
    parts = [
        distinct_rows(plain_text(as_series(batch.column(0)), words).to_frame("label"), number, "count")
        for batch, number in release.counted([name])
    ]
    tally = merged_rows(parts, "count")
    tally = tally.sort(["count", "label"], descending=[True, False])
    labels = tally["label"].to_list()
    stands_for = column.stands_for if isinstance(column, Generalized) else {}
    top = isinstance(column, Generalized) and column.level and set(labels) == {SUPPRESSED}
    done = f"not shown (level {column.level})" if top and isinstance(column, Generalized) else column.in_words
    examples = ", ".join(_example(label, stands_for) for label in labels[:_EXAMPLES])
    more = ", …" if len(labels) > _EXAMPLES else ""
    return RecodedLine(name, done, len(labels), f"{examples}{more}")


def _example(label: str | None, stands_for: Mapping[str, Sequence[str]]) -> str:
    """A label, and what it may stand for where the policy says so."""
    if label is None:
        return "(missing)"
    values = stands_for.get(label, ())
    if label == SUPPRESSED or not values or tuple(values) == (label,):
        return label
    more = ", …" if len(values) > _EXAMPLES else ""
    return f"{label} ({', '.join(values[:_EXAMPLES])}{more})"


def class_size_table(sizes: Ints) -> ClassSizes:
    """How many classes have how many records.

    In ranges where there are many sizes, which double where some are huge.

    >>> class_size_table(np.array([2, 2, 5])).labels
    ('2', '5')
    """
    found, number = np.unique(sizes, return_counts=True)
    edges = found if len(found) <= _SIZES else _edges(found, float(np.median(sizes)))
    place = np.searchsorted(edges, found, side="right") - 1
    ends = np.append(edges[1:], found[-1] + 1) - 1
    exact = len(edges) == len(found)
    labels = [count(low) if exact or low == high else f"{count(low)}–{count(high)}" for low, high in zip(edges, ends)]
    classes = np.bincount(place, weights=number, minlength=len(edges)).astype(int)
    records = np.bincount(place, weights=found * number, minlength=len(edges)).astype(int)
    return ClassSizes(tuple(labels), tuple(classes.tolist()), tuple(records.tolist()))


def _edges(found: Ints, middle: float) -> Ints:
    """Where the ranges of sizes begin."""
    low, high = int(found[0]), int(found[-1])
    if high <= _HUGE * middle:
        width = -(-(high - low + 1) // _SIZES)
        return np.arange(low, high + 1, width)
    return np.array([low, *(1 << power for power in range(low.bit_length(), high.bit_length()))])
