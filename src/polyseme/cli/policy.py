"""`polyseme policy`: change one place of a policy file, and keep every other byte."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import click

from polyseme.cli.console import (
    PathType,
    TableType,
    allow_outside_option,
    json_option,
    print_json,
    say,
    text_table_options,
)

if TYPE_CHECKING:
    from polyseme.policy.edit import Edited
    from polyseme.tables.io.source import TableOptions

__all__ = ["command"]


@click.group("policy")
def command() -> None:
    """Change one place of a policy and keep every other byte.

    \b
    Example:
      polyseme policy set policy.yaml attributes.income.protect.semantic-diversity.l 4
    """


@command.command("set")
@click.argument("policy", type=PathType)
@click.argument("place", metavar="PATH")
@click.argument("value", required=False)
@click.option("--remove", is_flag=True, help="Remove the place; there is no VALUE then.")
@allow_outside_option
@json_option
def set_(policy: Path, place: str, value: str | None, remove: bool, allow_outside: bool, as_json: bool) -> None:
    """Give the place PATH of POLICY the value VALUE, in YAML.

    PATH is written as in error messages, such as attributes.age.hierarchy or models[0].k-anonymity.k; a key with a
    dot may be in double quotes. A place that is not there is added. Comments and everything else stay as they are;
    the draft's remarks that repeat a value follow. A policy that would not be valid is not written.

    \b
    Example:
      polyseme policy set policy.yaml attributes.income.protect.semantic-diversity.l 4
      polyseme policy set policy.yaml 'models' '[{k-anonymity: {k: 5}}]'
      polyseme policy set policy.yaml models --remove
    """
    from polyseme.kernel.documents import parse
    from polyseme.policy.edit import edit

    if remove == (value is not None):
        raise click.UsageError("Give a VALUE, or --remove without one.")
    if value is None:
        made = edit(policy, remove=[place], allow_outside=allow_outside)
    else:
        made = edit(policy, {place: parse(value)}, allow_outside=allow_outside)
    _show(policy, made, as_json)


@command.command("role")
@click.argument("policy", type=PathType)
@click.argument("column")
@click.argument("role")
@click.option("--data", type=TableType, help="The table, to draft the rest for the new role.")
@allow_outside_option
@text_table_options
@json_option
def role(
    policy: Path,
    column: str,
    role: str,
    data: Path | str | None,
    allow_outside: bool,
    as_json: bool,
    **written: Unpack[TableOptions],
) -> None:
    """Give COLUMN another ROLE in POLICY.

    Roles: identifier, quasi-identifier, sensitive, sensitive-qid, insensitive, weight. With --data the rest of the
    column is drafted for the new role, as `polyseme init` would; without, what does not go with the role is removed.

    \b
    Example:
      polyseme policy role policy.yaml sex insensitive --data people.csv
    """
    from polyseme.policy import Policy
    from polyseme.policy.edit import edit

    made = edit(policy, roles={column: role}, data=data, allow_outside=allow_outside, **written)
    _show(policy, made, as_json)
    changed = Policy.load(policy, allow_outside).by_name.get(column) if data is None else None
    if changed is not None and changed.role.is_secret and not changed.protect and not as_json:
        say(f"'{column}' has no promise yet. Draft one from the table: --data TABLE", err=True)


def _show(policy: Path, made: Edited, as_json: bool) -> None:
    lines = made.splitlines()
    if as_json:
        changed: list[dict[str, Any]] = [{"line": line, "text": lines[line - 1]} for line in made.lines]
        print_json({"policy": str(policy), "changed": changed})
        return
    count = len(made.lines)
    said = f"{count} line{'s' if count != 1 else ''} changed" if made != made.before else "nothing to change"
    say(f"{policy}: {said}")
    for line in made.lines:
        click.echo(f"{line:>5}  {lines[line - 1]}")
