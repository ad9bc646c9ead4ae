"""The local engine: a table streams through, record batch by record batch, in bounded memory.

Read, code, draw the sets, shuffle, write. Problems in the data are counted to the end of the table, so that one run
tells all of them; nothing is published when there is one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa

from polyseme import stopping
from polyseme.coupling import Coupled
from polyseme.distances.structure import Ints
from polyseme.engines.people import CHANGED, CHANGED_HINT, fingerprint_seed, record_keys, too_few_people
from polyseme.errors import Problem, TableError
from polyseme.randomness import StickyStream, SystemStream
from polyseme.release import PublishedAttribute
from polyseme.schema import Role
from polyseme.strata import Stratum
from polyseme.tables.ahead import ahead
from polyseme.tables.codes import (
    Coded,
    as_series,
    cast_column,
    code_array,
    code_type,
    encode,
    label_array,
    set_array,
)
from polyseme.tables.dictionaries import Levels, is_ordered, plain
from polyseme.tables.matching import fingerprints, mixed
from polyseme.tables.shuffle import MEMORY_BYTES, Shuffler
from polyseme.tables.source import Source
from polyseme.tables.tally import HELD_BYTES, Tallied, Tally

__all__ = ["Job", "Outcome", "published_tables"]

_ROLE_DROPPED = Role.IDENTIFIER

PIECE = 1 << 17
"""Rows that are expanded, labelled and written at a time."""


@dataclass(frozen=True)
class Job:
    """What is to be published, and how."""

    source: Source
    attributes: tuple[PublishedAttribute, ...]
    types: Mapping[str, str] = field(default_factory=dict)
    missing_values: tuple[str, ...] = ("",)
    form: str = "set"
    seed: int | None = None
    key: bytes | None = field(default=None, repr=False)
    record_key: str | None = None
    records_per_person: float | None = None
    """Most records a person on average with sticky decoys; None for what is ordinary (see `people`)."""
    allow_changed_strata: bool = False

    @property
    def published(self) -> tuple[PublishedAttribute, ...]:
        return tuple(item for item in self.attributes if item.attribute.role is not _ROLE_DROPPED)


@dataclass
class Outcome:
    """What happened, counted while the table streams through."""

    records: int = 0
    dropped: int = 0
    rows: int = 0
    strata: dict[str, set[int]] = field(default_factory=dict)
    """The strata that occurred, of each attribute for which some combinations are impossible."""
    repeated: int = 0
    """Records with the record key of an earlier one; 0 where the policy names none."""
    draws: dict[str, Tallied] = field(default_factory=dict)
    """With sticky decoys, the records of each draw of a protected attribute: same person, same value."""
    changed: dict[str, int] = field(default_factory=dict)
    """Further sets of one person for one value, drawn in other strata; attributes without any are left out."""


def published_tables(
    job: Job,
    folder: Path,
    outcome: Outcome,
    progress: Callable[[int], None] = lambda rows: None,
    memory: int = MEMORY_BYTES,
) -> Iterator[pa.Table]:
    """The published rows in random order; `outcome` is filled on the way."""
    decoys, order = _streams(job.seed)
    labels = {item.name: label_array(item.domain.values) for item in job.published if item.mechanism is not None}
    problems = _Problems()
    seen = _Seen.begin(job, folder)
    rows = job.source.rows * _expansion(job) if job.source.rows is not None else None
    with Shuffler(order, folder, memory, rows=rows) as shuffler:
        for batch in job.source.batches([item.name for item in job.attributes]):
            stopping.check()
            for part in _publish(job, batch, decoys, outcome, problems, seen):
                stopping.check()
                shuffler.add(part)
            progress(batch.num_rows)
        problems.raise_any()
        _count(job, seen, outcome)
        pieces = (table.slice(start, PIECE) for table in shuffler.tables() for start in range(0, table.num_rows, PIECE))
        yield from ahead(_labelled(job, piece, labels, seen.levels) for piece in pieces)


def _streams(seed: int | None) -> tuple[SystemStream, SystemStream]:
    """One stream for decoys and one for the order of rows."""
    if seed is None:
        return SystemStream(), SystemStream()
    return SystemStream.seeded(f"{seed} decoys"), SystemStream.seeded(f"{seed} order")


@dataclass
class _Seen:
    """What must be remembered of the published records until all are read.

    keys    of whom the records are
    draws   (person, value) of each protected attribute; only where decoys are sticky. Sets of several strata are made
            from each other, so they count as one draw even where they differ
    sets    (person, value, set); only where strata can give several sets for one value
    sticky  how the sets of each protected attribute are drawn
    seed    of the fingerprints of record keys
    """

    keys: Tally
    draws: Mapping[str, Tally]
    sets: Mapping[str, Tally]
    sticky: Mapping[str, Coupled]
    seed: int
    levels: Levels = field(default_factory=Levels)

    @classmethod
    def begin(cls, job: Job, folder: Path) -> _Seen:
        protected = [item for item in job.published if item.mechanism is not None] if job.key is not None else []
        several = [item.name for item in protected if item.restricted]
        held = HELD_BYTES // (1 + len(protected) + len(several))
        return cls(
            Tally(folder, held),
            {item.name: Tally(folder, held) for item in protected},
            {name: Tally(folder, held) for name in several},
            {item.name: Coupled(item.strata) for item in protected},
            fingerprint_seed(),
        )


def _count(job: Job, seen: _Seen, outcome: Outcome) -> None:
    """What the records of one person have in common; refuses sets that would give people away."""
    people = seen.keys.count()
    outcome.repeated = people.total - people.distinct
    outcome.draws = {name: tally.count() for name, tally in seen.draws.items()}
    changed = {name: tally.count().distinct - outcome.draws[name].distinct for name, tally in seen.sets.items()}
    outcome.changed = {name: count for name, count in changed.items() if count}
    problems = _Problems()
    if job.key is not None and job.record_key is not None and people.total:
        what, hint = too_few_people(people.total, people.distinct, job.records_per_person)
        problems.add(job.record_key, people.total if what else 0, what, hint)
    if not job.allow_changed_strata:
        for name, count in outcome.changed.items():
            problems.add(name, count, CHANGED, CHANGED_HINT)
    problems.raise_any()


class _Problems:
    """Counts of what is wrong in the data, by place."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str, str]] = Counter()

    @property
    def found(self) -> bool:
        return bool(self.counts)

    def add(self, column: str, count: int, what: str, hint: str = "") -> None:
        if count:
            self.counts[column, what, hint] += count

    def raise_any(self) -> None:
        if self.counts:
            raise TableError(
                Problem(f"column '{column}'", f"{count:,} {what}", hint)
                for (column, what, hint), count in self.counts.items()
            )


