"""What attackers see: the sets of some records, and the truth where it is at hand.

Records are read once for many attributes, with their untouched columns. What was promised for the records of a stratum
becomes the bounds of the attacks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from polyseme.kernel.arrays import Bools, Ints, arrow
from polyseme.kernel.errors import InternalError, InvalidInput, ReleaseError, TableError
from polyseme.kernel.randomness import StreamKey, SystemStream, experiment
from polyseme.privacy.promises import Bounds, Channel
from polyseme.release import Grouped, Release, Sets
from polyseme.scrutiny.attacks.audit.seen import (
    Columns,
    Part,
    Prints,
    Reading,
    Seen,
    as_original,
    joined,
    memory_of,
    untouched,
)
from polyseme.scrutiny.attacks.scene import Everyone, Promised, Shown
from polyseme.tables.codes import as_series, encode
from polyseme.tables.distinct import Blocks, Fingerprints, matched, unmatched
from polyseme.tables.io.source import Source
from polyseme.tables.published import code_sets

__all__ = [
    "Chosen",
    "Levels",
    "Sample",
    "Truth",
    "bounds_of",
    "channel_of",
    "choose",
    "choose_all",
    "largest_part",
    "narrowed",
    "promised_for",
    "published",
    "published_to_all",
    "sample",
]


def channel_of(part: Part) -> Channel:
    """The mechanism of a stratum and what is public about its values."""
    return part.item.channels[part.number]


def bounds_of(part: Part) -> Bounds:
    """What was promised to hold against attackers; refuses promises that cannot be read."""
    promises = part.item.attribute.promises
    try:
        promises.for_domain(part.item.domain.size, part.item.attribute.distance is not None)
    except InvalidInput:
        raise ReleaseError(f"column '{part.item.name}': its promises cannot be read", "run polyseme verify") from None
    bounds = promises.bounds(channel_of(part))
    return bounds if bounds.guess is not None else replace(bounds, guess=_worst_guess(channel_of(part)))


def _worst_guess(channel: Channel) -> float:
    """Where nothing is promised about a guess: what the mechanism allows at worst."""
    worst = channel.mechanism.worst_posterior(channel.known.prior)
    return 1.0 if np.isnan(worst) else worst


def promised_for(part: Part) -> Promised:
    """What was promised for the records of a stratum."""
    bounds, known = bounds_of(part), channel_of(part).known
    promised = Promised(guess=bounds.guess, apart=bounds.apart, any_prior=bounds.any_prior, learned=bounds.learner)
    if bounds.moved is None:
        return promised
    return replace(promised, moved=bounds.moved, reference=known.reference, ground=known.ground(bounds.ground))


Held: TypeAlias = NDArray[np.int32] | None
"""Sets as they are kept, in half the room; None where not all of them are valid."""

_MOST = 64_000_000
"""Candidates that are held at a time (256 MB): three each of 200,000 records for a hundred attributes."""


class Levels:
    """Untouched columns of some records as codes, batch by batch: eight bytes a cell."""

    def __init__(self, reading: Reading, rows: Ints) -> None:
        self._reading, self._rows, self._start = reading, rows, 0
        self._parts: list[Fingerprints] = []

    def add(self, batch: pa.RecordBatch) -> None:
        """The next records; only those of `rows` are looked at."""
        chosen = _chosen(self._rows, self._start, batch.num_rows)
        self._start += batch.num_rows
        texts = self._reading.texts(self._reading.columns(_taken(batch.select(list(self._reading.names)), chosen)))
        self._parts.append(_hashes(texts))

    def codes(self) -> Ints:
        """Equal values of a column have equal codes: (n, q)."""
        prints = np.concatenate([_hashes(pl.DataFrame({name: [] for name in self._reading.names})), *self._parts])
        return np.column_stack([np.unique(column, return_inverse=True)[1] for column in prints.T])


def _hashes(texts: pl.DataFrame) -> Fingerprints:
    return np.column_stack([series.hash().to_numpy() for series in texts])


class Sample:
    """Some records of a release.

    rows       for each attribute, the rows whose sets are shown, ascending
    described  the rows whose untouched columns are shown, ascending
    """

    def __init__(self, release: Release, rows: Mapping[str, Ints], described: Ints | None = None) -> None:
        self.release, self._rows = release, rows
        self._items = {item.name: item for item in release.manifest.sets if item.name in rows}
        self._blocks = Blocks(list(self._items), self._cost, self._read, _MOST)
        self._described = described if Reading.of(release).names else None
        self._levels: Ints | None = None

    def sets(self, item: Sets, rows: Ints) -> Ints:
        """The sets of some rows."""
        found = self._blocks[item.name]
        if found is None:
            raise ReleaseError(f"column '{item.name}': not every cell is a valid set", "run polyseme verify")
        return found[np.searchsorted(self._rows[item.name], rows)].astype(np.int64)

    def features(self, rows: Ints) -> Ints | None:
        """The untouched columns of some rows as codes; None where there are none."""
        if self._described is None:
            return None
        if self._levels is None:
            self._read([])
        levels = self._levels
        if levels is None or len(rows) == len(self._described):
            return levels
        return levels[np.searchsorted(self._described, rows)]

    @cached_property
    def _reading(self) -> Reading:
        return Reading.of(self.release)

    def _cost(self, name: str) -> int:
        return len(self._rows[name]) * self._items[name].l

    def _read(self, names: Sequence[str]) -> dict[str, Held]:
        """The sets of some attributes; the first reading also looks at the untouched columns."""
        first = self._levels is None and self._described is not None
        levels = Levels(self._reading, self._described) if first and self._described is not None else None
        parts: dict[str, list[Held]] = {name: [] for name in names}
        start = 0
        columns = [*names, *(self._reading.names if levels is not None else ())]
        for batch in self.release.batches(columns):
            for name in names:
                parts[name].append(self._coded(batch, name, start))
            if levels is not None:
                levels.add(batch)
            start += batch.num_rows
        if levels is not None:
            self._levels = levels.codes()
        return {name: _joined(found, self._items[name].l, len(self._rows[name])) for name, found in parts.items()}

    def _coded(self, batch: pa.RecordBatch, name: str, start: int) -> Held:
        item, chosen = self._items[name], _chosen(self._rows[name], start, batch.num_rows)
        sets = code_sets(_taken(batch.select([name]), chosen).column(0), item.domain).regular(item.l)
        return None if sets is None else sets.astype(np.int32)


def _chosen(rows: Ints, start: int, count: int) -> Ints:
    """Which of the next `count` records are among the rows."""
    begin, end = np.searchsorted(rows, [start, start + count])
    return rows[begin:end] - start


def _taken(batch: pa.RecordBatch, chosen: Ints) -> pa.RecordBatch:
    return batch if len(chosen) == batch.num_rows else batch.take(arrow(chosen))


def _joined(parts: Sequence[Held], width: int, rows: int) -> Held:
    """The sets of all batches; None when some are not valid, or missing."""
    none = np.zeros((0, width), dtype=np.int32)
    sets = np.concatenate([none, *(part for part in parts if part is not None)])
    return sets if len(sets) == rows else None


ENOUGH = 1_000
"""Matched records that are enough to measure success on the release itself."""

SAMPLE = 200_000
"""Records that are attacked at the most; the rest would only repeat the answer."""


def largest_part(item: Sets, seen: Seen) -> Part:
    return Part(item, int(np.bincount(seen.places[item.name]).argmax()) if item.stratified else 0)


def sample(rows: Ints, shared_by: int = 1) -> Ints:
    """At most `SAMPLE` of the ascending rows, or that part of it, each with the same chance.

    A table may be sorted.
    """
    most = SAMPLE // shared_by
    if len(rows) <= most:
        return rows
    return rows[np.sort(experiment(0).choice(len(rows), most, replace=False, shuffle=False))]


def narrowed(part: Part, sets: Ints) -> Ints:
    """Published sets in codes of the stratum's mechanism."""
    if part.stratum.forbids[sets].any():
        raise ReleaseError(f"column '{part.item.name}': some sets hold impossible values", "run polyseme verify")
    return part.stratum.narrow(sets)


