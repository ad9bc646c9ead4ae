"""Mondrian where no machine holds even the records that differ: first cuts from a sample, the rest in the workers.

    made = divide_counted(policy, resolved, source, sample, parts=200)
    divider = made.divider                              # pickles
    kept, parts = divider.divide(batch)                 # a map: the part of each record, by which they are put together
    piece = divider.finish(batch)                       # all records of one part, in one place: as they are published
    made.finished(pieces)                               # columns and what was done, from what each worker says of it

Three things are counted in all records: the values of each column by itself, and the sensitive values of each part.
The latter is an aggregate of what `divider.tally(batch)` gives, its `count` summed for each combination of the others;
`tally` says who does that, and by default it is done here, batch by batch. Parts that do not reach the goal are joined
before anything is published, so that every class reaches it, whatever the sample was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import polars as pl
import pyarrow as pa

from polyseme.arrays import Bools, Ints
from polyseme.errors import TableError
from polyseme.methods import grouping_named
from polyseme.methods.goal import Goal
from polyseme.methods.grouping import require_goal
from polyseme.methods.microdata import Cells, Ladder, Microdata, Recoding, Sensitive
from polyseme.methods.mondrian.division import Division, divided, settled
from polyseme.methods.mondrian.partitioning import mondrian
from polyseme.models import Background, background_of
from polyseme.policy import Policy
from polyseme.policy.microdata import Coding, ReadColumns, read_columns
from polyseme.policy.resolving import match_columns
from polyseme.randomness import SystemStream
from polyseme.release import Applied, AsIs, Column
from polyseme.schema import Resolved
from polyseme.tables.io.source import Source
from polyseme.verbs.recoding import asked_of_classes, promised
from polyseme.verbs.treating import Decided, cell_labels, domain_labels, generalized_column

__all__ = ["Divided", "Divider", "Piece", "Summary", "Tally", "divide_counted"]

_PART, _COUNT = "part", "count"
_VALUE = "value {}"

Tally: TypeAlias = Callable[[Callable[[pa.RecordBatch], pa.RecordBatch]], Iterable[pa.RecordBatch]]
"""Given what to do with a batch, what came of all batches; counts may or may not be summed yet."""


@dataclass(frozen=True, eq=False)
class Summary:
    """What a worker says of its part: how many classes there are, and the cells that it shows, by column."""

    classes: int
    cells: Mapping[str, Cells] = field(repr=False)


@dataclass(frozen=True, eq=False)
class Piece:
    """The records of one part: which rows are kept, these as they are published, and what is told of them."""

    kept: Bools = field(repr=False)
    batch: pa.RecordBatch = field(repr=False)
    summary: Summary


@dataclass(frozen=True, eq=False)
class Divider:
    """How any record comes to its part, and how a part is cut. It can be pickled.

    coding      how rows become codes
    division    the parts
    models      what classes must reach, and what is known beside the table
    totals      how often each sensitive value occurs in the whole table
    records     how many records the whole table has; 0 until they were counted
    """

    coding: Coding
    ladders: tuple[Ladder, ...] = field(repr=False)
    division: Division
    models: tuple[Mapping[str, Any], ...]
    background: Background = field(repr=False)
    labels: Mapping[str, pa.Array] = field(repr=False)
    totals: Mapping[str, Ints] = field(default_factory=dict, repr=False)
    records: int = 0

    @property
    def needs(self) -> list[str]:
        """The columns that it looks at."""
        return self.coding.reading.names

    def divide(self, batch: pa.RecordBatch) -> tuple[Bools, Ints]:
        """Which rows are records, and the part of each of these."""
        kept, leaves, _ = self.coding.coded(batch)
        return kept, self.division.parts_of(leaves)

    def tally(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """How many records of a batch have which sensitive values in which part."""
        _, leaves, secret = self.coding.coded(batch)
        columns = {_PART: self.division.parts_of(leaves)}
        columns |= {_VALUE.format(place): codes for place, codes in enumerate(secret.values())}
        return _summed(pl.DataFrame(columns).with_columns(pl.lit(1, pl.Int64).alias(_COUNT)))

    def finish(self, batch: pa.RecordBatch) -> Piece:
        """All records of one part, in their classes."""
        kept, leaves, secret = self.coding.coded(batch)
        data = Microdata(self.ladders, leaves, self._sensitive(secret))
        goal = self.goal(data)
        made = mondrian(data, goal, SystemStream(), totals=self.totals)
        there = batch if kept.all() else batch.filter(pa.array(kept))
        columns = self._shown(made) | {name: self.labels[name].take(pa.array(codes)) for name, codes in secret.items()}
        arrays = [columns.get(name, there.column(place)) for place, name in enumerate(batch.schema.names)]
        cells = dict(zip(data.names, made.cells, strict=True))
        return Piece(
            kept, pa.RecordBatch.from_arrays(arrays, names=batch.schema.names), Summary(len(made.shown), cells)
        )

    def goal(self, data: Microdata) -> Goal:
        """What classes of some records must reach."""
        return Goal.of(self.models, data, self.background)

    def settled(self, tallies: Iterable[pa.RecordBatch]) -> Divider:
        """The same with parts that reach the goal, from the tallies of all records."""
        rows = pl.DataFrame(_summed(pl.concat(pl.DataFrame(batch) for batch in tallies)))
        secret = {name: rows[_VALUE.format(place)].to_numpy() for place, name in enumerate(self.coding.domains)}
        counts = rows[_COUNT].to_numpy()
        data = Microdata((), np.zeros((len(counts), 0), dtype=np.int64), self._sensitive(secret), counts=counts)
        goal = self.goal(data)
        require_goal(goal, "mondrian")
        division = settled(self.division, rows[_PART].to_numpy(), goal)
        return replace(self, division=division, totals=goal.totals(), records=data.records)

    def _sensitive(self, secret: Mapping[str, Ints]) -> dict[str, Sensitive]:
        return {name: Sensitive(name, codes, tuple(self.labels[name].to_pylist())) for name, codes in secret.items()}

    def _shown(self, made: Recoding) -> dict[str, pa.Array]:
        names = [ladder.name for ladder in self.ladders]
        return {
            name: cell_labels(made.cells[place]).take(pa.array(made.shown[made.classes, place]))
            for place, name in enumerate(names)
        }


def _summed(rows: pl.DataFrame) -> pa.RecordBatch:
    """Rows that are alike put together, their counts summed."""
    keys = [name for name in rows.columns if name != _COUNT]
    summed = rows.group_by(keys).agg(pl.col(_COUNT).sum())
    return pa.RecordBatch.from_arrays([series.to_arrow() for series in summed], names=summed.columns)


@dataclass(frozen=True, eq=False, kw_only=True)
class Divided(Decided):
    """A table in parts; how many classes there are, and what they show, is known when all parts are finished."""

    divider: Divider
    listed: frozenset[str] = frozenset()

    def finished(self, pieces: Iterable[Summary]) -> Divided:
        """With all that is told of the classes."""
        pieces = list(pieces)
        columns: dict[str, Column] = dict(self.columns)
        for ladder in self.divider.ladders:
            cells = _joined([piece.cells[ladder.name] for piece in pieces])
            columns[ladder.name] = generalized_column(ladder, cells, ladder.name in self.listed)
        applied = replace(self.applied, classes=sum(piece.classes for piece in pieces))
        return replace(self, columns=columns, applied=applied)


def _joined(pieces: Iterable[Cells]) -> Cells:
    """The different cells of all pieces; one label stands for the same leaves in all of them."""
    found = {label: leaves for cells in pieces for label, leaves in zip(cells.labels, cells.leaves, strict=True)}
    return Cells(tuple(found), tuple(found.values()))


def divide_counted(
    policy: Policy,
    resolved: Resolved,
    source: Source,
    sample: Source,
    parts: int,
    tally: Tally | None = None,
) -> Divided:
    """Divide a table into about so many parts that can be finished one by one.

    sample  some of its rows, drawn at random: `polyseme.methods.mondrian.division.SAMPLE` or more
    tally   sums up what a function gives for all batches of the table; on this machine unless given
    """
    spec = policy.grouping
    if spec is None or spec.name != "mondrian" or spec.parameters["mode"] != "strict":
        raise ValueError("only the strict mode of mondrian works in parts")
    read = read_columns(match_columns(policy, source), resolved.schema, source)
    models = promised(policy, grouping_named(spec.name), spec, {item.name: item for item in read.sensitive})
    divider = _first_cuts(read, asked_of_classes(policy, resolved), sample, parts)
    tallies = list((tally or _here(source, divider.needs))(divider.tally))
    if not any(batch.num_rows for batch in tallies):
        raise TableError(f"{source.name}: no records to publish")
    divider = divider.settled(tallies)
    columns: dict[str, Column] = {
        ladder.name: generalized_column(ladder, Cells((), ()), listed=False) for ladder in read.ladders
    }
    columns |= {item.name: AsIs(item) for item in read.sensitive}
    return Divided(
        columns=columns,
        applied=Applied(spec.name, spec.parameters),
        records=divider.records,
        recoded=frozenset(columns),
        dropped=read.dropped,
        models=models,
        divider=divider,
        listed=read.listed,
    )


def _first_cuts(read: ReadColumns, models: Sequence[Mapping[str, Any]], sample: Source, parts: int) -> Divider:
    """Parts as a sample cuts them; whether they reach anything is not known yet."""
    pieces = [read.coding.coded(batch)[1] for batch in sample.batches(read.coding.reading.names)]
    leaves = np.concatenate([np.zeros((0, len(read.ladders)), dtype=np.int64), *pieces])
    labels = {item.name: domain_labels(item) for item in read.sensitive}
    division = divided(Microdata(read.ladders, leaves), parts)
    return Divider(read.coding, read.ladders, division, tuple(models), background_of(read.sensitive), labels)


def _here(source: Source, needs: list[str]) -> Tally:
    return lambda count: map(count, source.batches(needs))
