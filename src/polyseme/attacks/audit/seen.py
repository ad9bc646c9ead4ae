"""What is remembered of every record of a table: enough to recognize it, without keeping its columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl
import pyarrow as pa

from polyseme.arrays import Bools, Ints
from polyseme.errors import Problem, ReleaseError
from polyseme.release import AsIs, Release, Sets
from polyseme.schema import Weighting
from polyseme.strata import Stratum
from polyseme.tables.classes import SUPPRESSED
from polyseme.tables.coding.codes import as_series
from polyseme.tables.coding.readings import plain_text, published_types, read_as
from polyseme.tables.counting.matching import Fingerprints, class_sizes, fingerprints

__all__ = [
    "Part",
    "Reading",
    "Seen",
    "as_original",
    "counted_classes",
    "counted_links",
    "insensitive",
    "joined",
    "memory_of",
    "prints_of",
    "quasi_identifiers",
    "untouched",
]


def untouched(release: Release) -> list[str]:
    """The columns that an attacker may know or learn from; the numbers of groups are neither."""
    groups = {column.group for column in release.manifest.grouped}
    return [name for name in release.manifest.shown if name not in groups]


def as_original(release: Release) -> list[str]:
    """The untouched columns that show what the original shows: those that are not generalized."""
    return [name for name in untouched(release) if isinstance(release.manifest[name], AsIs)]


def quasi_identifiers(release: Release) -> list[str]:
    """The columns that put records into classes."""
    return list(release.manifest.links)


@dataclass(frozen=True, eq=False)
class Part:
    """An attribute and the number of one of its strata; an attribute without constraints has one."""

    item: Sets
    number: int

    @property
    def stratum(self) -> Stratum:
        return self.item.strata.members[self.number]


@dataclass(frozen=True, eq=False)
class Seen:
    """What is remembered of every record of a table.

    prints      fingerprints of the columns that show what the original shows; all alike when there are none
    quasi       fingerprints of its quasi-identifiers, without the records where all of them are suppressed
    suppressed  how many those are
    linked      fingerprints of all untouched columns, where some of them are insensitive; empty where none is
    places      for each attribute with several strata, which one the record belongs to; -1 where that is not known
    """

    prints: Fingerprints
    quasi: Fingerprints
    suppressed: int
    places: Mapping[str, Ints]
    linked: Fingerprints = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))

    def inside(self, part: Part) -> Bools:
        """Whether each record belongs to a stratum of an attribute; everybody does where it has only one."""
        if part.item.name in self.places:
            return np.asarray(self.places[part.item.name] == part.number, dtype=np.bool_)
        return np.ones(len(self.prints), dtype=np.bool_)


@dataclass(frozen=True, eq=False)
class Reading:
    """How the untouched columns of a table are read, so that they can be compared with those of a release."""

    names: Sequence[str]
    types: Mapping[str, pl.DataType]
    missing_values: Sequence[str]
    weighting: Mapping[str, Weighting] = field(default_factory=dict)

    @classmethod
    def of(cls, release: Release) -> Reading:
        return cls.by(release, untouched(release))

    @classmethod
    def by(cls, release: Release, names: Sequence[str]) -> Reading:
        """Of these columns."""
        schema = pa.schema([column for column in release.source.schema if column.name in names])
        coarser = {name: release.manifest[name].attribute.weighting for name in names}
        weighting = {name: rule for name, rule in coarser.items() if rule is not None}
        return cls(names, published_types(schema), release.manifest.missing_values, weighting)

    def columns(self, batch: pa.RecordBatch) -> pl.DataFrame:
        """With the types they have in the release, and with survey weights rounded and trimmed as they are there."""
        read = {name: read_as(as_series(batch.column(name)), self.types[name])[0] for name in self.names}
        for name, rule in self.weighting.items():
            read[name] = pl.Series(name, rule.applied(read[name].cast(pl.Float64).to_numpy()))
        return pl.DataFrame(read)

    def texts(self, frame: pl.DataFrame) -> pl.DataFrame:
        """As text in which whatever is equal is written alike."""
        return frame.select(plain_text(series, self.missing_values) for series in frame)


def insensitive(release: Release) -> tuple[str, ...]:
    """The columns that are published though they put no records into classes."""
    links = quasi_identifiers(release)
    return tuple(name for name in untouched(release) if name not in links)


def counted_links(release: Release) -> Ints:
    """How many records share all untouched columns, where some of these are insensitive; nothing where none is."""
    names = untouched(release)
    if not insensitive(release):
        return np.zeros(0, dtype=np.int64)
    reading, prints, numbers = Reading.by(release, names), [], []
    for batch, counts in release.counted(names):
        prints.append(fingerprints(reading.texts(reading.columns(batch))))
        numbers.append(np.ones(batch.num_rows, dtype=np.int64) if counts is None else counts)
    return class_sizes(np.concatenate(prints), np.concatenate(numbers))


def counted_classes(release: Release) -> tuple[Ints, int]:
    """How many records share each combination of quasi-identifiers, and how many have all of them suppressed.

    Rows that were counted elsewhere are enough.
    """
    links = quasi_identifiers(release)
    if not links:
        return np.zeros(0, dtype=np.int64), 0
    reading, prints, numbers, suppressed = Reading.by(release, links), [], [], 0
    for batch, counts in release.counted(links):
        each = np.ones(batch.num_rows, dtype=np.int64) if counts is None else counts
        texts = reading.texts(reading.columns(batch))
        told = texts.select(~_suppressed(links)).to_series().to_numpy()
        prints.append(fingerprints(texts)[told])
        numbers.append(each[told])
        suppressed += int(each[~told].sum())
    return class_sizes(np.concatenate(prints), np.concatenate(numbers)), suppressed


def _suppressed(links: Sequence[str]) -> pl.Expr:
    """Whether every quasi-identifier of a record is suppressed."""
    return pl.all_horizontal((pl.col(name) == SUPPRESSED).fill_null(False) for name in links)


def joined(parts: Sequence[Seen], records: int) -> Seen:
    """The memory of a table from those of its batches; of so many records without untouched columns there is none."""
    if not parts:
        none = np.zeros(records, dtype=np.uint64)
        return Seen(none, none[:0], 0, {})
    return Seen(
        np.concatenate([part.prints for part in parts]),
        np.concatenate([part.quasi for part in parts]),
        sum(part.suppressed for part in parts),
        {name: np.concatenate([part.places[name] for part in parts]) for name in parts[0].places},
        np.concatenate([part.linked for part in parts]),
    )


def prints_of(other: Release, release: Release) -> Fingerprints:
    """Fingerprints of the same columns in another release, whatever else it has and in whatever order."""
    reading, there = Reading.by(release, as_original(release)), untouched(other)
    absent = [name for name in reading.names if name not in there]
    if absent:
        raise ReleaseError(
            Problem(name, "published as it is in one release, but not in the other", "compare releases of one table")
            for name in absent
        )
    batches = other.batches(reading.names)
    return np.concatenate([fingerprints(reading.texts(reading.columns(batch))) for batch in batches])


def memory_of(reading: Reading, columns: pl.DataFrame, links: Sequence[str], release: Release) -> Seen:
    """What is remembered of the untouched columns of some records."""
    texts = reading.texts(columns)
    shown, same = texts.select(links), [name for name in as_original(release) if name in texts.columns]
    if links:
        shown = shown.filter(~_suppressed(links))
    return Seen(
        fingerprints(texts.select(same)) if same else np.zeros(texts.height, dtype=np.uint64),
        fingerprints(shown) if links else np.zeros(0, dtype=np.uint64),
        texts.height - shown.height if links else 0,
        {item.name: _places(item, columns) for item in release.manifest.sets if item.stratified},
        _linked(texts, release),
    )


def _linked(texts: pl.DataFrame, release: Release) -> Fingerprints:
    """Fingerprints of all untouched columns; nothing where none is insensitive, or an original lacks some."""
    whole = insensitive(release) and set(untouched(release)) <= set(texts.columns)
    return fingerprints(texts) if whole else np.zeros(0, dtype=np.uint64)


def _places(item: Sets, columns: pl.DataFrame) -> Ints:
    """The stratum of each record; not known of an original where conditions are about generalized columns."""
    if not set(item.strata.columns) <= set(columns.columns):
        return np.full(columns.height, -1, dtype=np.int16)
    return item.strata.places(columns.to_dict(), columns.height).astype(np.int16)
