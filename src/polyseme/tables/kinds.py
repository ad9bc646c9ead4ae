"""Few kinds of the values of a column: what tells groups of records apart without telling every value apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa

from polyseme.distances.structure import Floats, Ints
from polyseme.errors import Problem, QuestionError
from polyseme.tables.codes import as_series
from polyseme.tables.counting import Target

__all__ = ["CandidateKinds", "Kinds", "kinds_of"]

MOST_VALUES = 1_000_000
_VALUE, _COUNT, _KIND = "value", "count", "kind"


@dataclass(frozen=True, eq=False)
class Kinds:
    """The kind of every value of a column.

    table  one row for each value, with its kind
    """

    name: str
    table: pl.DataFrame

    @property
    def columns(self) -> tuple[str, ...]:
        """What decides the kind of a record."""
        return (self.name,)

    def places(self, columns: Mapping[str, pa.Array], rows: int) -> Ints:
        """The kind of each record: (rows,)."""
        column = as_series(columns[self.name]).cast(self.table.schema[_VALUE]).to_frame(_VALUE)
        joined = column.join(self.table, on=_VALUE, how="left", nulls_equal=True, maintain_order="left")
        return joined[_KIND].to_numpy().astype(np.int64)


@dataclass(frozen=True, eq=False)
class CandidateKinds:
    """The kind of a record by its set in a protected column: the one of its candidates that is published most often.

    rank  of each value of the domain, the most often published first
    most  kinds there may be
    """

    target: Target
    rank: Ints
    most: int

    @classmethod
    def of(cls, target: Target, published: Floats, most: int) -> CandidateKinds:
        """From how often each value of the domain is published."""
        rank = np.empty(len(published), dtype=np.int64)
        rank[np.argsort(-published, kind="stable")] = np.arange(len(published))
        return cls(target, rank, most)

    @property
    def name(self) -> str:
        return self.target.name

    @property
    def columns(self) -> tuple[str, ...]:
        """What decides the kind of a record."""
        return (self.name,)

    def places(self, columns: Mapping[str, pa.Array], rows: int) -> Ints:
        """The kind of each record: (rows,)."""
        first = self.rank[self.target.sets(columns[self.name])].min(axis=1)
        return np.asarray(np.minimum(first, self.most - 1), dtype=np.int64)


def kinds_of(batches: Iterable[pa.RecordBatch], columns: Sequence[str], most: int) -> Mapping[str, Kinds]:
    """Kinds of the values of each column, at most so many.

    Numbers and times are cut into stretches of about equally many records; of other values the most frequent are kinds
    of their own.
    """
    nothing = pl.DataFrame(schema={_VALUE: pl.Null, _COUNT: pl.UInt32})
    counts = dict.fromkeys(columns, nothing)
    for batch in batches:
        for name in columns:
            here = as_series(batch.column(name)).to_frame(_VALUE).group_by(_VALUE).len(_COUNT)
            joined = pl.concat([counts[name], here], how="vertical_relaxed")
            counts[name] = joined.group_by(_VALUE).agg(pl.col(_COUNT).sum())
        crowded = [name for name in columns if counts[name].height > MOST_VALUES]
        if crowded:
            raise QuestionError(
                Problem(
                    "using", f"'{name}' has more than {MOST_VALUES:,} values: it tells persons apart", "leave it out"
                )
                for name in crowded
            )
    return {name: _kinds(name, found, most) for name, found in counts.items()}


def _kinds(name: str, counts: pl.DataFrame, most: int) -> Kinds:
    along = _along(counts[_VALUE])
    if along is None:
        counts = counts.sort(_COUNT, _VALUE, descending=[True, False], nulls_last=True)
        kind = np.minimum(np.arange(counts.height), most - 1)
    else:
        counts = counts.sort(along, nulls_last=True)
        kind = _stretches(counts[_COUNT].to_numpy(), most)
    return Kinds(name, counts.select(_VALUE).with_columns(pl.Series(_KIND, kind)))


def _along(values: pl.Series) -> pl.Series | None:
    """Where the values stand on a line; None where they have no order. Numbers and days may be written as text."""
    if values.dtype.is_numeric() or values.dtype.is_temporal():
        return values
    if values.dtype == pl.String:
        for along in (values.cast(pl.Float64, strict=False), values.str.to_date("%Y-%m-%d", strict=False)):
            if along.null_count() == values.null_count() < len(values):
                return along
    return None


def _stretches(counts: Ints, most: int) -> Ints:
    """The stretch of each of some ordered values, so that all have about equally many records."""
    if len(counts) <= most:
        return np.arange(len(counts))
    middle = np.cumsum(counts) - counts / 2.0
    stretch = np.floor(middle / counts.sum() * most)
    return np.asarray(np.unique(stretch, return_inverse=True)[1], dtype=np.int64)
