"""Workers that are this process: what those of an engine must find, in the plainest way to find it.

Law: on the same sample, every engine's workers come to the same release as these.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import polars as pl
import pyarrow as pa

from polyseme.engines.workers import Work
from polyseme.tables.io.source import Source

__all__ = ["WorkersHere"]

Found = TypeVar("Found")


@dataclass(frozen=True, eq=False)
class WorkersHere:
    """Reads a table as often as it is asked to; functions are pickled on their way."""

    source: Source
    columns: Sequence[str]

    def different(self) -> int:
        return pl.concat(map(_frame, self.source.batches(self.columns))).n_unique()

    def sample(self, share: float, seed: int) -> Iterator[pa.RecordBatch]:
        random = np.random.default_rng(seed)
        for batch in self.source.batches(self.columns):
            yield batch.filter(pa.array(random.random(batch.num_rows) < share))

    def summed(self, work: Work) -> Iterator[pa.RecordBatch]:
        yield _batch(self._rows(work))

    def finished(self, work: Work, finish: Callable[[pa.RecordBatch], Found], parts: int) -> Iterator[Found]:
        work, finish = pickle.loads(pickle.dumps((work, finish)))  # noqa: S301 - of our own making
        for part in self._rows(work).partition_by(work.names[0]):
            # The rows of a part come in any order.
            found = finish(_batch(part.sample(fraction=1.0, shuffle=True, seed=part.height)))
            yield pickle.loads(pickle.dumps(found))  # noqa: S301 - of our own making

    def _rows(self, work: Work) -> pl.DataFrame:
        rows = pl.concat(_frame(work(batch)) for batch in self.source.batches(self.columns))
        *keys, count = work.names
        return rows.group_by(keys).agg(pl.col(count).sum())


def _frame(batch: pa.RecordBatch) -> pl.DataFrame:
    return pl.DataFrame(pl.from_arrow(batch))


def _batch(frame: pl.DataFrame) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([series.rechunk().to_arrow() for series in frame], names=frame.columns)
