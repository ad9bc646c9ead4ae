"""From records with sets of codes to published rows: the long form, and labels in place of codes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import polars as pl
import pyarrow as pa

from polyseme.arrays import Ints, arrow
from polyseme.engines.batch import Job
from polyseme.release import Sets
from polyseme.tables.coding.codes import code_array, set_array
from polyseme.tables.coding.dictionaries import Levels

__all__ = ["expanded", "labelled"]


def expanded(job: Job, batch: pa.RecordBatch, rows: int) -> Iterator[pa.RecordBatch]:
    """A published batch itself; in the long form, all combinations of candidates, so many rows at a time."""
    if job.form == "set":
        yield batch
        return
    widths = {item.name: item.l for item in job.sets}
    total = batch.num_rows * job.rows_per_record
    for start in range(0, total, rows):
        record, place = np.divmod(np.arange(start, min(start + rows, total)), job.rows_per_record)
        picks = dict(zip(widths, np.unravel_index(place, tuple(widths.values()))))
        yield _rows(job, batch, record, picks)


def _rows(job: Job, batch: pa.RecordBatch, record: Ints, picks: Mapping[str, Ints]) -> pa.RecordBatch:
    """The given records, with one candidate of each set."""
    columns = [
        arrow(_members(column, item.l)[record, picks[item.name]])
        if isinstance(item, Sets)
        else column.take(arrow(record))
        for item, column in zip(job.columns, batch.columns)
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _members(column: pa.Array, l: int) -> Ints:
    """Sets of codes: (n, l)."""
    members: Ints = pl.Series(column.flatten()).to_numpy()
    return members.reshape(-1, l)


def labelled(job: Job, table: pa.Table, levels: Levels) -> pa.Table:
    """Published rows with the labels of the domain in place of codes, and categories rebuilt.

    levels  of the whole table
    """
    for index, item in enumerate(job.columns):
        if item.name in job.labels or item.name in job.categories:
            column = table.column(index).combine_chunks()
            table = table.set_column(index, item.name, _column(job, item.name, column, levels))
    return table


def _column(job: Job, name: str, column: pa.Array, levels: Levels) -> pa.Array:
    if name not in job.labels:
        return levels.encode(name, column) if name in levels else column.dictionary_encode()
    if pa.types.is_fixed_size_list(column.type):
        return set_array(_members(column, column.type.list_size), job.labels[name])
    return code_array(pl.Series(column).to_numpy(), job.labels[name])
