"""Questions to a release of classes or groups: what each record shows, counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from polyseme.inference.base import EstimateOptions
from polyseme.inference.classes.coarsened import Coarse, InGroups, Labeled, Meanings
from polyseme.inference.classes.estimate import CoarseEstimate, estimate_coarse
from polyseme.inference.questions.question import domain_of
from polyseme.kernel.arrays import Bools, Ints, arrow
from polyseme.kernel.errors import Problem, ReleaseError, numbered
from polyseme.release import Column, Generalized, Grouped, Manifest, Release
from polyseme.results.table import Target
from polyseme.semantics.hierarchies import TOP
from polyseme.tables.codes import as_series, label_array
from polyseme.tables.distinct import all_counts
from polyseme.tables.equivalence_classes import Counts
from polyseme.tables.groups import CodeCounting
from polyseme.tables.published import code_labels, code_sets

__all__ = ["ask_classes", "group_counts", "records_left_out", "suppression_notes"]

_HINT = "run polyseme verify to see what is wrong"


def ask_classes(
    release: Release, targets: Sequence[Column], by: Sequence[str], options: EstimateOptions
) -> CoarseEstimate:
    """The cross-tabulation of columns that are published as they are, generalized or by group."""
    release.require_rows()
    grouped = next((item for item in targets if isinstance(item, Grouped)), None)
    if grouped is None:
        coarse, cells = _labeled(release, targets, by)
    else:
        coarse, cells = _in_groups(release, grouped, targets, by)
    labels = [label_array(domain_of(item).values).to_pylist() for item in targets]
    table = estimate_coarse(coarse, [item.name for item in targets], labels, cells, options)
    return table.warned(*_unlike(release.manifest, targets, table.estimator))


def _unlike(manifest: Manifest, targets: Sequence[Column], estimator: str) -> tuple[str, ...]:
    """That suppressed records are not like those among whose values they are shared out."""
    if not _shows_suppressed(manifest) or not any(isinstance(item, Generalized) for item in targets):
        return ()
    if estimator == "ml":
        return ("suppressed records are shared out like the others, though it is rare ones that are suppressed",)
    return ("suppressed records are spread evenly over all values: nothing is known about them",)


def _shows_suppressed(manifest: Manifest) -> bool:
    applied = manifest.applied
    return applied is not None and bool(applied.suppressed) and not applied.withheld


def records_left_out(manifest: Manifest) -> int:
    """How many suppressed records are not in the release."""
    applied = manifest.applied
    return applied.suppressed if applied is not None and applied.withheld else 0


def suppression_notes(manifest: Manifest, by: Sequence[str], target: Target = "published") -> tuple[str, ...]:
    """What happened to suppressed records."""
    applied = manifest.applied
    if applied is None or not applied.suppressed:
        return ()
    if applied.withheld:
        what = f"{applied.suppressed:,} of {manifest.records + applied.suppressed:,} records are left out"
        if target == "table":
            return (what,)
        hint = "target: table (--target table) gives intervals for all of them"
        return (f"{what}, because of what they are: these are numbers of the published records; {hint}",)
    shown = [name for name in by if isinstance(manifest[name], Generalized)]
    if not shown:
        return ()
    cells = " and ".join(f"{name} {TOP}" for name in shown)
    return (f"{numbered(applied.suppressed, 'records are suppressed')}: in the cell {cells}",)


# -- as they are, and generalized ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Reading:
    """How a column's labels are read: as codes of labels, each standing for some values."""

    column: Column
    texts: Mapping[str | None, int]
    meanings: Meanings

    @classmethod
    def of(cls, column: Column) -> _Reading:
        domain = domain_of(column)
        if not isinstance(column, Generalized):
            return cls(column, {}, Meanings.themselves(domain.size))
        place = {leaf: code for code, leaf in enumerate(domain.values)}
        everything = list(range(domain.size))
        sets = [[place[leaf] for leaf in leaves] for leaves in column.stands_for.values()]
        texts: dict[str | None, int] = {label: code for code, label in enumerate(column.stands_for)}
        # A suppressed value may be any, and so may a missing one that has no label of its own.
        for label in (TOP, None):
            if label not in texts:
                texts[label] = len(sets)
                sets.append(everything)
        return cls(column, texts, Meanings.of(sets, domain.size, _numbers(domain.values)))

    def codes(self, shown: pa.Array) -> Ints:
        if isinstance(self.column, Generalized):
            series = as_series(shown).cast(pl.String)
            names, codes = list(self.texts), list(self.texts.values())
            found = series.replace_strict(names, codes, default=-1, return_dtype=pl.Int64).to_numpy()
        else:
            found = code_labels(shown, domain_of(self.column))
        if len(found) and found.min() < 0:
            what = "a label that the manifest does not list" if self.texts else "a value outside the domain"
            raise ReleaseError(Problem(f"column '{self.column.name}'", f"{what} is shown"), _HINT)
        return np.asarray(found, dtype=np.int64)


