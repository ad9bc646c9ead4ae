from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from polyseme.cli.console import (
    PathType,
    TableType,
    busy,
    json_option,
    print_json,
    show_offending,
    show_values_option,
    text_table_options,
    write_text,
)

if TYPE_CHECKING:
    from polyseme.tables.io.source import TableOptions


@click.command("init")
@click.argument("data", type=TableType)
@click.option("--out", type=PathType, help="Where to write the policy; standard output by default.")
@text_table_options
@show_values_option
@click.option("--force", is_flag=True, help="Replace an earlier policy.")
@json_option
def command(
    data: Path | str,
    out: Path | None,
    force: bool,
    show_values: bool,
    as_json: bool,
    **written: Unpack[TableOptions],
) -> None:
    """Look at the table DATA and draft a policy, with a comment on every guess.

    The draft works as it is: what looks like an identifier is dropped, what looks like a secret becomes sets of
    candidates, and everything else is generalized until at least five records share it. Read it all the same: what
    an attacker knows cannot be seen from the data. With --json the guess, the reason and the alternatives for each
    column are printed beside the policy.

    \b
    Example:
      polyseme init people.csv --out policy.yaml
    """
    from polyseme.cli.console import is_policy
    from polyseme.kernel.files import require_place
    from polyseme.verbs.init import init, unknown_values

    if out is not None:
        require_place(out, force, is_policy)
    with busy("Drafting"):
        text = init(data, **written)
    if not as_json or out is not None:
        write_text(text, out, force, is_policy)
    if as_json:
        print_json(text.to_dict())
    if show_values:
        show_offending(unknown_values(text, data, **written))
