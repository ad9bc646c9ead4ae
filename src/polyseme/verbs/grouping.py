"""The published sets of a release, counted within cells of its untouched columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import polars as pl
import pyarrow as pa

from polyseme.arrays import Floats, Ints, arrow
from polyseme.errors import Problem, QuestionError, ReleaseError, numbered
from polyseme.estimators.auxiliary import MOST_KINDS
from polyseme.release import Release, Sets
from polyseme.release.counts import SetCounts, stratum_column, target_of
from polyseme.strata import Strata
from polyseme.tables.coding.codes import as_series
from polyseme.tables.coding.readings import alike
from polyseme.tables.coding.weights import read_weights
from polyseme.tables.counting.groups import Grouped, group_sets
from polyseme.tables.counting.kinds import CandidateKinds, Kinds, kinds_of

__all__ = [
    "WEIGHT",
    "Mark",
    "Weights",
    "coarser_cells",
    "grouped_sets",
    "marks_of",
    "match_cells",
    "published_counts",
]

WEIGHT = "\0weight"
"""The name of the column that says what each record weighs."""


@dataclass(frozen=True)
class Weights:
    """The survey weight of each record, as a mark."""

    name: str

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.name,)

    def places(self, columns: Mapping[str, pa.Array], rows: int) -> Floats:
        """What each record weighs."""
        weights, flaws = read_weights(as_series(columns[self.name]))
        if flaws:
            raise ReleaseError(
                Problem(f"column '{self.name}'", numbered(count, what), "--unweighted counts the records instead")
                for (what, _), count in flaws.items()
            )
        return weights


Mark: TypeAlias = Strata | Kinds | CandidateKinds | Weights
"""What tells records apart beside the columns of a question."""


def marks_of(release: Release, targets: Sequence[Sets], using: Sequence[str]) -> dict[str, Mark]:
    """What tells records apart beside the columns of `by`: strata with their own mechanisms, and columns that help."""
    marks: dict[str, Mark] = {stratum_column(item): item.strata for item in targets if item.stratified}
    protected = {item.name: item for item in release.manifest.sets}
    untouched = [name for name in using if name not in protected]
    kinds = kinds_of(release.counted(untouched), untouched, MOST_KINDS) if untouched else {}
    for name in using:
        if name in protected:
            target = target_of(release, protected[name])
            marks[_kind(name)] = CandidateKinds.of(target, published_counts(release, name)[0], MOST_KINDS)
        else:
            marks[_kind(name)] = kinds[name]
    return marks


def _kind(name: str) -> str:
    """The name of the column that says of which kind each record is in a column that helps."""
    return f"\0kind of {name}"


def grouped_sets(
    release: Release,
    targets: Sequence[Sets],
    by: Sequence[str],
    marks: Mapping[str, Mark],
    counts: SetCounts | None = None,
) -> Grouped:
    """Distinct sets within cells of untouched attributes and marks."""
    if counts is not None and len(targets) == 1 and counts.answers(by) and _only_strata(marks):
        return counts.of(targets[0], by)
    deciding = [name for mark in marks.values() for name in mark.columns]
    columns = dict.fromkeys([*by, *deciding, *(item.name for item in targets)])
    rows = release.counted(list(columns))
    wanted = [target_of(release, item) for item in targets]
    marked = ((_marked(batch, marks), number) for batch, number in rows) if marks else rows
    return group_sets(marked, wanted, (*by, *marks))


def _only_strata(marks: Mapping[str, Mark]) -> bool:
    return all(isinstance(mark, Strata) for mark in marks.values())


def _marked(batch: pa.RecordBatch, marks: Mapping[str, Mark]) -> pa.RecordBatch:
    for name, mark in marks.items():
        columns = {column: batch.column(column) for column in mark.columns}
        batch = batch.append_column(name, arrow(mark.places(columns, batch.num_rows)))
    return batch


def coarser_cells(cells: pl.DataFrame, by: Sequence[str]) -> tuple[pl.DataFrame, Ints]:
    """The distinct cells of `by` alone, and which of them each of the sorted cells belongs to."""
    if not by:
        return cells.select([]), np.zeros(max(cells.height, 1), dtype=np.int64)
    coarse = cells.select(by).unique(maintain_order=True)
    return coarse, match_cells(cells, coarse, by)


def match_cells(
    found: pl.DataFrame, wanted: pl.DataFrame, by: Sequence[str], missing_values: Sequence[str] = ()
) -> Ints:
    """Where each cell of the original stands among the release's cells; -1 where it does not."""
    if not by:
        return np.zeros(max(found.height, 1), dtype=np.int64)
    pairs = {name: alike(found[name], wanted[name], missing_values) for name in by}
    left, right = (pl.DataFrame({name: pair[side] for name, pair in pairs.items()}) for side in (0, 1))
    places = right.with_row_index("\0place")
    joined = left.join(places, on=list(by), how="left", nulls_equal=True, maintain_order="left")
    return joined["\0place"].cast(pl.Int64).fill_null(-1).to_numpy()


def published_counts(
    release: Release, attribute: str, by: str | None = None, counts: SetCounts | None = None
) -> Floats:
    """How often each value stands among the candidates, as a naive reader would count: (cells, F), cells sorted.

    Counts are divided by l, so that a cell adds up to its number of records.
    """
    item = release.manifest[attribute]
    if not isinstance(item, Sets):
        raise QuestionError(f"'{attribute}' is published {item.in_words}")
    names = (by,) if by else ()
    grouped = grouped_sets(release, [item], names, marks_of(release, [item], ()), counts)
    cells, cell = coarser_cells(grouped.cells, names)
    width, groups = grouped.sets[0].shape[1], max(cells.height, 1)
    place = np.repeat(cell[grouped.cell], width) * item.domain.size + grouped.sets[0].ravel()
    weights = np.repeat(grouped.counts, width).astype(np.float64)
    held = np.bincount(place, weights, minlength=groups * item.domain.size).reshape(groups, -1)
    return np.asarray(held * (release.manifest.records / max(float(held.sum()), 1.0)), dtype=np.float64)
