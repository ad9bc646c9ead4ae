from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from polyseme.cli.console import PathType, busy, force_option, json_option, print_json, say, show, write_text

if TYPE_CHECKING:
    from polyseme.inference.regression.scores import Family
    from polyseme.results.table import Population


def _positions(ctx: click.Context, _: click.Parameter, given: tuple[str, ...]) -> dict[str, Any]:
    """`income=5,15,25`, or `age=20-29:25,30-39:35` with labels."""
    found: dict[str, Any] = {}
    for text in given:
        name, equals, rest = text.partition("=")
        items = [item.strip() for item in rest.split(",")]
        try:
            if ":" in rest:
                pairs = [item.rpartition(":") for item in items]
                found[name.strip()] = {label.strip(): float(number) for label, _, number in pairs}
            else:
                found[name.strip()] = [float(item) for item in items]
        except ValueError:
            equals = ""
        if not equals:
            raise click.BadParameter("expected numbers, such as income=5,15,25 or age=20-29:25,30-39:35", ctx)
    return found


@click.command("regress")
@click.argument("release", type=PathType)
@click.argument("formula")
@click.option(
    "--family",
    type=click.Choice(["linear", "logistic", "poisson", "multinomial"]),
    default="linear",
    show_default=True,
    help="The family of the outcome.",
)
@click.option("--where", help="Use the records that fulfill this condition, such as 'age >= 30 and sex == \"f\"'.")
@click.option(
    "--positions",
    multiple=True,
    callback=_positions,
    metavar="NAME=5,15,...",
    help="Numbers for values, in the order of the domain, or as LABEL:NUMBER.",
)
@click.option(
    "--population",
    type=click.Choice(["super", "finite"]),
    default="super",
    show_default=True,
    help="The population that the records were drawn from, or the people in the table.",
)
@click.option(
    "--level", type=click.FloatRange(0.5, 0.9999), default=0.95, show_default=True, help="Level of the intervals."
)
@click.option("--cluster", metavar="COLUMN", help="A column that tells people with several records apart.")
@click.option("--unweighted", is_flag=True, help="Count the records also where the release has survey weights.")
@click.option("--csv", "csv_file", type=PathType, metavar="FILE", help="Write the terms into this CSV file.")
@force_option
@json_option
def command(
    release: Path,
    formula: str,
    family: Family,
    where: str | None,
    positions: dict[str, Any],
    population: Population,
    level: float,
    cluster: str | None,
    unweighted: bool,
    csv_file: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Fit a regression on open and protected columns of a RELEASE, with intervals.

    A protected attribute with numeric labels enters as a number, C(x) as categories. "worth" is the number of open
    records that would be as precise.

    \b
    Example:
      polyseme regress release 'income >= "5-6M" ~ age + sex' --family logistic
    """
    from polyseme.verbs.regress import regress

    if csv_file is not None:
        from polyseme.kernel.files import require_place

        require_place(csv_file, force)
    with busy("Fitting"):
        found = regress(
            release,
            formula,
            family=family,
            where=where,
            positions=positions or None,
            population=population,
            level=level,
            cluster=cluster,
            unweighted=unweighted,
        )
    if csv_file is not None:
        from polyseme.tables.io.workbooks import csv_text

        write_text(csv_text(found.to_polars()), csv_file, force)
    if as_json:
        print_json(found.to_dict())
    elif csv_file is None:
        show(found)
    else:
        for note in found.notes:
            say(f"Note: {note}", err=True)
