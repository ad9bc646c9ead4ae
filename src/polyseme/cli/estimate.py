from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from polyseme.cli.console import (
    PathType,
    busy,
    chart_place,
    engine_options,
    force_option,
    json_option,
    names,
    print_json,
    require_spark,
    say,
    show,
    write_text,
)

if TYPE_CHECKING:
    from polyseme.inference.base import Nonnegative, Population
    from polyseme.results.table import Target


class _EstimateCommand(click.Command):
    """`--csv` prints and `--csv FILE` writes; FILE ends in .csv, which a release does not."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        following = [*args[1:], ""]
        alone = (word == "--csv" and not after.lower().endswith(".csv") for word, after in zip(args, following))
        return super().parse_args(ctx, ["--csv=-" if bare else word for word, bare in zip(args, alone)])


@click.command("estimate", cls=_EstimateCommand)
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
@click.option(
    "--target",
    type=click.Choice(["published", "table"]),
    default="published",
    show_default=True,
    help="The published records, or all of the table: intervals then hold whatever was left out.",
)
@click.option("--unweighted", is_flag=True, help="Count the records also where the release has survey weights.")
@click.option(
    "--csv",
    "csv_file",
    metavar="[FILE.csv]",
    help="Print all cells as CSV, or write them into a file whose name ends in .csv; texts that begin like a formula "
    "get an apostrophe in front.",
)
@click.option("--chart", type=PathType, help="Draw the table into this PNG, SVG or PDF file.")
@engine_options
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
    target: Target,
    unweighted: bool,
    csv_file: str | None,
    chart: Path | None,
    engine: str,
    master: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Recover the true cross-tabulation of a RELEASE, with errors and intervals in every cell.

    \b
    Example:
      polyseme estimate release --of income --by sex
      polyseme estimate release --of income --using age,sex
    """
    from polyseme.inference.questions.question import size_note
    from polyseme.publishing.inputs import release_given
    from polyseme.verbs.estimate import estimate

    if csv_file is not None and as_json:
        raise click.UsageError("--csv and --json cannot be combined")
    if csv_file not in (None, "-"):
        from polyseme.kernel.files import require_place

        require_place(Path(csv_file), force)
    chart_place(chart, force)
    opened = release_given(release)
    if require_spark(engine, master=master):
        from polyseme import spark

        opened = spark.open_release(opened, master=master)
    if note := size_note(opened, of):
        say(f"Note: {note}", err=True)
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
            target=target,
        )
    if as_json:
        print_json(table.to_dict())
    elif csv_file is not None:
        from polyseme.tables.io.workbooks import csv_text

        write_text(csv_text(table.to_polars()), None if csv_file == "-" else Path(csv_file), force)
        for note in table.notes:
            say(f"Note: {note}", err=True)
    else:
        show(table)
    if chart is not None:
        from polyseme.kernel.files import whole_file
        from polyseme.results.drawing.bars import save_chart

        with whole_file(chart, force) as partial:
            save_chart(table.plot(), partial)
