from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from polyseme.cli.console import (
    TableType,
    busy,
    engine_options,
    json_option,
    names,
    print_json,
    require_spark,
    show,
    text_table_options,
)

if TYPE_CHECKING:
    from polyseme.tables.io.source import TableOptions


@click.command("risk")
@click.argument("table", type=TableType)
@click.option(
    "--qi",
    multiple=True,
    callback=names,
    help="Columns that an attacker may know, as A,B; guessed as `init` does when omitted.",
)
@click.option("--sensitive", multiple=True, callback=names, help="Columns that must stay secret, as A,B.")
@click.option(
    "--person",
    metavar="COLUMN",
    help="The column that says whose each record is: people are counted, not records.",
)
@text_table_options
@engine_options
@json_option
def command(
    table: Path | str,
    qi: tuple[str, ...],
    sensitive: tuple[str, ...],
    person: str | None,
    engine: str,
    master: str | None,
    as_json: bool,
    **written: Unpack[TableOptions],
) -> None:
    """Measure what k, l and t a TABLE has, without a policy: any table, made by any tool.

    Records that agree in every quasi-identifier form a class. Shown is how many are alone in theirs, how large
    the classes are, what they tell about sensitive columns, and which column to generalize first. It measures
    and does not judge: the exit code is 0 whatever it finds.

    \b
    Examples:
      polyseme risk people.csv
      polyseme risk people.csv --qi age,sex --sensitive income
      polyseme risk visits.csv --qi age,sex --person patient
    """
    from polyseme.verbs.risk import risk

    by_spark = require_spark(engine, master=master)
    with busy("Measuring"):
        if by_spark:
            from polyseme import spark

            found = spark.risk(str(table), qi or None, sensitive, person=person, master=master, **written)
        else:
            found = risk(table, qi or None, sensitive, person, **written)
    if as_json:
        print_json(found.to_dict())
    else:
        show(found)
