"""Spark's workers for verbs that work where the rows are: it samples, sums up and puts together, they count and cut.

    rows ─► codes (workers) ─► alike ones summed ─► put together by part ─► cut, one part at a time (workers) ─► here

Only sums and what was made of a part come back. Everything but the sample follows from the table, so that a task which
is tried again, or run twice, gives the same.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from polyseme.cancellation import Cancellation
from polyseme.engines.workers import Work
from polyseme.spark.drawing import Sealed
from polyseme.spark.failing import plain_errors
from polyseme.spark.jobs import finished
from polyseme.spark.session import BATCH_ROWS, settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["SparkWorkers"]

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
        sealed, part = Sealed(secrets.token_bytes(32)), work.names[0]
        together = self._counted(work).repartition(parts, part).sortWithinPartitions(part)
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
        yield from table.to_batches()

    def _done(self, action: Callable[[], Any]) -> Any:
        with settings(self.frame.sparkSession, _SETTINGS), plain_errors():
            return finished(self.frame.sparkSession, self.cancellation, action)


@dataclass(frozen=True, eq=False)
class _Counted:
    """Rows of the table as those of some work."""

    read: Callable[[pa.RecordBatch], pa.RecordBatch]
    work: Work

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            yield self.work(self.read(batch))


@dataclass(frozen=True, eq=False)
class _Finished:
    """All rows of one part after the other: they come sorted by it."""

    SCHEMA = "found binary"
    names: tuple[str, ...]
    finish: Callable[[pa.RecordBatch], Any]
    sealed: Sealed

    def __call__(self, batches: Batches) -> Batches:
        held: list[pa.RecordBatch] = []
        for batch in batches:
            for piece in _by_part(pa.RecordBatch.from_arrays(batch.columns, names=list(self.names))):
                if held and held[0].column(0)[0] != piece.column(0)[0]:
                    yield self._found(held)
                    held = []
                held.append(piece)
        if held:
            yield self._found(held)

    def _found(self, held: list[pa.RecordBatch]) -> pa.RecordBatch:
        (whole,) = pa.Table.from_batches(held).combine_chunks().to_batches()
        return pa.RecordBatch.from_pydict({"found": pa.array([self.sealed.seal(self.finish(whole))], pa.binary())})


def _by_part(batch: pa.RecordBatch) -> Batches:
    """A batch that is sorted by its first column, in pieces that have one value in it each."""
    parts = batch.column(0).to_numpy(zero_copy_only=False)
    begins = [0, *((parts[1:] != parts[:-1]).nonzero()[0] + 1).tolist(), len(parts)]
    for start, end in pairwise(begins):
        if end > start:
            yield batch.slice(start, end - start)
