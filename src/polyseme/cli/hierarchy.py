"""`polyseme hierarchy`: levels of generalization shown, checked against a table, and built."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from polyseme.cli.console import (
    PathType,
    TableType,
    json_option,
    print_json,
    say,
    show_offending,
    show_values_option,
    text_table_options,
    write_text,
)

if TYPE_CHECKING:
    import polars as pl

    from polyseme.kernel.errors import Problem
    from polyseme.semantics.hierarchies import ColumnValues, Coverage, DeclaredHierarchy, Hierarchy, MissingAs, Rule
    from polyseme.tables.io.source import Source, TableOptions

__all__ = ["command"]

_SHOWN = 40
"""Lines of a hierarchy that the table shows before it only counts; --csv and --json have all."""


@click.group("hierarchy")
def command() -> None:
    """Look at generalization hierarchies, check them against a table, build them.

    SPEC is what a policy says under `hierarchy`: the name of a file, or for instance 'intervals: [5, 10, 20]',
    'dates: [month, year]', 'prefix: 5', 'taxonomy: icd10', suppress.

    \b
    Example:
      polyseme hierarchy show "intervals: [5, 10, 20]" --values people.csv --column age
    """


@command.command("show")
@click.argument("spec")
@click.option("--values", type=TableType, help="A table with the values to show.")
@click.option("--column", help="The column of that table.")
@click.option("--level", type=int, help="Show this level only.")
@click.option("--csv", "as_csv", is_flag=True, help="Print it as ARX writes it: leaf;...;root.")
@json_option
@text_table_options
def show(
    spec: str,
    values: Path | str | None,
    column: str | None,
    level: int | None,
    as_csv: bool,
    as_json: bool,
    **written: Unpack[TableOptions],
) -> None:
    """Show what each value becomes at each level, exactly as it will be applied.

    A file lists its values; any other SPEC needs a table with them. The values shown are those of that table.

    \b
    Example:
      polyseme hierarchy show "intervals: [5, 10]" --values people.csv --column age --level 1
    """
    from polyseme.semantics.hierarchies import fit
    from polyseme.semantics.hierarchies.builders import arx_text

    declared, rule = _opened(spec)
    if (values is None) != (column is None):
        raise click.UsageError("--values and --column go together.")
    found = _values(values, column, **written) if values is not None and column is not None else None
    hierarchy = fit(rule, found, declared.missing)
    levels = _levels(hierarchy, level)
    if as_csv:
        click.echo(arx_text(hierarchy) if level is None else _csv(hierarchy, levels), nl=False)
    elif as_json:
        print_json(_document(hierarchy, levels, declared.missing))
    else:
        _show_table(hierarchy, levels)


@command.command("check")
@click.argument("spec")
@click.argument("data", type=TableType)
@click.option("--column", required=True, help="The column to check.")
@json_option
@show_values_option
@text_table_options
@click.pass_context
def check(
    context: click.Context,
    spec: str,
    data: Path | str,
    column: str,
    as_json: bool,
    show_values: bool,
    **written: Unpack[TableOptions],
) -> None:
    """Check whether a hierarchy has a place for every value of a column.

    Values without a place are counted, and named only with --show-values: exit code 1. A hierarchy that is none
    (uneven depth, two parents) is invalid input.

    \b
    Example:
      polyseme hierarchy check "intervals: [5, 10]" people.csv --column age
    """
    from polyseme.policy.resolution import column_values
    from polyseme.semantics.hierarchies import Dates, Intervals, coverage, values_of
    from polyseme.tables.io.dialects import dialect_hint

    _, rule = _opened(spec)
    source = _table(data, column, **written)
    values = values_of(column_values(source, column))
    found, problem = coverage(rule, values), _unplaced(rule, values, source)
    if as_json:
        print_json({**asdict(found), "complete": found.complete})
    else:
        _tell(found, rule)
        if problem.seen is not None and problem.seen.rows:
            say(f"Values without a place are {problem.seen.words()}.")
        if not found.complete and isinstance(rule, Intervals | Dates) and (hint := dialect_hint(values.leaves, False)):
            say(f"Hint: {hint}.")
    if show_values:
        show_offending([problem])
    context.exit(0 if found.complete else 1)


@command.command("build")
@click.argument("kind", type=click.Choice(["intervals", "dates", "prefix"]))
@click.argument("levels")
@click.argument("data", type=TableType)
@click.option("--column", required=True, help="The column whose values are listed.")
@click.option("--out", type=PathType, help="The file to write; standard output when omitted.")
@click.option("--force", is_flag=True, help="Replace an earlier hierarchy.")
@text_table_options
def build(
    kind: str,
    levels: str,
    data: Path | str,
    column: str,
    out: Path | None,
    force: bool,
    **written: Unpack[TableOptions],
) -> None:
    """Write a hierarchy for the values of a column in ARX's format, leaf;...;root.

    You can then edit it by hand.

    LEVELS are widths (5,10,20), periods (month,year), or for prefixes a number of characters or the lengths left.
    The file lists values of the table: treat it like the table.

    \b
    Example:
      polyseme hierarchy build intervals 5,10,20 people.csv --column age --out age.csv
    """
    from polyseme.cli.console import is_hierarchy
    from polyseme.kernel.files import require_place
    from polyseme.semantics.hierarchies import fit
    from polyseme.semantics.hierarchies.builders import arx_text

    if out is not None:
        require_place(out, force, is_hierarchy)
    _, rule = _opened(f"{kind}: {levels if kind == 'prefix' and ',' not in levels else f'[{levels}]'}")
    hierarchy = fit(rule, _values(data, column, **written))
    write_text(arx_text(hierarchy), out, force, is_hierarchy)


def _opened(spec: str) -> tuple[DeclaredHierarchy, Rule]:
    """What a policy would make of it; the files are the user's own, wherever they are."""
    from polyseme.kernel.documents import Folder, parse
    from polyseme.semantics.hierarchies import read_hierarchy

    declared = read_hierarchy(parse(spec))
    return declared, declared.open(Folder(Path(), allow_outside=True))


