"""Distinct rows with how many records have each, for tables whose rows come one by one or counted already."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import polars as pl

from polyseme.arrays import Ints
from polyseme.tables.coding.codes import as_series
from polyseme.tables.io.source import CountedRows

__all__ = ["all_counts", "distinct_rows", "frame_of", "merged_rows"]


def distinct_rows(frame: pl.DataFrame, counts: Ints | None, name: str) -> pl.DataFrame:
    """The distinct rows of a frame, and in the column `name` how many records have each.

    counts  how many each row of the frame stands for; None for one

    >>> rows = pl.DataFrame({"city": ["Oslo", "Rome", "Oslo"]})
    >>> distinct_rows(rows, np.array([1, 4, 2]), "people").sort("city")["people"].to_list()
    [3, 4]
    """
    if counts is None:
        return frame.group_by(pl.all()).agg(pl.len().cast(pl.Int64).alias(name))
    return merged_rows([frame.with_columns(pl.Series(name, counts, dtype=pl.Int64))], name)


def merged_rows(frames: Sequence[pl.DataFrame], name: str) -> pl.DataFrame:
    """What several frames of distinct rows have in all."""
    whole = pl.concat(frames, how="vertical_relaxed")
    return whole.group_by(pl.exclude(name)).agg(pl.col(name).sum())


def frame_of(
    rows: Iterable[CountedRows], names: Sequence[str], missing_values: Sequence[str] = ()
) -> tuple[pl.DataFrame, Ints | None]:
    """All rows as one frame, and how many records each stands for; None for one.

    missing_values  words that stand for a missing value
    """
    frames, numbers = [], []
    for batch, counts in rows:
        frames.append(
            pl.DataFrame({name: as_series(batch.column(place), missing_values) for place, name in enumerate(names)})
        )
        numbers.append((batch.num_rows, counts))
    whole = pl.concat(frames) if frames else pl.DataFrame(schema=dict.fromkeys(names, pl.String))
    return whole, all_counts(numbers)


def all_counts(parts: Sequence[tuple[int, Ints | None]]) -> Ints | None:
    """The counts of several batches one after the other, given with their numbers of rows; None if there are none."""
    if all(counts is None for _, counts in parts):
        return None
    known = [np.ones(rows, dtype=np.int64) if counts is None else counts for rows, counts in parts]
    return np.concatenate(known).astype(np.int64)
