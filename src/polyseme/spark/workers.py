"""Spark's workers for verbs that work where the rows are: it samples, sums up and puts together, they count and cut.

    rows ─► codes (workers) ─► alike ones summed ─► put together by part ─► cut, one part at a time (workers) ─► here

Only sums and what was made of a part come back. Everything but the sample follows from the table, so that a task which
is tried again, or run twice, gives the same.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa

from polyseme.engines.workers import Work
from polyseme.kernel.work import Cancellation
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
