from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from polyseme.cli.console import PathType, TableType, busy, json_option, print_json, show, text_table_options

if TYPE_CHECKING:
    from polyseme.tables.io.options import TableOptions


@click.command("attack")
@click.argument("release", type=PathType)
@click.option("--original", type=TableType, help="The original table, to measure success against the truth.")
@click.option("--other", type=PathType, help="A second release of the same people, for the intersection attack.")
@text_table_options
@json_option
def command(
    release: Path, original: Path | str | None, other: Path | None, as_json: bool, **written: Unpack[TableOptions]
) -> None:
    """Run the adversaries against a RELEASE: who, what they know, what they gain, what was promised.

    \b
    Example:
      polyseme attack release --original people.csv
    """
    from polyseme.verbs.attack import attack

    with busy("Attacking"):
        findings = attack(release, original, other, **written)
    if as_json:
        print_json(findings.to_dict())
    else:
        show(findings)