def _numbers(values: Sequence[object]) -> int:
    """How many values, from the first one on, are numbers in ascending order."""
    last, found = -inf, 0
    for value in values:
        try:
            number = float(str(value))
        except ValueError:
            break
        if not last < number < inf:
            break
        last, found = number, found + 1
    return found


def _labeled(release: Release, targets: Sequence[Column], by: Sequence[str]) -> tuple[Coarse, dict[str, list[Any]]]:
    hidden = _hidden(release.manifest, targets, by)
    readings = [_Reading.of(item) for item in (*targets, *hidden)]
    counting = CodeCounting({item.column.name: len(item.meanings.lengths) for item in readings}, by)
    for batch, number in release.counted([*by, *(item.column.name for item in readings)]):
        codes = {item.column.name: item.codes(batch.column(item.column.name)) for item in readings}
        counting.add(pl.DataFrame({**{name: as_series(batch.column(name)) for name in by}, **codes}), number)
    found = counting.grouped()
    labels = tuple(codes[:, 0] for codes in found.sets)
    meanings = [item.meanings for item in readings[: len(targets)]]
    # Values of the others need no finer distinction than the labels make.
    meanings += [item.meanings.merged(np.unique(used)) for item, used in list(zip(readings, labels))[len(targets) :]]
    cells = max(found.cells.height, 1)
    apart = _suppressed(readings, labels) if _shows_suppressed(release.manifest) else None
    coarse = Labeled(found.cell, labels, found.counts, cells, tuple(meanings), hidden=len(hidden), apart=apart)
    return coarse, found.cells.to_dict(as_series=False)


def _suppressed(readings: Sequence[_Reading], labels: Sequence[Ints]) -> Bools:
    """Whether rows show nothing in any generalized column."""
    tops = [used == item.texts[TOP] for item, used in zip(readings, labels) if isinstance(item.column, Generalized)]
    return np.asarray(np.logical_and.reduce(tops), dtype=np.bool_)


def _hidden(manifest: Manifest, targets: Sequence[Column], by: Sequence[str]) -> list[Column]:
    """Generalized columns outside the question: their labels were chosen with those inside."""
    if not any(isinstance(item, Generalized) for item in targets):
        return []
    return [
        item
        for item in manifest.columns
        if isinstance(item, Generalized) and item.stands_for and item not in targets and item.name not in by
    ]


# -- by group ------------------------------------------------------------------------------------------------------


