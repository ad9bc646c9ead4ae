"""What Spark's workers do: check, draw and count their part of a table, and cut classes.

Everything here is pickled, sent to workers and called there with an iterator of Arrow batches. What a record becomes
depends on the job's keys and on its place in the table alone.

For grouping methods Spark samples, sums up and collects; the workers count and cut.

    rows ─► codes (workers) ─► alike ones summed ─► put together by part ─► cut, one part at a time (workers) ─► here

Only sums and what was made of a part come back. Everything but the sample follows from the table, so that a task which
is tried again, or run twice, gives the same.
"""

from __future__ import annotations

import hashlib
import hmac
import pickle
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa

from polyseme.engines.batch import Job, check_batch, publish_batch
from polyseme.engines.checks import BatchTally
from polyseme.engines.run import expanded
from polyseme.engines.spark.columns import FEW, Packing, carried
from polyseme.engines.spark.groups import KEYS, Dealing, Veil, codes_in
from polyseme.engines.spark.jobs import RECOUNTED, TASK_ROWS, Tasks, finished, numbers, plain_errors
from polyseme.engines.spark.session import BATCH_ROWS, settings
from polyseme.grouping.division import Work
from polyseme.kernel.arrays import Ints
from polyseme.kernel.errors import InvalidInput
from polyseme.kernel.randomness import RecordStream, StreamKey
from polyseme.kernel.work import Cancellation
from polyseme.release import Sets

__all__ = ["Check", "Draw", "DrawOnce", "Layout", "Prints", "Reported", "Sealed", "SparkWorkers", "StagedPrints"]

PIECE = 100_000
"""Rows that are handed over at a time."""


@dataclass(frozen=True, eq=False)
class Layout:
    """Published records as they travel: columns by number, and the key that orders them.

    Sets travel as codes where values are few.

    Names of columns are the users' own, and may be anything; Spark sees them last.
    """

    job: Job
    kinds: tuple[pa.DataType, ...]
    """The types of the columns that are published as they are, in their order."""
    dealing: Dealing | None = None
    """How records come to their groups, where workers assign them."""

    @property
    def packings(self) -> tuple[Packing | None, ...]:
        """How the codes of each column of the job travel.

        None for a column that travels as it is published.
        """
        long = self.job.form == "long"
        return tuple(
            Packing(item.domain.size, 1 if long else item.l)
            if isinstance(item, Sets) and item.domain.size <= FEW
            else None
            for item in self.job.columns
        )

    def schema(self) -> pa.Schema:
        fields, plain = [], iter(self.kinds)
        for number, (item, packing) in enumerate(zip(self.job.columns, self.packings)):
            kind = self._set_type(item, packing) if isinstance(item, Sets) else next(plain)
            fields += [pa.field(name, kind) for name in self.names(number)]
        return pa.schema([*fields, pa.field("place", pa.int64()), *(KEYS if self.dealing is not None else ())])

    def _set_type(self, item: Sets, packing: Packing | None) -> pa.DataType:
        if packing is not None:
            return packing.type
        inner = self.job.labels[item.name].type
        return inner if self.job.form == "long" else pa.list_(inner)

    def names(self, number: int) -> list[str]:
        """Of what a column of the job becomes."""
        packing = self.packings[number]
        return [f"c{number}_{place}" for place in range(1 if packing is None else packing.columns)]

    def keys(self, published: pa.RecordBatch, drawn: RecordStream) -> tuple[Ints, ...]:
        """What records are ranked by where workers assign them to groups."""
        if self.dealing is None:
            return ()
        return self.dealing.keys(codes_in(published, self.dealing.attribute), drawn)

    def batch(self, published: pa.RecordBatch, places: Ints, keys: Sequence[Ints] = ()) -> pa.RecordBatch:
        """Rows with their places in the release, and their ranking key where workers form groups."""
        columns: list[pa.Array] = []
        for item, packing, column in zip(self.job.columns, self.packings, published.columns):
            if not isinstance(item, Sets):
                columns.append(carried(column, item.name))
                continue
            flat = column.flatten() if pa.types.is_fixed_size_list(column.type) else column
            if packing is None:
                columns.append(self._labels(item, flat))
            else:
                columns += packing.packed(flat.to_numpy(zero_copy_only=False).reshape(-1, packing.candidates))
        return pa.RecordBatch.from_arrays([*columns, pa.array(places), *map(pa.array, keys)], schema=self.schema())

    def _labels(self, item: Sets, codes: pa.Array) -> pa.Array:
        """The candidates of each row, as they are published."""
        labels = self.job.labels[item.name].take(codes)
        if self.job.form == "long":
            return labels
        return pa.ListArray.from_arrays(pa.array(np.arange(0, len(labels) + 1, item.l, dtype=np.int32)), labels)


@dataclass(frozen=True)
class Reported:
    """What one task found: rows that it read, what it counted, or why it could not go on."""

    rows: int
    tally: BatchTally
    error: InvalidInput | None = None


