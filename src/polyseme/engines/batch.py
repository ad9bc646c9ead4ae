"""One batch of records becomes one batch of sets, by a pure function for every engine.

    publish_batch(job, batch, stream) -> (batch, tally)

It opens no file and keeps no state, its job can be pickled, and what it returns follows from its arguments: equal jobs,
batches and streams give equal results, on any machine and at any attempt. What has to be known of the whole table is in
the tallies, which add up. Problems in the data are counted there too; a batch with problems publishes no record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, reduce
from math import prod
from operator import add, or_
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from polyseme.engines.checks import DRAWS, GROUPS, PEOPLE, SETS, BatchTally, Fulfilled, Print, Problems
from polyseme.kernel.arrays import MISSING, UNSEEN, Bools, Ints, arrow
from polyseme.kernel.randomness import RecordStream, StickyStream
from polyseme.release import Column, Sets
from polyseme.strata import Found, Stratum
from polyseme.strata.coupling import Coupled
from polyseme.tables.codes import Coded, as_series, cast_column, code_type, encode, label_array
from polyseme.tables.distinct import Fingerprints, fingerprints, headed, mixed
from polyseme.tables.io.dialects import dialect_hint
from polyseme.tables.labels import Levels, is_ordered, plain
from polyseme.tables.people import fingerprint_seed
from polyseme.tables.readings import read_weights, record_keys, sighted, strangers

__all__ = ["Job", "ShownRows", "check_batch", "publish_batch", "publish_some", "shown_batch"]


@dataclass(frozen=True, eq=False)
class Job:
    """What is to be published, and how; everything but the table itself.

    types               declared types of columns that are published as they are
    categories          columns that are stored as categories, and published as such
    key                 for sticky decoys
    records_per_person  most records a person on average with sticky decoys; None for what is ordinary (see `people`)
    group_key           for the sets that groups share: the key for sticky decoys, or one that is thrown away
    accept_differing    whether more than a few groups may have members that do not share a set
    fingerprint_seed    of the fingerprints of record keys, the same for all batches
    """

    columns: tuple[Column, ...]
    types: Mapping[str, str] = field(default_factory=dict)
    categories: frozenset[str] = frozenset()
    missing_values: tuple[str, ...] = ("",)
    form: str = "set"
    seed: int | None = None
    key: bytes | None = field(default=None, repr=False)
    record_key: str | None = None
    records_per_person: float | None = None
    allow_changed_strata: bool = False
    group_key: bytes | None = field(default=None, repr=False)
    accept_differing: bool = False
    fingerprint_seed: int = field(default_factory=fingerprint_seed, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        """Only what was given is pickled: the rest is made again where it is needed."""
        return {item.name: getattr(self, item.name) for item in fields(self)}

    @property
    def needed(self) -> list[str]:
        """The columns that a batch must have: published ones, and those that name people or groups."""
        named = [] if self.record_key is None else [self.record_key]
        return list(dict.fromkeys([*(item.name for item in self.columns), *named, *self.groupings]))

    @cached_property
    def shared(self) -> tuple[Sets, ...]:
        """The columns whose sets are drawn once for each group."""
        return tuple(item for item in self.sets if item.shared_by)

    @property
    def groupings(self) -> tuple[str, ...]:
        """The columns that tell groups."""
        return tuple(dict.fromkeys(item.shared_by for item in self.shared))

    @property
    def counts_draws(self) -> bool:
        """Whether it must be counted of whom the records are, before or while they are drawn."""
        return self.record_key is not None or bool(self.shared)

    @cached_property
    def sets(self) -> tuple[Sets, ...]:
        """The columns that are published as sets of candidates."""
        return tuple(item for item in self.columns if isinstance(item, Sets))

    @cached_property
    def untouched(self) -> tuple[Column, ...]:
        """The columns that are published as they come: unchanged, or changed before."""
        return tuple(item for item in self.columns if not isinstance(item, Sets))

    @property
    def rows_per_record(self) -> int:
        """How many published rows a record becomes."""
        return prod(item.l for item in self.sets) if self.form == "long" else 1

    @cached_property
    def labels(self) -> Mapping[str, pa.Array]:
        """The values of each protected attribute, by code."""
        return {item.name: label_array(item.domain.values) for item in self.sets}

    @cached_property
    def coupled(self) -> Mapping[str, Coupled]:
        """How sticky sets are drawn."""
        return {item.name: Coupled(item.strata) for item in self.sets}

    @property
    def prints(self) -> tuple[Print, ...]:
        """The fingerprints that its tallies hold."""
        personal = [item for item in self.sets if self.key is not None and not item.shared_by]
        several = [item.name for item in personal if item.stratified]
        shared = ((kind, item.name) for item in self.shared for kind in (DRAWS, GROUPS))
        return ((PEOPLE, ""), *((DRAWS, item.name) for item in personal), *((SETS, name) for name in several), *shared)


def publish_batch(job: Job, batch: pa.RecordBatch, stream: RecordStream) -> tuple[pa.RecordBatch, BatchTally]:
    """A batch as it is published, one row a record, sets still as codes; and what it adds.

    job     what to do; all columns that it needs are in the batch
    stream  of all records of the batch, by their place in the whole table; sticky decoys do not need it
    """
    records, tally = _read(job, batch)
    people = _people(job, records)
    columns, prints = dict(records.untouched), _fingerprints(job, records)
    mine = stream.take(records.rows)
    for lane, item in enumerate(job.sets):
        codes, places = records.codes[item.name], records.places[item.name]
        if item.shared_by and job.group_key is not None:
            sticky = _group_stream(job.group_key, item, records)
            sets = job.coupled[item.name].sample(places, codes, sticky)
            prints |= {(DRAWS, item.name): sticky.prints, **_group_prints(job, item, records)}
        elif people is None or job.key is None:
            sets = _draw(item, codes, places, mine.lane(lane))
        else:
            sticky = StickyStream(job.key, item.name, people, codes)
            sets = job.coupled[item.name].sample(places, codes, sticky)
            prints |= _prints(job, item.name, sticky.prints, sets)
        # At once: the codes of all attributes together, eight bytes each, are what takes most memory in a wide table.
        columns[item.name] = _set_column(sets, item.domain.size)
    names = [item.name for item in job.columns]
    return pa.RecordBatch.from_arrays([columns[name] for name in names], names=names), replace(tally, prints=prints)


def check_batch(job: Job, batch: pa.RecordBatch) -> BatchTally:
    """What is wrong with a batch, without drawing anything."""
    return _read(job, batch)[1]


def publish_some(
    job: Job, batch: pa.RecordBatch, places: Ints, stream: RecordStream
) -> tuple[pa.RecordBatch, BatchTally]:
    """The records at these places of a batch as they are published.

    No others are drawn, and all are counted.

    stream  of the records at these places

    The tally has no fingerprints of what is drawn: it is known of some records only.
    """
    records, tally = _read(job, batch)
    shared = [item for item in job.shared if job.group_key is not None]
    prints = reduce(or_, (_group_prints(job, item, records) for item in shared), _fingerprints(job, records))
    published, _ = publish_batch(job, batch.take(arrow(places)), stream)
    return published, replace(tally, prints=prints)


@dataclass(frozen=True, eq=False)
class ShownRows:
    """What rows show in the columns that are published as they come.

    `rows` says where each is in its batch.
    """

    rows: Ints
    columns: Mapping[str, pa.Array]


def shown_batch(job: Job, batch: pa.RecordBatch) -> tuple[ShownRows, BatchTally]:
    """What a batch will show, without drawing anything, and what is wrong with it."""
    records, tally = _read(job, batch)
    return ShownRows(records.rows, records.untouched), tally


@dataclass(frozen=True, eq=False)
class _Records:
    """Records of a batch, in code.

    rows           where each of them is in the batch: some may have been dropped
    codes, places  true value and stratum of each, by protected attribute
    keys           what names the person of each, where the job has a record key
    groups         what names the group of each, by the column that tells it
    """

    rows: Ints
    untouched: Mapping[str, pa.Array]
    codes: Mapping[str, Ints]
    places: Mapping[str, Ints]
    keys: pl.Series | None
    groups: Mapping[str, pl.Series]

    def take(self, rows: Ints) -> _Records:
        if all(len(rows) == len(column) for column in self.codes.values()):
            return self
        return _Records(
            self.rows[rows],
            {name: column.take(arrow(rows)) for name, column in self.untouched.items()},
            {name: column[rows] for name, column in self.codes.items()},
            {name: column[rows] for name, column in self.places.items()},
            None if self.keys is None else self.keys.gather(rows),
            {name: column.gather(rows) for name, column in self.groups.items()},
        )


def _read(job: Job, batch: pa.RecordBatch) -> tuple[_Records, BatchTally]:
    """The records of a batch, none if something in it is wrong, and what is counted anyway."""
    problems, rows = Problems(), batch.num_rows
    kept = _not_dropped(job, batch)
    batch = batch if kept.all() else batch.filter(arrow(kept))
    there = np.flatnonzero(kept)
    coded = {item.name: _code(item, batch, job, problems, there) for item in job.sets}
    keys = _record_keys(job, batch, problems, there)
    groups = {name: _group_keys(name, batch, job, problems, there) for name in job.groupings}
    untouched = {item.name: _untouched(item, batch, job, problems, there) for item in job.untouched}
    found = {item.name: item.strata.find(untouched, batch.num_rows) for item in job.sets}
    places = {item.name: _places(item, found[item.name], coded[item.name], batch, problems, there) for item in job.sets}
    complete = _complete(coded, batch.num_rows)
    codes = {name: column.codes for name, column in coded.items()}
    records = _Records(there, untouched, codes, places, keys, groups).take(complete)
    tally = BatchTally(
        records=len(complete),
        dropped=rows - len(complete),
        problems=dict(problems.counts),
        fulfilled=_fulfilled(job, found, complete),
        levels=_levels(job, batch, records.untouched),
        seen=problems.seen,
    )
    return records.take(complete[:0]) if problems.counts else records, tally


def _not_dropped(job: Job, batch: pa.RecordBatch) -> Bools:
    """The records with a value in every column where missing values are dropped."""
    kept = np.ones(batch.num_rows, dtype=bool)
    for item in job.sets:
        if item.domain.missing.action == "drop":
            kept &= as_series(batch.column(item.name), job.missing_values).is_not_null().to_numpy()
    return kept


def _complete(coded: Mapping[str, Coded], rows: int) -> Ints:
    """The records that have all their values."""
    there = np.ones(rows, dtype=bool)
    for column in coded.values():
        there &= column.codes >= 0
    return np.flatnonzero(there)


def _code(item: Sets, batch: pa.RecordBatch, job: Job, problems: Problems, rows: Ints) -> Coded:
    domain = item.domain
    series = as_series(batch.column(item.name), job.missing_values).alias(item.name)
    coded = encode(series, domain)
    if coded.unseen:
        unread = series.filter(pl.Series(coded.codes) == UNSEEN) if domain.cut is not None else series.clear()
        otherwise = dialect_hint(unread)
        for (what, hint), places in strangers(series, coded, domain).items():
            problems.add(item.name, len(places), what, otherwise or hint, sighted(series, places, rows))
    if domain.missing.action == "refuse":
        hint = "say what to do with them: missing: drop, or missing: {category: unknown}"
        places = np.flatnonzero(coded.codes == MISSING)
        problems.add(item.name, len(places), "values are missing", hint, sighted(series, places, rows))
    return coded


def _untouched(item: Column, batch: pa.RecordBatch, job: Job, problems: Problems, rows: Ints) -> pa.Array:
    name, column = item.name, batch.column(item.name)
    if item.attribute.weighting is not None:
        weights, flaws = read_weights(as_series(column, job.missing_values))
        for (what, hint), count in flaws.items():
            problems.add(name, count, what, hint)
        return arrow(item.attribute.weighting.applied(weights))
    if name not in job.types:
        return plain(column)
    series = as_series(column, job.missing_values)
    result, failures = cast_column(series, job.types[name])
    if failures:
        hint = dialect_hint(series.filter(result.is_null())) or "change or remove its type in the policy"
        places = np.flatnonzero(result.is_null().to_numpy() & series.is_not_null().to_numpy())
        what = f"values cannot be read as {job.types[name]}"
        problems.add(name, failures, what, hint, sighted(series, places, rows))
    return result.to_arrow()


def _fulfilled(job: Job, found: Mapping[str, Found], kept: Ints) -> Fulfilled:
    """Which conditions the records that are kept fulfill."""
    parts = (Fulfilled.of(item.name, item.strata.placing, found[item.name], kept) for item in job.sets)
    return reduce(add, parts, Fulfilled())


def _places(item: Sets, found: Found, coded: Coded, batch: pa.RecordBatch, problems: Problems, rows: Ints) -> Ints:
    """The stratum of each record, computed from the columns that are published unchanged."""
    places = item.strata.places_of(found)
    wrong = item.strata.impossible(coded.codes, places)
    hint = "correct the table, or the policy's impossible combinations"
    seen = sighted(as_series(batch.column(item.name)), wrong, rows) if len(wrong) else None
    problems.add(item.name, len(wrong), "values are declared impossible in the policy", hint, seen)
    return places


def _record_keys(job: Job, batch: pa.RecordBatch, problems: Problems, rows: Ints) -> pl.Series | None:
    """The key of each record's person; sticky decoys need one for every record."""
    if job.record_key is None:
        return None
    if job.key is None:
        return record_keys(batch.column(job.record_key), job.record_key, job.missing_values)
    return _complete_keys(job.record_key, batch, job, problems, rows, "record key", "sticky decoys need one for each")