class Truth:
    """The original: true codes of protected attributes, and which rows of the release are whose.

    Records that do not fit the release are not counted, and not numbered.
    """

    def __init__(self, release: Release, original: Source, seen: Seen, seed: int | None = None) -> None:
        key = StreamKey.fresh() if seed is None else StreamKey.seeded(f"{seed} attack")
        self._streams = key.partitions()
        self.original, self.reading = original, Reading.by(release, as_original(release))
        protected: tuple[Sets | Grouped, ...] = (*release.manifest.sets, *release.manifest.grouped)
        needed = [*self.reading.names, *(item.name for item in protected)]
        absent = [name for name in needed if name not in original.schema.names]
        if absent:
            raise TableError(f"{original.name}: no column '{absent[0]}'", "is this the table that was released?")
        shown = Columns(self.reading, release.manifest.records) if _shows_all(release) else None
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
                if shown is not None:
                    shown.add(columns)
            kept.append(fits)
        if not any(fits.any() for fits in kept):
            raise TableError(f"{original.name}: no record fits the release", "is this the table that was released?")
        self.codes = {name: np.concatenate(column) for name, column in codes.items()}
        self.kept = np.concatenate(kept)
        self.columns: Prints = {} if shown is None else shown.found()
        self.seen = joined(parts, int(self.kept.sum()))
        _require_released(release, original.name, self, seen)
        none = np.zeros(0, dtype=np.int64)
        self.rows, self.originals = matched(seen.prints, self.seen.prints) if self.reading.names else (none, none)

    def stream(self) -> SystemStream:
        """By which some more fresh sets are drawn."""
        return next(self._streams)

    def features(self, people: Ints) -> Ints | None:
        """Untouched columns of some people as codes; reads the original again."""
        if not self.reading.names:
            return None
        levels = Levels(self.reading, np.flatnonzero(self.kept)[people])
        for batch in self.original.batches(self.reading.names):
            levels.add(batch)
        return levels.codes()

    def of_rows(self, name: str, rows: Ints) -> Ints:
        """True codes of the people of some rows of the release; -1 for those who are not recognized."""
        found = np.full(max(int(rows.max(initial=0)), int(self.rows.max(initial=0))) + 1, -1, dtype=np.int64)
        found[self.rows] = self.codes[name][self.originals]
        return found[rows]

    def possible(self, part: Part) -> Bools:
        """Whether each person belongs to a stratum and has a value that it allows."""
        return self.seen.inside(part) & ~part.stratum.forbids[self.codes[part.item.name]]

    def values(self, part: Part, people: Ints) -> Ints:
        """The true values of some people, in codes of the stratum's mechanism."""
        return part.stratum.narrow(self.codes[part.item.name][people].astype(np.int64))