@dataclass(frozen=True)
class Sealed:
    """Pickled objects that come back from workers, with a seal that only this run can make.

    Some of them wait in files, and an attacker must not be able to have another file unpickled.
    """

    key: bytes = field(repr=False)

    def seal(self, found: object) -> bytes:
        content = pickle.dumps(found)
        return hmac.digest(self.key, content, hashlib.sha256) + content

    def open(self, sealed: bytes) -> Any:
        mark, content = sealed[:32], sealed[32:]
        if not hmac.compare_digest(mark, hmac.digest(self.key, content, hashlib.sha256)):
            raise ValueError("not from this run")
        return pickle.loads(content)  # noqa: S301 - its seal was checked


@dataclass(frozen=True, eq=False)
class Check:
    """The first pass: what is wrong with the table, how many rows there are. Nothing is drawn."""

    SCHEMA = "task long, found binary"
    job: Job
    tasks: Tasks
    sealed: Sealed

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in numbers(batches):
            found = self.sealed.seal(self._reported(number))
            yield pa.RecordBatch.from_pydict({"task": pa.array([number], pa.int64()), "found": [found]})

    def _reported(self, number: int) -> Reported:
        rows, tally = 0, BatchTally()
        try:
            for batch in self.tasks.batches(number, self.job.needed):
                tally += check_batch(self.job, batch).counts.moved(rows)
                rows += batch.num_rows
        except InvalidInput as error:
            return Reported(rows, tally, error)
        return Reported(rows, tally)


@dataclass(frozen=True, eq=False)
class Draw:
    """The second pass: sets for the records of a task, and where each row goes."""

    layout: Layout
    tasks: Tasks
    decoys: StreamKey
    order: StreamKey

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in numbers(batches):
            task = self.tasks.tasks[number]
            if task.first is None or task.rows is None:
                raise ValueError("rows without places")
            row = task.first
            for batch in self.tasks.batches(number, self.layout.job.needed):
                yield from self._rows(batch, np.arange(row, row + batch.num_rows))
                row += batch.num_rows
            if row - task.first != task.rows:
                raise ValueError(RECOUNTED)

    def _rows(self, batch: pa.RecordBatch, rows: Ints) -> Iterator[pa.RecordBatch]:
        published, tally = publish_batch(self.layout.job, batch, self.decoys.records(rows))
        if tally.problems:
            raise ValueError("something is wrong with the table")
        if self.layout.dealing is not None and published.num_rows != len(rows):
            raise ValueError("records were left out after they were counted")
        yield from _placed(self.layout, published, self.order, rows[: published.num_rows])


def _placed(layout: Layout, published: pa.RecordBatch, order: StreamKey, rows: Ints) -> Iterator[pa.RecordBatch]:
    """Published records, perhaps several rows each, with the places where they go.

    rows  a number for each record that no other record has
    """
    each = layout.job.rows_per_record
    drawn = order.records(rows)
    places = drawn.words(each).T.reshape(-1).view(np.int64)
    keys = [np.repeat(key, each) for key in layout.keys(published, drawn)]
    done = 0
    for piece in expanded(layout.job, published, PIECE):
        those = slice(done, done + piece.num_rows)
        yield layout.batch(piece, places[those], [key[those] for key in keys])
        done += piece.num_rows


@dataclass(frozen=True, eq=False)
class Prints:
    """Fingerprints of people and of what was drawn for them, to be counted."""

    SCHEMA = "kind int, print long"
    job: Job
    tasks: Tasks
    decoys: StreamKey

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in numbers(batches):
            row = self.tasks.tasks[number].first or 0
            for batch in self.tasks.batches(number, self.job.needed):
                rows = np.arange(row, row + batch.num_rows)
                yield from prints_of(self.job, publish_batch(self.job, batch, self.decoys.records(rows))[1])
                row += batch.num_rows


def prints_of(job: Job, tally: BatchTally) -> Iterator[pa.RecordBatch]:
    """The fingerprints of a tally as rows."""
    for kind, name in enumerate(job.prints):
        found = tally.prints.get(name)
        if found is not None and len(found):
            kinds = np.full(len(found), kind, dtype=np.int32)
            yield pa.RecordBatch.from_pydict({"kind": pa.array(kinds), "print": pa.array(found.view(np.int64))})


@dataclass(frozen=True, eq=False)
class DrawOnce:
    """Sets for records without a place in their table: another attempt would draw others.

    So its rows must be written, and read back from there, before any other step. What it counted comes as rows
    without a place.
    """

    layout: Layout
    read: Callable[[pa.RecordBatch], pa.RecordBatch]
    sealed: Sealed
    veil: Veil | None = None

    def schema(self) -> pa.Schema:
        return self.layout.schema().append(pa.field("found", pa.binary()))

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        decoys, order = StreamKey.fresh(), StreamKey.fresh()
        row, reported, job, tally = 0, 0, self.layout.job, BatchTally()
        for batch in batches:
            rows = np.arange(row, row + batch.num_rows)
            published, counted = publish_batch(job, self.read(batch), decoys.records(rows))
            for placed in _placed(self.layout, published, order, rows[: published.num_rows]):
                nothing = pa.nulls(placed.num_rows, pa.binary())
                hidden = placed if self.veil is None else self.veil.hide(placed)
                yield pa.RecordBatch.from_arrays([*hidden.columns, nothing], schema=self.schema())
            # Rows of such a table have no numbers by which they could be found.
            tally += replace(counted, seen={})
            row += batch.num_rows
            if row - reported > TASK_ROWS:
                yield self._found(Reported(row - reported, tally))
                reported, tally = row, BatchTally()
        yield self._found(Reported(row - reported, tally))

    def _found(self, reported: Reported) -> pa.RecordBatch:
        empty = [pa.nulls(1, item.type) for item in self.layout.schema()]
        return pa.RecordBatch.from_arrays(
            [*empty, pa.array([self.sealed.seal(reported)], pa.binary())], schema=self.schema()
        )