def _group_keys(name: str, batch: pa.RecordBatch, job: Job, problems: Problems, rows: Ints) -> pl.Series:
    """The key of each record's group, whose records share a set; every record must have one."""
    hint = "shared-by needs the group of every record: give a record without one a group of its own"
    return _complete_keys(name, batch, job, problems, rows, "group", hint)


def _complete_keys(
    name: str, batch: pa.RecordBatch, job: Job, problems: Problems, rows: Ints, kind: str, hint: str
) -> pl.Series:
    """Keys of people or groups as texts, and a problem for each record without one."""
    column = as_series(batch.column(name), job.missing_values)
    keys = record_keys(batch.column(name), name, job.missing_values)
    absent = keys.is_null().to_numpy()
    read = column.is_not_null().to_numpy() if column.dtype.is_float() else np.zeros(len(column), dtype=np.bool_)
    broken, missing = np.flatnonzero(absent & read), np.flatnonzero(absent & ~read)
    exact = "keys are texts or whole numbers; floating-point numbers are exact only below 2^53"
    problems.add(name, len(broken), f"{kind}s are not whole numbers", exact, sighted(column, broken, rows))
    problems.add(name, len(missing), f"records have no {kind}", hint, sighted(column, missing, rows))
    return keys


def _levels(job: Job, batch: pa.RecordBatch, shown: Mapping[str, pa.Array]) -> Levels:
    """The categories of the columns whose categories have an order."""
    ordered = [name for name in shown if name in job.categories and is_ordered(batch.column(name).type)]
    return reduce(add, (Levels.of(name, batch.column(name).dictionary, shown[name]) for name in ordered), Levels())


