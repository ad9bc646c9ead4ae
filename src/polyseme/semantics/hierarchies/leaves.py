"""The hierarchy of a column's values by a rule, and the values that a label may stand for.

Values without a place in the hierarchy are found. For readers without a hierarchy a label alone says what it may stand
for:

    *, (missing)        any value; a missing one
    [30, 35)  [18, 24]  from the first to the last, which is in or not; of numbers, or of dates as ISO 8601 writes them
    81**                all that begin so
    2024-03, 2020s      the days of a period
    Norway              what the manifest lists for it, or the value itself
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from polyseme.kernel.arrays import Bools, Ints
from polyseme.kernel.errors import TableError
from polyseme.kernel.sightings import Sightings
from polyseme.kernel.spelling import spelled
from polyseme.semantics.hierarchies.builders import PERIODS, Dates, Rule
from polyseme.semantics.hierarchies.hierarchy import MISSING_LABEL, TOP, Hierarchy, MissingAs

__all__ = ["ColumnValues", "Coverage", "coverage", "fit", "held_by", "missing_from", "values_of"]


@dataclass(frozen=True, eq=False)
class ColumnValues:
    """The different values of a column by spelling, with counts, and how many have none.

    first  the row of the table (from 0) in which each of them stands first
    """

    leaves: pl.Series = field(repr=False)
    counts: pl.Series = field(repr=False)
    missing: int = 0
    first: pl.Series = field(default_factory=lambda: pl.Series([], dtype=pl.Int64), repr=False)

    def strangers(self, rule: Rule, rows: Ints | None = None) -> Sightings:
        """The values that have no place in a hierarchy.

        rows  of the table that the elements of the column are, where some were left out
        """
        unknown = (~rule.known(self.leaves)).to_numpy()
        counts, first = (series.to_numpy()[unknown] for series in (self.counts, self.first))
        first = first if rows is None else rows[first]
        found = zip(self.leaves.filter(pl.Series(unknown)).to_list(), zip(counts.tolist(), first.tolist()))
        return Sightings.of(dict(found), sorted(first.tolist()), int(counts.sum()))


@dataclass(frozen=True)
class Coverage:
    """How many values, and records, of a column have a place in a hierarchy.

    unused  values that the hierarchy lists and the column does not have
    """

    values: int
    records: int
    unknown_values: int
    unknown_records: int
    missing_records: int
    unused: int

    @property
    def complete(self) -> bool:
        return self.unknown_values == 0


def values_of(batches: Iterable[pl.Series]) -> ColumnValues:
    """The values of a column in pieces, in natural order: numbers by size, then texts.

    >>> values_of([pl.Series([10, None, 9]), pl.Series([9])]).leaves.to_list()
    ['9', '10']
    """
    kinds = {"leaf": pl.String, "count": pl.Int64, "first": pl.Int64}
    found, done = [pl.DataFrame(schema=kinds)], 0
    for batch in batches:
        found.append(_counted(spelled(batch).alias("leaf"), done))
        done += len(batch)
    table = pl.concat(found).group_by("leaf").agg(pl.sum("count"), pl.min("first"))
    missing = int(table.filter(pl.col("leaf").is_null())["count"].sum())
    number = pl.col("leaf").cast(pl.Float64, strict=False)
    table = table.drop_nulls("leaf").sort(number, "leaf", nulls_last=True)
    return ColumnValues(table["leaf"], table["count"], missing, table["first"])


def _counted(leaves: pl.Series, done: int) -> pl.DataFrame:
    """How often each value occurs in a piece of a column, and its first row after an offset."""
    rows = pl.int_range(done, done + len(leaves), dtype=pl.Int64, eager=True).alias("first")
    grouped = pl.DataFrame([leaves, rows]).group_by("leaf")
    return grouped.agg(pl.len().cast(pl.Int64).alias("count"), pl.min("first"))


def coverage(rule: Rule, values: ColumnValues) -> Coverage:
    """Which of the values have a place."""
    known = rule.known(values.leaves)
    listed = rule.listed
    return Coverage(
        values=len(known),
        records=int(values.counts.sum()) + values.missing,
        unknown_values=int((~known).sum()),
        unknown_records=int(values.counts.filter(~known).sum()),
        missing_records=values.missing,
        unused=0 if listed is None else len(listed) - int(known.sum()),
    )


def fit(rule: Rule, values: ColumnValues | None = None, missing: MissingAs = "leaf") -> Hierarchy:
    """The hierarchy of a rule that lists its values, or of the values of a column.

    Values without a place are refused, and counted only: they come from records. A place for missing values is made
    only where the column has some: a leaf that no record has would make every other group look smaller.
    """
    if values is not None:
        found = coverage(rule, values)
        if not found.complete:
            raise TableError(missing_from(found, rule), "count them with: polyseme hierarchy check")
    listed = rule.listed
    if listed is None and values is None:
        raise TableError(
            "this hierarchy follows from the values of a column, and there are none",
            "give a table and a column: --values FILE --column NAME",
        )
    leaves = pl.Series(listed, dtype=pl.String) if listed is not None else _leaves(values)
    levels = [level.to_list() for level in rule.labels(leaves)]
    return Hierarchy.from_labels(leaves.to_list(), levels, missing if values is not None and values.missing else None)


def missing_from(found: Coverage, rule: Rule) -> str:
    """What to say of values without a place."""
    return (
        f"{found.unknown_values:,} of {found.values:,} values ({found.unknown_records:,} of {found.records:,} records) "
        f"have no place in the hierarchy, which wants {rule.wants}"
    )


def _leaves(values: ColumnValues | None) -> pl.Series:
    return values.leaves if values is not None else pl.Series([], dtype=pl.String)


_RANGE = re.compile(r"\[(.+), (.+)([\])])")
_LEVEL = re.compile(r" \(level \d+\)$")


def held_by(label: str | None, leaves: pl.Series, listed: Mapping[str, Collection[str]]) -> Bools:
    """Whether each leaf, as it is spelled, may be shown with a label; a missing one is null.

    listed  what the manifest says that labels stand for

    >>> held_by("[30, 35)", pl.Series(["30", "34", "35", None]), {}).tolist()
    [True, True, False, False]
    """
    if label == TOP:
        return np.ones(len(leaves), dtype=np.bool_)
    if label is None or label == MISSING_LABEL:
        return leaves.is_null().to_numpy()
    plain = _LEVEL.sub("", label)
    if plain in listed:
        return _filled(leaves.is_in(list(listed[plain])))
    found = _filled(leaves == plain)
    for kind in (_in_range, _in_period, _beginning):
        found |= kind(plain, leaves)
    return found


def _filled(found: pl.Series) -> Bools:
    return found.fill_null(False).to_numpy().astype(np.bool_)


def _in_range(label: str, leaves: pl.Series) -> Bools:
    matched = _RANGE.fullmatch(label)
    if matched is None:
        return np.zeros(len(leaves), dtype=np.bool_)
    low, high, end = matched.groups()
    numbers = leaves.cast(pl.Float64, strict=False)
    first, last = (pl.Series([text]).cast(pl.Float64, strict=False)[0] for text in (low, high))
    if first is None or last is None:
        return _filled((leaves >= low) & ((leaves <= high) if end == "]" else (leaves < high)))
    return _filled((numbers >= first) & ((numbers <= last) if end == "]" else (numbers < last)))


def _in_period(label: str, leaves: pl.Series) -> Bools:
    found = np.zeros(len(leaves), dtype=np.bool_)
    for period in PERIODS:
        found |= _filled(Dates((period,)).labels(leaves)[0] == label)
    return found


def _beginning(label: str, leaves: pl.Series) -> Bools:
    if not label.endswith(TOP):
        return np.zeros(len(leaves), dtype=np.bool_)
    return _filled(leaves.str.starts_with(label.rstrip(TOP)))