def _publish(
    job: Job,
    batch: pa.RecordBatch,
    decoys: SystemStream,
    outcome: Outcome,
    problems: _Problems,
    seen: _Seen,
) -> Iterator[pa.RecordBatch]:
    """One batch as it will be published, part by part; nothing when something in it, or before it, is wrong."""
    batch = _without_dropped(job, batch, outcome)
    coded = {item.name: _code(item, batch, job, problems) for item in job.attributes if item.mechanism is not None}
    keys = _record_keys(job, batch, problems)
    untouched = {
        item.name: _untouched(item.name, batch, job, problems) for item in job.published if item.mechanism is None
    }
    places = {
        item.name: _places(item, untouched, coded[item.name], problems)
        for item in job.published
        if item.mechanism is not None
    }
    if problems.found:
        return
    keep = np.ones(batch.num_rows, dtype=bool)
    for column in coded.values():
        keep &= column.codes >= 0
    outcome.dropped += int(batch.num_rows - keep.sum())
    outcome.records += int(keep.sum())
    for item in job.published:
        if item.attribute.constraints and item.name in places:
            outcome.strata.setdefault(item.name, set()).update(np.unique(places[item.name][keep]).tolist())
    kept = np.flatnonzero(keep)
    if keys is not None:
        seen.keys.add(fingerprints(keys.gather(kept).drop_nulls().to_frame(), seen.seed))
    for name in untouched:
        if _is_ordered(job, name):
            seen.levels.add(name, batch.column(name).dictionary, untouched[name].take(pa.array(kept)))
    sticky = _sticky_keys(job, keys, kept)
    sets = {
        item.name: _draw(item, coded[item.name].codes[kept], places[item.name][kept], decoys)
        if sticky is None or job.key is None
        else _draw_sticky(job.key, item, coded[item.name].codes[kept], places[item.name][kept], sticky, seen)
        for item in job.published
        if item.mechanism is not None
    }
    for part in _arrange(job, untouched, sets, kept):
        outcome.rows += part.num_rows
        yield part


