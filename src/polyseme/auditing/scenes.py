"""What adversaries are shown: the sets of some records, and the truth about them where the original is at hand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa

from polyseme.auditing.seen import Part, Reading, Seen, joined, memory_of
from polyseme.distances.structure import Bools, Ints
from polyseme.errors import QuestionError, ReleaseError, TableError
from polyseme.randomness import SystemStream, experiment
from polyseme.release import PublishedAttribute, Release
from polyseme.tables.codes import as_series, encode
from polyseme.tables.matching import matched, some_rows
from polyseme.tables.sets import code_sets
from polyseme.tables.source import Source

__all__ = [
    "Scene",
    "Truth",
    "features_of",
    "largest_part",
    "make_scene",
    "narrowed",
    "sample",
    "sets_of",
]

ENOUGH = 1_000
"""Matched records that are enough to measure success on the release itself."""

SAMPLE = 200_000
"""Records that are attacked at the most; the rest would only repeat the answer."""


def largest_part(item: PublishedAttribute, seen: Seen) -> Part:
    return Part(item, int(np.bincount(seen.places[item.name]).argmax()) if item.restricted else 0)


def sample(rows: Ints, shared_by: int = 1) -> Ints:
    """At most `SAMPLE` of the ascending rows, or that part of it, each with the same chance: a table may be sorted."""
    most = SAMPLE // shared_by
    if len(rows) <= most:
        return rows
    return rows[np.sort(experiment(0).choice(len(rows), most, replace=False, shuffle=False))]


def sets_of(release: Release, item: PublishedAttribute, rows: Ints) -> Ints:
    """The sets of some rows, ascending ones."""
    if item.mechanism is None:
        raise QuestionError(f"'{item.name}' is published as it is")
    parts = [
        code_sets(batch.column(0), item.domain).regular(item.mechanism.l)
        for batch in some_rows(release.batches([item.name]), rows)
    ]
    sets = np.concatenate(
        [np.zeros((0, item.mechanism.l), dtype=np.int64), *(part for part in parts if part is not None)]
    )
    if len(sets) != len(rows):
        raise ReleaseError(f"column '{item.name}': not every cell is a valid set", "run polyseme verify")
    return sets


def narrowed(part: Part, sets: Ints) -> Ints:
    """Published sets in codes of the stratum's mechanism."""
    if part.stratum.forbids[sets].any():
        raise ReleaseError(f"column '{part.item.name}': some sets hold impossible values", "run polyseme verify")
    return part.stratum.narrow(sets)


def features_of(reading: Reading, batches: Iterable[pa.RecordBatch], rows: Ints) -> Ints | None:
    """Untouched columns of some rows as codes."""
    if not reading.names:
        return None
    frame = pl.concat([reading.texts(reading.columns(batch)) for batch in some_rows(batches, rows)])
    return np.column_stack([series.rank("dense").fill_null(0).to_numpy().astype(np.int64) for series in frame])


class Truth:
    """The original: true codes of every protected attribute, and which rows of the release are whose.

    Records that do not fit the release are not counted, and not numbered.
    """

    def __init__(self, release: Release, original: Source, seen: Seen) -> None:
        self.original, self.reading = original, Reading.of(release)
        protected = release.manifest.protected
        needed = [*self.reading.names, *(item.name for item in protected)]
        absent = [name for name in needed if name not in original.schema.names]
        if absent:
            raise TableError(f"{original.name}: no column '{absent[0]}'", "is this the table that was released?")
        words, parts, kept = release.manifest.missing_values, [], []
        codes: dict[str, list[Ints]] = {item.name: [] for item in protected}
        for batch in original.batches(needed):
            found = {
                item.name: encode(as_series(batch.column(item.name), words), item.domain).codes for item in protected
            }
            fits = np.all([column >= 0 for column in found.values()], axis=0)
            for name, column in found.items():
                codes[name].append(column[fits].astype(np.int32))
            if self.reading.names:
                columns = self.reading.columns(batch).filter(pl.Series(fits))
                parts.append(memory_of(self.reading, columns, (), release))
            kept.append(fits)
        if not any(fits.any() for fits in kept):
            raise TableError(f"{original.name}: no record fits the release", "is this the table that was released?")
        self.codes = {name: np.concatenate(column) for name, column in codes.items()}
        self.kept = np.concatenate(kept)
        self.seen = joined(parts, int(self.kept.sum()))
        nobody = np.zeros(0, dtype=np.int64)
        self.rows, self.originals = matched(seen.prints, self.seen.prints) if self.reading.names else (nobody, nobody)

    def features(self, people: Ints) -> Ints | None:
        """Untouched columns of some people as codes."""
        batches = self.original.batches(self.reading.names)
        return features_of(self.reading, batches, np.flatnonzero(self.kept)[people])

    def possible(self, part: Part) -> Bools:
        """Whether each person belongs to a stratum and has a value that it allows."""
        return self.seen.inside(part) & ~part.stratum.forbids[self.codes[part.item.name]]

    def values(self, part: Part, people: Ints) -> Ints:
        """The true values of some people, in codes of the stratum's mechanism."""
        return part.stratum.narrow(self.codes[part.item.name][people].astype(np.int64))


@dataclass(frozen=True, eq=False)
class Scene:
    """What adversaries are shown of some records: sets of each attribute, and the truth where it is known.

    rows      of the release; None for fresh sets
    people    of the original; None where it is not at hand
    measured  how many records of which kind
    """

    sets: tuple[Ints, ...]
    rows: Ints | None
    people: Ints | None
    measured: dict[str, float]


def make_scene(release: Release, parts: Sequence[Part], seen: Seen, truth: Truth | None) -> Scene:
    """Some records of all the strata: those matched with the original, or people of it with fresh sets, or any."""
    inside = np.all([seen.inside(part) for part in parts], axis=0)
    counted = {"stratum_records": float(inside.sum())} if any(part.item.restricted for part in parts) else {}

    def published(rows: Ints) -> tuple[Ints, ...]:
        return tuple(narrowed(part, sets_of(release, part.item, rows)) for part in parts)

    if truth is None:
        rows = sample(np.flatnonzero(inside))
        return Scene(published(rows), rows, None, counted)
    possible = np.all([truth.possible(part) for part in parts], axis=0)
    both = np.flatnonzero(inside[truth.rows] & possible[truth.originals])
    if len(both) >= ENOUGH:
        both = sample(both)
        rows, people = truth.rows[both], truth.originals[both]
        return Scene(published(rows), rows, people, {**counted, "matched_records": float(len(people))})
    people = sample(np.flatnonzero(possible))
    if not len(people):
        return make_scene(release, parts, seen, None)
    fresh = tuple(part.stratum.mechanism.sample(truth.values(part, people), SystemStream()) for part in parts)
    return Scene(fresh, None, people, {**counted, "fresh_sets": float(len(people))})
