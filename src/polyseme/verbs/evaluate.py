"""`evaluate`: what is estimated from a release against the original table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Never

import numpy as np
import polars as pl

from polyseme.arrays import Floats
from polyseme.distances.line import LineDistance
from polyseme.errors import Problem, TableError
from polyseme.estimators.base import Estimator, Population
from polyseme.estimators.options import EstimateOptions, Nonnegative, refuse_unknown
from polyseme.logs import logged
from polyseme.metrics import as_grid, compare, learning, query_error
from polyseme.release import Manifest, Release
from polyseme.release.counts import SetCounts
from polyseme.results.evaluation import Evaluation
from polyseme.tables.coding.codes import as_series, encode
from polyseme.tables.counting.groups import CodeCounting, Grouped
from polyseme.tables.io.source import Source, open_table
from polyseme.tables.joined import with_joined
from polyseme.verbs.combinations import asks_members
from polyseme.verbs.estimate import ask
from polyseme.verbs.grouping import match_cells
from polyseme.verbs.inputs import names_given, release_given
from polyseme.verbs.questions import targets_of

__all__ = ["Truth", "evaluate"]


@logged
def evaluate(
    release: Release | str | Path,
    original: Any,
    of: Sequence[str] = (),
    by: Sequence[str] = (),
    using: Sequence[str] = (),
    *,
    separator: str | None = None,
    encoding: str = "utf-8",
    learn: bool = False,
    estimator: str | Estimator | None = None,
    level: float = 0.95,
    population: Population = "finite",
    nonnegative: Nonnegative = "no",
    **unknown: Never,
) -> Evaluation:
    """Compare what is estimated from a release with the original table; separator and encoding as for `init`.

    learn    also train predictors of the attribute from those of `by`, on both tables (needs scikit-learn)

    The other options are those of `estimate`.
    """
    refuse_unknown(unknown, "separator", "encoding", "learn")
    options = EstimateOptions(estimator, level, population, nonnegative)
    opened = release_given(release)
    published = opened.manifest.schema.attributes
    source = with_joined(open_table(original, separator, encoding), published, opened.manifest.missing_values)
    questions = [names_given(of)] if of else [(item.name,) for item in opened.manifest.sets]
    combined = asks_members(opened.manifest, names_given(of)) if of else None
    original_tables = Truth(opened, source, [combined.columns] if combined is not None else questions)
    counts = SetCounts(opened, names_given(by)) if not of else None
    tables, learned = {}, {}
    for names in questions:
        estimated = ask(opened, names, names_given(by), names_given(using), options, counts)
        truth = original_tables.table(combined.columns if combined is not None else names, estimated.by)
        truth = combined.summed(truth) if combined is not None else truth
        title = _title(names, names_given(by))
        tables[title] = compare(truth, estimated.values, opened.manifest.records)
        boxes, guesses = as_grid(truth, estimated.by), as_grid(estimated.values, estimated.by)
        if boxes is not None and guesses is not None:
            tables[title]["query_error"] = query_error(boxes, guesses).mean
        if learn:
            distance = opened.manifest[names[0]].attribute.distance if combined is None else None
            positions = distance.positions if isinstance(distance, LineDistance) else None
            learned[title] = learning(truth, estimated.values, estimated.by, positions)
    return Evaluation(tables, learned)


def _title(of: Sequence[str], by: Sequence[str]) -> str:
    return " x ".join(of) + (f" by {', '.join(by)}" if by else "")


class Truth:
    """The cross-tabulations of the original table that some questions ask for; one reading answers all of them.

    questions  the attributes of each
    """

    def __init__(self, release: Release, source: Source, questions: Sequence[Sequence[str]]) -> None:
        self.release, self.source, self.questions = release, source, [tuple(of) for of in questions]
        self._counted: dict[tuple[str, ...], dict[tuple[str, ...], Grouped]] = {}

    def table(self, of: Sequence[str], cells_by: Mapping[str, Sequence[Any]]) -> Floats:
        """One of them in the release's domains and cells: (cells, F_1, .., F_q).

        cells_by  the cells of an estimate: for each untouched attribute, its value in every cell
        """
        by = tuple(cells_by)
        if by not in self._counted:
            self._counted[by] = self._count(by)
        return _in_cells(self.release, self.source, of, self._counted[by][tuple(of)], cells_by)

    def _count(self, by: tuple[str, ...]) -> dict[tuple[str, ...], Grouped]:
        _require_columns(self.release, self.source, by)
        counting = {}
        for of in self.questions:
            sizes = {item.name: item.domain.size for item in targets_of(self.release, of, by)}
            counting[of] = CodeCounting(sizes, by, len(self.questions))
        for frame in _coded(self.source, self.release.manifest, by):
            for one in counting.values():
                one.add(frame)
        return {of: one.grouped() for of, one in counting.items()}


def _require_columns(release: Release, source: Source, by: Sequence[str]) -> None:
    protected = [item.name for item in release.manifest.sets]
    absent = [name for name in (*protected, *by) if name not in source.schema.names]
    if absent:
        raise TableError(
            Problem(source.name, f"no column '{name}'", "is this the table that was released?") for name in absent
        )


def _in_cells(
    release: Release, source: Source, of: Sequence[str], grouped: Grouped, cells_by: Mapping[str, Sequence[Any]]
) -> Floats:
    """What was counted in the original, in the cells of the release."""
    by, cells = tuple(cells_by), pl.DataFrame(dict(cells_by))
    shape = [item.domain.size for item in targets_of(release, of, by)]
    place = match_cells(grouped.cells, cells, by, release.manifest.missing_values)[grouped.cell]
    table = np.zeros((max(cells.height, 1), *shape))
    kept = place >= 0
    np.add.at(table, (place[kept], *(codes[kept, 0] for codes in grouped.sets)), grouped.counts[kept])
    if table.sum() != release.manifest.records:
        raise TableError(
            f"{source.name}: {table.sum():,.0f} records fit the release, which has {release.manifest.records:,}",
            "is this the table that was released?",
        )
    return table


def _coded(source: Source, manifest: Manifest, by: Sequence[str]) -> Iterator[pl.DataFrame]:
    """The original as codes, without the records that the release left out: those with any missing protected value."""
    protected = manifest.sets
    for batch in source.batches([*by, *(item.name for item in protected)]):
        columns = {name: as_series(batch.column(name)) for name in by}
        columns_of_truth = [
            as_series(batch.column(item.name), manifest.missing_values).alias(item.name) for item in protected
        ]
        codes = [encode(column, item.domain).codes for column, item in zip(columns_of_truth, protected)]
        kept = np.all([column >= 0 for column in codes], axis=0)
        coded = {item.name: pl.Series(column) for item, column in zip(protected, codes)}
        yield pl.DataFrame({**columns, **coded}).filter(pl.Series(kept))
