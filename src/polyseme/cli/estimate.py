from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from polyseme.cli.console import PathType, busy, chart_place, force_option, json_option, names, print_json, show
from polyseme.cli.interruption import current_cancellation

if TYPE_CHECKING:
    from polyseme.estimators.base import Population
    from polyseme.estimators.options import Nonnegative


@click.command("estimate")
@click.argument("release", type=PathType)
@click.option(
    "--of", multiple=True, callback=names, required=True, help="Protected or grouped attributes to recover, as A,B."
)
@click.option(
    "--by", multiple=True, callback=names, help="Untouched or generalized attributes to break them down by, as C,D."
)
@click.option(
    "--using",
    multiple=True,
    callback=names,
    help="Other attributes that help, as E,F: what they have to do with those of --of makes the table more exact.",
)
@click.option(
    "--estimator",
    help="ml, shrink, smooth, inverse, bayes, paper, simple, existing, valueadding; chosen from the data when omitted.",
)
@click.option(
    "--level", type=click.FloatRange(0.5, 0.9999), default=0.95, show_default=True, help="Level of the intervals."
)
@click.option(
    "--population",
    type=click.Choice(["finite", "super"]),
    default="finite",
    show_default=True,
    help="The people in the table, or the population they were drawn from.",
)
@click.option(
    "--nonnegative",
    type=click.Choice(["no", "project"]),
    default="no",
    show_default=True,
    help="Linear estimators: leave negative cells, or project.",
)
@click.option("--unweighted", is_flag=True, help="Count the records also where the release has survey weights.")
@click.option(
    "--csv",
    "as_csv",
    is_flag=True,
    help="Print the cells as CSV; texts that begin like a formula get an apostrophe in front.",
)
@click.option("--chart", type=PathType, help="Draw the table into this PNG, SVG or PDF file.")
@force_option
@json_option
def command(
    release: Path,
    of: tuple[str, ...],
    by: tuple[str, ...],
    using: tuple[str, ...],
    estimator: str | None,
    level: float,
    population: Population,
    nonnegative: Nonnegative,
    unweighted: bool,
    as_csv: bool,
    chart: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Recover the true cross-tabulation of a RELEASE, with a standard error and an interval in every cell.

    \b
    Example:
      polyseme estimate release --of income --by sex
      polyseme estimate release --of income --using age,sex
    """
    from polyseme.verbs.estimate import estimate
    from polyseme.verbs.inputs import release_given
    from polyseme.verbs.questions import size_note

    if as_csv and as_json:
        raise click.UsageError("--csv and --json cannot be combined")
    chart_place(chart, force)
    opened = release_given(release)
    if note := size_note(opened, of):
        click.echo(f"Note: {note}", err=True)
    with busy("Estimating"):
        table = estimate(
            opened,
            of,
            by,
            using,
            estimator=estimator,
            level=level,
            population=population,
            nonnegative=nonnegative,
            unweighted=unweighted,
        )
    if as_json:
        print_json(table.to_dict())
    elif as_csv:
        from polyseme.tables.io.spreadsheets import csv_text

        click.echo(csv_text(table.to_polars()), nl=False)
        for note in table.notes:
            click.echo(f"Note: {note}", err=True)
    else:
        show(table)
    if chart is not None:
        from polyseme.files.whole import whole_file
        from polyseme.reports.charts import save_chart

        with whole_file(chart, force, current_cancellation()) as partial:
            save_chart(table.plot(), partial)
