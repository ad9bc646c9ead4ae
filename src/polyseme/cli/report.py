from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from polyseme.cli.console import PathType, TableType, busy, say, text_table_options, write_text
from polyseme.kernel.plugins import installed, pip_line

if TYPE_CHECKING:
    from polyseme.tables.io.source import TableOptions


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
def command(
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
