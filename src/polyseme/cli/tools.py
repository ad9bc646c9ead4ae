"""Small commands: demo, keys, ledgers, reports, built-in rules and classifications."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from polyseme.cli.console import (
    PathType,
    TableType,
    busy,
    force_option,
    json_option,
    print_json,
    say,
    show,
    show_offending,
    show_values_option,
    text_table_options,
    write_text,
)
from polyseme.kernel.plugins import installed, pip_line

if TYPE_CHECKING:
    from polyseme.kernel.errors import Problem
    from polyseme.semantics.distances.taxonomy import Coverage, Taxonomy
    from polyseme.tables.io.source import TableOptions

__all__ = ["demo_command", "key_command", "ledger_command", "report_command", "rules_command", "taxonomy_command"]


@click.command("demo")
@click.option("--out", type=PathType, default=Path("demo-out"), show_default=True, help="The folder to write.")
@click.option("--records", type=click.IntRange(min=100), default=100_000, show_default=True, help="People to invent.")
@force_option
def demo_command(out: Path, records: int, force: bool) -> None:
    """Run the whole pipeline on generated incomes: plan, anonymize, verify, estimate, report.

    \b
    Example:
      polyseme demo --out demo-out
    """
    from polyseme.demo.walkthrough import run_demo

    steps = run_demo(out, records, force)
    while True:
        with busy("Working"):
            line = next(steps, None)
        if line is None:
            break
        # A line goes on below what it says, not below the name of the step.
        say(line, hang=0 if line.startswith(" ") else 12)


@click.group("key")
def key_command() -> None:
    """Make a secret key for sticky decoys."""


@key_command.command("new")
@click.argument("file", type=PathType)
def key_new(file: Path) -> None:
    """Write a fresh secret key to FILE, readable by its owner only; never overwrites.

    Keep it: with the same key and the same policy the same person reporting the same value gives the same
    set again, so that repeated releases cannot be intersected. When the values, l, d or another promise of
    an attribute change, its sets change. An attacker who has the key can tell decoys from true values.

    \b
    Example:
      polyseme key new secret.key
    """
    from polyseme.kernel.randomness import new_key

    new_key(file)
    say(f"Wrote a new key to {file}. Keep it secret, and do not lose it.", err=True)


@click.group("ledger")
def ledger_command() -> None:
    """Keep what was published about the same people, and say what all of it tells together.

    `anonymize --ledger` asks the ledger before it publishes, and records the release afterwards.

    \b
    Example:
      polyseme ledger show ledger.json
    """


@ledger_command.command("add")
@click.argument("ledger", type=PathType)
@click.argument("release", type=PathType)
@click.option("--people", required=True, help="Whom the release is about: any name that you will know again.")
def ledger_add(ledger: Path, release: Path, people: str) -> None:
    """Record a published RELEASE in the file LEDGER, which is created if it does not exist.

    The ledger holds public things only: the manifest's checksum, how each column was published and the distributions
    that every reader can estimate from the release. Only --people is yours: choose a name that may be read.

    \b
    Example:
      polyseme ledger add ledger.json published --people patients
    """
    from polyseme.verbs.ledger import record

    with busy("Recording"):
        after = record(ledger, release, people)
    number = len(after.about(people))
    say(f"{ledger}: {number} {'release' if number == 1 else 'releases'} about {people}", err=True)


@ledger_command.command("show")
@click.argument("ledger", type=PathType)
@click.option("--people", help="Only what is about these people.")
@json_option
def ledger_show(ledger: Path, people: str | None, as_json: bool) -> None:
    """Say what all releases of a LEDGER tell together.

    For each attribute: how many different sets a person has, the sum of the epsilons, how often only the true value is
    in all sets, and how often an attacker who knows the distribution and has every release guesses right.

    \b
    Example:
      polyseme ledger show ledger.json
    """
    from polyseme.results.ledger import Ledger
    from polyseme.verbs.ledger import exposures

    kept = Ledger.load(ledger)
    with busy("Adding up"):
        found = exposures(kept, people)
    if as_json:
        print_json({**kept.to_dict(), **found.to_dict()})
        return
    show(kept)
    show(found)


@click.command("report")
@click.argument("release", type=PathType)
@click.option("--original", type=TableType, help="The original table, to compare with.")
@click.option(
    "--population", type=TableType, help="People with the same quasi-identifiers, for k-map and the journalist."
)
@click.option("--by", help="An untouched attribute to break the charts down by.")
@click.option("--title", help="The name of the data set, at the head of the page; from the policy when omitted.")
@click.option("--publisher", help="The person or office responsible for the release; from the policy when omitted.")
@click.option("--out", type=PathType, required=True, help="The HTML file to write.")
@text_table_options
@click.option("--force", is_flag=True, help="Replace an earlier report.")
def report_command(
    release: Path,
    original: Path | str | None,
    population: Path | str | None,
    by: str | None,
    title: str | None,
    publisher: str | None,
    out: Path,
    force: bool,
    **written: Unpack[TableOptions],
) -> None:
    """Write one self-contained HTML page: risks, guarantees, verification and charts.

    With --original the page shows true distributions: it is marked as internal, on screen and on every printed page.

    \b
    Example:
      polyseme report release --out report.html
    """
    from polyseme.kernel.files import require_place
    from polyseme.reports.page import is_page
    from polyseme.verbs.report import report

    require_place(out, force, is_page)
    if not installed("charts"):
        say(f"Note: without the extra 'charts' the page has tables only; {pip_line('charts')}", err=True)
    with busy("Reporting"):
        page = report(release, original, by, title=title, publisher=publisher, population=population, **written)
    write_text(page, out, force, is_page)


@click.group("rules", short_help="Built-in semantic rules: list, show.", epilog="Example: polyseme rules list")
def rules_command() -> None:
    """Look at the rules that `semantic-rules: {repository: {ATTRIBUTE: NAME}}` can use."""


@rules_command.command("list", short_help="Name every kind of rules.", epilog="Example: polyseme rules list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def rules_list(as_json: bool) -> None:
    """Name every kind of rules, and what it is about."""
    from polyseme.models.repository import kind_names, load_kind

    kinds = [load_kind(name) for name in kind_names()]
    if as_json:
        found = [{"name": kind.name, "title": kind.title, "rules": list(kind.tests)} for kind in kinds]
        click.echo(json.dumps({"kinds": found}, indent=2))
        return
    for kind in kinds:
        say(f"{kind.name:<14} {kind.title}", hang=15)
        say(f"{'':<14} {', '.join(kind.tests)}")


@rules_command.command("show", short_help="Print rules for a policy.", epilog="Example: polyseme rules show icd10")
@click.argument("name")
@click.option("--attribute", default="attribute", metavar="A", help="The attribute that holds such values.")
def rules_show(name: str, attribute: str) -> None:
    """Print the rules of one kind as YAML (and JSON), to be copied into a file and changed."""
    from polyseme.models.repository import load_kind

    kind = load_kind(name)
    click.echo(f"# {kind.title}")
    for rule in kind.rules(attribute):
        click.echo(f"- {json.dumps(rule, ensure_ascii=False)}")


@click.group(
    "taxonomy", short_help="Built-in classifications: list, show, check.", epilog="Example: polyseme taxonomy list"
)
def taxonomy_command() -> None:
    """Look at the classifications that `distance: {taxonomy: NAME}` can use."""


@taxonomy_command.command("list", short_help="Name every taxonomy.", epilog="Example: polyseme taxonomy list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def taxonomy_list(as_json: bool) -> None:
    """Name every taxonomy with its levels, from the value upwards."""
    from polyseme.semantics.distances.taxonomy import load_taxonomy, taxonomy_names

    taxonomies = [load_taxonomy(name) for name in taxonomy_names()]
    if as_json:
        click.echo(json.dumps({"taxonomies": [_summary(taxonomy) for taxonomy in taxonomies]}, indent=2))
        return
    for taxonomy in taxonomies:
        say(f"{taxonomy.name:<12} {taxonomy.title}", hang=13)
        say(f"{'':<12} levels: {' < '.join(taxonomy.levels)}")


@taxonomy_command.command(
    "show", short_help="Print the tree of a taxonomy.", epilog="Example: polyseme taxonomy show icd10"
)
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def taxonomy_show(name: str, as_json: bool) -> None:
    """Print the categories of a taxonomy as a tree."""
    from polyseme.semantics.distances.taxonomy import load_taxonomy

    taxonomy = load_taxonomy(name)
    if as_json:
        nodes = [
            {"code": node.code, "parent": node.parent or None, "name": node.name, "also": list(node.also)}
            for node in taxonomy.nodes.values()
        ]
        click.echo(json.dumps({**_summary(taxonomy), "nodes": nodes}, indent=2, ensure_ascii=False))
        return
    say(f"{taxonomy.title}\nlevels: {' < '.join(taxonomy.levels)}\n")
    for line in _branches(taxonomy, "", ""):
        say(line, hang=2)


@taxonomy_command.command(
    "check",
    short_help="Count the values of a file that a taxonomy knows.",
    epilog="Example: polyseme taxonomy check icd10 patients.csv --column diagnosis",
)
@click.argument("name")
@click.argument("data", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--column", metavar="C", help="Column with the values; by default the first.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@show_values_option
@click.pass_context
def taxonomy_check(
    context: click.Context, name: str, data: Path, column: str | None, as_json: bool, show_values: bool
) -> None:
    """Count the values of DATA (CSV, Parquet, or one value a line) that the taxonomy contains.

    Values themselves are printed with --show-values only. Without --column, a first line that is no value of the
    taxonomy counts as the header of a CSV file. Exit code 0 when every value has a place, 1 when some have none.
    """
    from polyseme.semantics.distances.taxonomy import check, load_taxonomy

    taxonomy = load_taxonomy(name)
    cells = _cells(data, column, taxonomy)
    empty, seen = 0, dict[str, tuple[int, int]]()

    def filled() -> Iterator[str]:
        nonlocal empty
        for row, cell in enumerate(map(str.strip, cells)):
            count, first = seen.get(cell, (0, row))
            seen[cell] = (count + 1, first)
            if cell:
                yield cell
            else:
                empty += 1

    coverage = check(name, filled())
    strangers = _strangers(coverage, seen)
    if as_json:
        click.echo(json.dumps(_counts(coverage, empty), indent=2))
    else:
        _tell(coverage, empty)
        if strangers.seen is not None and strangers.seen.rows:
            say(f"Values that are not found are {strangers.seen.words()}.")
    if show_values:
        show_offending([strangers])
    context.exit(0 if not coverage.unknown else 1)


def _strangers(coverage: Coverage, seen: Mapping[str, tuple[int, int]]) -> Problem:
    """The values that the taxonomy does not know, with their rows."""
    from polyseme.kernel.errors import Problem
    from polyseme.kernel.sightings import Sightings
    from polyseme.kernel.spelling import spelling

    unknown = set(coverage.unknown)
    found = {text: where for text, where in seen.items() if text in unknown or spelling(text) in unknown}
    rows = sorted(first for _, first in found.values())
    sightings = Sightings.of(found, rows, coverage.unknown_records)
    return Problem.in_rows(
        "", "values that are not found", "", sightings, lambda several: ("row", [row + 1 for row in several])
    )


def _summary(taxonomy: Taxonomy) -> dict[str, object]:
    return {
        "name": taxonomy.name,
        "title": taxonomy.title,
        "levels": list(taxonomy.levels),
        "categories": len(taxonomy.nodes),
    }


def _branches(taxonomy: Taxonomy, code: str, indent: str) -> Iterator[str]:
    for node in taxonomy.children(code):
        yield f"{indent}{node.code}  {node.name}"
        yield from _branches(taxonomy, node.code, indent + "  ")


def _cells(data: Path, column: str | None, taxonomy: Taxonomy) -> Iterator[str]:
    """The column's cells as text."""
    from polyseme.kernel.delimited import read_rows
    from polyseme.kernel.errors import TableError
    from polyseme.kernel.spelling import spelling

    if data.suffix.lower() == ".parquet" or column is not None:
        return _column(data, column)
    rows = [cells for _, cells in read_rows(data)]
    if not rows:
        raise TableError(f"{data}: the file is empty")
    header = rows[0][0].strip()
    first = () if taxonomy.find(spelling(header)) is None else (header,)
    return chain(first, (row[0] for row in rows[1:]))