def _values(data: Path | str, column: str, **written: Unpack[TableOptions]) -> ColumnValues:
    from polyseme.semantics.hierarchies import values_of

    return values_of(_column(data, column, **written))


def _unplaced(rule: Rule, values: ColumnValues, source: Source) -> Problem:
    from polyseme.kernel.errors import Problem

    return Problem.in_rows("", "values without a place", "", values.strangers(rule), source.row_numbers)


def _column(data: Path | str, column: str, **written: Unpack[TableOptions]) -> Iterator[pl.Series]:
    from polyseme.policy.resolution import column_values

    return column_values(_table(data, column, **written), column)


def _table(data: Path | str, column: str, **written: Unpack[TableOptions]) -> Source:
    from polyseme.kernel.errors import TableError
    from polyseme.publishing.inputs import table_given

    source = table_given(data, **written)
    if column not in source.schema.names:
        # The first line may be data after all, so its cells are not shown.
        raise TableError(f"none of the {len(source.schema.names)} columns of {source.name} is '{column}'")
    return source


def _levels(hierarchy: Hierarchy, level: int | None) -> Sequence[int]:
    if level is None:
        return range(hierarchy.height + 1)
    if not 0 <= level <= hierarchy.height:
        raise click.UsageError(f"The levels of this hierarchy are 0 to {hierarchy.height}.")
    return (0, level) if level else (0,)


def _rows(hierarchy: Hierarchy, levels: Sequence[int]) -> Iterator[list[str]]:
    return ([path[level] for level in levels] for path in hierarchy.paths())


def _csv(hierarchy: Hierarchy, levels: Sequence[int]) -> str:
    from polyseme.kernel.delimited import written_rows

    return written_rows(_rows(hierarchy, levels), ";")


def _document(hierarchy: Hierarchy, levels: Sequence[int], missing: MissingAs) -> dict[str, object]:
    return {
        "height": hierarchy.height,
        "missing": missing,
        "levels": [{"level": level, "groups": len(hierarchy.labels[level])} for level in levels],
        "values": [dict(zip(map(str, levels), row)) for row in _rows(hierarchy, levels)],
    }


def _show_table(hierarchy: Hierarchy, levels: Sequence[int]) -> None:
    from polyseme.cli.console import show as show_view
    from polyseme.results.views.terminal import FittedTable

    head = [(f"level {level} ({len(hierarchy.labels[level]):,})", False) for level in levels]
    rows = list(_rows(hierarchy, levels))
    show_view(FittedTable(head, rows[:_SHOWN]))
    click.echo("In brackets: how many different labels a level has.")
    if len(rows) > _SHOWN:
        click.echo(f"{len(rows) - _SHOWN:,} more values: use --csv to see all")
    if hierarchy.missing == "wildcard":
        click.echo("A missing value may be anything, at every level.")


def _tell(found: Coverage, rule: Rule) -> None:
    known = found.values - found.unknown_values
    records = found.records - found.unknown_records - found.missing_records
    click.echo(f"with a place     {known:>9,} values {records:>12,} records")
    click.echo(f"without a place  {found.unknown_values:>9,} values {found.unknown_records:>12,} records")
    click.echo(f"missing          {'':>9}        {found.missing_records:>12,} records")
    if rule.listed is not None:
        click.echo(f"not in the table {found.unused:>9,} values")
    if not found.complete:
        say(f"The hierarchy wants {rule.wants}.")
