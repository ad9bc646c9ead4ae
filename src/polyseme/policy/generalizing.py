"""The hierarchies of a policy: whether their files can be used, and whether they have a place for every value."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl
import pyarrow as pa

from polyseme.arrays import Ints
from polyseme.distances.paths import named
from polyseme.errors import InvalidInput, PolicyError, Problem
from polyseme.hierarchies import ColumnValues, Dates, Intervals, Rule, coverage, values_of
from polyseme.hierarchies.fitting import missing_from
from polyseme.policy import Policy
from polyseme.policy.attributes import AttributePolicy
from polyseme.policy.reading import Reader
from polyseme.spelling import spellings
from polyseme.tables.coding.codes import as_series, cast_column
from polyseme.tables.io.dialects import dialect_hint
from polyseme.tables.io.source import Source

__all__ = ["column_values", "hierarchy_problems", "require_places", "without_place"]

_HINT = "add the values to the hierarchy; count them with: polyseme hierarchy check"


def hierarchy_problems(policy: Policy) -> list[Problem]:
    """What is wrong with the hierarchies as far as that shows without a table."""
    problems: list[Problem] = []
    for item in policy.attributes:
        reader = Reader(None, f"$.attributes.{item.name}.hierarchy", problems)
        if item.hierarchy is None:
            continue
        if item.protect:  # by the rule for all sensitive columns
            reader.problem("a hierarchy generalizes columns that are not published as sets", "remove the hierarchy")
        try:
            rule = item.hierarchy.open(policy.files)
        except InvalidInput as error:
            reader.adopt(error)
        else:
            _check_declared(rule, item, reader)
    return problems


def _check_declared(rule: Rule, item: AttributePolicy, reader: Reader) -> None:
    """Declared values may be named, those of a table only counted."""
    leaves = pl.Series(spellings(item.values or ()), dtype=pl.String)
    lacking = leaves.filter(~rule.known(leaves)).to_list()
    if lacking:
        what = f"{len(lacking):,} of {len(leaves):,} declared values have no place in the hierarchy, which wants"
        reader.problem(f"{what} {rule.wants}: {named(lacking)}", "add them to the hierarchy")


def require_places(policy: Policy, source: Source) -> None:
    """Refuse hierarchies that lack values of the table; every one of them is reported."""
    problems = []
    for item in policy.attributes:
        if item.hierarchy is None:
            continue
        rule = item.hierarchy.open(policy.files)
        asked = (source, item.name, policy.table.missing_values, item.type)
        if not coverage(rule, values_of(distinct_values(*asked))).complete:
            # Something is wrong: look again, now row by row, so that the message can name the place.
            problems.append(without_place(item, rule, values_of(column_values(*asked)), source))
    if problems:
        raise PolicyError(problems)


def without_place(
    item: AttributePolicy,
    rule: Rule,
    values: ColumnValues,
    source: Source,
    rows: Ints | None = None,
    located: bool = True,
) -> Problem:
    """What to say of values that have no place in the hierarchy of an attribute.

    rows     of the table that the values come from, where some were left out
    located  whether it is known in which rows they stand
    """
    hint = dialect_hint(values.leaves) if isinstance(rule, Intervals | Dates) else ""
    what, seen = missing_from(coverage(rule, values), rule), values.strangers(rule, rows) if located else None
    return Problem.in_rows(f"$.attributes.{item.name}.hierarchy", what, hint or _HINT, seen, source.row_numbers)


def column_values(
    source: Source, name: str, missing_values: tuple[str, ...] = ("",), kind: str | None = None
) -> Iterator[pl.Series]:
    """A column, piece by piece, as it would be published."""
    for batch in source.batches([name]):
        yield _as_published(batch, missing_values, kind)


def distinct_values(
    source: Source, name: str, missing_values: tuple[str, ...] = ("",), kind: str | None = None
) -> Iterator[pl.Series]:
    """The same for those who only ask which values there are: how often, and in which order, is not told."""
    for batch, _ in source.counted([name]):
        yield _as_published(batch, missing_values, kind)


def _as_published(batch: pa.RecordBatch, missing_values: tuple[str, ...], kind: str | None) -> pl.Series:
    series = as_series(batch.column(0), missing_values)
    return cast_column(series, kind)[0] if kind else series
