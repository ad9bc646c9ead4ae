"""Workers in this process, and tables as an engine that counts elsewhere gives them.

Workers find in the plainest way what those of an engine must find. Law: on the same sample, every engine's workers come
to the same release as these.

A compressed table has distinct rows with counts, in any order. Law: a reader of `counted` finds exactly the same in a
source and in its compressed form.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import polars as pl
import pyarrow as pa

from polyseme.grouping.division import Work
from polyseme.kernel.arrays import Ints
from polyseme.tables.distinct import all_counts
from polyseme.tables.io.source import CountedRows, Source

__all__ = ["Compressed", "WorkersHere"]

_COUNT, _ROW = "\0count", "\0row"


class Compressed(Source):
    """Distinct rows with counts, shuffled, and with the counts of a row spread over several batches.

    most  batches that rows are spread over
    whole  whether rows can be read one by one as well; who tries that otherwise fails
    """

    wraps = True

    def __init__(self, source: Source, seed: int = 0, most: int = 3, whole: bool = False) -> None:
        self._source, self._seed, self._most, self._whole = source, seed, most, whole
        self.name, self.typed = source.name, source.typed

    @property
    def schema(self) -> pa.Schema:
        return self._source.schema

    def _read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        if not self._whole:
            raise AssertionError(f"{self.name}: rows are read one by one where only their counts are at hand")
        yield from self._source.batches(columns)

    def counted(self, columns: Sequence[str] | None = None) -> Iterator[CountedRows]:
        names = list(self.schema.names if columns is None else columns)
        parts = list(self._source.counted(names))
        if not parts:
            return
        table = pa.Table.from_batches([batch for batch, _ in parts])
        counts = all_counts([(batch.num_rows, number) for batch, number in parts])
        first, number = _distinct(table, counts)
        generator = np.random.default_rng(self._seed)
        shares = (
            generator.multinomial(number, np.full(self._most, 1.0 / self._most)) if len(number) else number[:, None]
        )
        for share in shares.T:
            some = generator.permutation(np.flatnonzero(share))
            for batch in table.take(pa.array(first[some])).combine_chunks().to_batches():
                yield batch, share[some].astype(np.int64)


def _distinct(table: pa.Table, counts: Ints | None) -> tuple[Ints, Ints]:
    """A row of each kind, and how many records are like it."""
    frame = pl.DataFrame(pl.from_arrow(table))
    number = np.ones(frame.height, dtype=np.int64) if counts is None else counts
    marked = frame.with_columns(pl.Series(_COUNT, number), pl.Series(_ROW, np.arange(frame.height)))
    found = marked.group_by(frame.columns, maintain_order=True).agg(pl.col(_COUNT).sum(), pl.col(_ROW).first())
    return found[_ROW].to_numpy(), found[_COUNT].to_numpy()


Found = TypeVar("Found")


@dataclass(frozen=True, eq=False)
class WorkersHere:
    """Reads a table on every call; functions are pickled on their way."""

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
