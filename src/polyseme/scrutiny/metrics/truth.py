"""The true cross-tabulations of an original table, in the domains and cells of its release."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from polyseme.inference.questions.counts import WEIGHT, match_cells
from polyseme.inference.questions.question import domain_of, has_domain, targets_of
from polyseme.kernel.arrays import Bools, Floats, Ints
from polyseme.kernel.errors import Problem, QuestionError, TableError
from polyseme.release import Column, Generalized, Manifest, Release, Sets
from polyseme.schema import Domain
from polyseme.tables.codes import as_series, encode
from polyseme.tables.groups import CodeCounting, Grouped
from polyseme.tables.io.source import Source
from polyseme.tables.readings import read_weights

__all__ = ["Truth"]


class Truth:
    """The cross-tabulations of the original that some questions ask for, from one reading.

    questions  the attributes of each
    weight     the column of survey weights that are summed up; None where records are counted
    """

    def __init__(
        self, release: Release, source: Source, questions: Sequence[Sequence[str]], weight: str | None = None
    ) -> None:
        self.release, self.source, self.questions = release, source, [tuple(of) for of in questions]
        self.weight = weight
        self._counted: dict[tuple[str, ...], dict[tuple[str, ...], Grouped]] = {}

    def table(self, of: Sequence[str], cells_by: Mapping[str, Sequence[Any]]) -> Floats:
        """One of them in the release's domains and cells: (cells, F_1, ..., F_q).

        cells_by  the cells of an estimate: for each untouched attribute, its value in every cell
        """
        by = tuple(cells_by)
        if by not in self._counted:
            self._counted[by] = self._count(by)
        return _in_cells(self.release, self.source, of, self._counted[by][tuple(of)], cells_by)

    def _count(self, by: tuple[str, ...]) -> dict[tuple[str, ...], Grouped]:
        counting, wanted = {}, {column.name: column for column in self.release.manifest.columns if _secret(column)}
        for of in self.questions:
            targets = targets_of(self.release, of, by)
            cells = by if self.weight is None else (*by, WEIGHT)
            sizes = {item.name: domain_of(item).size for item in targets}
            counting[of] = CodeCounting(sizes, cells, len(self.questions))
            wanted.update({item.name: item for item in targets})
        _require_columns(self.source, (*wanted, *by, *(() if self.weight is None else (self.weight,))))
        labels = {name: _labels(self.release, self.source, name) for name in by}
        for frame, number in _coded(self.source, self.release.manifest, list(wanted.values()), labels, self.weight):
            for one in counting.values():
                one.add(frame, number)
        return {of: one.grouped() for of, one in counting.items()}


def _secret(column: Column) -> bool:
    """Whether records without a value of this column were left out."""
    return isinstance(column, Sets) or (column.attribute.role.is_secret and has_domain(column))


def _require_columns(source: Source, names: Sequence[str]) -> None:
    absent = [name for name in names if name not in source.schema.names]
    if absent:
        raise TableError(
            Problem(source.name, f"no column '{name}'", "is this the table that was released?") for name in absent
        )


def _labels(release: Release, source: Source, name: str) -> Mapping[str, str] | None:
    """The label of each value of a column used in `by`; None where values are shown unchanged.

    Where records with the same value may show different labels, only the publisher of the release knows which record
    has which, and the original does not say it.
    """
    column, applied = release.manifest[name], release.manifest.applied
    if not isinstance(column, Generalized) or column.level == 0:
        return None
    labels = {leaf: label for label, leaves in column.stands_for.items() for leaf in leaves}
    suppressed = applied is not None and applied.suppressed > 0 and not applied.withheld
    if not labels or suppressed or len(labels) < sum(len(leaves) for leaves in column.stands_for.values()):
        reason = "some records are suppressed" if suppressed else "records with one value may show different labels"
        raise QuestionError(
            Problem(
                "by",
                f"'{name}' is generalized, and the original does not say what a record shows in its place: "
                + (reason if labels else "the release does not list which values a label stands for"),
                f"evaluate without --by {name}",
            )
        )
    return labels


def _in_cells(
    release: Release, source: Source, of: Sequence[str], grouped: Grouped, cells_by: Mapping[str, Sequence[Any]]
) -> Floats:
    """What was counted in the original, in the cells of the release."""
    by, cells = tuple(cells_by), pl.DataFrame(dict(cells_by))
    shape = [domain_of(item).size for item in targets_of(release, of, by)]
    place = match_cells(grouped.cells, cells, by, release.manifest.missing_values)[grouped.cell]
    table = np.zeros((max(cells.height, 1), *shape))
    kept = place >= 0
    where = (place[kept], *(codes[kept, 0] for codes in grouped.sets))
    np.add.at(table, where, grouped.counts[kept])
    applied = release.manifest.applied
    # Which records were left out is not known: the original has them, and the estimates lack them.
    left_out = applied.suppressed if applied is not None and applied.withheld else 0
    if table.sum() != release.manifest.records + left_out:
        raise TableError(
            f"{source.name}: {table.sum():,.0f} records fit the release, which has {release.manifest.records:,}"
            + (f", and {left_out:,} that were left out" if left_out else ""),
            "is this the table that was released?",
        )
    if WEIGHT in grouped.cells.columns:
        table[:] = 0.0
        weights = grouped.cells[WEIGHT].to_numpy()[grouped.cell]
        np.add.at(table, where, grouped.counts[kept] * weights[kept])
    return table


def _coded(
    source: Source,
    manifest: Manifest,
    wanted: Sequence[Column],
    labels: Mapping[str, Mapping[str, str] | None],
    weight: str | None = None,
) -> Iterator[tuple[pl.DataFrame, Ints | None]]:
    """The original as codes with how many records have them (None for one).

    Without the records that the release left out: those with any missing secret value.

    labels  for each column of `by`, the labels of its values
    weight  the column of survey weights, where they are needed
    """
    weights = [] if weight is None else [weight]
    for batch, number in source.counted(list(dict.fromkeys([*labels, *weights, *(item.name for item in wanted)]))):
        columns = {name: _shown(as_series(batch.column(name)), by) for name, by in labels.items()}
        for name in weights:
            columns[WEIGHT] = pl.Series(read_weights(as_series(batch.column(name), manifest.missing_values))[0])
        kept, coded = np.ones(batch.num_rows, dtype=np.bool_), {}
        for item in wanted:
            truth = as_series(batch.column(item.name), manifest.missing_values).alias(item.name)
            codes = encode(truth, domain_of(item)).codes
            if _secret(item):
                kept &= codes >= 0
            if item.name not in labels:
                coded[item.name] = codes
        number = None if number is None else number[kept]
        _require_listed(coded, wanted, kept, number)
        yield pl.DataFrame({**columns, **coded}).filter(pl.Series(kept)), number


def _shown(series: pl.Series, labels: Mapping[str, str] | None) -> pl.Series:
    """A column of the original as the release shows it; null where no label covers the value."""
    if labels is None:
        return series
    codes = encode(series, Domain(tuple(labels))).codes
    texts = pl.Series([*labels.values(), None], dtype=pl.String)
    return texts.gather(np.where(codes < 0, len(labels), codes)).alias(series.name)


def _require_listed(coded: Mapping[str, Ints], wanted: Sequence[Column], kept: Bools, number: Ints | None) -> None:
    each = np.ones(int(kept.sum()), dtype=np.int64) if number is None else number
    missing = {
        item.name: int(each[coded[item.name][kept] < 0].sum())
        for item in wanted
        if isinstance(item, Generalized) and item.name in coded
    }
    if any(missing.values()):
        raise TableError(
            Problem(f"column '{name}'", f"{count:,} records have a value that no label of the release stands for")
            for name, count in missing.items()
            if count
        )