def _without_dropped(job: Job, batch: pa.RecordBatch, outcome: Outcome) -> pa.RecordBatch:
    """The records that have a value wherever those without one are dropped; nothing else about the others matters."""
    kept = np.ones(batch.num_rows, dtype=bool)
    for item in job.attributes:
        if item.mechanism is not None and item.domain.missing.action == "drop":
            kept &= as_series(batch.column(item.name), job.missing_values).is_not_null().to_numpy()
    outcome.dropped += int(batch.num_rows - kept.sum())
    return batch if kept.all() else batch.filter(pa.array(kept))


def _code(item: PublishedAttribute, batch: pa.RecordBatch, job: Job, problems: _Problems) -> Coded:
    domain = item.domain
    coded = encode(as_series(batch.column(item.name), job.missing_values).alias(item.name), domain)
    what = "values are not in the declared domain" if domain.cut is None else "values fall outside the declared range"
    problems.add(item.name, coded.unseen, f"{what} of {domain.size:,} values", "widen the domain, or mend the table")
    if domain.missing.action == "refuse":
        hint = "say what to do with them: missing: drop, or missing: {category: unknown}"
        problems.add(item.name, coded.missing, "values are missing", hint)
    return coded


def _untouched(name: str, batch: pa.RecordBatch, job: Job, problems: _Problems) -> pa.Array:
    column = batch.column(name)
    if name not in job.types:
        return plain(column)
    series = as_series(column, job.missing_values)
    result, failures = cast_column(series, job.types[name])
    problems.add(
        name, failures, f"values cannot be read as {job.types[name]}", "change or remove its type in the policy"
    )
    return result.to_arrow()


def _places(item: PublishedAttribute, untouched: Mapping[str, pa.Array], coded: Coded, problems: _Problems) -> Ints:
    """The stratum of each record, as anyone can tell it from the columns that are published as they are."""
    places = item.strata.places(untouched, len(coded.codes))
    count = item.strata.impossible(coded.codes, places)
    hint = "mend the table, or the policy's impossible combinations"
    problems.add(item.name, count, "values are declared impossible for their record", hint)
    return places


def _is_ordered(job: Job, name: str) -> bool:
    """Whether a column is published as ordered categories."""
    return name not in job.types and is_ordered(job.source.schema.field(name).type)


def _record_keys(job: Job, batch: pa.RecordBatch, problems: _Problems) -> pl.Series | None:
    """What names the person of each record; every record must have it where decoys are to be sticky."""
    if job.record_key is None:
        return None
    column = as_series(batch.column(job.record_key), job.missing_values)
    keys = record_keys(batch.column(job.record_key), job.record_key, job.missing_values)
    if job.key is not None:
        broken = keys.null_count() - column.null_count() if column.dtype.is_float() else 0
        hint = "keys are texts or whole numbers; floats tell them apart below 2^53 only"
        problems.add(job.record_key, broken, "record keys are not whole numbers", hint)
        missing = keys.null_count() - broken
        problems.add(job.record_key, missing, "records have no record key", "sticky decoys need one for each")
    return keys


def _sticky_keys(job: Job, keys: pl.Series | None, kept: Ints) -> list[bytes] | None:
    return None if job.key is None or keys is None else [text.encode() for text in keys.gather(kept)]


