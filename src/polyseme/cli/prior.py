"""`polyseme prior`: a file for `prior: {by: [...], file: F.csv}`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from polyseme.cli.console import PathType, TableType, busy, names, policy_places, say, write_text

if TYPE_CHECKING:
    from polyseme.results.prior import Prior

_of = click.option("--of", required=True, help="The attribute whose distribution is wanted.")
_by = click.option("--by", multiple=True, callback=names, help="Untouched attributes that it depends on, as A,B.")
_out = click.option("--out", type=PathType, help="Write the CSV file there instead of printing it.")


@click.group("prior", short_help="A prior file, from an earlier release or from a table.")
def command() -> None:
    """Write the distribution of an attribute by other columns, for `prior: {by, file}`.

    \b
    Example:
      polyseme prior from-release release --of income --by sex --out income-by-sex.csv
    """


@command.command("from-release")
@click.argument("release", type=PathType)
@_of
@_by
@_out
@click.option("--force", is_flag=True, help="Replace an earlier prior.")
def from_release(release: Path, of: str, by: tuple[str, ...], out: Path | None, force: bool) -> None:
    """The estimate of an earlier RELEASE. Every reader can make it, so it reveals nothing new.

    \b
    Example:
      polyseme prior from-release release --of income --by sex --out income-by-sex.csv
    """
    from polyseme.verbs.prior import prior_from_release

    with busy("Estimating"):
        found = prior_from_release(release, of, by)
    _finish(found, out, force)


@command.command("from-table")
@click.argument("table", type=TableType)
@_of
@_by
@click.option("--epsilon", type=float, help="Add noise that hides each person: differential privacy.")
@click.option(
    "--publish-exact",
    is_flag=True,
    help="No noise: the distribution of the table itself is published with every release that is made for it.",
)
@click.option("--policy", type=PathType, help="Says what the values are (bins, periods) and how the table is written.")
@_out
@click.option("--force", is_flag=True, help="Replace an earlier prior.")
@policy_places
def from_table(
    table: Path | str,
    of: str,
    by: tuple[str, ...],
    epsilon: float | None,
    publish_exact: bool,
    policy: Path | None,
    out: Path | None,
    force: bool,
) -> None:
    """The distribution in a TABLE of people, with differential privacy.

    Whatever one record says, no outcome is more than e^epsilon times likelier than with another record in its place.
    The values that occur in each column are taken as public; a policy can declare them.

    \b
    Example:
      polyseme prior from-table people.csv --of income --by sex --epsilon 1 --out income-by-sex.csv
    """
    from polyseme.verbs.prior import prior_from_table

    with busy("Counting"):
        found = prior_from_table(table, of, by, epsilon=epsilon, publish_exact=publish_exact, policy=policy)
    _finish(found, out, force)


def _finish(found: Prior, out: Path | None, force: bool) -> None:
    from polyseme.cli.console import is_prior

    write_text(found.to_csv(), out, force, is_prior)
    for remark in found.remarks:
        say(f"{found.of}: {remark}", err=True)
