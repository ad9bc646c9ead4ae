from __future__ import annotations

from pathlib import Path

import click

from polyseme.cli.console import PathType, json_option, names, print_json, show, text_table_options


@click.command("evaluate")
@click.argument("release", type=PathType)
@click.option("--original", type=PathType, required=True, help="The original table.")
@click.option("--of", "of", callback=names, help="Protected attributes, as A,B; each one by itself when left out.")
@click.option("--by", "by", callback=names, help="Untouched attributes, as C,D.")
@click.option("--estimator", help="As for estimate.")
@text_table_options
@json_option
def command(
    release: Path,
    original: Path,
    of: tuple[str, ...],
    by: tuple[str, ...],
    estimator: str | None,
    separator: str | None,
    encoding: str,
    as_json: bool,
) -> None:
    """Compare what is estimated from a RELEASE with the original table.

    \b
    Example:
      polyseme evaluate release --original people.csv --of income --by sex
    """
    from polyseme import pipeline

    result = pipeline.evaluate(release, original, of, by, separator=separator, encoding=encoding, estimator=estimator)
    if as_json:
        print_json(result.to_dict())
    else:
        from polyseme.reports.terminal import metrics_view

        show(metrics_view(result.tables))