def _column(data: Path, column: str | None) -> Iterator[str]:
    """The cells of a column of a table; the first one where none is named."""
    import polars as pl

    from polyseme.kernel.errors import TableError, nearest
    from polyseme.publishing.inputs import table_given
    from polyseme.tables.codes import as_series

    source = table_given(data)
    chosen = source.schema.names[0] if column is None else column
    if chosen not in source.schema.names:
        # The first line of a text may be data after all, so its cells are not shown.
        hint = nearest(chosen, source.schema.names) if data.suffix.lower() == ".parquet" else ""
        raise TableError(f"none of the {len(source.schema.names)} columns of {data.name} is '{chosen}'", hint)
    for batch in source.batches([chosen]):
        yield from as_series(batch.column(chosen)).cast(pl.String).fill_null("").to_list()


def _counts(coverage: Coverage, empty: int) -> dict[str, object]:
    return {
        "taxonomy": coverage.taxonomy,
        "found": {"values": len(coverage.found), "records": coverage.found_records},
        "unknown": {"values": len(coverage.unknown), "records": coverage.unknown_records},
        "repeated": {"places": len(coverage.repeated), "values": sum(map(len, coverage.repeated))},
        "empty": {"records": empty},
    }


def _tell(coverage: Coverage, empty: int) -> None:
    click.echo(f"found      {len(coverage.found):>9,} values {coverage.found_records:>12,} records")
    click.echo(f"not found  {len(coverage.unknown):>9,} values {coverage.unknown_records:>12,} records")
    if empty:
        click.echo(f"empty      {'':>9}        {empty:>12,} records")
    if coverage.repeated:
        words = sum(map(len, coverage.repeated))
        say(f"{words:,} values are words for only {len(coverage.repeated):,} places: merge them first")
