"""What an audit keeps of every record, and two releases of the same people side by side.

Enough is kept to recognize a record, without its columns. The columns by which records can be joined are collected
while other columns are read.

Two releases of the same people are brought to one numbering of the values.

The second release may list its values in another order, or have more or fewer of them: decoys change with that, so it
is just then that two releases are worth intersecting. Values are joined by their labels. A value that one of the two
domains does not have is not true of any person who is in both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import polars as pl
import pyarrow as pa

from polyseme.designs.mechanism import Mechanism
from polyseme.kernel.arrays import Bools, Floats, Ints
from polyseme.kernel.errors import Problem, ReleaseError
from polyseme.kernel.spelling import names_of
from polyseme.release import AsIs, Column, Release, Sets
from polyseme.schema import Bins, Domain, Weighting
from polyseme.scrutiny.attacks.scene import uniform
from polyseme.strata import Stratum
from polyseme.tables.codes import as_series
from polyseme.tables.distinct import Fingerprints, class_sizes, fingerprints
from polyseme.tables.equivalence_classes import SUPPRESSED
from polyseme.tables.readings import plain_text, published_types, read_as

__all__ = [
    "Columns",
    "Joined",
    "Memory",
    "Part",
    "Prints",
    "Reading",
    "Seen",
    "as_original",
    "counted_classes",
    "counted_links",
    "counterpart",
    "insensitive",
    "join",
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
    """An attribute and the number of one of its strata; one without constraints has one stratum."""

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
        """Whether each record belongs to a stratum of an attribute; all do where it has only one."""
        if part.item.name in self.places:
            return np.asarray(self.places[part.item.name] == part.number, dtype=np.bool_)
        return np.ones(len(self.prints), dtype=np.bool_)


@dataclass(frozen=True, eq=False)
class Reading:
    """How the untouched columns of a table are read, to compare them with those of a release."""

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
        """Columns with their types in the release; survey weights rounded and trimmed as there."""
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
    """How many records share all untouched columns; empty where none of these is insensitive."""
    names = untouched(release)
    if not insensitive(release):
        return np.zeros(0, dtype=np.int64)
    reading, prints, numbers = Reading.by(release, names), [], []
    for batch, counts in release.counted(names):
        prints.append(fingerprints(reading.texts(reading.columns(batch))))
        numbers.append(np.ones(batch.num_rows, dtype=np.int64) if counts is None else counts)
    return class_sizes(np.concatenate(prints), np.concatenate(numbers))


def counted_classes(release: Release) -> tuple[Ints, int]:
    """How many records share each combination of quasi-identifiers, and how many have none left.

    Rows that were counted elsewhere are enough.
    """
    links = quasi_identifiers(release)
    if not links:
        return np.zeros(0, dtype=np.int64), 0
    reading, prints, numbers, suppressed = Reading.by(release, links), [], [], 0
    for batch, counts in release.counted(links):
        each = np.ones(batch.num_rows, dtype=np.int64) if counts is None else counts
        texts = reading.texts(reading.columns(batch))
        shown = texts.select(~_suppressed(links)).to_series().to_numpy()
        prints.append(fingerprints(texts)[shown])
        numbers.append(each[shown])
        suppressed += int(each[~shown].sum())
    return class_sizes(np.concatenate(prints), np.concatenate(numbers)), suppressed


def _suppressed(links: Sequence[str]) -> pl.Expr:
    """Whether every quasi-identifier of a record is suppressed."""
    return pl.all_horizontal((pl.col(name) == SUPPRESSED).fill_null(False) for name in links)


def joined(parts: Sequence[Seen], records: int) -> Seen:
    """The memory of a table from those of its batches; empty without untouched columns."""
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
    """Fingerprints of the same columns in another release, whatever its other columns and order."""
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
    """Fingerprints of all untouched columns; empty if none is insensitive or one is absent."""
    whole = insensitive(release) and set(untouched(release)) <= set(texts.columns)
    return fingerprints(texts) if whole else np.zeros(0, dtype=np.uint64)


def _places(item: Sets, columns: pl.DataFrame) -> Ints:
    """The stratum of each record; unknown where conditions use generalized columns."""
    if not set(item.strata.columns) <= set(columns.columns):
        return np.full(columns.height, -1, dtype=np.int16)
    return item.strata.places(columns.to_dict(), columns.height).astype(np.int16)


def counterpart(part: Part, again: Column) -> Part | None:
    """The other release's stratum of the same records and common values; None without one.

    Where the other release gives distributions for other conditions, its strata hold other records.
    """
    if not isinstance(again, Sets) or not _comparable(part.item.domain, again.domain):
        raise ReleaseError(f"'{part.item.name}' is not published over comparable values in both releases")
    mine, other = part.item.domain, again.domain
    here, there = (names_of(domain.values) for domain in (mine, other))
    wanted = {here[code] for code in part.stratum.excluded}.intersection(there)
    fitting = [
        number
        for number, member in enumerate(again.strata.members)
        if {there[code] for code in member.excluded}.intersection(here) == wanted
        and (not again.attribute.conditional or member.condition == part.stratum.condition)
    ]
    return Part(again, fitting[0]) if len(fitting) == 1 else None


def _left(part: Part) -> list[str]:
    """The values that are left in a stratum, by name."""
    names = names_of(part.item.domain.values)
    return [names[code] for code in part.stratum.allowed]


def _comparable(mine: Domain, other: Domain) -> bool:
    """Whether equal labels mean equal values: bins with other edges do not."""
    return mine.values == other.values or not any(isinstance(domain.cut, Bins) for domain in (mine, other))


@dataclass(frozen=True, eq=False)
class _Renumbered(Mechanism):
    """A mechanism whose sets come in other codes: `own` are its codes for them."""

    own: Ints | None = None

    def weights(self, sets: Ints) -> tuple[Floats, Floats]:
        codes = sets if self.own is None else self.own[sets]
        order = np.argsort(codes, axis=1)
        inside, outside = super().weights(np.take_along_axis(codes, order, axis=1))
        placed = np.empty_like(inside)
        np.put_along_axis(placed, order, inside, axis=1)
        return placed, outside


@dataclass(frozen=True, eq=False)
class Joined:
    """The other release in the numbering of the first.

    codes      for each value of the other stratum; values that only the other has are numbered after all the first has
    mechanism  of the other stratum, for sets in these codes
    prior      over all codes: that of the first, given that both have the value
    same       whether both have the same values in the same order
    """

    codes: Ints
    mechanism: Mechanism
    prior: Floats
    same: bool


def join(part: Part, other: Part) -> Joined | None:
    """The stratum of another release joined to that of the first; None without a common value."""
    mine, theirs = _left(part), _left(other)
    prior = uniform(len(mine)) if part.stratum.prior is None else part.stratum.prior
    mechanism = other.stratum.mechanism
    if mine == theirs:
        return Joined(np.arange(len(mine)), mechanism, prior, same=True)
    number = {label: code for code, label in enumerate(mine)}
    for label in theirs:
        number.setdefault(label, len(number))
    codes = np.array([number[label] for label in theirs])
    own = np.zeros(len(number), dtype=np.int64)
    own[codes] = np.arange(len(codes))
    shares = np.zeros(len(number))
    shared = codes[codes < len(mine)]
    shares[shared] = prior[shared]
    if not shares.sum() > 0.0:
        return None
    return Joined(codes, _Renumbered(mechanism.design, mechanism.p, own), shares / shares.sum(), same=False)


_HELD = 2_000_000
"""Values of a column that are held (32 MB); of longer tables, the groups of a random share of fingerprints."""
Prints: TypeAlias = Mapping[str, tuple[Ints, Fingerprints]]
"""Of each column, or combination of columns, some rows and the fingerprints of their values."""


class Columns:
    """The values of some columns, and of their combination, batch by batch.

    records  of the release: of many, a random share of fingerprints is held
    """

    def __init__(self, reading: Reading, records: int) -> None:
        share = min(_HELD / max(records, 1), 1.0)
        self._limit = np.uint64(((1 << 64) - 1) if share == 1.0 else int(share * (1 << 64)))
        self._reading, self._first = reading, 0
        self._parts: dict[str, list[tuple[Ints, Fingerprints]]] = {name: [] for name in _named(reading.names)}

    def add(self, columns: pl.DataFrame) -> None:
        """The next records, with the types that they have in the release."""
        texts = self._reading.texts(columns)
        prints = [texts[name].hash().to_numpy() for name in self._reading.names]
        if len(prints) > 1:
            prints.append(pl.DataFrame({str(place): one for place, one in enumerate(prints)}).hash_rows().to_numpy())
        for column, found in zip(self._parts.values(), prints, strict=True):
            kept = np.flatnonzero(found <= self._limit)
            column.append((self._first + kept, found[kept]))
        self._first += columns.height

    def found(self) -> Prints:
        """Rows and fingerprints of each column."""
        return {name: _joined(column) for name, column in self._parts.items()}


class Memory:
    """What is remembered of a release in one reading of its untouched columns."""

    def __init__(self, release: Release) -> None:
        self._release, self._reading = release, Reading.of(release)
        self._links, self._parts = quasi_identifiers(release), list[Seen]()
        self._columns = Columns(self._reading, release.manifest.records)

    @classmethod
    def of(cls, release: Release) -> Memory:
        """Of a whole release."""
        memory = cls(release)
        for batch in release.batches(memory._reading.names) if memory._reading.names else ():
            memory.add(batch)
        return memory

    def add(self, batch: pa.RecordBatch) -> None:
        """The next records, with their untouched columns at least."""
        if self._reading.names:
            columns = self._reading.columns(batch)
            self._parts.append(memory_of(self._reading, columns, self._links, self._release))
            self._columns.add(columns)

    def seen(self) -> Seen:
        """Enough of every record to recognize it."""
        return joined(self._parts, self._release.manifest.records)

    def columns(self) -> Prints:
        """The columns by which records can be put together."""
        return self._columns.found()


def _named(names: Sequence[str]) -> list[str]:
    """The columns, and their combination where there are several."""
    return [*names, f"combination of {', '.join(names)}"] if len(names) > 1 else list(names)


def _joined(parts: Sequence[tuple[Ints, Fingerprints]]) -> tuple[Ints, Fingerprints]:
    nothing = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint64))
    rows, prints = (np.concatenate(column) for column in zip(nothing, *parts, strict=True))
    return rows, prints