def _shows_all(release: Release) -> bool:
    """Whether all untouched columns show what the original shows."""
    return as_original(release) == untouched(release)


def _require_released(release: Release, original: str, truth: Truth, seen: Seen) -> None:
    """Raise where a table cannot be the original: success against other people's values is void.

    It may hold more people than the release does.
    """
    records, applied = release.manifest.records, release.manifest.applied
    if len(truth.seen.prints) < records:
        what = f"{len(truth.seen.prints):,} records fit the release, which has {records:,}"
        raise TableError(f"{original}: {what}", "is this the table that was released?")
    # Suppressed records do not show what the original shows.
    hidden = applied.suppressed if applied is not None and not applied.withheld else 0
    strange = unmatched(seen.prints, truth.seen.prints) if truth.reading.names else 0
    if strange > hidden:
        columns = ", ".join(f"'{name}'" for name in truth.reading.names[:6])
        what = f"{strange:,} of {records:,} records of the release are not in it, going by {columns}"
        raise TableError(f"{original}: {what}", "is this the table that was released?")


@dataclass(frozen=True, eq=False)
class Chosen:
    """Whose records attackers are shown.

    rows      of the release; None for people who are given fresh sets
    people    of the original; None where it is not at hand
    measured  how many records of which kind
    """

    rows: Ints | None
    people: Ints | None
    measured: dict[str, float]


