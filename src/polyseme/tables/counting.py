"""Counting tables of any size: identical rows are grouped while they stream by, so memory follows the distinct ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa

from polyseme.distances.structure import Ints
from polyseme.errors import Problem, ReleaseError
from polyseme.schema import Domain
from polyseme.tables.codes import as_series
from polyseme.tables.sets import code_sets

__all__ = ["Grouped", "Target", "group_codes", "group_sets"]

_REGROUP_ROWS = 2_000_000
_KEY_LIMIT = 1 << 62
_COUNT = "__count__"


@dataclass(frozen=True)
class Target:
    """A protected column of a release: its name, its domain and how many candidates each set has."""

    name: str
    domain: Domain
    width: int


@dataclass(frozen=True, eq=False)
class Grouped:
    """Distinct combinations with their counts.

    cells   the distinct values of the untouched columns, sorted: one row a cell
    cell    the row of `cells` each combination belongs to: (n,)
    sets    one (n, width) array of codes for each target
    counts  how many rows had this combination: (n,)
    """

    cells: pl.DataFrame
    cell: Ints
    sets: tuple[Ints, ...]
    counts: Ints


def group_sets(batches: Iterable[pa.RecordBatch], targets: Sequence[Target], by: Sequence[str]) -> Grouped:
    """Distinct published sets within cells of the untouched columns."""
    packing = _Packing([target.domain.size for target in targets for _ in range(target.width)])
    frames = (_frame(batch, targets, by, packing) for batch in batches)
    return _finish(_grouped(frames), packing, [target.width for target in targets], by)


def group_codes(frames: Iterable[pl.DataFrame], columns: Mapping[str, int], by: Sequence[str]) -> Grouped:
    """Distinct combinations of coded columns (true values) within cells of the untouched ones.

    columns  the coded columns, with the size of each one's domain
    """
    packing = _Packing(list(columns.values()))
    renamed = (
        pl.DataFrame(
            [frame[name].alias(_by(index)) for index, name in enumerate(by)]
            + packing.pack([frame[name].to_numpy() for name in columns])
        )
        for frame in frames
    )
    return _finish(_grouped(renamed), packing, [1] * len(columns), by)


def _by(index: int) -> str:
    return f"by {index}"


class _Packing:
    """Several small codes as digits of few 64-bit keys, which are quicker to group by.

    sizes  how many values each code can have
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = sizes
        self.keys: list[list[int]] = []
        room = 0
        for place, size in enumerate(sizes):
            if size > room:
                self.keys.append([])
                room = _KEY_LIMIT
            self.keys[-1].append(place)
            room //= max(size, 1)

    @property
    def names(self) -> list[str]:
        return [f"of {index}" for index in range(len(self.keys))]

    def pack(self, columns: Sequence[Ints]) -> list[pl.Series]:
        packed = []
        for name, places in zip(self.names, self.keys):
            key = np.zeros(len(columns[places[0]]), dtype=np.int64)
            for place in places:
                key *= self.sizes[place]
                key += columns[place]
            packed.append(pl.Series(name, key))
        return packed

    def unpack(self, frame: pl.DataFrame) -> list[Ints]:
        columns: list[Ints] = [np.zeros(0, dtype=np.int64)] * len(self.sizes)
        for name, places in zip(self.names, self.keys):
            key = frame[name].to_numpy().astype(np.int64)
            for place in reversed(places):
                key, columns[place] = np.divmod(key, self.sizes[place])
        return columns


def _frame(batch: pa.RecordBatch, targets: Sequence[Target], by: Sequence[str], packing: _Packing) -> pl.DataFrame:
    columns = [as_series(batch.column(name)).alias(_by(index)) for index, name in enumerate(by)]
    members: list[Ints] = []
    for target in targets:
        sets = code_sets(batch.column(target.name), target.domain).regular(target.width)
        if sets is None:
            raise ReleaseError(
                Problem(f"column '{target.name}'", f"not every cell holds {target.width} candidates of the domain"),
                "run polyseme verify to see what is wrong",
            )
        members += [sets[:, place] for place in range(target.width)]
    return pl.DataFrame(columns + packing.pack(members))


def _grouped(frames: Iterator[pl.DataFrame]) -> pl.DataFrame:
    waiting: list[pl.DataFrame] = []
    rows = 0
    limit = _REGROUP_ROWS
    for frame in frames:
        waiting.append(frame.group_by(pl.all()).len(_COUNT))
        rows += waiting[-1].height
        if rows > limit:
            waiting = [_merge(waiting)]
            rows = waiting[0].height
            # When most rows are distinct, merging more often would only repeat work.
            limit = max(_REGROUP_ROWS, 2 * rows)
    return _merge(waiting) if waiting else pl.DataFrame()


def _merge(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    whole = pl.concat(frames, how="vertical_relaxed")
    return whole.group_by(pl.exclude(_COUNT)).agg(pl.col(_COUNT).sum())


def _finish(frame: pl.DataFrame, packing: _Packing, widths: Sequence[int], by: Sequence[str]) -> Grouped:
    names = [_by(index) for index in range(len(by))]
    if frame.is_empty():
        empty = np.zeros(0, dtype=np.int64)
        sets = tuple(np.zeros((0, width), dtype=np.int64) for width in widths)
        return Grouped(pl.DataFrame(schema=dict.fromkeys(by, pl.String)), empty, sets, empty)
    if by:
        cells = frame.select(names).unique().sort(names, nulls_last=True)
        frame = frame.join(cells.with_row_index("cell"), on=names, how="left", nulls_equal=True)
    else:
        cells = pl.DataFrame({"cell": [0]}).select([])
        frame = frame.with_columns(cell=pl.lit(0))
    frame = frame.sort("cell", *packing.names)
    members = packing.unpack(frame)
    ends = np.cumsum(widths)
    return Grouped(
        cells.rename(dict(zip(names, by))) if by else cells,
        frame["cell"].to_numpy().astype(np.int64),
        tuple(np.column_stack(members[end - width : end]) for end, width in zip(ends, widths)),
        frame[_COUNT].to_numpy().astype(np.int64),
    )