def _people(job: Job, records: _Records) -> list[bytes] | None:
    """The persons for whom sticky decoys are drawn."""
    return None if job.key is None or records.keys is None else [text.encode() for text in records.keys]


def _fingerprints(job: Job, records: _Records) -> dict[Print, Fingerprints]:
    """Of whom the records are."""
    if records.keys is None:
        return {}
    return {(PEOPLE, ""): fingerprints(records.keys.drop_nulls().to_frame(), job.fingerprint_seed)}


def _prints(job: Job, name: str, drawn: Fingerprints, sets: Ints) -> dict[Print, Fingerprints]:
    """What was drawn for whom."""
    found = {(DRAWS, name): drawn}
    return {**found, (SETS, name): mixed(drawn, sets)} if (SETS, name) in job.prints else found


def _group_stream(key: bytes, item: Sets, records: _Records) -> StickyStream:
    """The numbers of each record's group; those of a person with the same key are others."""
    groups = [text.encode() for text in records.groups[item.shared_by]]
    return StickyStream(key, f"{item.name} shared by {item.shared_by}", groups, records.codes[item.name])


def _group_prints(job: Job, item: Sets, records: _Records) -> dict[Print, Fingerprints]:
    """Which groups have members that differ in value or stratum."""
    name = item.name
    heads = fingerprints(records.groups[item.shared_by].to_frame(), job.fingerprint_seed)
    tails = mixed(np.zeros_like(heads), np.column_stack([records.codes[name], records.places[name]]))
    return {(GROUPS, name): headed(heads, tails)}


def _draw(item: Sets, codes: Ints, places: Ints, stream: RecordStream) -> Ints:
    """Sets for true values, each from the mechanism of its record's stratum."""

    def draw(stratum: Stratum, rows: Ints) -> Ints:
        return stratum.mechanism.sample(stratum.narrow(codes[rows]), stream.take(rows))

    return item.strata.sample(places, draw)


def _set_column(sets: Ints, size: int) -> pa.Array:
    """Sets of codes (n, l) as a small Arrow column that is quick to shuffle."""
    flat = arrow(sets.reshape(-1).astype(code_type(size)))
    return pa.FixedSizeListArray.from_arrays(flat, sets.shape[1])