def choose(parts: Sequence[Part], seen: Seen, truth: Truth | None) -> Chosen:
    """Some records of all strata: matched with the original, its people for fresh sets, or any."""
    inside = np.all([seen.inside(part) for part in parts], axis=0)
    counted = {"stratum_records": float(inside.sum())} if any(part.item.stratified for part in parts) else {}
    if truth is None:
        return Chosen(sample(np.flatnonzero(inside)), None, counted)
    possible = np.all([truth.possible(part) for part in parts], axis=0)
    both = np.flatnonzero(inside[truth.rows] & possible[truth.originals])
    if len(both) >= ENOUGH:
        both = sample(both)
        rows, people = truth.rows[both], truth.originals[both]
        return Chosen(rows, people, {**counted, "matched_records": float(len(people))})
    people = sample(np.flatnonzero(possible))
    if not len(people):
        return choose(parts, seen, None)
    return Chosen(None, people, {**counted, "fresh_sets": float(len(people))})


def choose_all(item: Sets, seen: Seen, truth: Truth | None) -> Chosen | None:
    """Some records of all strata of an attribute; None where it has only one."""
    if not item.stratified:
        return None
    if truth is None:
        return Chosen(sample(np.arange(len(seen.prints))), None, {})
    parts = [Part(item, number) for number in range(len(item.strata.members))]
    possible = np.any([truth.possible(part) for part in parts], axis=0)
    known = np.flatnonzero(possible[truth.originals])
    if len(known) >= ENOUGH:
        known = sample(known)
        return Chosen(truth.rows[known], truth.originals[known], {"matched_records": float(len(known))})
    people = sample(np.flatnonzero(possible))
    return Chosen(None, people, {"fresh_sets": float(len(people))}) if len(people) else None


def published_to_all(item: Sets, chosen: Chosen, drawn: Sample, seen: Seen, truth: Truth | None) -> Everyone:
    """The sets of those who were chosen, in codes of the domain."""
    if chosen.rows is not None:
        places, sets = seen.places[item.name][chosen.rows], drawn.sets(item, chosen.rows)
        if np.any([member.forbids[sets[places == number]].any() for number, member in enumerate(item.strata.members)]):
            raise ReleaseError(f"column '{item.name}': some sets hold impossible values", "run polyseme verify")
    elif truth is not None and chosen.people is not None:
        places, codes, stream = truth.seen.places[item.name][chosen.people], truth.codes[item.name], truth.stream()
        own = codes[chosen.people].astype(np.int64)
        sets = item.strata.sample(
            places, lambda member, rows: member.mechanism.sample(member.narrow(own[rows]), stream)
        )
    else:
        raise InternalError("no records were chosen")
    return Everyone(sets, places.astype(np.int64), item.strata, item.name, item.repeats)


def published(part: Part, chosen: Chosen, drawn: Sample, truth: Truth | None) -> Shown:
    """The sets of those who were chosen: as published, or fresh ones for people of the original."""
    stratum, attribute = part.stratum, part.item.attribute
    if chosen.rows is not None:
        sets = narrowed(part, drawn.sets(part.item, chosen.rows))
    elif truth is not None and chosen.people is not None:
        sets = stratum.mechanism.sample(truth.values(part, chosen.people), truth.stream())
    else:
        raise InternalError("no records were chosen")
    distance = attribute.distance
    return Shown(
        sets,
        stratum.mechanism,
        part.item.name,
        channel_of(part).known.prior,
        distance.among(stratum.allowed) if distance is not None and stratum.excluded else distance,
        channel_of(part).known.learner_prior,
        part.item.repeats,
    )
