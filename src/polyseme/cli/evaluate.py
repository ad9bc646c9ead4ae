from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from polyseme.cli.console import PathType, TableType, busy, json_option, names, print_json, show, text_table_options

if TYPE_CHECKING:
    from polyseme.tables.io.source import TableOptions


@click.command("evaluate")
@click.argument("release", type=PathType)
@click.option("--original", type=TableType, required=True, help="The original table.")
@click.option(
    "--of", multiple=True, callback=names, help="Protected attributes, as A,B; each one separately when omitted."
)
@click.option("--by", multiple=True, callback=names, help="Untouched attributes, as C,D.")
@click.option("--using", multiple=True, callback=names, help="Auxiliary attributes, as for estimate.")
@click.option("--estimator", help="As for estimate.")
@click.option("--unweighted", is_flag=True, help="Count the records, as for estimate.")
@text_table_options
@click.option("--learn", is_flag=True, help="Also predict each attribute from those of --by; needs polyseme[learn].")
@json_option
def command(
    release: Path,
    original: Path | str,
    of: tuple[str, ...],
    by: tuple[str, ...],
    using: tuple[str, ...],
    estimator: str | None,
    unweighted: bool,
    learn: bool,
    as_json: bool,
    **written: Unpack[TableOptions],
) -> None:
    """Compare what is estimated from a RELEASE with the original table.

    With --learn a classifier (for ordered values also a regression) is trained on the estimate and on the original
    table, and both are scored on the original.

    \b
    Examples:
      polyseme evaluate release --original people.csv --of income --by sex
      polyseme evaluate release --original people.csv --of income --by age,sex --learn
    """
    from polyseme.verbs.evaluate import evaluate

    with busy("Evaluating"):
        result = evaluate(
            release, original, of, by, using, learn=learn, estimator=estimator, unweighted=unweighted, **written
        )
    if as_json:
        print_json(result.to_dict())
    else:
        show(result)