def _draw(item: PublishedAttribute, codes: Ints, places: Ints, decoys: SystemStream) -> Ints:
    """Sets for true values, each from the mechanism of its record's stratum."""

    def draw(stratum: Stratum, rows: Ints) -> Ints:
        return stratum.mechanism.sample(stratum.narrow(codes[rows]), decoys)

    return item.strata.sample(places, draw)


def _draw_sticky(
    key: bytes, item: PublishedAttribute, codes: Ints, places: Ints, people: Sequence[bytes], seen: _Seen
) -> Ints:
    """The same, drawn once for a person and value; counts what was drawn."""
    stream = StickyStream(key, item.name, people, codes)
    sets = seen.sticky[item.name].sample(places, codes, stream)
    seen.draws[item.name].add(stream.prints)
    if item.name in seen.sets:
        seen.sets[item.name].add(mixed(stream.prints, sets))
    return sets


def _arrange(
    job: Job, untouched: Mapping[str, pa.Array], sets: Mapping[str, Ints], kept: Ints
) -> Iterator[pa.RecordBatch]:
    """The kept rows with columns in the table's order, sets still as codes; in the long form, all combinations."""
    if job.form == "set":
        yield _columns(job, untouched, sets, kept)
        return
    for record, picks in _expand(sets, len(kept)):
        shown = {name: column[record, picks[name]] for name, column in sets.items()}
        yield _columns(job, untouched, shown, kept[record])


def _columns(job: Job, untouched: Mapping[str, pa.Array], codes: Mapping[str, Ints], rows: Ints) -> pa.RecordBatch:
    """Codes beside the rows of the untouched columns that they belong to."""
    columns = []
    for item in job.published:
        if item.name in codes:
            columns.append(_code_column(codes[item.name], item.domain.size))
        else:
            column = untouched[item.name]
            whole = job.form == "set" and len(rows) == len(column)
            columns.append(column if whole else column.take(pa.array(rows)))
    return pa.RecordBatch.from_arrays(columns, names=[item.name for item in job.published])


def _code_column(codes: Ints, size: int) -> pa.Array:
    """Codes (n,) or sets of codes (n, l) as a small Arrow column that is quick to shuffle."""
    flat = pa.array(codes.reshape(-1).astype(code_type(size)))
    return flat if codes.ndim == 1 else pa.FixedSizeListArray.from_arrays(flat, codes.shape[1])


def _labelled(job: Job, table: pa.Table, labels: Mapping[str, pa.Array], levels: Levels) -> pa.Table:
    """A shuffled table with the labels of the domain in place of codes, and categories made anew."""
    for index, item in enumerate(job.published):
        if item.mechanism is None:
            if item.name not in job.types and pa.types.is_dictionary(job.source.schema.field(item.name).type):
                column = table.column(index).combine_chunks()
                ordered = _is_ordered(job, item.name)
                made = levels.encode(item.name, column) if ordered else column.dictionary_encode()
                table = table.set_column(index, item.name, made)
            continue
        column = table.column(index).combine_chunks()
        if job.form == "set":
            members = column.flatten().to_numpy(zero_copy_only=False)
            labelled = set_array(members.reshape(-1, item.mechanism.l), labels[item.name])
        else:
            labelled = code_array(column.to_numpy(zero_copy_only=False), labels[item.name])
        table = table.set_column(index, item.name, labelled)
    return table


def _expansion(job: Job) -> int:
    """How many published rows a record becomes."""
    widths = [item.mechanism.l for item in job.published if item.mechanism is not None]
    return prod(widths) if job.form == "long" else 1


def _expand(sets: Mapping[str, Ints], count: int) -> Iterator[tuple[Ints, Mapping[str, Ints]]]:
    """For the long form, piece by piece: which record each row comes from, and which candidate of each set it shows."""
    widths = [column.shape[1] for column in sets.values()]
    combinations = prod(widths)
    for start in range(0, count * combinations, PIECE):
        record, place = np.divmod(np.arange(start, min(start + PIECE, count * combinations)), combinations)
        yield record, dict(zip(sets, np.unravel_index(place, widths)))