def _in_groups(
    release: Release, grouped: Grouped, targets: Sequence[Column], by: Sequence[str]
) -> tuple[Coarse, dict[str, list[Any]]]:
    others = [_Reading.of(item) for item in targets if item is not grouped]
    records, lists, numbers = [], [], []
    named = {name: f"by {place}" for place, name in enumerate(by)}
    columns = dict.fromkeys([*by, grouped.group, *(item.column.name for item in others)])
    for batch, number in release.counted([*columns, grouped.name]):
        numbers.append((batch.num_rows, number))
        group = as_series(batch.column(grouped.group)).alias("group")
        codes = [pl.Series(f"of {at}", item.codes(batch.column(item.column.name))) for at, item in enumerate(others)]
        records.append(pl.DataFrame([group, *codes, *(as_series(batch.column(n)).alias(k) for n, k in named.items())]))
        lists.append(_lists(group, batch.column(grouped.name), grouped))
    whole = _each_record(pl.concat(records, how="vertical_relaxed"), all_counts(numbers))
    keys = list(named.values())
    cells = whole.select(keys).unique().sort(keys, nulls_last=True) if keys else pl.DataFrame()
    cell = _number(whole.select(keys), cells) if keys else np.zeros(whole.height, dtype=np.int64)
    held = pl.concat(lists, how="vertical_relaxed").unique("group", keep="first", maintain_order=True).sort("group")
    placed = _number(whole.select("group"), held.select("group"))
    _check_sizes(grouped, placed, held)
    coarse = InGroups(
        cell,
        max(cells.height, 1),
        tuple(whole[f"of {at}"].to_numpy() for at in range(len(others))),
        tuple(item.meanings.size for item in others),
        [item.name for item in targets].index(grouped.name),
        placed,
        held["values"].explode(empty_as_null=False).to_numpy().astype(np.int64),
        grouped.domain.size,
    )
    return coarse, {name: cells[key].to_list() for name, key in named.items()}


def group_counts(release: Release, grouped: Grouped) -> Counts:
    """How many records of each published group have which value."""
    lists = []
    for batch, _ in release.counted([grouped.group, grouped.name]):
        group = as_series(batch.column(grouped.group)).alias("group")
        lists.append(_lists(group, batch.column(grouped.name), grouped))
    held = pl.concat(lists, how="vertical_relaxed").unique("group", keep="first", maintain_order=True).sort("group")
    owner = np.repeat(np.arange(held.height), held["values"].list.len().to_numpy())
    values = held["values"].explode(empty_as_null=False).to_numpy().astype(np.int64)
    return Counts.from_codes(owner, values, grouped.domain.size)


def _each_record(rows: pl.DataFrame, counts: Ints | None) -> pl.DataFrame:
    """A row for each record: groups show a value for each, so there are as many."""
    return rows if counts is None else rows[np.repeat(np.arange(rows.height), counts)]


def _number(rows: pl.DataFrame, among: pl.DataFrame) -> Ints:
    """The place of each row among distinct ones."""
    placed = among.with_row_index("\0place")
    found = rows.join(placed, on=rows.columns, how="left", nulls_equal=True, maintain_order="left")
    return found["\0place"].to_numpy().astype(np.int64)


def _lists(group: pl.Series, column: pa.Array, grouped: Grouped) -> pl.DataFrame:
    """The values of each group, as its first record in a batch shows them."""
    first = pl.DataFrame([group]).with_row_index("row").unique("group", keep="first", maintain_order=True)
    found = code_sets(column.take(arrow(first["row"].to_numpy())), grouped.domain)
    if len(found.members) and found.members.min() < 0:
        raise ReleaseError(Problem(f"column '{grouped.name}'", "a value outside the domain is shown"), _HINT)
    bounds = np.append(0, np.cumsum(found.lengths))
    lists = pa.LargeListArray.from_arrays(arrow(bounds, pa.int64()), arrow(found.members))
    return pl.DataFrame({"group": first["group"], "values": pl.from_arrow(lists)})


def _check_sizes(grouped: Grouped, group: Ints, held: pl.DataFrame) -> None:
    if not np.array_equal(np.bincount(group, minlength=held.height), held["values"].list.len().to_numpy()):
        raise ReleaseError(
            Problem(f"column '{grouped.name}'", "some groups do not have as many records as values"), _HINT
        )