@dataclass(frozen=True, eq=False)
class StagedPrints:
    """The fingerprints in what `DrawOnce` counted."""

    job: Job
    sealed: Sealed

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for found in batch.column(0).to_pylist():
                yield from prints_of(self.job, self.sealed.open(found).tally)


if TYPE_CHECKING:
    from pyspark.sql import DataFrame


Found = TypeVar("Found")
Batches = Iterator[pa.RecordBatch]
_SETTINGS = {"spark.sql.execution.arrow.maxRecordsPerBatch": str(BATCH_ROWS)}


@dataclass(frozen=True, eq=False)
class SparkWorkers:
    """Some columns of a frame, and how its batches become those of a table."""

    frame: DataFrame
    read: Callable[[pa.RecordBatch], pa.RecordBatch]
    cancellation: Cancellation

    def different(self) -> int:
        return int(self._done(lambda: self.frame.distinct().count()))

    def sample(self, share: float, seed: int) -> Batches:
        some = self.frame if share >= 1 else self.frame.sample(share, seed)
        yield from map(self.read, self._batches(some))

    def summed(self, work: Work) -> Batches:
        yield from self._batches(self._counted(work))

    def finished(self, work: Work, finish: Callable[[pa.RecordBatch], Found], parts: int) -> Iterator[Found]:
        sealed = Sealed(secrets.token_bytes(32))
        together = _together(self._counted(work), work.names[0], parts)
        made = together.mapInArrow(_Finished(tuple(work.names), finish, sealed), _Finished.SCHEMA)
        for row in self._done(made.collect):
            yield sealed.open(bytes(row[0]))

    def _counted(self, work: Work) -> DataFrame:
        from pyspark.sql import functions as sql

        *keys, count = work.names
        rows = self.frame.mapInArrow(_Counted(self.read, work), ", ".join(f"{name} long" for name in work.names))
        return rows.groupBy(*keys).agg(sql.sum(count).alias(count))

    def _batches(self, frame: DataFrame) -> Batches:
        table: pa.Table = self._done(frame.toArrow)
        yield from (batch for batch in table.combine_chunks().to_batches() if batch.num_rows)

    def _done(self, action: Callable[[], Any]) -> Any:
        with settings(self.frame.sparkSession, _SETTINGS), plain_errors():
            return finished(self.frame.sparkSession, self.cancellation, action)


def _together(rows: DataFrame, part: str, parts: int) -> DataFrame:
    """The rows of each part next to each other, on one worker.

    Sail leaves out a sort unless it sees that a later step needs it. It sees that a rank does.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as sql

    rank = sql.row_number().over(Window.partitionBy(part).orderBy(part))
    return rows.repartition(parts, part).withColumn("rank", rank)


@dataclass(frozen=True, eq=False)
class _Counted:
    """Rows of the table as those of some work."""

    read: Callable[[pa.RecordBatch], pa.RecordBatch]
    work: Work

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            if batch.num_rows:
                yield self.work(self.read(batch))


@dataclass(frozen=True, eq=False)
class _Finished:
    """All rows of one part, and then of the next; a part that comes again is refused."""

    SCHEMA = "found binary"
    names: tuple[str, ...]
    finish: Callable[[pa.RecordBatch], Any]
    sealed: Sealed

    def __call__(self, batches: Batches) -> Batches:
        done = set[int]()
        for part, pieces in groupby(self._pieces(batches), key=lambda piece: piece.column(0)[0].as_py()):
            if part in done:
                raise ValueError("the rows of a part are not together")
            done.add(part)
            yield self._found(list(pieces))

    def _pieces(self, batches: Batches) -> Batches:
        """Pieces that have one part each."""
        for batch in batches:
            rows = pa.RecordBatch.from_arrays(batch.columns[: len(self.names)], names=list(self.names))
            parts = rows.column(0).to_numpy(zero_copy_only=False)
            begins = np.flatnonzero(np.diff(parts, prepend=-1, append=-1)).tolist()
            for start, end in pairwise(begins):
                yield rows.slice(start, end - start)

    def _found(self, held: list[pa.RecordBatch]) -> pa.RecordBatch:
        (whole,) = pa.Table.from_batches(held).combine_chunks().to_batches()
        return pa.RecordBatch.from_pydict({"found": pa.array([self.sealed.seal(self.finish(whole))], pa.binary())})
