from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from polyseme.cli.console import (
    PathType,
    TableType,
    busy,
    engine_options,
    explain_option,
    json_option,
    print_json,
    require_spark,
    show_explained,
    text_table_options,
)

if TYPE_CHECKING:
    from polyseme.results.attackers import Findings
    from polyseme.tables.io.source import TableOptions


@click.command("attack")
@click.argument("release", type=PathType)
@click.option("--original", type=TableType, help="The original table, to measure success against the truth.")
@click.option("--other", type=PathType, help="A second release of the same people, for the intersection attack.")
@click.option(
    "--population",
    type=TableType,
    help="People with the same quasi-identifiers, for the journalist: a table like the original, or like the release.",
)
@text_table_options
@engine_options
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    help="With --engine spark, about how many random records to look at (default: 100,000).",
)
@explain_option
@json_option
def command(
    release: Path,
    original: Path | str | None,
    other: Path | None,
    population: Path | str | None,
    engine: str,
    master: str | None,
    sample: int | None,
    explain: bool,
    as_json: bool,
    **written: Unpack[TableOptions],
) -> None:
    """Run the attacks against a RELEASE: how often each attacker is right, and the promise.

    \b
    Example:
      polyseme attack release --original people.csv
    """
    from polyseme.verbs.attack import attack

    by_spark = require_spark(engine, master=master, sample=sample)
    if by_spark and any(table is not None for table in (original, other, population)):
        what = "--original, --other and --population are for --engine local, which reads the whole release."
        raise click.UsageError(what)
    with busy("Attacking"):
        findings = (
            _by_spark(release, master, sample)
            if by_spark
            else attack(release, original, other, population=population, **written)
        )
    if as_json:
        print_json(findings.to_dict())
    else:
        show_explained(findings, explain)


def _by_spark(release: Path, master: str | None, sample: int | None) -> Findings:
    from polyseme import spark

    return spark.attack(release, master=master, **({} if sample is None else {"sample": sample}))
