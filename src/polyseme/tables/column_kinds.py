"""Few kinds of a column's values: they distinguish groups without single values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa

from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.errors import Problem, QuestionError
from polyseme.tables.codes import as_series
from polyseme.tables.distinct import distinct_rows, merged_rows
from polyseme.tables.groups import Target
from polyseme.tables.io.source import CountedRows

__all__ = ["CandidateKinds", "Kinds", "kinds_of"]

MOST_VALUES = 1_000_000
"""A column with more values names persons; nothing about groups can be learned from it."""
_NEARLY = 0.95
"""A judgment: a column of texts that are nearly all numbers is a column of numbers with a few words for 'missing'."""
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
    """The kind of a record by its set: the candidate that is published most often.

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


def kinds_of(rows: Iterable[CountedRows], columns: Sequence[str], most: int) -> Mapping[str, Kinds]:
    """Kinds of the values of each column, at most so many.

    Numbers and times are cut into stretches of about equally many records; of other values the most frequent are kinds
    of their own.
    """
    nothing = pl.DataFrame(schema={_VALUE: pl.Null, _COUNT: pl.Int64})
    counts = dict.fromkeys(columns, nothing)
    for batch, number in rows:
        for name in columns:
            here = distinct_rows(as_series(batch.column(name)).to_frame(_VALUE), number, _COUNT)
            counts[name] = merged_rows([counts[name], here], _COUNT)
        crowded = [name for name in columns if counts[name].height > MOST_VALUES]
        if crowded:
            raise QuestionError(
                Problem(
                    "using",
                    f"'{name}' has more than {MOST_VALUES:,} values: it identifies people",
                    "publish it in intervals, or leave it out",
                )
                for name in crowded
            )
    return {name: _kinds(name, found, most) for name, found in counts.items()}


def _kinds(name: str, counts: pl.DataFrame, most: int) -> Kinds:
    # Whatever comes next may not depend on the order in which values were met.
    counts = counts.sort(_COUNT, _VALUE, descending=[True, False], nulls_last=True)
    along = _along(counts)
    kind = np.minimum(np.arange(counts.height), most - 1) if along is None else _stretches(along, counts, most)
    return Kinds(name, counts.select(_VALUE).with_columns(pl.Series(_KIND, kind)))


def _along(counts: pl.DataFrame) -> pl.Series | None:
    """Where the values stand on a line, null where they do not; None where they have no order.

    Numbers and days may be written as text, if nearly all records have one.
    """
    values, records = counts[_VALUE], counts[_COUNT].to_numpy()
    if values.dtype.is_float():
        return values.fill_nan(None)
    if values.dtype.is_numeric() or values.dtype.is_temporal():
        return values
    if values.dtype == pl.String:
        words = records[values.is_not_null().to_numpy()].sum()
        for along in (
            values.cast(pl.Float64, strict=False).fill_nan(None),
            values.str.to_date("%Y-%m-%d", strict=False),
        ):
            if 0 < _NEARLY * words <= records[along.is_not_null().to_numpy()].sum():
                return along
    return None


def _stretches(along: pl.Series, counts: pl.DataFrame, most: int) -> Ints:
    """The stretch of each value, so that all have about equally many records; what stands nowhere is one more kind."""
    known = along.is_not_null().to_numpy()
    rank = along.rank("dense").fill_null(1).to_numpy().astype(np.int64) - 1
    records = np.bincount(rank[known], counts[_COUNT].to_numpy()[known], minlength=1)
    most -= int(not known.all())
    stretch = np.arange(len(records))
    if len(records) > most:
        middle = np.cumsum(records) - records / 2.0
        stretch = np.unique(np.floor(middle / records.sum() * most), return_inverse=True)[1]
    return np.where(known, stretch[rank], stretch.max() + 1 if known.any() else 0).astype(np.int64)
